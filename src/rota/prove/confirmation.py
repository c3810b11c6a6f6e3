"""Alarms, confirmed or dropped: takes what a proof found, gives findings that say whether an execution shows them.

An alarm on paths that no launch can take is dropped, if the proof followed every path.  One that an execution shows,
with the same instructions, is an error; all others are warnings that say why they were not shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise, product
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from rota.errors import Finding, IsaError, Severity, several
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.disassembly import Instruction
from rota.isa.hazards.spacing import NOTHING
from rota.isa.launch.interleaving import EARLIEST, LATEST, Interleaving
from rota.isa.launch.kernarg import Pointer, Value
from rota.isa.launch.run import run_dispatch
from rota.isa.memory.memories import Memory
from rota.isa.wave.wave import Faults
from rota.prove.bit_vectors import BitVectors, available
from rota.prove.decisions import Path, StateGraph
from rota.prove.verdict import Alarm, Confirmed, Meter, Pair, doubt, missing_fact, pair_of, report_unconfirmed
from rota.prove.witness import (
    BUFFER_BYTES,
    FILLS,
    Feasibility,
    Launch,
    NoLaunchError,
    Possible,
    Triple,
    Unsettled,
    build_launch,
    pointers_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_INSTRUCTIONS = 20_000
"""Of one wave in a replay."""
MOST_RUNS = 30
"""Orders of launches that are executed for one proof."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Only(Interleaving):
    """One workgroup alone, by its number."""

    number: int = 0

    def arranged(self, workgroups: Sequence[T]) -> list[T]:
        """That workgroup."""
        return [workgroups[self.number]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderShown:
    """What one order showed: its label, findings, and where the launch reached outside of its buffers, if it did.

    `output` is equal where all buffers are equal in the end; None if the launch didn't come to its end.  Of one that
    didn't, `instructions` are the most that a wave may have executed.
    """

    order: str
    findings: tuple[Finding, ...]
    outside: str
    output: bytes | None
    instructions: int = 0


class Replay:
    """Executes launches of one kernel."""

    def __init__(
        self,
        facts: KernelFacts,
        instructions: Sequence[Instruction],
        *,
        block: Triple,
        dynamic_lds: int,
        image: bytes = b"",
        tables: frozenset[int] = frozenset(),
    ) -> None:
        self._facts, self._instructions, self._image = facts, tuple(instructions), image
        self._block, self._dynamic, self._tables = block, dynamic_lds, tables
        self._runs = 0

    @cached_property
    def _program(self) -> KernelProgram:
        """Without wait states: the proof has judged them by the same table, and what they spoil would show nothing."""
        try:
            program = load_program(self._facts, self._instructions, image=self._image)
            return replace(program, steps=tuple(replace(step, spacing=NOTHING) for step in program.steps))
        except IsaError as error:
            raise NoLaunchError(f"the interpreter can't run it: {error.findings[0].message}") from error

    @cached_property
    def addresses(self) -> tuple[int, ...]:
        """Where the buffers of pointers will lie, and a spare one."""
        image = [np.frombuffer(self._program.image, np.uint8)] if self._program.image else []
        count = len(pointers_of(self._facts)) + 1
        memory = Memory([*image, *self._buffers(count)], Faults())
        return tuple(memory.address(len(image) + number) for number in range(count))

    @staticmethod
    def _buffers(count: int) -> list[NDArray[np.uint8]]:
        return [np.zeros(BUFFER_BYTES, np.uint8) for _ in range(count)]

    def run(self, launch: Launch, waves: Sequence[int], *, noise: int) -> Iterator[OrderShown]:
        """One order after the other; the first of the two waves is left behind, the second runs ahead.

        With `noise`, buffers hold pseudo-random words instead of zeros, drawn by that seed, but for tables: what scalar
        loads read are indices more often than not.
        """
        buffers = self._buffers(len(self.addresses))
        if noise:
            draw = np.random.default_rng(noise)
            for pointer, each in zip(pointers_of(self._facts), buffers, strict=False):
                if pointer.offset in self._tables:
                    continue
                each.view(np.uint32)[:] = draw.integers(0, 1 << 32, len(each) // 4, np.uint32)
        for word in launch.memory:
            buffers[word.buffer].view(np.uint32)[word.offset // 4] = word.value
        x, y, z = launch.workgroup
        number = x + launch.grid[0] * (y + launch.grid[1] * z)
        for order in _orders(waves):
            if self._runs >= MOST_RUNS:
                raise NoLaunchError(f"{MOST_RUNS} executions were made already, for other alarms")
            self._runs += 1
            only = Only(label=order.label, ahead=order.ahead, behind=order.behind, landing=order.landing, number=number)
            try:
                outcome = run_dispatch(
                    self._program,
                    buffers=buffers,
                    values=self._values(launch),
                    grid=launch.grid,
                    block=self._block,
                    dynamic_lds=self._dynamic,
                    interleaving=only,
                    most=MOST_INSTRUCTIONS,
                )
                found: tuple[Finding, ...] = outcome.findings
                output: bytes | None = _digest(outcome.buffers)
                count = outcome.instructions
            except IsaError as error:
                found, output, count = error.findings, None, MOST_INSTRUCTIONS
                if {each.code for each in found} == {"I107"}:
                    raise NoLaunchError(f"no launch fits it: {found[0].evidence}") from error
            yield OrderShown(
                order=order.label, findings=found, outside=_outside(found), output=output, instructions=count
            )

    def _values(self, launch: Launch) -> list[Value]:
        """The declared arguments as the launch has them."""
        segment = np.zeros(max(self._facts.kernarg_bytes, 4) + 16, np.uint8)
        for each in self._facts.arguments:
            if each.kind == "by_value" and each.size >= 4:
                segment[each.offset] = launch.fill
        for offset, value in launch.arguments:
            segment[offset : offset + 4] = np.frombuffer(value.to_bytes(4, "little"), np.uint8)
        values: list[Value] = []
        buffer = 0
        for each in self._facts.arguments:
            if each.hidden:
                continue
            if each.kind == "global_buffer" and each.size == 8:
                values.append(Pointer(buffer=buffer))
                buffer += 1
            elif each.kind == "dynamic_shared_pointer":
                values.append(0)
            else:
                values.append(segment[each.offset : each.offset + each.size].tobytes())
        if not self._facts.arguments and self._facts.kernarg_bytes:
            values = [segment[: self._facts.kernarg_bytes].tobytes()]
        return values


def _orders(waves: Sequence[int]) -> Iterator[Interleaving]:
    yield LATEST
    for first, then in pairwise(waves):
        yield Interleaving(label=f"wave {then} ahead, wave {first} behind", ahead=(then,), behind=(first,))
    yield EARLIEST


def _digest(buffers: Sequence[NDArray[np.uint8]]) -> bytes:
    total = blake2b()
    for each in buffers:
        total.update(each.tobytes())
    return total.digest()


def _outside(findings: Sequence[Finding]) -> str:
    """The first instruction that used memory which belongs to nobody."""
    told = (each for each in findings if each.code == "I105" and "leaves LDS" not in each.message)
    return next((each.concerns[0].label for each in told), "")


_LINE = re.compile(r"\(line (\d+)\)$")
_MOST_LAUNCHES = 2  # for one alarm
_MOST_PATHS = 200  # of one alarm
_MOST_QUESTIONS = 1_000  # of one proof
_NOT_EXECUTED = {"I403": "the interpreter doesn't judge what lands after a wave's end"}


@dataclass(slots=True, kw_only=True)
class _Case:
    """An alarm with the paths that may be taken, or why none is known."""

    alarm: Alarm
    possible: list[tuple[Pair | None, Possible]] = field(default_factory=list)
    why: str = ""
    never: bool = False


def confirm(
    alarms: Sequence[Alarm],
    graph: StateGraph,
    replay: Replay,
    facts: KernelFacts,
    *,
    complete: bool,
    meter: Meter,
) -> Confirmed:
    """Asks whether alarms can happen, and executes those that may."""
    if not available():
        return report_unconfirmed(alarms, "z3 isn't installed: pip install 'rota[prove]'")
    meter.allow_search()
    one = _Confirmation(graph, replay, facts, complete=complete, meter=meter)
    cases = [one.case(each) for each in alarms]
    kept = [each for each in cases if not each.never]
    # Those with paths first: what isn't about paths may well show on the way.
    findings = {id(each): one.finding(each) for each in sorted(kept, key=lambda case: not case.alarm.paths)}
    return Confirmed(findings=tuple(findings[id(each)] for each in kept), dropped=len(cases) - len(kept))


class _Confirmation:
    def __init__(self, graph: StateGraph, replay: Replay, facts: KernelFacts, *, complete: bool, meter: Meter) -> None:
        self._graph, self._replay, self._facts, self._complete = graph, replay, facts, complete
        self._feasibility, self._meter = Feasibility(graph, BitVectors(), meter), meter
        self._asked: dict[tuple[int, int], Possible | Unsettled | None] = {}
        self._ran: dict[tuple[Launch, int], list[OrderShown]] = {}

    # Feasibility.

    def case(self, alarm: Alarm) -> _Case:
        """What is known about the paths of an alarm."""
        case = _Case(alarm=alarm)
        if alarm.first.severity is Severity.NOTE:
            return case
        if not alarm.paths:
            case.why = "it isn't about paths, so no launch was looked for"
            return case
        for number, (pair, path) in enumerate(alarm.paths.values()):
            if number >= _MOST_PATHS or self._feasibility.questions >= _MOST_QUESTIONS:
                case.why = case.why or "there are more paths to it than were asked about"
                return case
            found = self._ask(path)
            if isinstance(found, Possible):
                case.possible.append((pair, found))
            elif found is not None:
                case.why = case.why or found.why
            if len(case.possible) >= _MOST_LAUNCHES:
                return case
        case.never = self._complete and not alarm.anywhere and not case.possible and not case.why
        if not case.possible and not case.why:
            case.why = "no launch takes the paths that were followed, but not all paths were"
        return case

    def _ask(self, path: Path) -> Possible | Unsettled | None:
        key = path[0], id(path[1])
        if key not in self._asked:
            self._asked[key] = self._feasibility.of(path)
        return self._asked[key]

    # Replay.

    def finding(self, case: _Case) -> Finding:  # noqa: C901
        """An alarm's finding, as an error if it was executed."""
        alarm = case.alarm
        if alarm.first.severity is Severity.NOTE:
            return alarm.report()
        if missing_fact(alarm.first) is not None:  # an execution would be of data that the kernel may never be given
            return doubt(alarm.report(), f"it depends on {missing_fact(alarm.first)}")
        if alarm.first.code in _NOT_EXECUTED:
            return doubt(alarm.report(), _NOT_EXECUTED[alarm.first.code])
        for launch, noise in self._ran:
            if (best := self._best(launch, noise, alarm)) is not None:
                return self._refuted(alarm, launch, best, noise)
        why = case.why
        for _, possible in case.possible:
            if over := self._meter.exceeded:
                why = f"the budget of {over} is used up"
                break
            try:
                plain = build_launch(self._facts, possible, self._replay.addresses)
                for noise, fill in product((0, 1), FILLS):
                    launch = replace(plain, fill=fill)
                    self._execute(launch, alarm, noise)
                    if (best := self._best(launch, noise, alarm)) is not None:
                        return self._refuted(alarm, launch, best, noise)
                    why = self._reason(alarm, launch, noise)
            except NoLaunchError as error:
                why = str(error)
        return doubt(alarm.report(case.possible[0][0] if case.possible else None), why)

    def _execute(self, launch: Launch, alarm: Alarm, noise: int) -> None:
        """Runs a launch, until an order does harm, or for another order behind one that could."""
        if (launch, noise) in self._ran:
            return
        done = self._ran[launch, noise] = []
        for shown in self._replay.run(launch, _waves(alarm.first), noise=noise):
            self._meter.spend(shown.instructions)
            done.append(shown)
            best = self._best(launch, noise, alarm)
            if self._meter.exceeded or shown.outside or (best is not None and (_harmful(best[1]) or len(done) > 1)):
                return

    def _best(self, launch: Launch, noise: int, alarm: Alarm) -> tuple[OrderShown, Finding, Pair] | None:
        """The order that shows an alarm best: one in which it does harm, else one in which it could."""
        found = [
            match
            for shown in self._ran[launch, noise]
            if not shown.outside and (match := _match(shown, alarm)) is not None and not _harmless(match[1])
        ]
        return next((each for each in found if _harmful(each[1])), found[0] if found else None)

    def _reason(self, alarm: Alarm, launch: Launch, noise: int) -> str:
        shown = self._ran[launch, noise]
        matches = [found for each in shown if (found := _match(each, alarm)) is not None]
        if matches and all(_harmless(each[1]) for each in matches):
            return "the replay comes to it, but the bytes in question don't change there"
        if matches:
            left = next(each[0].outside for each in matches if each[0].outside)
            return f"the launch that shows it leaves its buffers as well, at {left}: what it reads there is nobody's"
        if any(_match(each, alarm, code="I304") for each in shown):
            return "in the replay both waves write the same values"
        depends = (
            f"; its path depends on {', '.join(launch.unknown)}, which no launch decides" if launch.unknown else ""
        )
        return f"a replay in {several(len(shown), 'order')} didn't show it{depends}"

    def _refuted(self, alarm: Alarm, launch: Launch, best: tuple[OrderShown, Finding, Pair], noise: int) -> Finding:
        shown, finding, pair = best
        told = alarm.report(pair)
        seen = dict(finding.evidence).get("seen")
        evidence = (
            ("launch", launch.describe(self._facts, noise=noise)),
            ("replayed", f"order {shown.order!r}" + (f", {seen}" if seen else "")),
            *self._differing(launch, noise),
        )
        return replace(told, severity=Severity.ERROR, evidence=(*told.evidence, *evidence))

    def _differing(self, launch: Launch, noise: int) -> tuple[tuple[str, str], ...]:
        """Two orders after which memory differs."""
        done = [each for each in self._ran[launch, noise] if each.output is not None]
        other = next((each for each in done if each.output != done[0].output), None)
        return () if other is None else (("outputs", f"differ between orders {done[0].order!r} and {other.order!r}"),)


def _waves(finding: Finding) -> tuple[int, ...]:
    told = str(dict(finding.evidence).get("waves", ""))
    return tuple(map(int, re.findall(r"\d+", told)))[:2]


def _harmful(finding: Finding) -> bool:
    return str(dict(finding.evidence).get("seen", "in this order")).startswith("in this order")


def _harmless(finding: Finding) -> bool:
    return str(dict(finding.evidence).get("seen", "")).endswith("here the bytes didn't change")


def _match(shown: OrderShown, alarm: Alarm, code: str | None = None) -> tuple[OrderShown, Finding, Pair] | None:
    """What an execution found of the same kind, about the same instructions."""
    wanted = code or alarm.first.code
    found: tuple[OrderShown, Finding, Pair] | None = None
    for each in shown.findings:
        if each.code != wanted:
            continue
        ends = pair_of(each)
        line = _LINE.search(str(dict(each.evidence).get("under way", "")))
        if len(ends) == 1 and line is not None:
            ends = (*ends, int(line[1]))
        pair = next((known for known in (ends, ends[::-1]) if known in alarm.pairs), None)
        if pair is not None and (found is None or _harmful(each)):
            found = (shown, each, pair)
    return found
