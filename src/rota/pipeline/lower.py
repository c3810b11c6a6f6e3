"""Lower a schedule by stages: the effect of each op, then the `LoweredProgram`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rota.errors import DeclarationError
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import CHANNEL_A, FrameworkTag, OpDesc, ScheduleEntry
from rota.program.entry import MEETS, Effect, Entry, Op, Place, Space, Work
from rota.program.kinds import OpKind, OpRole
from rota.program.lowered import (
    LoweredProgram,
    TileProduct,
    TileSum,
    catch_up,
    fall_back,
    find_common_barrier,
    make_groups,
)
from rota.program.machine import LANES, Machine

if TYPE_CHECKING:
    from rota.pipeline.compiled_pipeline import CompiledPipeline


@dataclass(frozen=True)
class EffectTerms:
    """What the effect of an op depends on besides the op.

    `lgkm_fallback` are the tokens of an LDS access to A and to B where neither the op nor the config states them.
    """

    config: PipelineConfig
    machine: Machine
    lgkm_fallback: tuple[int, int] = (0, 0)

    def counter(self, kind: OpKind) -> str:
        found = self.machine.counter_of(kind)
        if found is None:
            raise DeclarationError.of(
                "D105",
                f"{self.machine.name} has no counter for {kind.does}, so nothing could wait for it",
                evidence=(("counters", ", ".join(each.name for each in self.machine.counters)),),
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
    return Place(Space.REGISTER, config.operand_name(channel), subtile)


def _staging(op: OpDesc, config: PipelineConfig) -> Place:
    return Place(Space.REGISTER, f"staging {config.operand_name(op.channel)}")


def _lgkm_tokens(op: OpDesc, setting: EffectTerms) -> int:
    return max(setting.config.lgkm_tokens(op, *setting.lgkm_fallback), 1)


_WITHOUT_INSTRUCTION = (FrameworkTag.SCHEDULE_BARRIER, FrameworkTag.SCHED_GROUP_BARRIER)
_ISSUED, _NOT_ISSUED = Work(1), Work(0)


def lower(schedule: CompiledPipeline) -> LoweredProgram:
    """The schedule's entries with their effects, and the stagger's extra barriers in place.

    A double buffer computes `num_partitions` tiles a trip and as many in the epilogue; a single buffer one a trip and
    two in the epilogue.
    """
    config, knobs = schedule.config, schedule.schedule_config
    maker = _EntryMaker(EffectTerms(config, schedule.machine, (knobs.lgkm_per_load_a, knobs.lgkm_per_load_b)))
    prologue, epilogue = maker.phase(schedule.prologue), maker.phase(schedule.epilogue)
    staggered, split = config.warp_stagger.enabled, schedule.machine.split_barrier
    if staggered:
        prologue = tuple(fall_back(prologue, schedule.warp_stagger_index, split=split))
        epilogue = tuple(catch_up(epilogue, split=split))
    roles = make_groups(None, staggered=staggered)
    return LoweredProgram(
        name=schedule.name,
        machine=schedule.machine,
        semantics=tile_sum(config, schedule.body),
        prologue=prologue,
        kernel=maker.phase(schedule.kernel),
        epilogue=epilogue,
        tiles_per_trip=config.num_partitions if config.depth >= 2 else 1,
        tiles_outside=config.num_partitions if config.depth >= 2 else 2,
        roles=roles,
        barriers=find_common_barrier(roles),
        compiler_tracks_registers=schedule.compiler_tracks_registers,
        reentrant=schedule.reentrant,
        lds_bytes=schedule.lds_bytes,
        registers=schedule.registers,
        register_limit=schedule.register_limit,
        origin="declared by stages",
    )


def tile_sum(config: PipelineConfig, body: Sequence[OpDesc]) -> TileSum:
    """What is declared: every cell of the MMA grid; of a single buffer, every slice of K that its body has."""
    if config.depth >= 2:
        places = [(row, column) for row in range(config.m_mmas) for column in range(config.n_mmas)]
    else:
        places = sorted({(0, op.subtile) for op in body if op.role in (OpRole.FRAGMENT_LOAD, OpRole.COMPUTE)})
    cells = [OpDesc(tag=0, stage=row, subtile=column) for row, column in places]
    return TileSum(
        products=tuple(TileProduct(accumulator_of(cell, config), operands_of(cell, config)) for cell in cells),
        grid=(config.m_mmas, config.n_mmas) if config.depth >= 2 else (1, 1),
        scales=tuple(int(each.match_field != config.ch0_match_field) for each in config.further_channels),
    )


class _EntryMaker:
    """Gives each op its effect; an op that is in several places is lowered once."""

    def __init__(self, setting: EffectTerms) -> None:
        self.setting = setting
        self.lowered: dict[int, tuple[Op, Effect]] = {}  # by identity: telling whether ops are equal takes longer

    def phase(self, entries: Iterable[ScheduleEntry]) -> tuple[Entry, ...]:
        made = []
        for each in entries:
            known = self.lowered.get(id(each.op))
            if known is None:
                known = self.lowered[id(each.op)] = self._lower(each.op)
            op, effect = known
            made.append(
                Entry(op=op, effect=effect, time_slot=each.time_slot, phase=each.phase, is_prefetch=each.is_prefetch)
            )
        return tuple(made)

    def _lower(self, desc: OpDesc) -> tuple[Op, Effect]:
        effect = effect_of(desc, self.setting)
        return Op(
            kind=effect.kind,
            name=str(desc),
            work=self._work(desc, effect),
            source=desc.source,
            declared=desc,
            origin=desc.origin,
        ), effect

    def _work(self, desc: OpDesc, effect: Effect) -> Work | None:
        """What a wave issues for an op; of A and B and of computes it follows from a tile's shape (`TileShape`)."""
        if desc.is_framework:
            return _NOT_ISSUED if desc.tag in _WITHOUT_INSTRUCTION else _ISSUED
        spec = self.setting.config.further_channel(desc.channel)
        return None if spec is None else Work(effect.tokens, spec.lane_bytes * LANES)
