"""A schedule by stages as a lowered program: takes its entries and configs, gives a `LoweredProgram`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc
from rota.pipeline.op_effects import EffectTerms, accumulator_of, effect_of, operands_of
from rota.pipeline.schedule_config import ScheduleConfig
from rota.pipeline.schedule_entry import ScheduleEntry
from rota.pipeline.vocabulary import FrameworkTag
from rota.program.effects import Effect
from rota.program.entry import Entry, Op, Work
from rota.program.kinds import OpRole
from rota.program.lowered import LoweredProgram, TileProduct, TileSum
from rota.program.machine import LANES, Machine
from rota.program.stagger import catch_up, fall_back, groups_of, meeting_of

_WITHOUT_INSTRUCTION = (FrameworkTag.SCHEDULE_BARRIER, FrameworkTag.SCHED_GROUP_BARRIER)
_ISSUED, _NOT_ISSUED = Work(1), Work(0)


class StagedSchedule(Protocol):
    """What lowering needs of a schedule by stages."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def machine(self) -> Machine:
        """What it is for."""
        ...

    @property
    def config(self) -> PipelineConfig:
        """Depth, grid, partitions, stagger."""
        ...

    @property
    def schedule_config(self) -> ScheduleConfig:
        """Token costs."""
        ...

    @property
    def body(self) -> tuple[OpDesc, ...]:
        """The ops of one trip, as declared."""
        ...

    @property
    def prologue(self) -> tuple[ScheduleEntry, ...]:
        """Entries before the loop."""
        ...

    @property
    def kernel(self) -> tuple[ScheduleEntry, ...]:
        """Entries of one trip."""
        ...

    @property
    def epilogue(self) -> tuple[ScheduleEntry, ...]:
        """Entries after the loop."""
        ...

    @property
    def warp_stagger_index(self) -> int:
        """After how many prologue entries group 1 falls back."""
        ...

    @property
    def compiler_tracks_registers(self) -> bool:
        """Does the compiler wait for register loads by itself?"""
        ...

    @property
    def reentrant(self) -> bool:
        """May the loop be run again immediately after itself?"""
        ...

    @property
    def lds_bytes(self) -> int | None:
        """Bytes of LDS, where the schedule knows its geometry."""
        ...

    @property
    def registers(self) -> int | None:
        """Registers per lane, where the schedule knows them."""
        ...

    @property
    def register_limit(self) -> int:
        """Registers that a lane has."""
        ...


def lower(schedule: StagedSchedule) -> LoweredProgram:
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
    roles = groups_of(None, staggered=staggered)
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
        barriers=meeting_of(roles),
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
    """Gives each op its effect; an op that stands in several places is lowered once."""

    def __init__(self, setting: EffectTerms) -> None:
        self.setting = setting
        self.lowered: dict[int, tuple[Op, Effect]] = {}  # by identity: telling whether ops are equal takes longer

    def phase(self, entries: Iterable[ScheduleEntry]) -> tuple[Entry, ...]:
        return tuple(self._entries(entries))

    def _entries(self, entries: Iterable[ScheduleEntry]) -> Iterator[Entry]:
        lowered = self.lowered
        for each in entries:
            known = lowered.get(id(each.op))
            if known is None:
                known = lowered[id(each.op)] = self._lowered(each.op)
            op, effect = known
            yield Entry(op=op, effect=effect, time_slot=each.time_slot, phase=each.phase, is_prefetch=each.is_prefetch)

    def _lowered(self, desc: OpDesc) -> tuple[Op, Effect]:
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
