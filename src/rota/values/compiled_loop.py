"""A compiled loop by values: its placement, its entries, and its lowered program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Self

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.cycles.predict import Prediction, predict
from rota.cycles.timeline import Cause
from rota.errors import Finding, RotaError, Severity
from rota.program.entry import Entry, Op
from rota.program.kinds import OpKind, Phase
from rota.program.loop_spec import LoopSpec
from rota.program.lowered import (
    Lowerable,
    LoweredProgram,
    catch_up,
    fall_back,
    falls_back_at,
    find_common_barrier,
    make_groups,
    name_phases,
)
from rota.program.machine import Machine
from rota.targets.device import rates_of, registers_per_lane, timing_of
from rota.values.op_times import time_loop
from rota.values.unroll import Placement, find_most_live

if TYPE_CHECKING:
    from rota.order.modulo.modulo_problem import ModuloSchedule
    from rota.sync.repair import Repaired

_LONGEST_VALU = 4  # slots of one vector instruction: exponentials and the like have a quarter of the rate

_ANOTHER_INTERVAL = Finding(
    "V108",
    "the interval's certificate is about another loop, machine or placement and was removed",
    severity=Severity.WARNING,
    fixes=("compile_loop() derives the interval of this loop",),
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompiledLoop(CompiledSchedule):
    """A pipelined loop by values: the `loop` as declared, its `placement` (start times and copies) and its phases.

    `modulo` is the interval's certificate.  A trip takes `trip_tiles[0]` iterations, `trip_tiles[1]` are outside the
    loop.  Of two `staggered` groups of waves the second falls a barrier behind after `stagger_index` entries.
    """

    prologue: tuple[Entry, ...]
    kernel: tuple[Entry, ...]
    epilogue: tuple[Entry, ...]
    loop: LoopSpec
    placement: Placement
    trip_tiles: tuple[int, int]
    staggered: bool = False
    stagger_index: int = 0
    modulo: ModuloSchedule | None = None
    compiler_tracks_registers: bool = False

    def __post_init__(self) -> None:
        CompiledSchedule.__post_init__(self)
        if self.modulo is not None and self.modulo.about is not None and not self._interval_is_of_this_loop:
            object.__setattr__(self, "modulo", None)
            object.__setattr__(self, "findings", (*self.findings, _ANOTHER_INTERVAL))

    @property
    def _interval_is_of_this_loop(self) -> bool:
        """True if the interval's certificate was derived for this loop, machine and placement."""
        assert self.modulo is not None  # noqa: S101  # whoever asks has looked
        placed = self.modulo.ii == self.placement.interval and self.modulo.starts == self.placement.starts
        return placed and self.modulo.about == (self.loop, self.machine)

    def with_interval(self, found: ModuloSchedule) -> Self:
        """The loop with an interval whose certificate was derived for it."""
        return replace(self, modulo=replace(found, about=(self.loop, self.machine)))

    @property
    def headline(self) -> tuple[str, ...]:
        """The interval and how well it is known to be the least."""
        if self.modulo is None:
            return ()
        proof = self.modulo.certificate
        least = proof.optimal and self._interval_is_of_this_loop
        proved = ("proven least" if least else "not proven least") + proof.scope
        return (f"II {self.modulo.ii * rates_of(self.machine).clocks_per_slot.value:,} clk ({proved})",)

    def planned(self, op: Op) -> str:
        """The issue slot, and how many periods after the start of its iteration."""
        index = next((number for number, own in enumerate(self.loop.ops) if own.name == op.name), None)
        if index is None:
            return ""
        slot, late = self.placement.starts[index] % self.placement.interval, self.placement.stage(index)
        when = {0: "in its iteration's first period", 1: "1 period later"}.get(late, f"{late} periods later")
        return f"planned at issue slot {slot} of {self.placement.interval}, {when}"

    @property
    def op_count(self) -> int:
        """Ops of one iteration."""
        return len(self.loop.ops)

    @property
    def registers(self) -> int:
        """Registers per lane that are live at once, the least that any allocation needs.

        With a matrix op of unknown length every copy counts instead.
        """
        return _count_live(self.loop, self.placement, self.machine, 2 if self.staggered else 1)

    @property
    def register_limit(self) -> int:
        """Registers that a lane has; the waves of a SIMD share them."""
        return registers_per_lane(self.machine, self.loop.waves)

    @property
    def quality(self) -> str:
        """The interval and what is proved about it."""
        if self.modulo is None:
            return "starts as they were placed"
        proof = self.modulo.certificate
        slot = rates_of(self.machine).clocks_per_slot.value
        clocks, lower = (slots * slot for slots in (self.modulo.ii, proof.lower))
        if not self._interval_is_of_this_loop:
            return f"II {clocks:,} clk (claimed, not shown)"
        known = "proven least" if proof.optimal else f"at least {lower:,}"
        return f"II {clocks:,} clk ({known}{proof.scope})"

    @property
    def speed(self) -> str | None:
        """The predicted clocks, and by how much they exceed the interval."""
        if self.modulo is None:
            return None

        return describe_gap(self, self.modulo.ii * rates_of(self.machine).clocks_per_slot.value)

    @property
    def grain(self) -> str:
        """How fine the ops of the loop are."""
        return describe_grain(self.loop)

    @property
    def added(self) -> int:
        """Nothing: every wait and barrier of a loop by values is rota's own."""
        return 0

    def _lower(self) -> LoweredProgram:
        roles, split = make_groups(self.loop.waves, staggered=self.staggered), self.machine.split_barrier
        prologue, epilogue = self.prologue, self.epilogue
        if self.staggered:
            prologue = tuple(fall_back(prologue, self.stagger_index, split=split))
            epilogue = tuple(catch_up(epilogue, split=split))
        return LoweredProgram(
            name=self.name,
            machine=self.machine,
            semantics=self.loop,
            prologue=prologue,
            kernel=self.kernel,
            epilogue=epilogue,
            tiles_per_trip=self.trip_tiles[0],
            tiles_outside=self.trip_tiles[1],
            roles=roles,
            barriers=find_common_barrier(roles),
            compiler_tracks_registers=self.compiler_tracks_registers,
            reentrant=self.reentrant,
            lds_bytes=self.lds_bytes,
            registers=self.registers,
            register_limit=self.register_limit,
            waves=self.loop.waves,
            origin="declared by values",
        )

    def synchronised(self, done: Repaired) -> Self:
        listed = {phase: tuple(entry for entry in done.phases[phase] if entry.listed) for phase in Phase}
        return replace(
            self, **name_phases(listed), stagger_index=falls_back_at(done.phases[Phase.PROLOGUE]), repairs=done.repairs
        )


@lru_cache(maxsize=4)
def _count_live(loop: LoopSpec, placement: Placement, machine: Machine, groups: int) -> int:
    """Computed once: it is the same for every order of the entries."""
    timing = timing_of(machine)
    matrix = (op for op in loop.ops if op.kind is OpKind.MMA)
    if any(op.instruction not in timing.rates.mfma_passes for op in matrix):
        return loop.registers(dict(placement.copies))
    return find_most_live(loop, placement, time_loop(loop, timing, groups=groups)).registers


def describe_grain(loop: LoopSpec) -> str:
    """How fine the ops of a loop are; a vector op takes a slot per instruction, an exponential four."""
    single = (op.instructions == 1 or (op.kind is OpKind.VALU and op.instructions <= _LONGEST_VALU) for op in loop.ops)
    return "by instruction" if all(single) else "in tiles"


# From the interval to the speed.
#
# The interval is a bound that the search proved; the clocks are those of the cycle model, in which waits, barriers
# and the loop's edge take turns, and latencies may show.

_MOST_NAMED = 3
_AT_WORK = (Cause.MMA_BUSY, Cause.VALU_BUSY)


def describe_gap(schedule: Lowerable, interval: int) -> str | None:
    """The predicted clocks of a K-tile, and why they exceed `interval`; None without a model."""
    try:
        found = predict(schedule, band=False)
    except RotaError:
        return None
    more = found.cycles - interval
    said = f"predicted {found.cycles:,.0f} clk"
    if more < 0.5:
        return said
    causes = [f"{cause} {clocks:,.0f}" for cause, clocks in _describe_causes(found) if clocks >= 0.5]
    return f"{said} ({more:,.0f} more: {', '.join(causes[:_MOST_NAMED])})" if causes else f"{said} ({more:,.0f} more)"


def _describe_causes(found: Prediction) -> tuple[tuple[str, float], ...]:
    """Why matrix units were idle, where they are the bottleneck; else what the waves waited for."""
    if found.bound_by_mma:
        return found.idle_causes
    return tuple(each for each in found.causes if each[0] not in _AT_WORK)
