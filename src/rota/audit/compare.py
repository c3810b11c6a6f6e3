"""Schedule against machine code: what the compiler kept, moved, weakened or added, and a new proof.

Between two data instructions only the strongest wait of each counter on each side of a barrier matters: the compiler
fuses adjacent waits. The schedule is then proved again with the waits and barriers that its code really has.
"""

from __future__ import annotations

import enum
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from rota.audit.machine_loop import Expected, ExpectedEvent, MachineEvent, MachineLoop
from rota.errors import Finding, IsaError, Severity
from rota.program.entry import BARRIER, MEETS, Entry, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import Lowerable, LoweredProgram
from rota.verify.prove import verify
from rota.verify.report import Report

SYNC = (OpKind.WAIT, OpKind.BARRIER)
"""Kinds that are between the others, whose order is the schedule's."""


class WaitVerdict(enum.Enum):
    EQUAL = "equal"
    STRONGER = "stronger"
    WEAKER = "weaker"
    ADDED = "added"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitMatch:
    """One wait after fusing: the counts that the schedule and the machine code name; None is no wait there."""

    phase: Phase
    before: str
    counter: str
    planned: int | None
    found: int | None

    @property
    def verdict(self) -> WaitVerdict:
        if self.planned is None:
            return WaitVerdict.ADDED
        if self.found is None or self.found > self.planned:
            return WaitVerdict.WEAKER
        return WaitVerdict.EQUAL if self.found == self.planned else WaitVerdict.STRONGER

    def __str__(self) -> str:
        planned, found = ("none" if count is None else count for count in (self.planned, self.found))
        return f"{self.phase.value.lower()}, before {self.before}: {self.counter} {planned} became {found}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Pairs of data events where the order was kept, all waits, how many of them were fused away, and findings."""

    pairs: tuple[tuple[ExpectedEvent, MachineEvent], ...]
    waits: tuple[WaitMatch, ...]
    fused: int
    findings: tuple[Finding, ...]


_Data = tuple[OpKind, int]  # with its priority, if it sets one


class _Sync(NamedTuple):
    """A wait with its counts, or a barrier that all waves or one group alone executes."""

    is_barrier: bool = False
    waits: tuple[tuple[str, int], ...] = ()
    alone: bool = False
    exempt: bool = False


class _Stretch(NamedTuple):
    """A phase: its data events, and what synchronises before each of them and after the last."""

    kinds: tuple[_Data, ...]
    gaps: tuple[tuple[_Sync, ...], ...]


def compare(expected: Expected, found: MachineLoop) -> Comparison:
    """All three phases; where the order of a phase differs, its waits can't be compared."""
    pairs: list[tuple[ExpectedEvent, MachineEvent]] = []
    waits: list[WaitMatch] = []
    findings: list[Finding] = []
    fused = 0
    for phase in Phase:
        events = found.phase(phase)
        planned = [event for event in expected[phase] if event.kind not in SYNC]
        coded = [event for event in events if event.kind not in SYNC]
        plan = _split(_list_planned(expected[phase]))
        code = _split(_list_coded(events, in_loop=phase is Phase.KERNEL))
        difference = _first_difference(phase, plan, code, planned, coded)
        if difference is not None:
            findings.append(difference)
            continue
        pairs += zip(planned, coded, strict=True)
        message = f"a branch may skip an instruction of the {phase.value.lower()}, which the schedule always executes"
        findings += (Finding("I202", message, concerns=(event.concern(),)) for event in coded if event.conditional)
        for index, (want, have) in enumerate(zip(plan.gaps, code.gaps, strict=True)):
            closing = index == len(planned) and phase is Phase.EPILOGUE
            where = str(planned[index].entry) if index < len(planned) else "the end"
            findings += _barriers(phase, where, want, have)
            waits += _waits(phase, where, want, have, closing=closing)
            fused += max(0, sum(not each.is_barrier for each in want) - sum(not each.is_barrier for each in have))
    return Comparison(
        pairs=tuple(pairs),
        waits=tuple(waits),
        fused=fused,
        findings=(*findings, *(finding for match in waits for finding in _judge_wait(match))),
    )


def _list_planned(events: Sequence[ExpectedEvent]) -> Iterator[_Sync | _Data]:
    for event in events:
        effect = event.entry.effect
        if event.kind is OpKind.WAIT and effect.counter is not None:
            yield _Sync(waits=((effect.counter, effect.wait_value),))
        elif event.kind is OpKind.BARRIER:
            yield _Sync(is_barrier=True, alone=event.alone)
        else:
            yield event.kind, effect.wait_value


def _list_coded(events: Sequence[MachineEvent], *, in_loop: bool) -> Iterator[_Sync | _Data]:
    for event in events:
        if event.kind is OpKind.WAIT:
            yield _Sync(waits=event.waits, exempt=event.serves_scalars and not in_loop)
        elif event.kind is OpKind.BARRIER:
            yield _Sync(is_barrier=True, alone=event.conditional)
        else:
            yield event.kind, event.level


def _split(events: Iterable[_Sync | _Data]) -> _Stretch:
    kinds: list[_Data] = []
    gaps: list[list[_Sync]] = [[]]
    for event in events:
        if isinstance(event, _Sync):
            gaps[-1].append(event)
        else:
            kinds.append(event)
            gaps.append([])
    return _Stretch(tuple(kinds), tuple(map(tuple, gaps)))


def _first_difference(
    phase: Phase, plan: _Stretch, code: _Stretch, planned: Sequence[ExpectedEvent], coded: Sequence[MachineEvent]
) -> Finding | None:
    if plan.kinds == code.kinds:
        return None
    shorter = min(len(plan.kinds), len(code.kinds))
    at = next((index for index in range(shorter) if plan.kinds[index] != code.kinds[index]), shorter)
    due = (event.entry.concern("due here") for event in planned[at : at + 1])
    here = (event.concern("is here in machine code") for event in coded[at : at + 1])
    return Finding(
        "I202",
        f"the machine code of the {phase.value.lower()} departs from the schedule after {at} instructions",
        concerns=(*due, *here),
        evidence=(
            ("instructions in the schedule", len(plan.kinds)),
            ("instructions in the machine code", len(code.kinds)),
            ("waits in the schedule", _wait_text(plan)),
            ("waits in the machine code", _wait_text(code)),
        ),
    )


def _wait_text(stretch: _Stretch) -> str:
    """How often each wait is in a phase; full drains come first."""
    waits = Tally(wait for gap in stretch.gaps for sync in gap for wait in sync.waits)
    ordered = sorted(waits.items(), key=lambda item: (item[0][1], item[0][0]))
    return ", ".join(f"{times} x {counter}({count})" for (counter, count), times in ordered) or "none"


def _barriers(phase: Phase, where: str, want: Sequence[_Sync], have: Sequence[_Sync]) -> Iterator[Finding]:
    planned = [each.alone for each in want if each.is_barrier]
    coded = [each.alone for each in have if each.is_barrier]
    if planned != coded:
        yield Finding(
            "I205",
            f"{phase.value.lower()}, before {where}: the schedule has {_barrier_text(planned)}, "
            f"the machine code {_barrier_text(coded)}",
            evidence=(("planned", len(planned)), ("found", len(coded))),
        )


def _barrier_text(alone: Sequence[bool]) -> str:
    text = f"{len(alone)} barrier" + ("" if len(alone) == 1 else "s")
    return text + (f", {sum(alone)} of one wave group alone" if any(alone) else "")


def _waits(
    phase: Phase, where: str, want: Sequence[_Sync], have: Sequence[_Sync], *, closing: bool
) -> Iterator[WaitMatch]:
    """Stretches between barriers, one by one; what the machine code waits for after the last entry is its own."""
    for plan, code in zip_longest(_between_barriers(want), _between_barriers(have), fillvalue=()):
        planned, found = _find_strongest(plan), _find_strongest(code)
        needed = () if closing else _find_strongest([each for each in code if not each.exempt])
        for counter in dict.fromkeys((*planned, *needed)):
            counts = {"planned": planned.get(counter), "found": found.get(counter)}
            yield WaitMatch(phase=phase, before=where, counter=counter, **counts)


def _between_barriers(syncs: Sequence[_Sync]) -> list[list[_Sync]]:
    parts: list[list[_Sync]] = [[]]
    for each in syncs:
        if each.is_barrier:
            parts.append([])
        else:
            parts[-1].append(each)
    return parts


def _find_strongest(syncs: Sequence[_Sync]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in syncs:
        for counter, count in each.waits:
            counts[counter] = min(count, counts.get(counter, count))
    return counts


def _judge_wait(match: WaitMatch) -> Iterator[Finding]:
    evidence: tuple[tuple[str, str | int], ...] = (
        ("planned", "no wait" if match.planned is None else match.planned),
        ("found", "no wait" if match.found is None else match.found),
    )
    if match.verdict is WaitVerdict.WEAKER:
        yield Finding("I204", f"the machine code waits for less: {match}", evidence=evidence)
    elif match.verdict is not WaitVerdict.EQUAL:
        yield Finding("I208", f"the compiler waits for more: {match}", severity=Severity.WARNING, evidence=evidence)


def reprove(planned: Lowerable, expected: Expected, found: MachineLoop) -> Report:
    return verify(build_found_program(planned.lowered, expected, found))


def build_found_program(planned: LoweredProgram, expected: Expected, found: MachineLoop) -> LoweredProgram:
    """The data ops as planned, since their order was kept, with the machine code's own synchronisation.

    A wait between the instructions of one op counts as one after the op that lets the rest of it be in flight.
    """
    alone = {phase: iter(_alone(expected[phase], found.phase(phase))) for phase in Phase}
    return planned.with_phases({p: list(_entries(expected[p], found.phase(p), p, alone[p])) for p in Phase})


def _alone(expected: Sequence[ExpectedEvent], found: Sequence[MachineEvent]) -> list[Entry]:
    """Barriers that some roles execute alone: machine code doesn't say which, so that it must have them all."""
    planned = [event.entry for event in expected if event.kind is OpKind.BARRIER and event.alone]
    skipped = sum(event.kind is OpKind.BARRIER and event.conditional for event in found)
    if len(planned) != skipped:
        raise IsaError.of(
            "I205",
            "the barriers that keep the wave groups apart are not all there"
            if len(planned) > skipped
            else "a branch may skip barriers that the schedule has for all waves",
            concerns=tuple(entry.concern() for entry in planned),
            evidence=(("of one group alone, planned", len(planned)), ("found", skipped)),
        )
    return planned


def _entries(
    expected: Sequence[ExpectedEvent], found: Sequence[MachineEvent], phase: Phase, alone: Iterator[Entry]
) -> Iterator[Entry]:
    """Data entries when their last instruction has come, sync entries where they are found."""
    data = [event for event in expected if event.kind not in SYNC]
    position, held = 0, list[Entry]()
    for event in found:
        if event.kind not in SYNC:
            entry = data[position].entry
            position += 1
            if position == len(data) or data[position].entry is not entry:
                yield entry
                yield from held
                held = []
        elif 0 < position < len(data) and data[position].entry is data[position - 1].entry:
            held += _inside(event, data[position:], phase)
        elif event.kind is OpKind.BARRIER:
            yield next(alone) if event.conditional else Entry(op=BARRIER, effect=MEETS, time_slot=0, phase=phase)
        else:
            yield from (_wait(counter, count, phase) for counter, count in event.waits)


def _inside(event: MachineEvent, rest: Sequence[ExpectedEvent], phase: Phase) -> Iterator[Entry]:
    """Waits between instructions of one op, of which `rest` begins with those still to come."""
    op = rest[0].entry
    if event.kind is OpKind.BARRIER:
        raise IsaError.of("I205", f"a barrier is between the instructions of {op.op}", concerns=(op.concern(),))
    to_come = next((number for number, each in enumerate(rest) if each.entry is not op), len(rest))
    for counter, count in event.waits:
        yield _wait(counter, count + (to_come if op.effect.counter == counter else 0), phase)


def _wait(counter: str, count: int, phase: Phase) -> Entry:
    return Entry(op=wait_op(counter, count), effect=wait_effect(counter, count), time_slot=0, phase=phase)
