"""What an entry stands for: takes a compiled loop, gives the instructions that one wave issues for each of its ops.

Loops by values say it themselves.  Ops of a tile-granular body share the work of one K-tile evenly with the others of
their kind, so a `TileShape` is enough for them.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, Protocol

from rota.declare.check import check_types
from rota.declare.effects import Action
from rota.declare.geometry import WAVE_GRIDS, KernelGeometry, check_waves
from rota.declare.mfma import element_bytes_named, shape_named
from rota.declare.values import LoopSpec
from rota.declare.values import Work as LoopWork
from rota.declare.vocabulary import CHANNEL_A, CHANNEL_B, FrameworkTag, OpRole
from rota.errors import DeclarationError, Finding
from rota.program.loop import LoopSteps, ScheduledLoop, Step
from rota.targets.machine import Machine
from rota.targets.rates import LANES, slots

_MOVING = (OpRole.GLOBAL_LOAD, OpRole.SHARED_STORE, OpRole.FRAGMENT_LOAD)
_WIDEST = 16  # bytes that one lane moves with one instruction


class TimedLoop(ScheduledLoop, Protocol):
    """A compiled schedule of either kind."""

    @property
    def name(self) -> str:
        """What the schedule is called."""
        ...

    @property
    def machine(self) -> Machine:
        """What it was compiled for."""
        ...

    @property
    def loop(self) -> LoopSpec | None:
        """The loop by values, if it came from one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TileShape:
    """What a tile-granular body leaves open: the workgroup's tile, its waves (4 as 2x2, 8 as 2x4), the MFMA."""

    geometry: KernelGeometry
    waves: int
    instruction: str

    def __post_init__(self) -> None:
        check_types(self, {"geometry": KernelGeometry, "instruction": str})
        check_waves(self, self.waves)

    @property
    def wave_tile(self) -> tuple[int, int]:
        """Rows and columns that one wave computes."""
        down, across = WAVE_GRIDS[self.waves]
        return self.geometry.BM // down, self.geometry.BN // across


class Work(NamedTuple):
    """`instructions` that one wave issues, each moving `moved` bytes for it; `instruction` names an MFMA."""

    instructions: int
    moved: int = 0
    instruction: str = ""


Worker = Callable[[Step], Work]


def work_of(loop: TimedLoop, steps: LoopSteps, shape: TileShape | None) -> Worker:
    """A function from steps to their work; barriers and waits are one instruction, compiler fences none."""
    if loop.loop is not None:
        return _by_values(loop.loop)
    if shape is None:
        raise DeclarationError(
            Finding(
                code="D109",
                message=f"{loop.name} is declared in tiles: nothing says how many instructions an op stands for",
                fixes=("pass shape=TileShape(geometry=..., waves=..., instruction=...)",),
            )
        )
    return _by_tiles(shape, steps)


def waves_of(loop: TimedLoop, shape: TileShape | None) -> int:
    """Waves of the workgroup."""
    return loop.loop.waves if loop.loop is not None else shape.waves if shape else 0


def flops_of(instruction: str) -> int:
    """Floating-point (or integer) operations of one MFMA, from the shape in its name: v_mfma_f32_16x16x32_bf16."""
    shape = shape_named(instruction)
    if shape is None:
        raise DeclarationError(Finding(code="D105", message=f"{instruction!r} doesn't name its shape, as 16x16x32"))
    return 2 * prod(shape)


def _framework(step: Step) -> Work:
    fence = step.effect.action is Action.NOTHING and step.entry.op.tag != FrameworkTag.SET_PRIO
    return Work(0 if fence else 1)


def _by_values(spec: LoopSpec) -> Worker:
    def work(step: Step) -> Work:
        if step.entry.op.is_framework:
            return _framework(step)
        op = spec.ops[step.entry.op.subtile]
        name = op.instruction if op.work is LoopWork.MMA else ""
        return Work(op.instructions, -(-op.moved // (op.instructions * spec.waves)), name)

    return work


def _by_tiles(shape: TileShape, steps: LoopSteps) -> Worker:
    """Each kind of op (role and operand) moves or computes one K-tile's worth per tile, in equal parts.

    Where a role knows one operand only, it stands for both.
    """
    kinds = Tally((step.entry.op.role, step.entry.op.channel) for step in steps.kernel)
    geometry = shape.geometry
    deep = geometry.BK * geometry.elem_bytes
    wave_rows, wave_columns = shape.wave_tile
    mfmas = (wave_rows // geometry.MMA_M) * (wave_columns // geometry.MMA_N) * (geometry.BK // geometry.MMA_K)

    computes = sum(count for (role, _), count in kinds.items() if role is OpRole.COMPUTE)
    _check_fit(shape, kinds, even=computes == 0 or mfmas * steps.tiles_per_trip % computes == 0)

    def work(step: Step) -> Work:
        op = step.entry.op
        if op.is_framework:
            return _framework(step)
        parts = kinds[op.role, op.channel] / steps.tiles_per_trip
        if op.role is OpRole.COMPUTE:
            return Work(round(mfmas / parts), 0, shape.instruction)
        if op.role not in _MOVING:
            return Work(max(slots(op.latency), 1))
        fragment = op.role is OpRole.FRAGMENT_LOAD
        rows, columns = (wave_rows, wave_columns) if fragment else (geometry.BM, geometry.BN)
        extent = rows + columns if _alone(op.role, kinds) else {CHANNEL_A: rows, CHANNEL_B: columns}[op.channel]
        own = round(extent * deep / parts / (1 if fragment else shape.waves))
        # A cost of one token says "not counted", so that waits drain; then the widest instruction is meant.
        count = step.effect.tokens if step.effect.tokens > 1 else max(own // (_WIDEST * LANES), 1)
        return Work(count, own // count)

    return work


def _alone(role: OpRole, kinds: Collection[tuple[OpRole, int]]) -> bool:
    """Has the role one operand only?"""
    return sum(other is role for other, _ in kinds) == 1


def _check_fit(shape: TileShape, kinds: Collection[tuple[OpRole, int]], *, even: bool) -> None:
    """Do whole instructions follow from the shape?"""
    geometry, name = shape.geometry, shape.instruction
    rows, columns = shape.wave_tile
    down, across = WAVE_GRIDS[shape.waves]
    sides = geometry.MMA_M, geometry.MMA_N, geometry.MMA_K
    named = shape_named(name)
    rules = {
        f"MMA_M, MMA_N and MMA_K, {'x'.join(map(str, sides))}, are those of {name}": named in (None, sides),
        f"elem_bytes, {geometry.elem_bytes}, is the size of {name}'s operands": named is None
        or geometry.elem_bytes == element_bytes_named(name),
        f"{shape.waves} waves, {down}x{across}, share BM x BN in whole MFMAs": (rows * down, columns * across)
        == (geometry.BM, geometry.BN)
        and rows % geometry.MMA_M == columns % geometry.MMA_N == 0,
        "BK is a multiple of MMA_K": geometry.BK % geometry.MMA_K == 0,
        "compute ops share the MFMAs evenly": even,
        "what ops move belongs to A or B": all(
            channel in (CHANNEL_A, CHANNEL_B) or _alone(role, kinds) for role, channel in kinds if role in _MOVING
        ),
    }
    broken = tuple(rule for rule, holds in rules.items() if not holds)
    if broken:
        raise DeclarationError(
            Finding(
                code="D109",
                message="the instructions of a body declared in tiles don't follow from its geometry",
                evidence=tuple(("broken", rule) for rule in broken),
            )
        )
