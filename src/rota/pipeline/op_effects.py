"""What an op declared by stages does to the machine: takes it and its pipeline config, gives its `Effect`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from rota.errors import DeclarationError, Finding
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc
from rota.pipeline.vocabulary import CHANNEL_A, FrameworkTag
from rota.program.effects import Effect, Place, Space
from rota.program.entry import MEETS
from rota.program.kinds import OpKind, OpRole
from rota.program.machine import Machine


@dataclass(frozen=True)
class EffectTerms:
    """What the effect of an op depends on besides the op.

    `lgkm_fallback` are the tokens of an LDS access to A and to B where neither the op nor the config states them.
    """

    config: PipelineConfig
    machine: Machine
    lgkm_fallback: tuple[int, int] = (0, 0)

    def counter(self, kind: OpKind) -> str:
        """The counter that tracks a kind of op."""
        found = self.machine.counter_of(kind)
        if found is None:
            raise DeclarationError(
                Finding(
                    code="D105",
                    message=f"{self.machine.name} has no counter for {kind.does}, so nothing could wait for it",
                    evidence=(("counters", ", ".join(each.name for each in self.machine.counters)),),
                )
            )
        return found

    @cached_property
    def load(self) -> OpKind:
        """What a global load is: with one buffer it goes through registers."""
        return OpKind.DMA if self.config.depth >= 2 else OpKind.GLOBAL_LOAD

    @cached_property
    def vm(self) -> str:
        """The counter that `wait_vm` waits for."""
        return self.counter(self.load)

    @cached_property
    def lgkm(self) -> str:
        """The counter that `wait_lgkm` waits for."""
        return self.counter(OpKind.LDS_READ)


_FRAMEWORK: dict[int, Callable[[OpDesc, EffectTerms], Effect]] = {
    FrameworkTag.BARRIER: lambda _op, _setting: MEETS,
    FrameworkTag.WAIT_VM: lambda op, setting: Effect(kind=OpKind.WAIT, counter=setting.vm, wait_value=op.wait_value),
    FrameworkTag.WAIT_LGKM: lambda op, setting: Effect(
        kind=OpKind.WAIT, counter=setting.lgkm, wait_value=op.wait_value
    ),
    FrameworkTag.SET_PRIO: lambda op, _setting: Effect(kind=OpKind.PRIORITY, wait_value=op.wait_value),
    FrameworkTag.SCHEDULE_BARRIER: lambda _op, _setting: Effect(kind=OpKind.FENCE),
    FrameworkTag.SCHED_GROUP_BARRIER: lambda op, _setting: Effect(
        kind=OpKind.HINT, tokens=op.subtile, wait_value=op.wait_value
    ),
}


def effect_of(op: OpDesc, setting: EffectTerms) -> Effect:
    """The effect of one op.

    An op's own costs come first, then the pipeline config's per-channel costs, then the fallback; an asynchronous op
    has at least one token, or no wait could ever cover it.
    """
    if op.is_framework:
        known = _FRAMEWORK.get(op.tag)
        return known(op, setting) if known else Effect(kind=OpKind.FENCE)
    described = _BY_ROLE.get(op.role)
    return described(op, setting) if described else Effect(kind=OpKind.NOTHING)


def operands_of(cell: OpDesc, config: PipelineConfig) -> tuple[Place, ...]:
    """The registers that a compute multiplies; of a single buffer, those of its slice of K."""
    if config.depth < 2:
        return (_fragment_place(CHANNEL_A, cell.subtile, config),)
    return tuple(
        _fragment_place(channel, config.compute_match_key(channel, cell), config) for channel in config.channels
    )


def accumulator_of(cell: OpDesc, config: PipelineConfig) -> Place:
    """What a compute adds to; a single buffer has one accumulator for all slices of K."""
    row, column = (cell.stage, cell.subtile) if config.depth >= 2 else (0, 0)
    return Place(Space.ACCUMULATOR, "", row, column)


def _load(op: OpDesc, setting: EffectTerms) -> Effect:
    config, kind = setting.config, setting.load
    tokens = max(config.vm_tokens(op), 1)
    if kind is OpKind.GLOBAL_LOAD:
        return Effect(kind=kind, counter=setting.vm, tokens=tokens, writes=(_staging(op, config),))
    fetches = op.k_offset.signed_bk_multiple()
    return Effect(kind=kind, counter=setting.vm, tokens=tokens, writes=_filled(op, config), fetches=fetches)


def _store(op: OpDesc, setting: EffectTerms) -> Effect:
    return Effect(
        kind=OpKind.LDS_WRITE,
        counter=setting.counter(OpKind.LDS_WRITE),
        tokens=_lgkm_tokens(op, setting),
        reads=(_staging(op, setting.config),),
        writes=(_tile(op, setting.config),),
    )


def _fragment(op: OpDesc, setting: EffectTerms) -> Effect:
    return Effect(
        kind=OpKind.LDS_READ,
        counter=setting.lgkm,
        tokens=_lgkm_tokens(op, setting),
        reads=(_tile(op, setting.config),),
        writes=(_fragment_place(op.channel, op.subtile, setting.config),),
    )


def _compute(op: OpDesc, setting: EffectTerms) -> Effect:
    return Effect(kind=OpKind.MMA, reads=operands_of(op, setting.config), writes=(accumulator_of(op, setting.config),))


_BY_ROLE: dict[OpRole, Callable[[OpDesc, EffectTerms], Effect]] = {
    OpRole.GLOBAL_LOAD: _load,
    OpRole.SHARED_STORE: _store,
    OpRole.FRAGMENT_LOAD: _fragment,
    OpRole.COMPUTE: _compute,
}


def _tile(op: OpDesc, config: PipelineConfig) -> Place:
    """A single buffer's tile is one place: its store writes all of it, each fragment reads a slice of K."""
    return Place(Space.LDS, config.operand_name(op.channel), op.stage, op.subtile if config.depth >= 2 else 0)


def _filled(op: OpDesc, config: PipelineConfig) -> tuple[Place, ...]:
    """What a load to LDS writes: its subtile, or all of them where its channel is loaded at once."""
    spec = config.further_channel(op.channel)
    if spec is None or not spec.whole_tile:
        return (_tile(op, config),)
    return tuple(_tile(op, config)._replace(part=part) for part in range(config.subtiles(spec)))


def _fragment_place(channel: int, subtile: int, config: PipelineConfig) -> Place:
    """The registers of one fragment."""
    return Place(Space.REGISTER, config.operand_name(channel), subtile)


def _staging(op: OpDesc, config: PipelineConfig) -> Place:
    return Place(Space.REGISTER, f"staging {config.operand_name(op.channel)}")


def _lgkm_tokens(op: OpDesc, setting: EffectTerms) -> int:
    return max(setting.config.lgkm_tokens(op, *setting.lgkm_fallback), 1)
