"""What is wrong: takes what waves do, gives findings, each pair of instructions once, with the wait that is missing.

A race rests on one of four rules.  *No synchronisation*: no barrier stands between.  *Off by one*: a barrier does, and
a wait before it whose count is one too many.  *Ordered only by latency*: a barrier does, without such a wait.  The
fourth is *policy*: the same for a read of LDS before a write from registers, which hardware may be kinder about.

Two waves that issue one load together, of the same words to the same bytes, are no race: whichever comes last, the same
is there.  That is a note, I304.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.errors import Concern, Finding, Severity
from rota.prove.decisions import ALL, Decisions, Path, Span
from rota.prove.operation import Operation, OperationKind
from rota.prove.slicing import Agreement
from rota.prove.state import InFlight, LdsUse, WaveSet
from rota.prove.verdict import UNDECIDED, Alarm, Fix, Remedy, separate, strengthen, wait_before

_STRETCH = 4096  # pairs between two looks at the budget
WRITES = frozenset({"write", "dma"})


class Open(NamedTuple):
    """An access that is open, of which wave."""

    wave: int
    access: LdsUse
    octets: int
    flight: InFlight


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two accesses of different waves, and the bytes that both use."""

    first: Open
    then: Open
    octets: int

    @property
    def doubled(self) -> bool:
        """Is it one load to LDS that two waves issue together?"""
        return self.first.flight is self.then.flight and self.first.access.how == "dma"


def open_accesses(wave_set: WaveSet) -> list[tuple[LdsUse, InFlight]]:
    """What a wave_set has open in this stretch."""
    flights = (*wave_set.vm, *wave_set.ds, *(each for each, _ in wave_set.flat))
    return [*wave_set.covered.items(), *((each.access, each) for each in flights if each.access is not None)]


def find_conflicts(  # noqa: C901
    wave_sets: Sequence[WaveSet],
    counts: Callable[[Conflict], bool] = lambda _: True,
    *,
    most: int = 64,
    still: Callable[[int], None] = lambda _: None,
) -> list[Conflict]:
    """All pairs that count, up to a number of them: each pair of operations once.

    Where few of many count, the search is long: `still` is told of pairs on the way, and raises when it has to end.
    """
    waves: dict[int, list[Open]] = {}
    sums: dict[int, list[int]] = {}
    for wave_set in wave_sets:
        found = open_accesses(wave_set)
        if not found:
            continue
        for place, wave in enumerate(wave_set.waves):
            written = used = atomic = 0
            mine = waves.setdefault(wave, [])
            for access, flight in found:
                octets = access.bytes[place]
                if not octets:
                    continue
                mine.append(Open(wave, access, octets, flight))
                if access.how in WRITES:
                    written |= octets
                elif access.how == "atomic":
                    atomic |= octets
                else:
                    used |= octets
            sums[wave] = [used, written, atomic]
    conflicts: dict[tuple[int, int], Conflict] = {}
    order = sorted(sums)
    for place, one in enumerate(order):
        reads, writes, atomics = sums[one]
        for other in order[place + 1 :]:
            reads2, writes2, atomics2 = sums[other]
            hit = (
                writes & (reads2 | writes2 | atomics2)
                | writes2 & (reads | atomics)
                | atomics & reads2
                | atomics2 & reads
            )
            if hit:
                _pairs(waves[one], waves[other], hit, conflicts, counts, most, still)
    return list(conflicts.values())


def _pairs(  # noqa: PLR0917
    mine: list[Open],
    yours: list[Open],
    hit: int,
    conflicts: dict[tuple[int, int], Conflict],
    counts: Callable[[Conflict], bool],
    most: int,
    still: Callable[[int], None],
) -> None:
    left = [each for each in mine if each.octets & hit]
    right = [each for each in yours if each.octets & hit]
    still(len(mine) + len(yours))  # the first time, too: there may be many short searches
    looked = 0
    for one in left:
        if len(conflicts) >= most:
            return
        looked += len(right)
        if looked > _STRETCH:
            still(looked)
            looked = 0
        for other in right:
            common = one.octets & other.octets
            if not common or not clash(one.access.how, other.access.how):
                continue
            in_turn = (one.flight.epoch, one.access.number) <= (other.flight.epoch, other.access.number)
            first, then = (one, other) if in_turn else (other, one)
            key = (first.access.number, then.access.number)
            if key not in conflicts and len(conflicts) < most:
                conflict = Conflict(first=first, then=then, octets=common)
                if counts(conflict):
                    conflicts[key] = conflict


def clash(one: str, other: str) -> bool:
    """Does it matter which of two comes first?"""
    if one in WRITES or other in WRITES:
        return True
    return {one, other} == {"read", "atomic"}


_HOWS = {"read": "reads", "write": "writes", "atomic": "changes", "dma": "loads to"}
_MOST_TOLD = 6


class FoundError(Exception):
    """Something is wrong, and no more is asked for."""


class Judge:
    """Collects findings; those of one region and cause are one."""

    def __init__(
        self, operations: Sequence[Operation], agreement: Agreement, *, strict_reads: bool = True, stops: bool = False
    ) -> None:
        self._operations, self._agreement, self._strict_reads, self._stops = operations, agreement, strict_reads, stops
        self._remedies: dict[tuple[str, int, int], Remedy] = {}
        self._groups: dict[tuple[object, ...], Alarm] = {}
        self._regions = _regions(operations)

    def alarms(self) -> list[Alarm]:
        """All of them; each may stand for several pairs of instructions."""
        return [*self._groups.values()]

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What might mend each pair of instructions that was found."""
        return tuple(self._remedies.values())

    # What waves do.

    def stretch(self, wave_sets: Sequence[WaveSet], epoch: int, known: Decisions, still: Callable[[int], None]) -> None:
        """The end of a stretch between barriers: no two waves may have used the same bytes in it.

        `still` raises when the search for such two has to end.
        """

        def counts(conflict: Conflict) -> bool:
            if conflict.doubled and self._agree(conflict):
                self._same_words(conflict)
                return False
            return self._strict_reads or self._rule(conflict) != "policy"

        for conflict in find_conflicts(wave_sets, counts, still=still):
            self._race(conflict, self._rule(conflict), epoch, known)

    def _agree(self, conflict: Conflict) -> bool:
        classes = self._agreement.of(conflict.first.access.number)
        return classes[conflict.first.wave] == classes[conflict.then.wave]

    def _same_words(self, conflict: Conflict) -> None:
        first, then = conflict.first, conflict.then
        message = f"waves {first.wave} and {then.wave} load the same words to the same bytes of LDS, in no order"
        evidence = (
            ("waves", f"{first.wave} and {then.wave}"),
            ("bytes of LDS", _told(conflict.octets)),
        )
        number = first.access.number
        self._add("I304", "", message, number, number, evidence, None, severity=Severity.NOTE, together=True)

    def _rule(self, conflict: Conflict) -> str:
        first, then = conflict.first, conflict.then
        if first.flight.epoch == then.flight.epoch:
            return "no synchronisation"
        if first.access.how == "read" and then.access.how in {"write", "atomic"}:
            return "policy"
        allowed = self._allowed(first.flight)
        return (
            "off by one" if allowed is not None and allowed == first.flight.younger + 1 else "ordered only by latency"
        )

    def _allowed(self, flight: InFlight) -> int | None:
        """How many ops the last wait before the barrier allowed."""
        if flight.last_wait < 0:
            return None
        waits = self._operations[flight.last_wait].waits
        return waits[0] if self._operations[flight.number].kind is OperationKind.VMEM else waits[1]

    def _missing(self, flight: InFlight) -> tuple[tuple[str, str | int], ...]:
        if flight.younger < 0:
            return ()
        operation = self._operations[flight.number]
        counter = "vmcnt" if operation.kind is OperationKind.VMEM else "lgkmcnt"
        allowed = self._allowed(flight)
        if allowed is None:
            return (("missing wait", f"{counter}({flight.younger}) before the barrier"),)
        line = self._operations[flight.last_wait].instruction.line
        if allowed <= flight.younger:
            return (
                (
                    "missing wait",
                    f"{counter}({flight.younger}) between it and the barrier; the one at line {line} came before",
                ),
            )
        return (("missing wait", f"{counter}({allowed}) at line {line} must be at most {flight.younger}"),)

    def _race(self, conflict: Conflict, rule: str, epoch: int, known: Decisions) -> None:
        first, then = conflict.first, conflict.then
        message = (
            f"wave {then.wave} {_HOWS[then.access.how]} LDS that wave {first.wave} {_HOWS[first.access.how]},"
            " with no wait and barrier between"
        )
        barriers = (
            f"{first.flight.epoch} and {then.flight.epoch} passed"
            if first.flight.epoch != then.flight.epoch
            else f"{epoch} passed"
        )
        evidence = (
            ("rule", rule),
            ("waves", f"{first.wave} and {then.wave}"),
            (
                "bytes of LDS",
                _told(conflict.octets) + ("" if first.access.exact and then.access.exact else ", at most"),
            ),
            ("barriers", barriers),
            *(self._missing(first.flight) if rule != "no synchronisation" else ()),
        )
        self._remedy("I109", then.access.number, first.access.number, self._apart(conflict, rule))
        self._add("I109", rule, message, then.access.number, first.access.number, evidence, known)

    def _apart(self, conflict: Conflict, rule: str) -> tuple[Fix, ...]:
        first, then = conflict.first, conflict.then
        counters = tuple(self._counter(each.access.number) for each in (first, then))
        if rule == "no synchronisation" or first.flight.younger < 0:
            return separate(first.access.number, then.access.number, (counters[0], counters[1]))
        due, allowed = first.flight.younger, self._allowed(first.flight)
        fixes = (wait_before(first.flight.barrier, counters[0], due),)
        return (*strengthen(first.flight.last_wait, counters[0], due), *fixes) if allowed is not None else fixes

    def _counter(self, number: int) -> str:
        return "vmcnt" if self._operations[number].kind is OperationKind.VMEM else "lgkmcnt"

    def own(self, wave_set: WaveSet, operation: Operation, access: LdsUse, known: Decisions) -> None:
        """A wave's own loads to LDS are ordered with none of its other accesses but by a wait."""
        others = [each for each in wave_set.vm if each.access is not None]
        if access.how == "dma":
            others += [each for each in wave_set.ds if each.access is not None]
        for flight in others:
            other = flight.access
            if other is None:
                continue
            for place, wave in enumerate(wave_set.waves):
                common = access.bytes[place] & other.bytes[place]
                if common:
                    self._overtakes(wave_set, wave, operation, access, flight, common, known)
                    break

    def _overtakes(  # noqa: PLR0917
        self,
        wave_set: WaveSet,
        wave: int,
        operation: Operation,
        access: LdsUse,
        flight: InFlight,
        common: int,
        known: Decisions,
    ) -> None:
        vm = self._operations[flight.number].kind is OperationKind.VMEM
        queue = wave_set.vm if vm else wave_set.ds
        due = len(queue) - 1 - queue.index(flight)
        counter = "vmcnt" if vm else "lgkmcnt"
        assert flight.access is not None  # noqa: S101
        message = f"wave {wave} {_HOWS[access.how]} LDS while its own op on the same bytes is under way"
        evidence = (
            ("rule", "ordered only by latency"),
            ("waves", f"{wave}"),
            ("bytes of LDS", _told(common) + ("" if access.exact and flight.access.exact else ", at most")),
            ("missing wait", f"{counter}({due}) before it"),
        )
        self._remedy("I106", operation.number, flight.number, (wait_before(operation.number, counter, due),))
        self._add("I106", "own", message, operation.number, flight.number, evidence, known)

    def early(self, wave_set: WaveSet, operation: Operation, uses: int, writes: int, known: Decisions) -> None:
        """An operation uses registers that a memory op under way fills, or writes some that one reads."""
        touched = 0

        def left(flight: InFlight) -> InFlight:
            return flight._replace(rows=flight.rows & ~touched)

        for name, queue in (
            ("vm", wave_set.vm),
            ("ds", wave_set.ds),
            ("sm", wave_set.sm),
            ("flat", tuple(each for each, _ in wave_set.flat)),
        ):
            for place, flight in enumerate(queue):
                used = flight.rows & (writes if self._operations[flight.number].holds_data else uses)
                if used:
                    touched |= used
                    for number in (flight.number, *flight.other_numbers):
                        one = flight._replace(number=number)
                        self._early(wave_set, operation, one, name, len(queue) - 1 - place, known)
        if touched:
            wave_set.vm, wave_set.ds, wave_set.sm = (
                tuple(map(left, queue)) for queue in (wave_set.vm, wave_set.ds, wave_set.sm)
            )
            wave_set.flat = tuple((left(each), seen) for each, seen in wave_set.flat)
            wave_set.pending &= ~touched

    def _early(  # noqa: PLR0917
        self, wave_set: WaveSet, operation: Operation, flight: InFlight, name: str, younger: int, known: Decisions
    ) -> None:
        counter, due = {"vm": ("vmcnt", younger), "ds": ("lgkmcnt", younger)}.get(name, ("lgkmcnt", 0))
        last, allowed = -1, None
        rule = "no synchronisation"
        if flight.near_wait >= 0 and name in {"vm", "ds"}:
            last, rule = flight.near_wait, "off by one"
            allowed = self._operations[last].waits[0 if name == "vm" else 1]
            due = -1 if allowed is None else allowed - 1
        missing = f"{counter}({due}) before it"
        if rule == "off by one":
            missing = f"{counter}({allowed}) at line {self._operations[last].instruction.line} must be at most {due}"
        held = self._operations[flight.number].holds_data
        does = "uses" if operation.reads & flight.rows and not held else "overwrites"
        what = "a scalar store under way may still read" if held else "a memory op under way fills"
        message = f"{operation.instruction.opcode} {does} a register that {what}"
        evidence = (("rule", rule), ("waves", _several(wave_set.waves)), ("missing wait", missing))
        near = strengthen(last, counter, due) if rule == "off by one" else ()
        here = wait_before(operation.number, counter, younger if name in {"vm", "ds"} else 0)
        self._remedy("I103", operation.number, flight.number, (*near, here))
        self._add("I103", rule, message, operation.number, flight.number, evidence, known)

    def waited(self, wave_set: WaveSet, operation: Operation) -> None:
        """Remembers the last waits."""
        vm, lgkm = operation.waits
        wave_set.last_waits = (
            wave_set.last_waits[0] if vm is None else operation.number,
            wave_set.last_waits[1] if lgkm is None else operation.number,
        )
        if vm and len(wave_set.vm) == vm:
            wave_set.vm = (wave_set.vm[0]._replace(near_wait=operation.number), *wave_set.vm[1:])
        if lgkm and len(wave_set.ds) == lgkm:
            wave_set.ds = (wave_set.ds[0]._replace(near_wait=operation.number), *wave_set.ds[1:])

    def passed(self, wave_sets: Sequence[WaveSet]) -> None:
        """Notes, behind a barrier, which waits would have been due before it."""
        for wave_set in wave_sets:
            wave_set.vm, wave_set.ds = (
                tuple(
                    each._replace(
                        younger=len(queue) - 1 - place, last_wait=wave_set.last_waits[number], barrier=wave_set.at - 1
                    )
                    if each.younger < 0
                    else each
                    for place, each in enumerate(queue)
                )
                for number, queue in enumerate((wave_set.vm, wave_set.ds))
            )

    def leaves(self, wave_set: WaveSet, operation: Operation, known: Decisions) -> None:
        """A wave ends: nothing of its own may land in LDS later, which is somebody else's then."""
        for flight in wave_set.vm:
            if flight.access is not None and any(flight.access.bytes):
                message = "a load to LDS is under way when its wave ends"
                evidence = (
                    ("rule", "ordered only by latency"),
                    ("waves", _several(wave_set.waves)),
                    ("missing wait", "vmcnt(0) before it"),
                )
                end = (wait_before(operation.number, "vmcnt", 0),)
                self._remedy("I403", operation.number, flight.number, end)
                self._add("I403", "end", message, operation.number, flight.number, evidence, known)
                return

    def ended(self, wave_sets: Sequence[WaveSet]) -> None:
        """All waves have ended."""
        counts = {wave_set.barriers for wave_set in wave_sets}
        if len(counts) > 1:
            fewest = min(wave_sets, key=lambda wave_set: wave_set.barriers)
            most = max(wave_sets, key=lambda wave_set: wave_set.barriers)
            message = "a wave ends that came to fewer barriers than another one of its workgroup"
            evidence = (
                ("wave", f"{fewest.waves[0]}, {fewest.barriers} barriers"),
                ("other wave", f"{most.waves[0]}, {most.barriers} barriers"),
            )
            self._add("I121", "", message, fewest.at, fewest.at, evidence, None, severity=Severity.NOTE)

    def outside(self, operation: Operation, place: int, size: int, known: Decisions) -> None:
        """An operation that uses LDS outside of what the kernel has."""
        message = f"an LDS access may be at byte {place}; the kernel has {size}"
        evidence = (("rule", "no synchronisation"),)
        self._add("I105", "", message, operation.number, operation.number, evidence, known)

    def unbounded(self, operation: Operation, bounds: Span, size: int, known: Decisions, path: Path) -> None:
        """An operation whose address comes from data, which may lie outside of what the kernel has."""
        message = f"the address of an LDS access comes from data, and nothing keeps it below {size} bytes"
        evidence = (
            ("rule", "no bound"),
            ("address", "not bounded" if bounds == ALL else f"{bounds[0]:#x} to {bounds[1]:#x}"),
            ("LDS bytes", size),
            (UNDECIDED, "which addresses the data gives"),
        )
        number = operation.number
        self._add("I105", "no bound", message, number, number, evidence, known, path=path)

    def _remedy(self, code: str, number: int, other: int, fixes: tuple[Fix, ...]) -> None:
        self._remedies.setdefault((code, number, other), Remedy(code=code, number=number, other=other, fixes=fixes))

    def _add(  # noqa: PLR0917
        self, code: str, rule: str, message: str, number: int, other: int, evidence: tuple[tuple[str, str | int], ...],
        known: Decisions | None, *, severity: Severity = Severity.ERROR, together: bool = False,
        path: Path | None = None,
    ) -> None:  # fmt: skip
        where = () if together else (self._regions[number], self._regions[other], self._operations[other].kind)
        key = (code, rule, *where)
        ends = ((number, "line of the listing"), (other, "the other one"))[: 1 + (number != other)]
        concerns: tuple[Concern, ...] = tuple(self._operations[each].instruction.concern(role) for each, role in ends)
        trail = () if known is None else known.trail[-_MOST_TOLD:]
        decided = (("decisions", "; ".join(trail)),) if trail else ()
        finding = Finding(
            code=code, message=message, severity=severity, concerns=concerns, evidence=(*evidence, *decided)
        )
        self._groups.setdefault(key, Alarm()).add(finding, path or (None if known is None else known.path))
        if self._stops and severity is Severity.ERROR:
            raise FoundError


def _regions(operations: Sequence[Operation]) -> list[int]:
    """Stretches of the listing between barriers, branches and their targets."""
    targets = {each.instruction.target for each in operations}
    regions, region = [], 0
    for number in range(len(operations)):
        if number in targets or (
            number and operations[number - 1].kind in {OperationKind.BARRIER, OperationKind.BRANCH, OperationKind.CALL}
        ):
            region += 1
        regions.append(region)
    return regions


def _several(waves: tuple[int, ...]) -> str:
    return ", ".join(map(str, waves))


def _told(octets: int) -> str:
    """The first byte, the last and how many."""
    first, last, count = (octets & -octets).bit_length() - 1, octets.bit_length() - 1, octets.bit_count()
    return f"{count} of {first:#x} to {last:#x}"
