"""A pipelined loop as the machine runs it: takes a schedule's phases, gives entries with effect and group.

Wave groups run the same entries; with stagger, group 1 executes one more barrier inside the prologue, every wave one
after it, and group 0 one more at the very end, so that group 1 stays one barrier behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from rota.declare.config import PipelineConfig
from rota.declare.effects import Effect, effect_of
from rota.declare.op import OpDesc
from rota.declare.vocabulary import Phase
from rota.errors import Concern
from rota.program.entry import ScheduleEntry

_LEADING, _TRAILING = 0, 1


class KnobsForTokens(Protocol):
    """The part of a schedule config that says what a load costs on lgkmcnt."""

    @property
    def lgkm_per_load_a(self) -> int:
        """Tokens of an A load, where the pipeline config has none."""
        ...

    @property
    def lgkm_per_load_b(self) -> int:
        """Tokens of a B load, where the pipeline config has none."""
        ...


class ScheduledLoop(Protocol):
    """What a proof or a simulation needs of a compiled schedule: finished entries and the pipeline they run in."""

    @property
    def config(self) -> PipelineConfig:
        """Depth, grid, partitions, stagger."""
        ...

    @property
    def schedule_config(self) -> KnobsForTokens:
        """Token costs."""
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
    def trip_tiles(self) -> tuple[int, int] | None:
        """K-tiles per trip and outside the loop, where they don't follow from the config."""
        ...

    @property
    def compiler_tracks_registers(self) -> bool:
        """Does the compiler wait for register loads by itself?"""
        ...

    @property
    def warp_stagger_index(self) -> int:
        """After how many prologue entries group 1 falls back."""
        ...

    @property
    def reentrant(self) -> bool:
        """May the loop be run again right behind itself?"""
        ...

    @property
    def vmcnt_in_order(self) -> bool:
        """Does vmcnt count down in the order of issue?"""
        ...


class Step(NamedTuple):
    """An entry with its effect; `group` is the only wave group that executes it, or None for all of them."""

    entry: ScheduleEntry
    effect: Effect
    group: int | None

    def concern(self, role: str | None = None) -> Concern:
        """This step as one end of a finding; by default with its phase."""
        where = self.entry.phase.value.lower() if role is None else role
        return self.entry.op.concern(self.entry.time_slot, where)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSteps:
    """The three phases as steps, and how trips count K-tiles.

    A `reentrant` loop may be run again right behind itself.  Without `vmcnt_in_order` a wait that leaves some of the
    counter's tokens pending says nothing about which op is over.
    """

    prologue: tuple[Step, ...]
    kernel: tuple[Step, ...]
    epilogue: tuple[Step, ...]
    groups: int
    tiles_per_trip: int
    tiles_outside: int
    reentrant: bool = False
    vmcnt_in_order: bool = True

    def phase(self, phase: Phase) -> tuple[Step, ...]:
        """The steps of one phase."""
        return {Phase.PROLOGUE: self.prologue, Phase.KERNEL: self.kernel, Phase.EPILOGUE: self.epilogue}[phase]

    def k_of(self, phase: Phase, trip: int) -> int:
        """The k that loads count from, in tiles: 0 in the prologue, then one trip's tiles further each trip."""
        return 0 if phase is Phase.PROLOGUE else self.tiles_per_trip * trip

    def total_tiles(self, trip_count: int) -> int:
        """K-tiles that the whole loop computes."""
        return self.tiles_per_trip * trip_count + self.tiles_outside


def steps_of(loop: ScheduledLoop) -> LoopSteps:
    """The loop's steps, with the stagger's extra barriers in place.

    A double buffer computes `num_partitions` tiles a trip and as many in the epilogue; a single buffer one a trip and
    two in the epilogue.
    """
    config = loop.config
    fallback = (loop.schedule_config.lgkm_per_load_a, loop.schedule_config.lgkm_per_load_b)
    effects: dict[OpDesc, Effect] = {}

    def step(entry: ScheduleEntry) -> Step:
        effect = entry.effect or effects.get(entry.op)
        if effect is None:
            effect = effects[entry.op] = effect_of(entry.op, config, fallback)
        return Step(entry, effect, entry.group)

    staggered = config.warp_stagger.enabled
    double = config.depth >= 2
    per_trip, outside = (config.num_partitions, config.num_partitions) if double else (1, 2)
    if loop.trip_tiles is not None:
        per_trip, outside = loop.trip_tiles
    return LoopSteps(
        prologue=tuple(map(step, _staggered_prologue(loop) if staggered else loop.prologue)),
        kernel=tuple(map(step, loop.kernel)),
        epilogue=tuple(map(step, _with_closing_barrier(loop.epilogue) if staggered else loop.epilogue)),
        groups=2 if staggered else 1,
        tiles_per_trip=per_trip,
        tiles_outside=outside,
        reentrant=loop.reentrant,
        vmcnt_in_order=loop.vmcnt_in_order,
    )


def _staggered_prologue(loop: ScheduledLoop) -> Iterator[ScheduleEntry]:
    for slot, entry in enumerate(loop.prologue):
        if slot == loop.warp_stagger_index:
            yield _extra_barrier(Phase.PROLOGUE, slot, _TRAILING)
        yield entry
    if loop.warp_stagger_index == len(loop.prologue):
        yield _extra_barrier(Phase.PROLOGUE, len(loop.prologue), _TRAILING)
    yield _extra_barrier(Phase.PROLOGUE, len(loop.prologue), None)


def _with_closing_barrier(epilogue: Iterable[ScheduleEntry]) -> Iterator[ScheduleEntry]:
    slot = 0
    for slot, entry in enumerate(epilogue, 1):  # noqa: B007  # the last slot is where the closing barrier stands
        yield entry
    yield _extra_barrier(Phase.EPILOGUE, slot, _LEADING)


def _extra_barrier(phase: Phase, slot: int, group: int | None) -> ScheduleEntry:
    return ScheduleEntry(op=OpDesc.barrier(), time_slot=slot, phase=phase, group=group)
