"""Confirms alarms by replays in the interpreter, and drops those that no launch can reach.

An alarm is dropped if no launch takes any of its paths and the proof followed every path.  It is an error if a replay
shows it at the same instructions.  All others are warnings that say why no replay shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise, product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rota.errors import Finding, IsaError, Severity, several
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.disassembly import Instruction
from rota.isa.launch.interleaving import EARLIEST, LATEST, CoreFault, Interleaving
from rota.isa.launch.kernarg import Pointer, Value
from rota.isa.launch.run import UnwantedFaultsError, run_dispatch
from rota.isa.memory.memories import Memory
from rota.isa.wave.wave import Faults
from rota.prove.bit_vectors import BitVectors, is_available
from rota.prove.causes import LEVEL, UNDECIDED, Alarm, EvidenceLevel, Pair, level_of, pair_of
from rota.prove.decisions import Path, StateGraph
from rota.prove.verdict import Confirmed, Meter, doubt, missing_fact, report_unconfirmed
from rota.prove.witness import (
    BUFFER_BYTES,
    DATA,
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

MOST_INSTRUCTIONS = 4_000  # the most instructions of a wave in a replay
MOST_RUNS = 30  # the most replays of one proof
MOST_EXPLAINED = 20_000  # the most instructions that NumPy executes for them, which is slow
_UNEXPLAINED = 4_000  # of these, for a replay that the core alone makes
T = TypeVar("T")
_OUTSIDE = 105  # an access outside of all buffers


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleWorkgroup(Interleaving):
    number: int = 0

    def order_workgroups(self, workgroups: Sequence[T]) -> list[T]:
        return [workgroups[self.number]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderResult:
    """What a replay in one order of waves showed.

    `outside` names the instruction that accessed memory outside of the buffers, if any.  `output` is a digest of all
    buffers at the end; None if the launch didn't end, and then `instructions` is the limit.
    """

    order: str
    findings: tuple[Finding, ...]
    outside: str
    output: bytes | None
    instructions: int = 0


@dataclass
class Replay:
    """Executes launches of one kernel in the interpreter, one workgroup under a few orders of its waves."""

    _facts: KernelFacts
    _instructions: Sequence[Instruction]
    _block: Triple
    _dynamic: int
    _image: bytes = b""
    _tables: frozenset[int] = frozenset()
    wanted: set[int] = field(default_factory=set)  # lines: a replay is of interest if a fault is at one of them
    _runs: int = 0
    _explained: int = 0

    @cached_property
    def _program(self) -> KernelProgram:
        # Without wait states: the proof has checked them by the same table, and wrong values would hide other errors.
        try:
            return load_program(self._facts, tuple(self._instructions), image=self._image, spaced=False)
        except IsaError as error:
            raise NoLaunchError(f"the interpreter can't execute the kernel: {error.findings[0].message}") from error

    @cached_property
    def addresses(self) -> tuple[int, ...]:
        image = [np.frombuffer(self._program.image, np.uint8)] if self._program.image else []
        count = len(pointers_of(self._facts)) + 1
        memory = Memory([*image, *self._make_buffers(count)], Faults())
        return tuple(memory.address(len(image) + number) for number in range(count))

    @staticmethod
    def _make_buffers(count: int) -> list[NDArray[np.uint8]]:
        return [np.zeros(BUFFER_BYTES, np.uint8) for _ in range(count)]

    def run(self, launch: Launch, waves: Sequence[int], *, noise: int) -> Iterator[OrderResult]:
        """Replay a launch in one order after the other: of the two waves the first runs late, the second early.

        With `noise`, a seed, buffers hold pseudo-random words instead of zeros.  Tables stay zero, since scalar loads
        mostly read indices.
        """
        buffers = self._make_buffers(len(self.addresses))
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
        for order in _list_orders(waves):
            if self._runs >= MOST_RUNS or self._explained >= MOST_EXPLAINED:
                raise NoLaunchError(_USED_UP)
            self._runs += 1
            yield self._run_once(launch, buffers, order, number)

    def _run_once(
        self, launch: Launch, buffers: list[NDArray[np.uint8]], order: Interleaving, number: int
    ) -> OrderResult:
        only = SingleWorkgroup(
            label=order.label, ahead=order.ahead, behind=order.behind, landing=order.landing, number=number
        )
        output: bytes | None = None
        by_core: list[CoreFault] = []

        def wants(faults: Sequence[CoreFault]) -> bool:
            by_core.extend(faults)
            return self._are_wanted(faults)

        try:
            outcome = run_dispatch(
                self._program,
                buffers=buffers,
                values=self._pack_arguments(launch),
                grid=launch.grid,
                block=self._block,
                dynamic_lds=self._dynamic,
                interleaving=only,
                most=MOST_INSTRUCTIONS,
                wants=wants,
            )
            found, count = outcome.findings, outcome.instructions
            output = blake2b(b"".join(each.tobytes() for each in outcome.buffers)).digest()
        except UnwantedFaultsError:
            self._explained += _UNEXPLAINED
            left = (self._program.steps[pc].instruction.text for code, pc, _ in by_core if code == _OUTSIDE)
            return OrderResult(order=order.label, findings=(), outside=next(left, ""), output=None)
        except IsaError as error:
            found, count = error.findings, MOST_INSTRUCTIONS
            if {each.code for each in found} == {"I107"}:
                raise NoLaunchError(f"no launch fits the kernel: {found[0].evidence}") from error
        self._explained += count if found else 0
        away = (each.concerns[0].label for each in found if _is_outside(each))
        return OrderResult(order=order.label, findings=found, outside=next(away, ""), output=output, instructions=count)

    def _are_wanted(self, faults: Sequence[CoreFault]) -> bool:
        """True if a fault is at a wanted line, and the launch stays inside of its buffers."""
        steps = self._program.steps
        lines = {steps[at].instruction.line for _, *both in faults for at in both if at >= 0}
        return not lines.isdisjoint(self.wanted) and all(code != _OUTSIDE for code, *_ in faults)

    def _pack_arguments(self, launch: Launch) -> list[Value]:
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


def _is_outside(finding: Finding) -> bool:
    return finding.code == "I105" and "LDS bytes" not in dict(finding.evidence)


def _list_orders(waves: Sequence[int]) -> Iterator[Interleaving]:
    yield LATEST
    for first, then in pairwise(waves):
        yield Interleaving(label=f"wave {then} ahead, wave {first} behind", ahead=(then,), behind=(first,))
    yield EARLIEST


_LINE = re.compile(r"\(line (\d+)\)$")
_MOST_LAUNCHES = 2  # for one alarm
_MOST_PATHS = 200  # of one alarm
_MOST_QUESTIONS = 1_000  # of one proof
_USED_UP = "the replays of a proof were used up by other alarms"
_TAKEN = "whether a launch takes its path"
_NOT_EXECUTED = {"I403": "the interpreter doesn't check loads that land after their wave ends"}


@dataclass(slots=True, kw_only=True)
class _Case:
    """An alarm with its feasible paths, or why none is known; `never` if no launch takes any."""

    alarm: Alarm
    possible: list[tuple[Pair | None, Possible]] = field(default_factory=list)
    why: str = ""
    never: bool = False


def confirm(
    alarms: Sequence[Alarm], graph: StateGraph, replay: Replay, facts: KernelFacts, *, complete: bool, meter: Meter
) -> Confirmed:
    """Drop infeasible alarms, and replay the others; `complete` says that the proof followed every path."""
    if not is_available():
        return report_unconfirmed(alarms, "z3 isn't installed: pip install 'rota[prove]'")
    meter.allow_search()
    confirmation = _Confirmation(graph, replay, facts, complete=complete, meter=meter)
    cases = [confirmation.examine(each, len(alarms) - number) for number, each in enumerate(alarms)]
    kept = [each for each in cases if not each.never]
    findings: dict[int, Finding] = {}
    for each in sorted(kept, key=lambda case: not case.alarm.paths):  # their replays may show the others, too
        shown = {number for number, finding in findings.items() if level_of(finding) is EvidenceLevel.SHOWN}
        left = (case.alarm for case in kept if id(case) not in shown)
        replay.wanted = {line for alarm in left for pair in alarm.pairs for line in pair}
        findings[id(each)] = confirmation.report(each)
    causes = tuple(each.alarm.as_cause(findings[id(each)]) for each in kept)
    return Confirmed(causes=causes, dropped=len(cases) - len(kept))


class _Confirmation:
    def __init__(self, graph: StateGraph, replay: Replay, facts: KernelFacts, *, complete: bool, meter: Meter) -> None:
        self._graph, self._replay, self._facts, self._complete = graph, replay, facts, complete
        self._feasibility, self._meter = Feasibility(graph, BitVectors(), meter), meter
        self._asked: dict[tuple[int, int], Possible | Unsettled | None] = {}
        self._ran: dict[tuple[Launch, int], list[OrderResult]] = {}

    # Feasibility.

    def examine(self, alarm: Alarm, left: int) -> _Case:
        """The paths of an alarm that launches take; it and `left - 1` others share half of what is left to spend."""
        case, most = _Case(alarm=alarm), self._meter.spent + self._meter.left // (2 * left)
        if alarm.first.severity is Severity.NOTE:
            return case
        if not alarm.paths:
            case.why = "it isn't about paths, so no launch was searched for"
            return case
        for number, (pair, path) in enumerate(alarm.paths):
            asked = self._feasibility.questions
            if number >= _MOST_PATHS or asked >= _MOST_QUESTIONS or self._meter.spent > most:
                case.why = case.why or "it has more paths than were examined"
                return case
            found = self._ask(path, most)
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

    def _ask(self, path: Path, most: int) -> Possible | Unsettled | None:
        key = path[0], id(path[1])
        if key not in self._asked:
            self._asked[key] = self._feasibility.find(path, most)
        return self._asked[key]

    # Replay.

    def report(self, case: _Case) -> Finding:  # noqa: C901
        """The finding of an alarm: an error if a replay shows it, else a warning."""
        alarm = case.alarm
        fact = missing_fact(alarm.first)
        if alarm.first.severity is Severity.NOTE:
            return alarm.report()
        if fact is not None or alarm.first.code in _NOT_EXECUTED:
            # A replay would need data that the kernel may never be given.
            return doubt(alarm.report(), _NOT_EXECUTED.get(alarm.first.code, f"it depends on {fact}"))
        for launch, noise in self._ran:
            if (best := self._find_best(launch, noise, alarm)) is not None:
                return self._refute(alarm, launch, best, noise)
        why = case.why
        for _, possible in case.possible:
            if over := self._meter.exceeded:
                why = f"the budget of {over} is used up"
                break
            try:
                plain = build_launch(self._facts, possible, self._replay.addresses, self._meter)
                for fill, noise in product(FILLS, (1, 0)):
                    launch = replace(plain, fill=fill)
                    if not noise and not any(each.findings for each in self._ran[launch, 1]):
                        continue  # what lies in memory rarely decides whether waves meet
                    self._execute(launch, alarm, noise)
                    if (best := self._find_best(launch, noise, alarm)) is not None:
                        return self._refute(alarm, launch, best, noise)
                    why = self._explain(alarm, launch, noise)
            except NoLaunchError as error:
                why = str(error)
        finding = doubt(alarm.report(case.possible[0][0] if case.possible else None), why)
        lacks = _say_what_lacks(case)
        return replace(finding, evidence=(*finding.evidence, (UNDECIDED, lacks))) if lacks else finding

    def _execute(self, launch: Launch, alarm: Alarm, noise: int) -> None:
        """Replay a launch until an order does harm, or for one more order after one that could."""
        if (launch, noise) in self._ran:
            return
        done = self._ran[launch, noise] = []
        waves = re.findall(r"\d+", str(dict(alarm.first.evidence).get("waves", "")))
        for shown in self._replay.run(launch, [*map(int, waves[:2])], noise=noise):
            self._meter.spend(shown.instructions)
            done.append(shown)
            best = self._find_best(launch, noise, alarm)
            if self._meter.exceeded or shown.outside or (best is not None and (_is_harmful(best[1]) or len(done) > 1)):
                return

    def _find_best(self, launch: Launch, noise: int, alarm: Alarm) -> tuple[OrderResult, Finding, Pair] | None:
        """The replay that shows an alarm best: one in which it does harm, else one in which it could."""
        matches = [_find_match(shown, alarm) for shown in self._ran[launch, noise] if not shown.outside]
        found = [each for each in matches if each is not None and not _is_harmless(each[1])]
        return next((each for each in found if _is_harmful(each[1])), found[0] if found else None)

    def _explain(self, alarm: Alarm, launch: Launch, noise: int) -> str:
        shown = self._ran[launch, noise]
        if not shown:
            return _USED_UP
        matches = [found for each in shown if (found := _find_match(each, alarm)) is not None]
        if matches and all(_is_harmless(each[1]) for each in matches):
            return "the replay reaches it, but the bytes in question don't change"
        if left := next((each.outside for each in shown if each.outside), ""):
            return f"the launch that might show it also accesses memory outside of its buffers, at {left}"
        if any(_find_match(each, alarm, code="I304") for each in shown):
            return "in the replay both waves write the same values"
        unknown = ", ".join(launch.unknown)
        depends = f"; its path depends on {unknown}, which no launch decides" if unknown else ""
        return f"a replay in {several(len(shown), 'order')} didn't show it{depends}"

    def _refute(self, alarm: Alarm, launch: Launch, best: tuple[OrderResult, Finding, Pair], noise: int) -> Finding:
        shown, finding, pair = best
        reported = alarm.report(pair)
        seen = dict(finding.evidence).get("seen")
        done = [each for each in self._ran[launch, noise] if each.output is not None]
        other = next((each for each in done if each.output != done[0].output), None)
        evidence = (
            ("launch", launch.describe(self._facts, noise=noise)),
            ("replayed", f"order {shown.order!r}" + (f", {seen}" if seen else "")),
            *((("outputs", f"differ between orders {done[0].order!r} and {other.order!r}"),) if other else ()),
        )
        level = (LEVEL, EvidenceLevel.SHOWN.value)
        return replace(reported, severity=Severity.ERROR, evidence=(level, *reported.evidence, *evidence))


def _say_what_lacks(case: _Case) -> str:
    """What would decide whether a launch takes a path of an alarm; nothing if one does as far as is known."""
    guessed = [each.terms.guessed - DATA for _, each in case.possible]
    if not case.alarm.paths or (guessed and not all(guessed)):
        return ""
    results = ", ".join(sorted(set[str]().union(*guessed)))
    return f"{_TAKEN}, which depends on {results}" if guessed else _TAKEN


def _is_harmful(finding: Finding) -> bool:
    return str(dict(finding.evidence).get("seen", "in this order")).startswith("in this order")


def _is_harmless(finding: Finding) -> bool:
    return str(dict(finding.evidence).get("seen", "")).endswith("here the bytes didn't change")


def _find_match(shown: OrderResult, alarm: Alarm, code: str | None = None) -> tuple[OrderResult, Finding, Pair] | None:
    wanted = code or alarm.first.code
    found: tuple[OrderResult, Finding, Pair] | None = None
    for each in shown.findings:
        if each.code != wanted:
            continue
        ends = pair_of(each)
        line = _LINE.search(str(dict(each.evidence).get("under way", "")))
        if len(ends) == 1 and line is not None:
            ends = (*ends, int(line[1]))
        pair = next((known for known in (ends, ends[::-1]) if known in alarm.pairs), None)
        if pair is not None and (found is None or _is_harmful(each)):
            found = (shown, each, pair)
    return found
