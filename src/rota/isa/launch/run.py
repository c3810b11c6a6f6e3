"""Run a kernel: its workgroups one after the other, their waves interleaved, until all end or one spins."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.errors import Concern, Finding, IsaError, Severity, several
from rota.isa.decoded import KernelProgram
from rota.isa.disassembly import Instruction
from rota.isa.hazards.wait_states import check_distance
from rota.isa.launch.interleaving import LATEST, Driver, Interleaving, Wants
from rota.isa.launch.kernarg import (
    PACKET_BYTES,
    Dispatch,
    Pointer,
    Triple,
    Value,
    build_kernarg,
    build_packet,
    check_sizes,
    first_instruction,
    service_at,
)
from rota.isa.launch.processes import check_time
from rota.isa.memory.memories import Lds, Memory
from rota.isa.native.workgroups import ENDLESS, UNWANTED, run_clean
from rota.isa.wave.meeting import WaveMeetings
from rota.isa.wave.wave import AT_BARRIER, AT_END, AT_NAMED, INDEXED, Faults, Step, Wave

Turn = Callable[[Wave, int | None], None]
_BUFFER = re.compile(r"\bbuffer (\d+)")


def rename_buffers(finding: Finding, name: Callable[[int], str]) -> Finding:
    evidence = (
        (key, _BUFFER.sub(lambda found: name(int(found[1])), value) if isinstance(value, str) else value)
        for key, value in finding.evidence
    )
    return replace(finding, evidence=tuple(evidence))


# Loops without progress. A wave that returns to a place with all registers unchanged will repeat itself, unless another
# wave changes memory. Brent's cycle finding compares each state with one that is kept and replaced at the 1st, 2nd,
# 4th, 8th ... branch, so that a loop that counts in a scalar register costs one comparison of two lists.


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    branches: int  # how many there were before
    pc: int
    scalars: list[int]
    scc: int
    in_flight: int
    vectors: NDArray[np.uint32]


def is_revisited(wave: Wave, pc: int) -> bool:
    """Records a backward branch to `pc`; True if the wave was there with the same registers."""
    kept = wave.visit
    wave.branches += 1
    in_flight = wave.in_flight
    if (
        kept is not None
        and (kept.pc, kept.scc, kept.in_flight) == (pc, wave.scc, in_flight)
        and kept.scalars == wave.s
        and np.array_equal(kept.vectors, wave.v)
    ):
        return True
    if kept is None or wave.branches >= 2 * kept.branches:
        wave.visit = Visit(
            branches=wave.branches, pc=pc, scalars=[*wave.s], scc=wave.scc, in_flight=in_flight, vectors=wave.v.copy()
        )
    return False


def digest_state(waves: Sequence[Wave], memory: Memory) -> bytes:
    """A digest of where the waves are and of everything they can read."""
    digest = hashlib.blake2b(digest_size=16)
    for wave in waves:
        meetings = None if wave.meetings is None else wave.meetings.state()
        digest.update(repr((wave.pc, wave.waiting, wave.ended, wave.scc, wave.mode, wave.s, meetings)).encode())
        digest.update(wave.v.tobytes())
        digest.update(wave.private.bytes.tobytes())
    digest.update(waves[0].lds.bytes.tobytes())
    for buffer in memory.contents():
        digest.update(np.ascontiguousarray(buffer).view(np.uint8).data if buffer.size else b"")
    return digest.digest()


# Workgroups run one after the other. A barrier opens when every wave that hasn't ended has arrived, at whichever
# `s_barrier`. A workgroup that waits for another one, in kernels that pass data between workgroups, is put aside until
# the others have run.

MOST_ASIDE = 512  # workgroups that wait for others at once: about as many as a device holds


@dataclass(slots=True, kw_only=True, eq=False)
class WaveGroup:
    number: int
    waves: list[Wave]
    driver: Driver
    steps: tuple[Step, ...]
    faults: Faults
    seen: set[bytes] = field(default_factory=set)  # states in which no wave could go on

    def run(self, turn: Turn, memory: Memory) -> bool:
        """Runs until all waves have ended; False if only a change of memory from outside lets one go on."""
        while runnable := self._runnable():
            awake = [number for number in runnable if not self.waves[number].spinning]
            if not awake:  # let spinning waves run again, unless they did so in this state before
                for wave in self.waves:
                    for pending in wave.landing:
                        wave.land(pending)
                state = digest_state(self.waves, memory)
                if state in self.seen:
                    return False
                self.seen.add(state)
                for wave in self.waves:
                    wave.spinning = False
                continue
            number, turns = self.driver.turn(awake)
            wave = self.waves[number]
            for pending in wave.landing:
                if self.driver.between():
                    wave.land(pending)
            turn(wave, turns)
        self.count_barriers()
        return True

    @property
    def executed(self) -> int:
        return sum(wave.executed for wave in self.waves)

    def has_changed(self, memory: Memory) -> bool:
        """True if something has changed since the workgroup was put aside."""
        return digest_state(self.waves, memory) not in self.seen

    def _runnable(self) -> list[int]:
        alive = [wave for wave in self.waves if not wave.ended]
        arrived = min((wave.signals for wave in alive), default=0)
        opened = [wave for wave in alive if wave.waiting and not wave.at_named and wave.epoch <= arrived]
        if opened:
            self.note_barriers({wave.pc - 1: wave.number for wave in reversed(opened)})
            for wave in opened:
                wave.waiting = False
                if wave.meetings is not None:
                    wave.meetings.meet_all(wave.number, wave.epoch)
        for wave in alive:
            if wave.at_named and wave.meetings is not None and wave.meetings.may_go_on(wave.number):
                wave.waiting = wave.at_named = False
        running = [wave.number for wave in alive if not wave.waiting]
        if alive and not running:  # a wave waits at a barrier that it never arrived at
            raise _report_deadlock(self, 1)
        return running

    def note_barriers(self, places: dict[int, int]) -> None:
        if len(places) > 1:
            (here, wave), (there, other) = sorted(places.items())[:2]
            message = "a barrier opens for waves that wait at different s_barrier instructions"
            ends, (first, second) = (("wave", wave), ("other wave", other)), (self.steps[here], self.steps[there])
            severity = Severity.NOTE
            self.faults.add("I121", first.instruction, message, *ends, other=second.instruction, severity=severity)

    def count_barriers(self) -> None:
        counts = [wave.epoch for wave in self.waves]
        fewest, most = (counts.index(count) for count in (min(counts), max(counts)))
        if counts[fewest] != counts[most]:
            wave = self.waves[fewest]
            instruction = self.steps[wave.pc - 1].instruction
            message = "a wave ends after fewer barriers than another wave of its workgroup"
            here = ("wave", f"{wave.number}, {several(counts[fewest], 'barrier')}")
            there = ("other wave", f"{most}, {several(counts[most], 'barrier')}")
            self.faults.add("I121", instruction, message, here, there, severity=Severity.NOTE)


def list_workgroups(grid: Triple) -> list[tuple[int, Triple]]:
    return [(number, (x, y, z)) for number, (z, y, x) in enumerate(product(*(range(size) for size in reversed(grid))))]


def run_workgroups(
    places: Sequence[tuple[int, Triple]],
    make: Callable[[tuple[int, Triple]], WaveGroup],
    turn: Turn,
    memory: Memory,
    ended: Callable[[int], None],
) -> int:
    """Runs all workgroups; returns the instructions executed and calls `ended` with the number that have ended."""
    executed: list[int] = []  # by each workgroup that has ended
    aside: list[WaveGroup] = []

    def close(group: WaveGroup) -> None:
        memory.order.close(group.waves[0].workgroup)
        executed.append(group.executed)
        ended(len(executed))

    for place in places:
        group = make(place)
        if group.run(turn, memory):
            close(group)
            continue
        aside.append(group)
        if len(aside) > MOST_ASIDE:
            raise _report_deadlock(group, len(aside))
    while aside:
        waiting = [group for group in aside if not (group.has_changed(memory) and group.run(turn, memory))]
        if len(waiting) == len(aside) and not any(group.has_changed(memory) for group in aside):
            raise _report_deadlock(aside[0], len(aside))
        for group in aside:
            if group not in waiting:
                close(group)
        aside = waiting
    return sum(executed)


def _report_deadlock(group: WaveGroup, groups: int) -> IsaError:
    spinning = [wave for wave in group.waves if not wave.ended and not wave.waiting]
    waiting = [wave for wave in group.waves if wave.waiting]
    places: dict[int, str] = {}
    for wave in (*spinning, *waiting):
        role = f"wave {wave.number} {'waits here' if wave.waiting else 'repeats from here'}"
        places.setdefault(wave.pc - wave.waiting, role)
    ends = [(group.steps[at].instruction, role) for at, role in places.items()]
    return IsaError.of(
        "I108",
        "the kernel doesn't end: waves repeat a loop in which nothing changes",
        concerns=tuple(Concern(label=each.text, index=each.line, role=role) for each, role in ends),
        evidence=(
            ("workgroup", f"{group.number}, one of {groups} that can't go on" if groups > 1 else group.number),
            ("waves that repeat", ", ".join(str(wave.number) for wave in spinning)),
            *((("waves at a barrier", ", ".join(str(wave.number) for wave in waiting)),) if waiting else ()),
        ),
        fixes=("let a wave that still runs write what the loop waits for",),
    )


_KERNARG_UNIT = 64  # scalar loads may read past the last argument, to the end of its cache line
_PAGE = 4096
_STACK = 16384  # bytes per lane for a kernel with calls of unknown depth
MOST_INSTRUCTIONS = 300_000  # per wave: hundreds of K-tiles, and half a minute at most if it doesn't end
_EXPLAINED = 50_000  # instructions that NumPy runs to explain a wave that the core found not to end


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOutcome:
    """The array arguments after a run, findings, instructions executed, and `notes`: legal but worth a look."""

    buffers: tuple[NDArray[Any], ...]
    findings: tuple[Finding, ...]
    instructions: int
    notes: tuple[Finding, ...] = ()


class UnwantedFaultsError(Exception):
    """The core found faults, and the caller doesn't want to know more of them."""


def run_kernel(
    program: KernelProgram,
    *,
    args: Sequence[NDArray[Any] | Value],
    grid: Triple = (1, 1, 1),
    block: Triple,
    dynamic_lds: int = 0,
    interleaving: Interleaving = LATEST,
) -> KernelOutcome:
    """Runs every workgroup of the grid on copies of the given arrays, with so much LDS beside the descriptor's."""
    arrays = [argument for argument in args if isinstance(argument, np.ndarray)]
    numbers = iter(range(len(arrays)))
    values = [Pointer(buffer=next(numbers)) if isinstance(each, np.ndarray) else each for each in args]
    return run_dispatch(
        program,
        buffers=arrays,
        values=values,
        grid=grid,
        block=block,
        dynamic_lds=dynamic_lds,
        interleaving=interleaving,
    )


def run_dispatch(
    program: KernelProgram,
    *,
    buffers: Sequence[NDArray[Any]],
    values: Sequence[Value],
    grid: Triple,
    block: Triple,
    dynamic_lds: int = 0,
    skews: Sequence[int] = (),
    interleaving: Interleaving = LATEST,
    most: int | None = None,
    ended: Callable[[int], None] = lambda _: None,
    processes: int = 1,
    wants: Wants = lambda _: True,
) -> KernelOutcome:
    """Runs a launch whose values point into buffers.

    A wave that executes `most` instructions is taken not to end. Calls `ended` with the number of workgroups that have
    ended. The native core shares long work among `processes`. If it finds faults, `wants` is asked whether NumPy is to
    repeat the run and explain them; if not, UnwantedFaultsError is raised.
    """
    facts = program.facts
    sizes = check_sizes(facts, program.architecture, values, grid=grid, block=block, more_lds=dynamic_lds)
    faults = Faults()
    kernarg = np.zeros(-(-facts.kernarg_bytes // _KERNARG_UNIT) * _KERNARG_UNIT, np.uint8)
    image = [np.frombuffer(program.image, np.uint8)] if program.image else []  # the first buffer lies at CODE_BASE
    own = [*image, *buffers, kernarg, np.zeros(PACKET_BYTES, np.uint8)]
    memory = Memory(own, faults, [*(0 for _ in image), *skews])
    segment = build_kernarg(facts, values, lambda to: memory.address(len(image) + to.buffer) + to.offset, sizes)
    dispatch = Dispatch(
        facts=facts,
        sizes=sizes,
        kernarg=segment,
        kernarg_at=memory.address(len(own) - 2),
        packet_at=memory.address(len(own) - 1),
        entry=first_instruction(facts, [step.instruction for step in program.steps]),
        lanes=program.architecture.lanes.value,
        fills_traps=not program.architecture.descriptor.workgroup_ids,
    )
    memory.fill(len(own) - 2, segment)
    memory.fill(len(own) - 1, build_packet(facts, sizes, dispatch.kernarg_at))
    limit = MOST_INSTRUCTIONS if most is None else most
    places = interleaving.order_workgroups(list_workgroups(sizes.grid))

    def make(place: tuple[int, Triple], *, native: bool = False) -> WaveGroup:
        driver = interleaving.driver(place[0])
        room = sizes.fixed_lds + sizes.dynamic_lds
        meetings = WaveMeetings(waves=dispatch.waves) if program.has_meetings else None
        lds = Lds(0 if native else room, faults, dispatch.waves, meetings)  # the core has LDS of its own
        lds.size = room
        waves = [
            Wave(
                architecture=program.architecture,
                number=number,
                faults=faults,
                memory=memory,
                lds=lds,
                at_issue=driver.at_issue(),
                meetings=meetings,
                workgroup=place[1],
                private_bytes=facts.descriptor.private_bytes + (_STACK if facts.dynamic_stack else 0),
            )
            for number in range(dispatch.waves)
        ]
        for wave in waves:
            dispatch.start(wave, place[1])
        return WaveGroup(number=place[0], waves=waves, driver=driver, steps=program.steps, faults=faults)

    furthest = 0

    def progress(done: int) -> None:
        """Reports nothing twice when NumPy repeats a run of the core."""
        nonlocal furthest
        if done > furthest:
            furthest = done
            ended(done)

    executed = run_clean(
        program,
        places=places,
        make=partial(make, native=True),
        memory=memory,
        interleaving=interleaving,
        most=limit,
        ended=progress,
        processes=processes,
        wants=wants,
    )
    if executed == UNWANTED:
        raise UnwantedFaultsError
    given_up = limit
    if executed == ENDLESS:
        executed, limit = None, min(limit, _EXPLAINED)
    if executed is None:
        faults.clear()

        def turn(wave: Wave, turns: int | None) -> None:
            _run_wave(program.steps, wave, turns, limit, program.endless, shown=given_up)

        try:
            with np.errstate(all="ignore"):
                executed = run_workgroups(places, make, turn, memory, progress)
        except IsaError as error:
            raise IsaError(*error.findings, *_collect_findings(faults, len(image))) from error
        memory.order.finish()
    found = _collect_findings(faults, len(image))
    findings = (*program.findings, *(each for each in found if each.severity is not Severity.NOTE))
    notes, results = tuple(each for each in found if each.severity is Severity.NOTE), memory.contents()[len(image) : -2]
    return KernelOutcome(buffers=results, findings=findings, instructions=executed, notes=notes)


def _collect_findings(faults: Faults, before: int) -> list[Finding]:
    """Findings with buffers numbered as the caller does, without the `before` ones that come first."""

    def name(number: int) -> str:
        return f"buffer {number - before}" if number >= before else "the code object"

    return [rename_buffers(_explain_address(finding), name) for finding in faults.findings()]


def _explain_address(finding: Finding) -> Finding:
    evidence = dict(finding.evidence)
    if finding.code != "I105" or not str(evidence.get("address")).startswith("0x"):
        return finding
    address = int(str(evidence["address"]), 16)
    if (service := service_at(address)) is not None:
        where = f"in {service.replace('_', ' ')}, a runtime service that rota lacks"
    elif address < _PAGE:
        where = "the null pointer, or near it"
    else:
        return finding
    return replace(finding, evidence=tuple((evidence | {"where": where}).items()))


def _run_wave(  # noqa: C901  # the inner loop
    steps: tuple[Step, ...],
    wave: Wave,
    turns: int | None,
    most: int = MOST_INSTRUCTIONS,
    endless: frozenset[int] = frozenset(),
    *,
    shown: int | None = None,
) -> None:
    """Executes up to `turns` instructions, or until the wave has to wait; a message names `shown` instead of `most`."""
    pc = wave.pc
    budget = most - wave.executed
    left = budget if turns is None else min(turns, budget)
    start = left
    while left:
        step = steps[pc]
        if wave.mode & INDEXED and step.indexed is not None:
            step = step.indexed(wave)
        left -= 1
        if wave.busy and not wave.busy.keys().isdisjoint(step.touches):
            wave.report_early_use(step.instruction, min(row for row in step.touches if row in wave.busy))
        check_distance(wave, step)
        to = step.act(wave)
        wave.now += step.states
        if to is None:
            pc += 1
            continue
        back, pc = pc, to if to >= 0 else pc + 1
        if to < 0:
            wave.waiting, wave.ended, wave.at_named = to != AT_END, to == AT_END, to == AT_NAMED
            wave.epoch += to == AT_BARRIER
            break
        if to <= back:
            if pc in endless:
                raise _report_endless(wave, steps[pc].instruction, "reached a loop that no path leaves")
            check_time(wave.number, steps[pc].instruction)
            wave.spinning = is_revisited(wave, pc)
            if wave.spinning:
                break
    wave.executed += start - left
    wave.pc = pc
    if wave.ended:
        for pending in wave.landing:
            wave.land(pending)
    elif wave.executed >= most:
        fix = "run a smaller problem, or allow more instructions if the kernel is that long"
        why = f"executed {shown or most} instructions and did not end"
        raise _report_endless(wave, steps[pc].instruction, why, fix)


def _report_endless(wave: Wave, instruction: Instruction, why: str, *fixes: str) -> IsaError:
    return IsaError.of("I108", f"wave {wave.number} {why}", concerns=(instruction.concern(),), fixes=fixes)
