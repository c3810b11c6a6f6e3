"""The proof: takes a compiled schedule, gives a `Report` that holds for every trip count and interleaving.

The loop is replayed until the machine's state at the loop edge repeats; each distinct state, followed by the epilogue,
covers one trip count or all that are congruent to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from rota.declare.effects import Action, Effect, Place, Space
from rota.declare.op import OpDesc
from rota.declare.values import LoopSpec
from rota.declare.vocabulary import Phase
from rota.errors import Finding, Severity
from rota.program.loop import LoopSteps, ScheduledLoop, Step, steps_of
from rota.targets.machine import Machine
from rota.verify.declared import accumulators, contradicted, outside_the_grid, results, unlike_declared
from rota.verify.hazards import Overlap, initial_overwritten, lands_behind, read_hazards, write_hazards
from rota.verify.impossible import impossible
from rota.verify.limits import barrier_counts, budgets, full_counters, lone_groups, wait_encodings
from rota.verify.machine import AbstractMachine, Access
from rota.verify.report import (
    AS_COUNTED,
    ENTERED_ONCE,
    ORDER_KEPT,
    REGISTER_WAITS,
    SAME_PATH,
    TILES_APART,
    VMCNT_IN_ORDER,
    Certificate,
    Report,
)
from rota.verify.subject import Subject
from rota.verify.values import accumulate, complete, hopeless, undefined
from rota.verify.versions import (
    all_executed,
    execute_once,
    first_iterations,
    initial_places,
    left_behind,
    wrong_versions,
)

_ORDERED = (
    "RAW: every wave's part of a tile lands before any wave reads it",
    "WAR: every wave has read a tile before any wave overwrites it",
    "WAW: a wave's loads into a tile land in order",
    "registers: a load is complete before its registers are used, or written by what would not land behind it",
)
_ACCUMULATED = "values: every accumulator takes in every K-tile once, both operands of the same tile"
_VERSIONED = (
    "values: every op runs once per iteration and finds the version of each value that it wants; "
    "behind the loop the last version of every carried value is there"
)
_ENTERED_AGAIN = "re-entry: all of this holds when the loop is run again right behind itself, any number of times"
_INITIAL_TILES = "whoever runs the loop again fills the tiles that it reads first behind full waits and a barrier"
_ANY_ORDER = "vmcnt: all of this holds in whatever order its ops complete; only waits for 0 are relied on"
_LIMITS = (
    "barriers: all waves execute the same number",
    "waits: every count has a real encoding",
    "budgets: LDS, and the registers that are live at once, fit, as far as they are stated",
)
_SEVERITIES = list(Severity)
_MOST_TRIPS = 64  # far above what any schedule needs


class Provable(ScheduledLoop, Protocol):
    """A scheduled loop that also says what was declared, which machine it is for and what it occupies there."""

    @property
    def body(self) -> tuple[OpDesc, ...]:
        """The ops of one trip as their author declared them, where they were declared by stages."""
        ...

    @property
    def loop(self) -> LoopSpec | None:
        """The loop as its author declared it, where it was declared by values."""
        ...

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


def _touches_lds(effect: Effect) -> bool:
    return any(place.space is Space.LDS for place in (*effect.reads, *effect.writes))


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
            Action.LDS_READ: self._move,
            Action.LDS_WRITE: self._move,
            Action.COMPUTE: self._compute,
        }

    def report(self) -> Report:
        compiled, steps, loop = self.compiled, self.steps, self.compiled.loop
        self._record(barrier_counts(steps))
        self._record(lone_groups(steps))
        self._record(contradicted(steps, compiled, loop))
        self._record(unlike_declared(steps, loop) if loop is not None else ())
        # Groups that never meet have no epochs, and what isn't declared has no meaning.
        explicit, period = (0, 0) if self.found else self._replay()
        if loop is None:
            self._record(outside_the_grid(steps, compiled.config, compiled.body))
        else:
            self._record(impossible(loop, compiled.machine))
        self._record(wait_encodings(steps, compiled.machine))
        self._record(budgets(compiled.machine, compiled.lds_bytes, compiled.registers, compiled.register_limit))
        findings = sorted(self.found.values(), key=lambda finding: _SEVERITIES.index(finding.severity))
        certificate = None if self._wrong() else self._certificate(explicit, period)
        return Report(findings=tuple(findings), certificate=certificate)

    def _wrong(self) -> bool:
        return any(finding.severity is Severity.ERROR for finding in self.found.values())

    def _replay(self) -> tuple[int, int]:
        """How many trip counts were looked at one by one, and after how many trips the loop's state repeats.

        A reentrant loop is entered again in every state in which it can have ended.
        """
        entered: dict[tuple[object, ...], AbstractMachine] = {}
        waiting = [AbstractMachine(self.compiled.machine, self.steps.groups)]
        replayed: list[tuple[int, int]] = []
        while waiting:
            ended = list[AbstractMachine]()
            replayed.append(self._replay_from(waiting.pop(), ended))
            for machine in ended if self.compiled.reentrant else ():
                self._put_in_initial_values(machine)
                machine.enter_again()
                state = machine.state(0, self.steps.tiles_per_trip, self.steps.tiles_outside)
                if state not in entered:
                    entered[state] = machine
                    waiting.append(machine)
        return max(explicit for explicit, _ in replayed), replayed[0][1]

    def _put_in_initial_values(self, machine: AbstractMachine) -> None:
        """Whoever runs the loop again writes the registers that it reads first: no load into them may be under way.

        What a compiler would wait for there is not known, since that code isn't.
        """
        for place in initial_places(self.steps):
            loader = machine.loading.get(place)
            if place.space is Space.REGISTER and loader is not None and not loader.covered:
                self._record([initial_overwritten(machine, loader, place)])

    def _replay_from(self, machine: AbstractMachine, ended: list[AbstractMachine]) -> tuple[int, int]:
        steps, loop = self.steps, self.compiled.loop
        ops, kept = ((), ()) if loop is None else (tuple(op.name for op in loop.ops), results(loop))
        sums = accumulators(self.compiled.config, self.compiled.body) if loop is None else ()
        self._run(machine, Phase.PROLOGUE, 0)
        seen: dict[tuple[object, ...], int] = {}
        first_wants = first_iterations(steps)
        for trips in range(_MOST_TRIPS):
            base = steps.tiles_per_trip * trips
            machine.forget_the_past()
            self._record(hopeless(machine, base, steps.tiles_per_trip))
            # Before iteration 0 nothing is due: as long as an op still reaches back there, the trip itself matters.
            state = (min(base, first_wants), *machine.state(base, steps.tiles_per_trip, steps.tiles_outside))
            if state in seen:
                self._record(full_counters(machine.fullest, self.compiled.machine))
                return trips, trips - seen[state]
            seen[state] = trips
            ending = machine.fork()
            self._run(ending, Phase.EPILOGUE, trips + 1)
            self._record(complete(ending, sums, steps.total_tiles(trips)))
            self._record(all_executed(ending, ops, steps.total_tiles(trips)))
            self._record(left_behind(ending, kept, steps.total_tiles(trips)))
            ended.append(ending)
            self._run(machine, Phase.KERNEL, trips + 1)
        if not self._wrong():  # what is never written anew is a trip older each time
            message = f"nothing is proved: the state at the loop edge doesn't repeat within {_MOST_TRIPS} trips"
            self._record([Finding(code="V111", message=message, evidence=(("trips looked at", _MOST_TRIPS),))])
        return _MOST_TRIPS, 0

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
        self._access(machine, step, trip)
        for place in step.effect.writes if step.effect.instance is None else ():
            machine.holds[place] = self.steps.k_of(step.entry.phase, trip) + (step.effect.fetches or 0)

    def _load_registers(self, machine: AbstractMachine, step: Step, trip: int) -> None:
        self._access(machine, step, trip)
        for place in step.effect.writes if step.effect.instance is None else ():
            machine.fetched[place] = machine.fetched.get(place, -1) + 1
            machine.holds[place] = machine.fetched[place]

    def _move(self, machine: AbstractMachine, step: Step, trip: int) -> None:
        """LDS to registers, or registers to LDS."""
        self._access(machine, step, trip)
        if step.effect.instance is not None:
            return
        self._record(undefined(machine, step, step.effect.reads))
        source, target = step.effect.reads[0], step.effect.writes[0]
        if source in machine.holds:
            machine.holds[target] = machine.holds[source]
        else:
            machine.holds.pop(target, None)

    def _compute(self, machine: AbstractMachine, step: Step, trip: int) -> None:
        self._access(machine, step, trip)
        if step.effect.instance is None:
            self._record(undefined(machine, step, step.effect.reads))
            self._record(accumulate(machine, step))

    def _access(self, machine: AbstractMachine, step: Step, trip: int) -> None:
        """Everything that the op reads and writes, wherever that is; then it goes under way, or is over at once."""
        effect = step.effect
        if machine.loading:
            self._registers(machine, step, trip)
        if effect.action is not Action.COMPUTE or _touches_lds(effect):
            self._record(read_hazards(machine, step, trip))
            self._record(write_hazards(machine, step, trip))
            machine.start(step)
        else:
            for place in effect.writes:
                machine.loading.pop(place, None)

    def _registers(self, machine: AbstractMachine, step: Step, trip: int) -> None:
        loading = machine.loading
        for place in step.effect.reads:
            if place in loading:
                self._registers_free(machine, step, trip, place, writes=False)
        for place in step.effect.writes:
            if place in loading and not lands_behind(machine, loading[place], step):
                self._registers_free(machine, step, trip, place, writes=True)

    def _registers_free(self, machine: AbstractMachine, step: Step, trip: int, place: Place, *, writes: bool) -> None:
        """No load into the registers is under way, by a planned wait or by the compiler's own."""
        loader = machine.loading.get(place)
        if loader is None or loader.covered:
            return
        tracked = self._compiler_waits_for(machine, loader)
        overlap = Overlap(loader, step, place, trip)
        self._record([overlap.finding(machine, writes=writes, compiler_waits=tracked)])
        if tracked:
            self.assumes_register_waits = True
            machine.cover(loader)

    def _compiler_waits_for(self, machine: AbstractMachine, loader: Access) -> bool:
        """Does the compiler's own wait cover the load?  A compiler counts on the order of a counter, too."""
        counted = machine.weakest_cover(loader, 0) == machine.younger_tokens(loader, 0)
        return self.compiled.compiler_tracks_registers and counted

    def _record(self, findings: Iterable[Finding] | Iterator[Finding]) -> None:
        for finding in findings:
            ends = tuple((end.label, end.index, end.role.split(",")[0]) for end in finding.concerns)
            self.found.setdefault((finding.code, ends or finding.message), finding)

    def _refills_tiles(self) -> bool:
        """Does whoever runs the loop again have to write LDS in between?"""
        return self.compiled.reentrant and any(place.space is Space.LDS for place in initial_places(self.steps))

    def _certificate(self, explicit: int, period: int) -> Certificate:
        machine = self.compiled.machine
        by_values = any(step.effect.instance is not None for step in self.steps.kernel)
        sizes = {"LDS bytes": self.compiled.lds_bytes, "registers": self.compiled.registers}
        return Certificate(
            obligations=(
                *_ORDERED,
                _VERSIONED if by_values else _ACCUMULATED,
                *((_ENTERED_AGAIN,) if self.compiled.reentrant else ()),
                *(() if machine.vmcnt_in_order else (_ANY_ORDER,)),
                *_LIMITS,
            ),
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
                AS_COUNTED,
                *((VMCNT_IN_ORDER,) if machine.vmcnt_in_order else ()),
                *((_INITIAL_TILES,) if self._refills_tiles() else ()),
                *(() if self.compiled.reentrant else (ENTERED_ONCE,)),
                *((REGISTER_WAITS,) if self.assumes_register_waits else ()),
            ),
            not_stated=tuple(name for name, size in sizes.items() if size is None),
            subject=self.compiled,
        )
