"""What an op does to the machine: takes an op and its pipeline config, gives an `Effect` on places and counters.

This is the meaning of an op, not a derivation from it: the proof and the executor both read it, each with an algorithm
of its own (see docs/machine_model.md).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from rota.declare.config import PipelineConfig
from rota.declare.op import OpDesc
from rota.declare.vocabulary import CHANNEL_A, CHANNEL_B, FrameworkTag, OpRole


class Counter(enum.Enum):
    """A per-wave counter of memory ops that are still under way."""

    VM = "vmcnt"
    LGKM = "lgkmcnt"


class Space(enum.Enum):
    """Where a place is."""

    __hash__ = object.__hash__  # members are single; an enum's own hash is Python code, and places are keys everywhere

    LDS = "LDS"  # shared by the workgroup; each wave writes its own slice of a tile and reads the whole
    REGISTER = "register"  # private to a wave
    ACCUMULATOR = "accumulator"  # private to a wave; only computes touch it


class Place(NamedTuple):
    """Something that ops read and write. LDS: (channel, stage, subtile); register: (channel, -, subtile)."""

    space: Space
    channel: int
    stage: int
    subtile: int

    def __str__(self) -> str:
        operand = "AB"[self.channel] if 0 <= self.channel < 2 else str(self.channel)
        if self.space is Space.LDS:
            return f"LDS {operand}[{self.stage}][{self.subtile}]"
        if self.space is Space.REGISTER:
            return f"registers {operand}[{self.subtile}]" if self.stage == 0 else f"staging registers {operand}"
        return f"accumulator [{self.stage},{self.subtile}]"


class Version(NamedTuple):
    """A value, or an op, of one iteration; in an effect the iteration is counted from the trip's k."""

    name: str
    iteration: int

    def at(self, k: int) -> Version:
        """The same, counted from iteration 0."""
        return Version(self.name, self.iteration + k)

    def __str__(self) -> str:
        return f"{self.name} of iteration {self.iteration}"


class Action(enum.Enum):
    """What kind of thing an op is to the machine."""

    DMA = "global memory to LDS"
    GLOBAL_TO_REGISTER = "global memory to registers"
    LDS_READ = "LDS to registers"
    LDS_WRITE = "registers to LDS"
    COMPUTE = "registers to accumulator"
    WAIT = "wait for a counter"
    BARRIER = "barrier"
    NOTHING = "orders and moves nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One op as the machine sees it.

    `tokens` are appended to `counter` when it issues; a wait leaves at most `wait_value` of them pending.  `fetches` is
    the K-tile that a load fetches, relative to the trip's k; None means the tile after the one it fetched last.

    An op of a loop declared by values says exactly what it is: the `instance` it stands for, the versions it `wants` in
    the places it reads, and the versions it `makes` in those it writes.
    """

    action: Action
    counter: Counter | None = None
    tokens: int = 0
    wait_value: int = 0
    reads: tuple[Place, ...] = ()
    writes: tuple[Place, ...] = ()
    fetches: int | None = None
    instance: Version | None = None
    wants: tuple[tuple[Place, Version], ...] = ()
    makes: tuple[tuple[Place, Version], ...] = ()


_STAGING = 1  # the `stage` by which staging registers differ from fragment registers

_FIXED: dict[int, Callable[[OpDesc], Effect]] = {
    FrameworkTag.BARRIER: lambda _: Effect(action=Action.BARRIER),
    FrameworkTag.WAIT_VM: lambda op: Effect(action=Action.WAIT, counter=Counter.VM, wait_value=op.wait_value),
    FrameworkTag.WAIT_LGKM: lambda op: Effect(action=Action.WAIT, counter=Counter.LGKM, wait_value=op.wait_value),
}


def effect_of(op: OpDesc, config: PipelineConfig, lgkm_fallback: tuple[int, int] = (0, 0)) -> Effect:
    """The effect of one op.

    An op's own costs come first, then the pipeline config's per-channel costs, then the fallback; an asynchronous op
    has at least one token, or no wait could ever cover it.
    """
    if op.is_framework:
        fixed = _FIXED.get(op.tag)
        return fixed(op) if fixed else Effect(action=Action.NOTHING)
    described = _BY_ROLE.get(op.role)
    return described(op, config, lgkm_fallback) if described else Effect(action=Action.NOTHING)


def _load(op: OpDesc, config: PipelineConfig, _: tuple[int, int]) -> Effect:
    tokens = max(op.vm_cost or config.vm_per_channel(op.channel), 1)
    if config.depth < 2:
        return Effect(action=Action.GLOBAL_TO_REGISTER, counter=Counter.VM, tokens=tokens, writes=(_staging(op),))
    return Effect(
        action=Action.DMA,
        counter=Counter.VM,
        tokens=tokens,
        writes=(_tile(op, config),),
        fetches=op.k_offset.signed_bk_multiple(),
    )


def _store(op: OpDesc, config: PipelineConfig, fallback: tuple[int, int]) -> Effect:
    return Effect(
        action=Action.LDS_WRITE,
        counter=Counter.LGKM,
        tokens=_lgkm_tokens(op, config, fallback),
        reads=(_staging(op),),
        writes=(_tile(op, config),),
    )


def _fragment(op: OpDesc, config: PipelineConfig, fallback: tuple[int, int]) -> Effect:
    return Effect(
        action=Action.LDS_READ,
        counter=Counter.LGKM,
        tokens=_lgkm_tokens(op, config, fallback),
        reads=(_tile(op, config),),
        writes=(Place(Space.REGISTER, op.channel, 0, op.subtile),),
    )


def _compute(op: OpDesc, config: PipelineConfig, _: tuple[int, int]) -> Effect:
    if config.depth < 2:  # a slice of K per compute, all into one accumulator
        operands: tuple[Place, ...] = (Place(Space.REGISTER, CHANNEL_A, 0, op.subtile),)
        accumulator = Place(Space.ACCUMULATOR, -1, 0, 0)
    else:
        operands = tuple(
            Place(Space.REGISTER, channel, 0, config.compute_match_key(channel, op))
            for channel in (CHANNEL_A, CHANNEL_B)
        )
        accumulator = Place(Space.ACCUMULATOR, -1, op.stage, op.subtile)
    return Effect(action=Action.COMPUTE, reads=operands, writes=(accumulator,))


_BY_ROLE: dict[OpRole, Callable[[OpDesc, PipelineConfig, tuple[int, int]], Effect]] = {
    OpRole.GLOBAL_LOAD: _load,
    OpRole.SHARED_STORE: _store,
    OpRole.FRAGMENT_LOAD: _fragment,
    OpRole.COMPUTE: _compute,
}


def _tile(op: OpDesc, config: PipelineConfig) -> Place:
    """A single buffer's tile is one place: its store writes all of it, each fragment reads a slice of K."""
    return Place(Space.LDS, op.channel, op.stage, op.subtile if config.depth >= 2 else 0)


def _staging(op: OpDesc) -> Place:
    return Place(Space.REGISTER, op.channel, _STAGING, 0)


def _lgkm_tokens(op: OpDesc, config: PipelineConfig, fallback: tuple[int, int]) -> int:
    return max(op.lgkm_cost or config.lgkm_per_channel(op.channel, *fallback), 1)
