"""The campaign: takes mutants of the shipped schedules, gives for each whether proof and executor agree on it.

The proof is right about a mutant if what it calls wrong goes wrong in the executor, and what it calls clean doesn't.
The executor tries few trip counts and interleavings, but real ones: where it shows a wrong result there is one.
"""

from __future__ import annotations

import enum
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rota import (
    CompiledSchedule,
    DeclarativeSchedule,
    Finding,
    KernelGeometry,
    Pipeline4Wave,
    PipelineSchedule,
    ScheduleConfig,
    SingleBufferSchedule,
    compile_schedule,
    mi355x_target,
    verify,
)
from rota.compiler.proved import repaired
from rota.declare.effects import Action
from rota.errors import Witness
from rota.program.loop import Step, steps_of
from rota.simulate.clock import run_clock
from rota.simulate.pace import Earliest, Latest, Policy, Random, Scripted
from rota.simulate.values import Execution, Setup, execute, replay
from rota.verify.report import Report
from tests.mutation.mutants import Kind, Mutant, mutants_of

TRIP_COUNTS = (0, 1, 2, 3, 5)
POLICIES: tuple[Policy, ...] = (Latest(), Earliest(), Random(seeds=200))


class Outcome(enum.Enum):
    """What became of a mutant."""

    KILLED = "killed"  # the proof fails, and the executor or a witness shows a wrong result
    EQUIVALENT = "equivalent"  # the proof holds, and nothing goes wrong
    LIMIT = "limit"  # only a limit is broken, such as a count that can't be encoded; nothing goes wrong
    MISSED = "missed"  # something goes wrong, and the proof doesn't say so
    FALSE_ALARM = "false alarm"  # the proof fails without anything going wrong, or a witness doesn't show its race


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A mutant with its outcome, what the proof said, and what the executor showed first.

    `silent` are the race findings that no replay bears out: there is no witness, its replay ends well, or it goes wrong
    for another reason, without the two ops of the finding meeting.
    """

    subject: str
    mutant: Mutant
    outcome: Outcome
    codes: tuple[str, ...]
    shown: str | None
    silent: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        said = ", ".join(self.codes) or "clean"
        text = (
            f"{self.outcome.value}: {self.subject}: {self.mutant.description}\n   proof: {said}\n   run: {self.shown}"
        )
        return "\n".join([text, *(f"   no replay bears out: {finding}" for finding in self.silent)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A schedule whose mutants are judged; `same_as` names an earlier one with the very same entries."""

    name: str
    schedule: CompiledSchedule
    same_as: str | None = None

    def mutants(self) -> Iterator[Mutant]:
        """Its mutants; those of an earlier subject aren't made twice."""
        return iter(()) if self.same_as else mutants_of(self.schedule)


def subjects() -> Iterator[Subject]:
    """The shipped schedules, each repaired; some of them also for a compiler that waits for no register."""
    seen: dict[tuple[object, ...], str] = {}
    schedules = dict(_schedules())
    compiled = {name: compile_schedule(schedule, sync="repair") for name, schedule in schedules.items()}
    for name in ("single buffer, 2 tiles", "4-wave, lgkm 8/4", "ping-pong GREEDY, max_globals 1, vm 4/4, lgkm 8/4"):
        written = compile_schedule(schedules[name], sync="as_written")
        compiled[f"{name}, all waits planned"] = repaired(replace(written, compiler_tracks_registers=False))
    for name, loop in compiled.items():
        knobs = loop.schedule_config
        same = seen.setdefault(
            (
                (loop.config, knobs.lgkm_per_load_a, knobs.lgkm_per_load_b, loop.compiler_tracks_registers),
                (loop.prologue, loop.kernel, loop.epilogue, loop.warp_stagger_index),
            ),
            name,
        )
        yield Subject(name=name, schedule=loop, same_as=same if same != name else None)


def sampled(work: Sequence[tuple[Subject, Sequence[Mutant]]], number: int) -> list[tuple[Subject, list[Mutant]]]:
    """About `number` mutants, always the same ones: in turn one of each subject and kind, until there are enough."""
    chance = random.Random(0)
    groups: dict[tuple[str, Kind], list[Mutant]] = {}
    for subject, mutants in work:
        for mutant in mutants:
            groups.setdefault((subject.name, mutant.kind), []).append(mutant)
    for mutants in groups.values():
        chance.shuffle(mutants)
    order = [(name, mutant) for (name, _), mutants in groups.items() for mutant in mutants]
    rank = {id(mutant): place for mutants in groups.values() for place, mutant in enumerate(mutants)}
    chance.shuffle(order)  # groups of equal rank in no particular order, so that a small sample spreads as well
    chosen = {id(mutant) for _, mutant in sorted(order, key=lambda pair: rank[id(pair[1])])[:number]}
    return [(subject, [mutant for mutant in mutants if id(mutant) in chosen]) for subject, mutants in work]


def _schedules() -> Iterator[tuple[str, PipelineSchedule]]:
    for tiles in range(1, 5):
        yield f"single buffer, {tiles} tiles", SingleBufferSchedule(tiles)
    for lgkm_a, lgkm_b in ((0, 0), (4, 4), (8, 4), (2, 8)):
        geometry = KernelGeometry(lgkm_per_load_a=lgkm_a, lgkm_per_load_b=lgkm_b)
        yield f"4-wave, lgkm {lgkm_a}/{lgkm_b}", Pipeline4Wave(geometry)
    for vm, lgkm in (((4, 4), (8, 4)), ((2, 1), (4, 4))):
        for scheduling in ("GREEDY", "CSP"):
            for loads in (0, 1):
                yield _ping_pong(scheduling, loads, vm=vm, lgkm=lgkm)
    # Where no order beats the greedy one, CSP returns it; a penalty makes it search.  The others need repair.
    yield _ping_pong("CSP", 0, lds_contention_penalty=8)
    yield _ping_pong("CSP", 1, lds_contention_penalty=4)
    yield _ping_pong("IDENTITY", 1)
    yield _ping_pong("GREEDY", 0, minimal_barriers=True)
    yield _ping_pong("GREEDY", 1, minimal_barriers=True)
    yield _ping_pong("GREEDY", 1, barrier_before_pre_ops=True)


def _ping_pong(
    scheduling: str, loads: int, *, vm: tuple[int, int] = (4, 4), lgkm: tuple[int, int] = (8, 4), **knobs: int
) -> tuple[str, PipelineSchedule]:
    costs = f"vm {vm[0]}/{vm[1]}, lgkm {lgkm[0]}/{lgkm[1]}"
    more = "".join(f", {name}" + ("" if value is True else f" {value}") for name, value in knobs.items())
    config = ScheduleConfig(scheduling=scheduling, lgkm_per_load_a=lgkm[0], lgkm_per_load_b=lgkm[1]).but(**knobs)
    return (
        f"ping-pong {scheduling}, max_globals {loads}, {costs}{more}",
        DeclarativeSchedule(config, mi355x_target(*vm, max_globals=loads)),
    )


def judge(mutant: Mutant, subject: str = "", proof: Callable[[CompiledSchedule], Report] = verify) -> Judgement:
    """Hold the proof's verdict against what the executor shows."""
    schedule = mutant.schedule
    errors = proof(schedule).errors
    replays = replays_of(schedule, errors)
    silent = tuple(finding for finding in errors if not borne_out(schedule, finding, replays))
    shown = next((f"{witness}: {done.first_wrong}" for witness, done in replays.items() if not done.right), None)
    shown = shown or _first_wrong(schedule)
    return Judgement(
        subject=subject,
        mutant=mutant,
        outcome=_outcome(errors, shown, silent),
        codes=tuple(sorted({finding.code for finding in errors})),
        shown=shown,
        silent=silent,
    )


def replays_of(schedule: CompiledSchedule, errors: Sequence[Finding]) -> dict[Witness, Execution]:
    """What each witness ends in."""
    witnesses = dict.fromkeys(finding.witness for finding in errors if finding.witness is not None)
    waits = schedule.compiler_tracks_registers
    return {witness: replay(schedule, witness, compiler_waits=waits) for witness in witnesses}


def borne_out(schedule: CompiledSchedule, finding: Finding, replays: dict[Witness, Execution]) -> bool:
    """Is there a witness whose replay goes wrong by this very race?  What isn't a race needs none."""
    if not finding.code.startswith("R"):
        return True
    witness = finding.witness
    return witness is not None and not replays[witness].right and meets(schedule, finding, witness)


def meets(schedule: CompiledSchedule, finding: Finding, witness: Witness) -> bool:
    """In the witness' replay, is the finding's earlier op still under way in one wave when another issues the later?

    A replay that ends in a wrong result may do so for another reason; this looks at the two ops themselves.
    """
    setup = Setup(trip_count=witness.trip_count, compiler_waits=schedule.compiler_tracks_registers)
    group = setup.workgroup(steps_of(schedule))
    clock = run_clock(group, Scripted(witness=witness))
    late = (witness.behind + 1) * group.waves - 1
    early = witness.ahead * group.waves if witness.kind in ("RAW", "WAR") else late  # the others take place in one wave
    first, second = ((end.role.split(",")[0].upper(), end.index) for end in finding.concerns)
    older = [
        number
        for number, op in enumerate(group.trace_of(late).memory)
        if _place(group.trace_of(late).steps[op.step][0]) == first
    ]
    trace = group.trace_of(early)
    issued = [op.step for op in trace.memory]
    for ordinal in (ordinal for ordinal, (step, _) in enumerate(trace.steps) if _place(step) == second):
        before = bisect_left(issued, ordinal)  # memory ops have the same numbers in every wave
        lands = clock.land[:, late, max((number for number in older if number < before), default=-1)]
        at = clock.land[:, early, before] if witness.kind == "WAW" else clock.steps[:, early, ordinal]
        if (np.isfinite(lands) & ((lands > at) | ((witness.kind == "WAR") & (lands == at)))).any():
            return True
    return False


def _place(step: Step) -> tuple[str, int] | None:
    """Where an entry stands; the stagger's extra barriers are no entries and share the number of one."""
    return None if step.effect.action is Action.BARRIER else (step.entry.phase.value, step.entry.time_slot)


def _first_wrong(schedule: CompiledSchedule) -> str | None:
    """What goes wrong at the first trip count at which anything does."""
    for trips in TRIP_COUNTS:
        done = execute(schedule, trips, policy=POLICIES, compiler_waits=schedule.compiler_tracks_registers)
        if not done.right:
            return f"{trips} trips: {done.first_wrong}"
    return None


def _outcome(errors: Sequence[Finding], shown: str | None, silent: Sequence[Finding]) -> Outcome:
    """A broken limit says nothing about results: if they are wrong with no other error, the proof has missed it."""
    if silent:
        return Outcome.FALSE_ALARM
    beyond_limits = any(not finding.code.startswith("L") for finding in errors)
    if shown is not None:
        return Outcome.KILLED if beyond_limits else Outcome.MISSED
    if beyond_limits:
        return Outcome.FALSE_ALARM
    return Outcome.LIMIT if errors else Outcome.EQUIVALENT
