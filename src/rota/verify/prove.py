"""The proof that a schedule is race-free and right, for every trip count and interleaving.

The proof replays the loop until the machine's state at the loop edge repeats.  Each distinct state, followed by the
epilogue, covers one trip count or all trip counts congruent to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rota.errors import Finding, Severity
from rota.program.entry import Effect, Entry, Space
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import Lowerable, LoweredProgram
from rota.verify.abstract_machine import AbstractMachine
from rota.verify.computed_values import TileContents, VersionContents, find_contradictions
from rota.verify.hazards import Overlap, find_read_hazards, find_write_hazards, lands_after, report_initial_overwritten
from rota.verify.machine_limits import (
    check_arrivals_first,
    check_barrier_counts,
    check_budgets,
    check_counters,
    check_private_registers,
    check_roles,
    check_wait_encodings,
)
from rota.verify.report import (
    AS_COUNTED,
    ENTERED_ONCE,
    ORDER_KEPT,
    REGISTER_WAITS,
    SAME_PATH,
    TILES_APART,
    Certificate,
    Report,
    in_order_assumption,
    issue,
)

_ORDERED = (
    "RAW: every wave's part of a tile lands before any wave reads it",
    "WAR: every wave has read a tile before any wave overwrites it",
    "WAW: a wave's loads into a tile land in order",
    "registers: a load is complete before its registers are used, or written by what would not land after it",
)
_ENTERED_AGAIN = "re-entry: all of this holds when the loop is run again immediately after itself, any number of times"
_INITIAL_TILES = "before every run the caller fills the tiles that the loop reads first, after full waits and a barrier"
_ANY_ORDER = "{}: all of this holds in whatever order its ops complete; only waits for 0 are relied on"
_LIMITS = (
    "barriers: no wave waits forever",
    "waits: every count has a real encoding",
    "budgets: LDS, and the registers that are live at once, fit, as far as they are stated",
)
_SEVERITIES = list(Severity)
_MOST_TRIPS = 64  # far above what any schedule needs
_MOST_RUNS = 64  # of a loop that is entered again, one for each state in which it can have ended


class _Replay(NamedTuple):
    """Trip counts that were replayed one by one, the period of the state, and every state the loop can end in."""

    explicit: int
    period: int
    ended: tuple[AbstractMachine, ...]


def verify(compiled: Lowerable) -> Report:
    """Prove a program race-free and right for every trip count, or report where it isn't."""
    return _Proof(compiled.lowered).report()


def holds(compiled: Lowerable) -> bool:
    """True if `verify` would give a certificate; stops at the first error instead of collecting all."""
    try:
        return _Proof(compiled.lowered, stops=True).report().certificate is not None
    except _Refuted:
        return False


class _Refuted(Exception):  # noqa: N818  # nobody sees it
    """Raised at the first error when no other is asked for."""


def _touches_lds(effect: Effect) -> bool:
    for place in (*effect.reads, *effect.writes):  # noqa: SIM110  # a generator costs more than the loop
        if place.space is Space.LDS:
            return True
    return False


class _Proof:
    """One run of the proof.  Collects findings, each pair of entries once, or `stops` at the first error."""

    def __init__(self, program: LoweredProgram, *, stops: bool = False) -> None:
        self.program = program
        self.stops = stops
        self.contents = program.by_semantics(
            "this proof", lambda declared: TileContents(program, declared), lambda loop: VersionContents(program, loop)
        )
        self.found: dict[tuple[object, ...], Finding] = {}
        self.assumes_register_waits = False

    def report(self) -> Report:
        program = self.program
        self._record(check_roles(program))
        # Whose registers, and whose barriers, is settled where every op has its roles.
        for check in () if self.found else (check_barrier_counts, check_arrivals_first, check_private_registers):
            self._record(check(program))
        self._record(find_contradictions(program))
        self._record(self.contents.find_undeclared())
        # Roles that never meet have no epochs, and what isn't declared has no semantics.
        explicit, period = (0, 0) if self.found else self._replay()
        self._record(self.contents.find_impossible())
        self._record(check_wait_encodings(program))
        self._record(check_budgets(program.machine, program.lds_bytes, program.registers, program.register_limit))
        findings = sorted(self.found.values(), key=lambda finding: _SEVERITIES.index(finding.severity))
        certificate = None if self._wrong() else self._certificate(explicit, period)
        return Report(findings=tuple(findings), certificate=certificate)

    def _wrong(self) -> bool:
        return any(finding.severity is Severity.ERROR for finding in self.found.values())

    def _replay(self) -> tuple[int, int]:
        """Trip counts replayed one by one, and the period of the loop's state.

        A reentrant loop is entered again in every state it can end in.
        """
        entered: set[tuple[object, ...]] = set()
        waiting = [AbstractMachine(self.program)]
        replayed: list[_Replay] = []
        while waiting:
            if len(replayed) == _MOST_RUNS:
                self._report_no_repetition("no state in which the loop ends repeats", "runs", _MOST_RUNS)
                break
            replayed.append(self._replay_from(waiting.pop()))
            if not replayed[-1].period:  # no more runs prove anything
                break
            for machine in replayed[-1].ended if self.program.reentrant else ():
                self._check_initial_values(machine)
                machine.enter_again()
                state = machine.state(0)
                if state not in entered:
                    entered.add(state)
                    waiting.append(machine)
        return max(each.explicit for each in replayed), replayed[0].period

    def _check_initial_values(self, machine: AbstractMachine) -> None:
        """Check the registers that get initial values before the loop runs again: no load into them may be in flight.

        The code between two runs is unknown, so no compiler wait there can be assumed.
        """
        for place in self.contents.initial:
            loader = machine.loading.get(place)
            if place.space is Space.REGISTER and loader is not None and not loader.covered:
                self._record([report_initial_overwritten(machine, loader, place)])

    def _replay_from(self, machine: AbstractMachine) -> _Replay:
        program, contents = self.program, self.contents
        self._run(machine, Phase.PROLOGUE, 0)
        seen: dict[tuple[object, ...], int] = {}
        ended: list[AbstractMachine] = []
        for trips in range(_MOST_TRIPS):
            base = program.tiles_per_trip * trips
            machine.forget_past()
            self._record(contents.find_lost(machine, base))
            # Before iteration 0 nothing is due: as long as an op still reaches back there, the trip itself matters.
            state = (min(base, contents.first_iterations), *machine.state(base))
            if state in seen:
                self._record(check_counters(machine.fullest, program.machine))
                return _Replay(trips, trips - seen[state], tuple(ended))
            seen[state] = trips
            ending = machine.fork()
            self._run(ending, Phase.EPILOGUE, trips + 1)
            self._record(contents.check_end(ending, program.total_tiles(trips)))
            ended.append(ending)
            self._run(machine, Phase.KERNEL, trips + 1)
        self._report_no_repetition("the state at the loop edge doesn't repeat", "trips", _MOST_TRIPS)
        return _Replay(_MOST_TRIPS, 0, tuple(ended))

    def _report_no_repetition(self, what: str, unit: str, most: int) -> None:
        """Report V111: a place that is never rewritten ages with each trip, and who never waits knows ever less."""
        if not self._wrong():
            message = f"nothing is proved: {what} within {most} {unit}"
            self._record([Finding("V111", message, evidence=((f"{unit} looked at", most),))])

    def _run(self, machine: AbstractMachine, phase: Phase, trip: int) -> None:
        k, move = self.program.k_of(phase, trip), self.contents.apply
        for index, step in enumerate(self.program.phase(phase)):
            kind = step.effect.kind
            machine.place = (phase, index)
            if kind is OpKind.WAIT:
                machine.wait(step)
            elif kind is OpKind.BARRIER:
                self._record(machine.meetings.pass_barrier(step))
            elif not kind.synchronises and kind is not OpKind.NOTHING:
                self._access(machine, step, trip)
                self._record(move(machine, step, k))
            machine.number += 1

    def _access(self, machine: AbstractMachine, step: Entry, trip: int) -> None:
        """Check everything the op reads and writes; then put it in flight, or complete it at once."""
        effect = step.effect
        if machine.loading:
            self._registers(machine, step, trip)
        if not effect.kind.computes or _touches_lds(effect):
            self._record(find_read_hazards(machine, step, trip))
            self._record(find_write_hazards(machine, step, trip))
            machine.start(step)
        else:
            for place in effect.writes:
                machine.loading.pop(place, None)

    def _registers(self, machine: AbstractMachine, step: Entry, trip: int) -> None:
        loading = machine.loading
        for place in step.effect.reads:
            loader = loading.get(place)
            if loader is not None and loader.in_flight_for(step):
                self._record_overlap(machine, Overlap(loader, step, place, trip), writes=False)
        for place in step.effect.writes:
            loader = loading.get(place)
            if loader is not None and loader.in_flight_for(step) and not lands_after(machine, loader, step):
                self._record_overlap(machine, Overlap(loader, step, place, trip), writes=True)

    def _record_overlap(self, machine: AbstractMachine, overlap: Overlap, *, writes: bool) -> None:
        """Report a load into registers that no planned wait covers; the compiler's own wait may cover it."""
        # The compiler, too, relies on the order of the counter.
        tracked = self.program.compiler_tracks_registers and machine.can_count(overlap.loader, overlap.step)
        self._record([overlap.finding(machine, writes=writes, compiler_waits=tracked)])
        if tracked:
            self.assumes_register_waits = True
            machine.cover(overlap.loader, overlap.step)

    def _record(self, findings: Iterable[Finding] | Iterator[Finding]) -> None:
        for finding in findings:
            if self.stops and finding.severity is Severity.ERROR:
                raise _Refuted
            ends = tuple((end.label, end.index, end.role.split(",")[0]) for end in finding.concerns)
            self.found.setdefault((finding.code, ends or finding.message), finding)

    def _certificate(self, explicit: int, period: int) -> Certificate:
        program, machine = self.program, self.program.machine
        refilled = program.reentrant and any(place.space is Space.LDS for place in self.contents.initial)
        sizes = {"LDS bytes": program.lds_bytes, "registers": program.registers}
        unordered = [counter.name for counter in machine.counters if not counter.in_order]
        ordered = [counter.name for counter in machine.counters if counter.in_order]
        facts = [(counter.name, counter.holds) for counter in machine.counters]
        facts += [("LDS", machine.lds_bytes), ("registers", machine.vgprs_per_lane)]
        terms = Certificate(
            obligations=(
                *_ORDERED,
                self.contents.proves,
                *((_ENTERED_AGAIN,) if program.reentrant else ()),
                *(_ANY_ORDER.format(name) for name in unordered),
                *_LIMITS,
            ),
            explicit_trip_counts=explicit,
            repeats_every=period,
            facts=tuple(
                f"{machine.arch} {name}: {fact.value} {fact.unit} ({fact.confidence.value}; {fact.source})"
                for name, fact in facts
            ),
            assumptions=(
                ORDER_KEPT,
                TILES_APART,
                SAME_PATH,
                AS_COUNTED,
                *map(in_order_assumption, ordered),
                *((_INITIAL_TILES,) if refilled else ()),
                *(() if program.reentrant else (ENTERED_ONCE,)),
                *((REGISTER_WAITS,) if self.assumes_register_waits else ()),
            ),
            not_stated=tuple(name for name, size in sizes.items() if size is None),
            subject=program,
        )
        return issue(terms)
