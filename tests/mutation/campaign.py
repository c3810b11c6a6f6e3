"""The campaign: takes mutants of programs, gives for each whether proof and executor agree on it.

The proof is right about a mutant if what it calls wrong goes wrong in the executor, and what it calls clean doesn't.
The executor tries few trip counts and interleavings, but real ones: where it shows a wrong result there is one.
"""

from __future__ import annotations

import enum
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import itemgetter

import numpy as np

from rota import (
    GFX942,
    CompiledSchedule,
    DeclarativeSchedule,
    Finding,
    KernelGeometry,
    Pipeline4Wave,
    PipelineSchedule,
    ScheduleConfig,
    SingleBufferSchedule,
    compile_loop,
    compile_schedule,
    mi355x_target,
)
from rota.compiled.proved import repaired
from rota.errors import Witness
from rota.execute.clock import Earliest, Latest, Policy, Random, Scripted, run_clock
from rota.execute.executor import Execution, Setup, execute, replay
from rota.execute.wave_trace import Trace
from rota.kernels.attention import ATTENTION
from rota.kernels.gemm import GEMM_SHAPES
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.loop_spec import LoopSpec
from rota.program.lowered import LoweredProgram
from rota.sync.repair import repair
from rota.values.unroll import derive_loop_phases
from rota.verify.prove import verify
from rota.verify.report import Report
from tests.mutation.mutants import Kind, Mutant, mutants_of
from tests.programs import made_up_device
from tests.programs.made_up_machine import MADE_UP
from tests.programs.producer_consumer import producer_consumer
from tests.sync.drawn import drawn_loop

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
    """A program whose mutants are judged; `same_as` names an earlier one with the very same entries."""

    name: str
    program: LoweredProgram
    same_as: str | None = None

    def mutants(self) -> Iterator[Mutant]:
        """Its mutants; those of an earlier subject aren't made twice."""
        return iter(()) if self.same_as else mutants_of(self.program)


def subjects() -> Iterator[Subject]:
    """Programs of both front ends, and such as neither makes."""
    seen: dict[LoweredProgram, str] = {}
    for name, program in (*_by_stages(), *_by_values(), *_of_neither()):
        same = seen.setdefault(program, name)
        yield Subject(name=name, program=program, same_as=same if same != name else None)


def _by_stages() -> Iterator[tuple[str, LoweredProgram]]:
    """The shipped schedules, each repaired; some of them also for a compiler that waits for no register."""
    schedules = dict(_schedules())
    for name, schedule in schedules.items():
        yield name, compile_schedule(schedule, sync="repair").lowered
    for name in ("single buffer, 2 tiles", "4-wave, lgkm 8/4", "ping-pong GREEDY, max_globals 1, vm 4/4, lgkm 8/4"):
        written = compile_schedule(schedules[name], sync="as_written")
        yield f"{name}, all waits planned", repaired(replace(written, compiler_tracks_registers=False)).lowered


def _by_values() -> Iterator[tuple[str, LoweredProgram]]:
    """Loops in tiles, one of them of two groups of waves and one through registers."""
    eight, _, small, _ = GEMM_SHAPES
    loops: dict[str, CompiledSchedule] = {
        "8-wave GEMM by values": compile_loop(eight.loop(instructions=False)),
        "8-wave GEMM by values, staggered": compile_loop(eight.loop(instructions=False), stagger=True),
        "small GEMM by values, one tile left": compile_loop(small.loop(instructions=False), remainder=1),
        "attention by values": compile_loop(ATTENTION.loop(instructions=False)),
        "loop through registers": compile_loop(drawn_loop(1, staged=True), GFX942),
    }
    for name, loop in loops.items():
        yield name, loop.lowered


def _of_neither() -> Iterator[tuple[str, LoweredProgram]]:
    """Roles that run different lists, and a machine that nobody has built."""
    yield "producer and consumer", producer_consumer()
    yield "producer and consumer, made-up machine", producer_consumer(MADE_UP, left=0)
    small = GEMM_SHAPES[2].loop(instructions=False)
    yield "small GEMM by values, made-up device", compile_loop(small, made_up_device.MADE_UP).lowered
    yield "loop, made-up machine", _on_made_up_machine(drawn_loop(1))
    yield "loop through registers, made-up machine", _on_made_up_machine(drawn_loop(1, staged=True))


def _on_made_up_machine(spec: LoopSpec) -> LoweredProgram:
    """A loop with the start times of a real machine, and the waits and barriers of one that doesn't exist."""
    placement = compile_loop(spec, GFX942).placement
    unrolled = derive_loop_phases(spec, placement, MADE_UP)
    bare = LoweredProgram(
        name=spec.name,
        machine=MADE_UP,
        semantics=spec,
        prologue=unrolled.prologue,
        kernel=unrolled.kernel,
        epilogue=unrolled.epilogue,
        tiles_per_trip=unrolled.trip_tiles[0],
        tiles_outside=unrolled.trip_tiles[1],
        compiler_tracks_registers=False,
        waves=spec.waves,
    )
    return bare.with_phases(repair(bare).phases)


def sampled(work: Sequence[tuple[Subject, Sequence[Mutant]]], number: int) -> list[tuple[Subject, list[Mutant]]]:
    """So many mutants, always the same ones: one of each kind, then in turn one of each subject, of another kind."""
    chance = random.Random(0)
    order: list[tuple[int, float, Mutant]] = []
    for _, mutants in work:
        kinds: dict[Kind, list[Mutant]] = {}
        for mutant in chance.sample(mutants, len(mutants)):
            kinds.setdefault(mutant.kind, []).append(mutant)
        in_turn = (mutant for row in zip_longest(*kinds.values()) for mutant in row if mutant is not None)
        order += [(turn, chance.random(), mutant) for turn, mutant in enumerate(in_turn)]
    ranked = [mutant for *_, mutant in sorted(order, key=itemgetter(0, 1))]
    of_each_kind = {mutant.kind: mutant for mutant in reversed(ranked)}.values()
    chosen = set(list(dict.fromkeys(map(id, (*of_each_kind, *ranked))))[:number])
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


def judge(mutant: Mutant, subject: str = "", proof: Callable[[LoweredProgram], Report] = verify) -> Judgement:
    """Hold the proof's verdict against what the executor shows."""
    program = mutant.program
    errors = proof(program).errors
    replays = replays_of(program, errors)
    silent = tuple(finding for finding in errors if not borne_out(program, finding, replays))
    shown = next((f"{witness}: {done.first_wrong}" for witness, done in replays.items() if not done.right), None)
    shown = shown or _first_wrong(program)
    return Judgement(
        subject=subject,
        mutant=mutant,
        outcome=_outcome(errors, shown, silent),
        codes=tuple(sorted({finding.code for finding in errors})),
        shown=shown,
        silent=silent,
    )


def replays_of(program: LoweredProgram, errors: Sequence[Finding]) -> dict[Witness, Execution]:
    """What each witness ends in."""
    witnesses = dict.fromkeys(finding.witness for finding in errors if finding.witness is not None)
    return {witness: replay(program, witness) for witness in witnesses}


def borne_out(program: LoweredProgram, finding: Finding, replays: dict[Witness, Execution]) -> bool:
    """Is there a witness whose replay goes wrong by this very race?  What isn't a race needs none."""
    if not finding.code.startswith("R"):
        return True
    witness = finding.witness
    return witness is not None and not replays[witness].right and meets(program, finding, witness)


def meets(program: LoweredProgram, finding: Finding, witness: Witness) -> bool:
    """In the witness' replay, is the finding's earlier op still in flight in one wave when another issues the later?

    A replay that ends in a wrong result may do so for another reason; this looks at the two ops themselves.
    """
    setup = Setup(trip_count=witness.trip_count, compiler_waits=program.compiler_tracks_registers)
    group = setup.workgroup(program)
    clock = run_clock(group, Scripted(witness=witness))
    late = (witness.behind + 1) * group.waves - 1
    early = witness.ahead * group.waves if witness.kind in ("RAW", "WAR") else late  # the others take place in one wave
    first, second = ((end.role.split(",")[0].upper(), end.index) for end in finding.concerns)
    older, younger = group.trace_of(late), group.trace_of(early)
    # When both took place in the one list of all roles: what is older there comes first.
    earlier = [
        (_number(older, op.step), n) for n, op in enumerate(older.memory) if _place(older.steps[op.step][0]) == first
    ]
    issued = [op.step for op in younger.memory]
    for ordinal in (ordinal for ordinal, (entry, _) in enumerate(younger.steps) if _place(entry) == second):
        number = _number(younger, ordinal)
        lands = clock.land[:, late, max((n for at, n in earlier if at < number), default=-1)]
        own = bisect_left(issued, ordinal)
        at = clock.land[:, early, own] if witness.kind == "WAW" else clock.steps[:, early, ordinal]
        if (np.isfinite(lands) & ((lands > at) | ((witness.kind == "WAR") & (lands == at)))).any():
            return True
    return False


def _number(trace: Trace, ordinal: int) -> tuple[int, int]:
    """When a step comes in the one list of all roles: its trip, and its place in the phase's list."""
    return trace.steps[ordinal][1], trace.positions[ordinal]


def _place(entry: Entry) -> tuple[str, int] | None:
    """Where an entry stands; the stagger's extra barriers are no entries and share the number of one."""
    return None if entry.effect.kind is OpKind.BARRIER else (entry.phase.value, entry.time_slot)


def _first_wrong(program: LoweredProgram) -> str | None:
    """What goes wrong at the first trip count at which anything does."""
    for trips in TRIP_COUNTS:
        done = execute(program, trips, policy=POLICIES)
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
