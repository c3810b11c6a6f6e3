"""The proof: takes a compiled schedule, gives a `Report` that holds for every trip count and interleaving.

The loop is replayed until the machine's state at the loop edge repeats; each distinct state, followed by the epilogue,
covers one trip count or all that are congruent to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from rota.declare.effects import Action, Place, Space
from rota.declare.vocabulary import Phase
from rota.errors import Finding, Severity
from rota.program.loop import LoopSteps, ScheduledLoop, Step, steps_of
from rota.targets.machine import Machine
from rota.verify.hazards import read_hazards, register_hazard, write_hazards
from rota.verify.limits import barrier_counts, budgets, full_counters, lone_groups, wait_encodings
from rota.verify.machine import AbstractMachine
from rota.verify.report import (
    ORDER_KEPT,
    REGISTER_WAITS,
    SAME_PATH,
    TILES_APART,
    Certificate,
    Report,
)
from rota.verify.subject import Subject
from rota.verify.values import accumulate, complete, hopeless, undefined
from rota.verify.versions import all_executed, execute_once, first_iterations, wrong_versions

_ORDERED = (
    "RAW: every wave's part of a tile lands before any wave reads it",
    "WAR: every wave has read a tile before any wave overwrites it",
    "WAW: a wave's loads into a tile land in order",
    "registers: a load is complete before its registers are used",
)
_ACCUMULATED = "values: every accumulator takes in every K-tile once, both operands of the same tile"
_VERSIONED = "values: every op runs once per iteration and finds the version of each value that it wants"
_LIMITS = (
    "barriers: all waves execute the same number",
    "waits: every count has a real encoding",
    "budgets: LDS and registers fit, as far as they are stated",
)
_SEVERITIES = list(Severity)
_MOST_TRIPS = 64  # far above what any schedule needs; the state space is finite, this only bounds a mistake of ours


class Provable(ScheduledLoop, Protocol):
    """A scheduled loop that also says which machine it is for and what it occupies there."""

    @property
    def machine(self) -> Machine:
        """Counters and limits."""
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


def verify(compiled: Provable) -> Report:
    """Prove a schedule race-free and right for every trip count, or say where it isn't."""
    return _Proof(Subject.of(compiled)).report()


class _Proof:
    """One run of the proof; collects findings, each pair of entries once."""

    def __init__(self, compiled: Subject) -> None:
        self.compiled = compiled
        self.steps: LoopSteps = steps_of(compiled)
        self.found: dict[tuple[object, ...], Finding] = {}
        self.assumes_register_waits = False
        self._actions: dict[Action, Callable[[AbstractMachine, Step, int], None]] = {
            Action.BARRIER: lambda machine, step, _: machine.barrier(step),
            Action.WAIT: lambda machine, step, _: machine.wait(step),
            Action.DMA: self._dma,
            Action.GLOBAL_TO_REGISTER: self._load_registers,
            Action.LDS_READ: self._read,
            Action.LDS_WRITE: self._write,
            Action.COMPUTE: self._compute,
        }

    def report(self) -> Report:
        compiled, steps = self.compiled, self.steps
        self._record(barrier_counts(steps))
        self._record(lone_groups(steps))
        explicit, period = (0, 0) if self.found else self._replay()  # groups that never meet have no epochs
        self._record(wait_encodings(steps, compiled.machine))
        self._record(budgets(compiled.machine, compiled.lds_bytes, compiled.registers, compiled.register_limit))
        findings = sorted(self.found.values(), key=lambda finding: _SEVERITIES.index(finding.severity))
        certificate = None if self._wrong() else self._certificate(explicit, period)
        return Report(findings=tuple(findings), certificate=certificate)

    def _wrong(self) -> bool:
        return any(finding.severity is Severity.ERROR for finding in self.found.values())

    def _replay(self) -> tuple[int, int]:
        """How many trip counts were looked at one by one, and after how many trips the loop's state repeats."""
        steps = self.steps
        machine = AbstractMachine(self.compiled.machine, steps.groups)
        self._run(machine, Phase.PROLOGUE, 0)
        seen: dict[tuple[object, ...], int] = {}
        first_wants = first_iterations(steps)
        for trips in range(_MOST_TRIPS):
            base = steps.tiles_per_trip * trips
            machine.forget_the_past()
            self._record(hopeless(machine, base, steps.tiles_per_trip))
            # Before iteration 0 nothing is due: as long as an op still reaches back there, the trip itself matters.
            state = (min(base, first_wants), *machine.state(base, steps.tiles_per_trip))
            if state in seen:
                self._record(full_counters(machine.fullest, self.compiled.machine))
                return trips, trips - seen[state]
            seen[state] = trips
            ending = machine.fork()
            self._run(ending, Phase.EPILOGUE, trips + 1)
            self._record(complete(ending, steps, steps.total_tiles(trips)))
            self._record(all_executed(ending, steps, steps.total_tiles(trips)))
            self._run(machine, Phase.KERNEL, trips + 1)
        if self._wrong():  # what is never written anew is a trip older each time
            return _MOST_TRIPS, 0
        raise AssertionError(f"the state at the loop edge doesn't repeat within {_MOST_TRIPS} trips")

    def _run(self, machine: AbstractMachine, phase: Phase, trip: int) -> None:
        actions, k = self._actions, self.steps.k_of(phase, trip)
        for step in self.steps.phase(phase):
            act = actions.get(step.effect.action)
            if act is not None:
                act(machine, step, trip)
            instance = step.effect.instance
            if instance is not None:
                self._record(wrong_versions(machine, step, k))
                self._record(execute_once(machine, step, instance, k))
            machine.number += 1

    def _dma(self, machine: AbstractMachine, step: Step, trip: int) -> None:
        self._record(write_hazards(machine, step, trip))
        access = machine.issue(step, trip)
        for place in step.effect.writes:
            machine.writer[place], machine.readers[place] = access, []
            if step.effect.instance is None:
                machine.holds[place] = self.steps.k_of(step.entry.phase, trip) + (step.effect.fetches or 0)

    def _load_registers(self, machine: AbstractMachine, step: Step, trip: int) -> None:
        (place,) = step.effect.writes
        machine.loading[place] = machine.issue(step, trip)
        if step.effect.instance is None:
            machine.fetched[place] = machine.fetched.get(place, -1) + 1
            machine.holds[place] = machine.fetched[place]

    def _read(self, machine: AbstractMachine, step: Step, trip: int) -> None:
        self._record(read_hazards(machine, step, trip))
        access = machine.issue(step, trip)
        for tile in step.effect.reads:
            machine.readers.setdefault(tile, []).append(access)
        for register in step.effect.writes:
            machine.loading[register] = access
        if step.effect.instance is None:
            self._record(undefined(machine, step, step.effect.reads))
            self._move(machine, step.effect.reads[0], step.effect.writes[0])

    def _write(self, machine: AbstractMachine, step: Step, trip: int) -> None:
        self._use(machine, step, trip)
        self._record(write_hazards(machine, step, trip))
        access = machine.issue(step, trip)
        for tile in step.effect.writes:
            machine.writer[tile], machine.readers[tile] = access, []
        if step.effect.instance is None:
            self._move(machine, step.effect.reads[0], step.effect.writes[0])

    def _compute(self, machine: AbstractMachine, step: Step, trip: int) -> None:
        self._use(machine, step, trip)
        if step.effect.instance is None:
            self._record(accumulate(machine, step))
        for place in step.effect.writes:  # the architecture's own interlock protects results
            machine.loading.pop(place, None)

    def _use(self, machine: AbstractMachine, step: Step, trip: int) -> None:
        """Registers are used: their loads must be complete, by a planned wait or by the compiler's own."""
        if step.effect.instance is None:
            self._record(undefined(machine, step, step.effect.reads))
        tracked = self.compiled.compiler_tracks_registers
        for place in step.effect.reads:
            loader = machine.loading.get(place)
            if place.space is Space.REGISTER and loader is not None and not loader.covered:
                self._record([register_hazard(machine, loader, step, place, trip, compiler_waits=tracked)])
                if tracked:
                    self.assumes_register_waits = True
                    machine.cover(loader)

    @staticmethod
    def _move(machine: AbstractMachine, source: Place, target: Place) -> None:
        if source in machine.holds:
            machine.holds[target] = machine.holds[source]
        else:
            machine.holds.pop(target, None)

    def _record(self, findings: Iterable[Finding] | Iterator[Finding]) -> None:
        for finding in findings:
            ends = tuple((end.label, end.index, end.role.split(",")[0]) for end in finding.concerns)
            self.found.setdefault((finding.code, ends or finding.message), finding)

    def _certificate(self, explicit: int, period: int) -> Certificate:
        machine = self.compiled.machine
        by_values = any(step.effect.instance is not None for step in self.steps.kernel)
        sizes = {"LDS bytes": self.compiled.lds_bytes, "registers": self.compiled.registers}
        return Certificate(
            obligations=(*_ORDERED, _VERSIONED if by_values else _ACCUMULATED, *_LIMITS),
            explicit_trip_counts=explicit,
            repeats_every=period,
            facts=tuple(
                f"{machine.arch} {name}: {fact.value} {fact.unit} ({fact.confidence.value}; {fact.source})"
                for name, fact in (
                    ("vmcnt", machine.vmcnt_field),
                    ("lgkmcnt", machine.lgkmcnt_field),
                    ("LDS", machine.lds_bytes),
                    ("registers", machine.vgprs_per_lane),
                )
            ),
            assumptions=(
                ORDER_KEPT,
                TILES_APART,
                SAME_PATH,
                *((REGISTER_WAITS,) if self.assumes_register_waits else ()),
            ),
            not_stated=tuple(name for name, size in sizes.items() if size is None),
            subject=self.compiled,
        )
