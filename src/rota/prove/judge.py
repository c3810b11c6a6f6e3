"""Finds races, early uses of registers and other errors, and reports each pair of instructions once.

A race breaks one of four rules.  *No synchronisation*: no barrier is between the accesses.  *Off by one*: a barrier is,
but the count of the wait before it is one too many.  *Ordered only by latency*: a barrier is, without such a wait.
*Policy*: the same for a read of LDS before a write from registers, which hardware may complete before the barrier.

Two waves that load the same words to the same bytes by one instruction don't race: LDS holds the same whichever comes
last.  That is a note, I304.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import NamedTuple

from rota.errors import Finding, Severity, several
from rota.prove.agreement import Agreement
from rota.prove.causes import DISTANCE, UNDECIDED, Alarm, FoundPair, SyncGap, group_by_cause
from rota.prove.decisions import ALL, Decisions, Path, Span
from rota.prove.mbarriers import are_ordered, knows
from rota.prove.operation import CountedBy, Operation
from rota.prove.state import ANY, InFlight, LdsUse, Masks, OwnPlaces, WaveSet, count_younger, find_common, know_distance
from rota.prove.verdict import Fix, Remedy, separate, strengthen, wait_before

_CHECK_EVERY = 4096  # pairs between two checks of the budget
WRITES = frozenset({"write", "dma"})
COPIES = frozenset({"dma", "copy"})  # to LDS, and from there: their own wave's accesses wait for them, too


class OpenAccess(NamedTuple):
    """An access of a wave since the last barrier, or one that no wait has covered yet."""

    wave: int
    access: LdsUse
    octets: int
    flight: InFlight
    place: int  # of the wave among those of the access


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    first: OpenAccess
    then: OpenAccess
    octets: int


def find_conflicts(  # noqa: C901, PLR0915
    wave_sets: Sequence[WaveSet],
    accepts: Callable[[Conflict], bool] = lambda _: True,
    *,
    most: int = 64,
    spend: Callable[[int], None] = lambda _: None,
    apart: set[tuple[LdsUse, int, LdsUse, int]] | None = None,
) -> list[Conflict]:
    """Up to `most` accepted conflicts, each pair of operations once; `spend` gets the pairs compared, and may raise.

    `apart` keeps accesses of two waves that have no byte in common, from one call to the next.
    """
    apart = set() if apart is None else apart
    waves: dict[int, list[OpenAccess]] = {}
    sums: dict[int, list[int]] = {}  # all bytes that a wave reads, writes and changes atomically
    for wave_set in wave_sets:
        flights = ((each.access, each) for each in wave_set.in_flight if each.access is not None)
        found = [*wave_set.covered.items(), *wave_set.late.items(), *flights]
        if not found:
            continue
        for place, wave in enumerate(wave_set.waves):
            written = used = atomic = 0
            mine = waves.setdefault(wave, [])
            for access, flight in found:
                octets = access.bytes[place]
                if not octets:
                    continue
                mine.append(OpenAccess(wave, access, octets, flight, place))
                if access.how in WRITES:
                    written |= octets
                elif access.how == "atomic":
                    atomic |= octets
                else:
                    used |= octets
            sums[wave] = [used, written, atomic]
    conflicts: dict[tuple[int, int, bool], Conflict] = {}

    def collect(left: list[OpenAccess], right: list[OpenAccess], hit: int) -> None:
        spend(len(left) + len(right))  # the first time, too: there may be many short searches
        right = [each for each in right if each.octets & hit]
        compared = 0
        for one in left:
            if not one.octets & hit:
                continue
            if len(conflicts) >= most:
                return
            compared += len(right)
            if compared > _CHECK_EVERY:
                spend(compared)
                compared = 0
            for other in right:
                pair = (one.access, one.wave, other.access, other.wave)
                if pair in apart or not order_matters(one.access.how, other.access.how):
                    continue
                if not (common := find_common(one.access, one.place, other.access, other.place)):
                    apart.add(pair)
                    continue
                in_turn = (one.flight.epoch, one.access.number) <= (other.flight.epoch, other.access.number)
                first, then = (one, other) if in_turn else (other, one)
                key = (first.access.number, then.access.number, know_distance(one.access, other.access))
                if key not in conflicts and len(conflicts) < most:
                    conflict = Conflict(first=first, then=then, octets=common)
                    if accepts(conflict):
                        conflicts[key] = conflict

    order = sorted(sums)
    for place, one in enumerate(order):
        reads, writes, atomics = sums[one]
        for other in order[place + 1 :]:
            reads2, writes2, atomics2 = sums[other]
            hit = writes & (reads2 | writes2 | atomics2) | writes2 & (reads | atomics)
            if hit := hit | atomics & reads2 | atomics2 & reads:
                collect(waves[one], waves[other], hit)
    return list(conflicts.values())


def _are_one_load(conflict: Conflict, wave_sets: Sequence[WaveSet]) -> bool:
    """True if both waves issue the same load once between the same two barriers: on one path it is the same one."""
    one, other = conflict.first.flight, conflict.then.flight
    if one is other:
        return True
    if one.number != other.number or one.epoch != other.epoch or one.signalled or other.signalled:
        return False
    mine = [each for each in wave_sets if {conflict.first.wave, conflict.then.wave} & {*each.waves}]
    return all(
        sum((flight.number, flight.epoch) == (one.number, one.epoch) for flight in _flights_of(wave_set)) == 1
        for wave_set in mine
    )


def _write_the_same(conflict: Conflict) -> bool:
    """True if both waves write one number to one place."""
    first, then = conflict.first, conflict.then
    return bool(first.flight.data) and first.flight.data == then.flight.data and first.octets == then.octets


def _flights_of(wave_set: WaveSet) -> Iterator[InFlight]:
    return chain(wave_set.covered.values(), wave_set.late.values(), wave_set.in_flight)


def order_matters(one: str, other: str) -> bool:
    """True if two accesses of the same bytes don't commute."""
    return one in WRITES or other in WRITES or (one == "atomic") != (other == "atomic")


_VERBS = {"read": "reads", "write": "writes", "atomic": "changes", "dma": "loads to", "copy": "copies from"}
_MOST_DECISIONS = 6


class FirstError(Exception):
    """The first error was found, and no more are asked for."""


class Judge:
    """Collects findings, each pair of instructions once."""

    def __init__(
        self, operations: Sequence[Operation], agreement: Agreement, masks: Masks, *, strict_reads: bool, stops: bool,
        barrier: str,
    ) -> None:  # fmt: skip
        self._masks = masks
        self._operations, self._agreement, self._strict_reads, self._stops = operations, agreement, strict_reads, stops
        self._barrier = barrier  # what an edit inserts
        self.remedies: dict[tuple[str, int, int], Remedy] = {}
        self._found: dict[tuple[object, ...], FoundPair] = {}
        self._copies = dict.fromkeys(each.counted_by for each in operations if each.copies)
        self._apart: set[tuple[LdsUse, LdsUse]] = set()  # accesses that no wave makes to the same bytes
        self._waves_apart: set[tuple[LdsUse, int, LdsUse, int]] = set()  # the same of two waves
        self._free_of_races: set[tuple[tuple[tuple[int, ...], frozenset[LdsUse]], ...]] = set()

    def alarms(self) -> list[Alarm]:
        """What was found, by cause."""
        return group_by_cause(self._found.values(), self._operations)

    # Races.

    def check_races(
        self, wave_sets: Sequence[WaveSet], epoch: int, known: Decisions, spend: Callable[[int], None]
    ) -> None:
        """Report waves that access the same bytes with nothing to order them; `spend` raises to end the search."""
        # Accesses are single, and whether two of them meet depends on nothing else: most come again and again.
        met, is_free = tuple((each.waves, frozenset(each.accesses)) for each in wave_sets), True
        if met in self._free_of_races:
            return

        def accepts(conflict: Conflict) -> bool:
            nonlocal is_free
            is_free = False
            if are_ordered(conflict.first.flight, conflict.then.flight) or _write_the_same(conflict):
                return False
            if conflict.first.access.how == "dma" and _are_one_load(conflict, wave_sets):
                number, waves = conflict.first.access.number, (conflict.first.wave, conflict.then.wave)
                classes = self._agreement.find_classes(number)
                if classes[waves[0]] == classes[waves[1]]:
                    both = f"{waves[0]} and {waves[1]}"
                    message = f"waves {both} load the same words to the same bytes of LDS, in no order"
                    evidence = (("waves", both), ("bytes of LDS", _describe_bytes(conflict.octets)))
                    self._add("I304", "", message, number, number, evidence, None, severity=Severity.NOTE)
                    return False
            return self._strict_reads or self._find_rule(conflict) != "policy"

        for conflict in find_conflicts(wave_sets, accepts, spend=spend, apart=self._waves_apart):
            self._report_race(conflict, self._find_rule(conflict), epoch, known)
        if is_free:
            self._free_of_races.add(met)

    def _find_rule(self, conflict: Conflict) -> str:
        first, then = conflict.first, conflict.then
        if then.flight.epoch - first.flight.epoch <= first.flight.signalled:  # a signal orders only what is before it
            return "no synchronisation"
        if first.access.how == "read" and then.access.how in {"write", "atomic"}:
            return "policy"
        late = self._last_count(first.flight) == first.flight.younger + 1
        return "off by one" if late else "ordered only by latency"

    def _last_count(self, flight: InFlight) -> int | None:
        if flight.last_wait < 0:
            return None
        return dict(self._operations[flight.last_wait].waits).get(self._counter(flight.number))

    def _describe_missing_wait(self, flight: InFlight) -> str:
        counter, last = self._counter(flight.number), self._last_count(flight)
        if last is None:
            return f"{counter}({flight.younger}) before the barrier"
        place = self._operations[flight.last_wait].instruction.place
        if last <= flight.younger:
            return f"{counter}({flight.younger}) between it and the barrier; the wait at {place} comes before it"
        return f"{counter}({last}) at {place} must be at most {flight.younger}"

    def _report_race(self, conflict: Conflict, rule: str, epoch: int, known: Decisions) -> None:
        first, then = conflict.first, conflict.then
        distance = _describe_distance(first.access, then.access)
        if self._knows("I109", (rule, *distance), then.access.number, first.access.number, known):
            return
        message = (
            f"wave {then.wave} {_VERBS[then.access.how]} LDS that wave {first.wave} {_VERBS[first.access.how]},"
            " with no wait and barrier between"
        )
        epochs = first.flight.epoch, then.flight.epoch
        barriers = f"{epoch} passed" if epochs[0] == epochs[1] else f"{epochs[0]} and {epochs[1]} passed"
        has_count = rule != "no synchronisation" and first.flight.younger >= 0
        evidence = (
            ("rule", rule),
            ("waves", f"{first.wave} and {then.wave}"),
            ("bytes of LDS", _describe_bytes(conflict.octets, exact=first.access.exact and then.access.exact)),
            ("barriers", barriers),
            *((("missing wait", self._describe_missing_wait(first.flight)),) if has_count else ()),
            *distance,
        )
        number, other = then.access.number, first.access.number
        counters = self._counter(other), self._counter(number)
        if has_count:
            flight, count = first.flight, first.flight.younger
            near = () if self._last_count(flight) is None else strengthen(flight.last_wait, counters[0], count)
            fixes = (*near, wait_before(flight.barrier, counters[0], count))
            late = near and (self._last_count(flight) or 0) > count
            gap = SyncGap(counters[0], other, flight.barrier, count, flight.last_wait if late else -1)
        else:
            fixes = separate(other, number, counters, self._barrier)
            gap = SyncGap(self._barrier, other, number)
        self._add("I109", (rule, *distance), message, number, other, evidence, known, fixes=fixes, gap=gap)

    def _counter(self, number: int) -> str:
        return self._operations[number].counted_by.counters[0]

    def check_own_accesses(
        self, wave_set: WaveSet, operation: Operation, access: LdsUse, lanes: OwnPlaces | None, known: Decisions
    ) -> None:
        """Report an access while a copy to or from LDS of the same wave is in flight: only a wait orders the two."""
        copies = access.how in COPIES
        queues = wave_set.queues if copies else self._copies
        keys = (each for each in queues if len(each.counters) == 1)
        for by, flight in ((key, each) for key in keys for each in wave_set.queues[key]):
            other = flight.access
            if other is None or (access, other) in self._apart or not (copies or other.how in COPIES):
                continue
            if not order_matters(access.how, other.how) or self._are_other_lanes(lanes, flight.lanes):
                continue
            if knows(wave_set.named.lags, flight.released):
                continue
            for place, wave in enumerate(wave_set.waves):
                if not (common := find_common(access, place, other, place)):
                    continue
                distance = _describe_distance(access, other)
                if self._knows("I106", distance, operation.number, flight.number, known):
                    break
                counter, queue = by.counters[0], wave_set.queues[by]
                count = count_younger(queue)[queue.index(flight)] if by.in_order else 0
                message = f"wave {wave} {_VERBS[access.how]} LDS while its own op on the same bytes is in flight"
                evidence = (
                    ("rule", "ordered only by latency"),
                    ("waves", f"{wave}"),
                    ("bytes of LDS", _describe_bytes(common, exact=access.exact and other.exact)),
                    ("missing wait", f"{counter}({count}) before it"),
                    *distance,
                )
                fixes = (wait_before(operation.number, counter, count),)
                gap = SyncGap(counter, flight.number, operation.number, count)
                self._add(
                    "I106", distance, message, operation.number, flight.number, evidence, known, fixes=fixes, gap=gap
                )
                break
            else:
                self._apart.add((access, other))

    def _are_other_lanes(self, one: OwnPlaces | None, other: OwnPlaces | None) -> bool:
        """True if no lane of a wave makes both accesses, and each lane has bytes of its own."""
        if one is None or other is None or one.key != other.key:
            return False
        return not any(self._masks.possible(self._masks.combine("and", one.active, other.active)))

    # Registers.

    def check_registers(
        self, wave_set: WaveSet, operation: Operation, uses: int, writes: int, known: Decisions
    ) -> None:
        """Report uses of registers that a memory op in flight fills, and writes of those that one reads."""
        touched = 0

        def drop_touched(flight: InFlight) -> InFlight:  # report each only once
            return flight._replace(rows=flight.rows & ~touched)

        for by, queue in wave_set.queues.items():
            for flight, younger in zip(queue, count_younger(queue), strict=True):
                used = flight.rows & (writes if self._operations[flight.number].holds_data else uses)
                if used:
                    touched |= used
                    for number in (flight.number, *flight.other_numbers):
                        copy = flight._replace(number=number)
                        self._report_register(wave_set, operation, copy, by, younger, known)
        if touched:
            wave_set.queues = {by: tuple(map(drop_touched, queue)) for by, queue in wave_set.queues.items()}
            wave_set.pending &= ~touched

    def _report_register(  # noqa: PLR0917
        self, wave_set: WaveSet, operation: Operation, flight: InFlight, by: CountedBy, younger: int, known: Decisions
    ) -> None:
        left = [each for each in by.counters if each not in flight.waited]  # of a flat op that both count
        counter, count = left[-1], younger if by.in_order else 0
        fixes: tuple[Fix, ...] = (wait_before(operation.number, counter, count),)
        if flight.near_wait >= 0:
            rule, wait = "off by one", self._operations[flight.near_wait]
            last = dict(wait.waits).get(counter)
            most = -1 if last is None else last - 1
            missing = f"{counter}({last}) at {wait.instruction.place} must be at most {most}"
            fixes = (*strengthen(wait.number, counter, most), *fixes)
        else:
            rule, missing = "no synchronisation", f"{counter}({count}) before it"
        held = self._operations[flight.number].holds_data
        does = "uses" if operation.reads & flight.rows and not held else "overwrites"
        what = "a scalar store in flight may still read" if held else "a memory op in flight fills"
        message = f"{operation.instruction.opcode} {does} a register that {what}"
        evidence = (("rule", rule), ("waves", ", ".join(map(str, wave_set.waves))), ("missing wait", missing))
        gap = SyncGap(counter, flight.number, operation.number, count, flight.near_wait)
        self._add("I103", rule, message, operation.number, flight.number, evidence, known, fixes=fixes, gap=gap)

    def record_wait(self, wave_set: WaveSet, operation: Operation) -> None:
        """Remember the last waits, and ops that they would have covered with a count one less."""
        for counter, count in operation.waits:
            wave_set.last_waits = wave_set.last_waits | {counter: operation.number}
            for by, queue in wave_set.queues.items():
                if by.in_order and by.counters == (counter,) and count and len(queue) == count:
                    near = queue[0]._replace(near_wait=operation.number)
                    wave_set.queues = wave_set.queues | {by: (near, *queue[1:])}

    def record_barrier(self, wave_set: WaveSet) -> None:
        """Remember, where waves signal a barrier, which waits ops in flight would have needed before it."""
        queues = dict(wave_set.queues)
        for by, queue in queues.items():
            last_wait, barrier = wave_set.last_waits.get(by.counters[0], -1), wave_set.at
            queues[by] = tuple(
                each._replace(younger=younger, last_wait=last_wait, barrier=barrier)
                if by.in_order and each.younger < 0
                else each
                for younger, each in zip(count_younger(queue), queue, strict=True)
            )
        wave_set.queues = queues

    # Ends of waves, and bounds.

    def check_end(self, wave_set: WaveSet, operation: Operation, known: Decisions) -> None:
        """Report copies to or from LDS in flight when their wave ends: another workgroup may have the LDS by then."""
        for flight in wave_set.in_flight:
            is_over = knows(wave_set.named.lags, flight.released)
            if flight.access is not None and flight.access.how in COPIES and any(flight.access.bytes) and not is_over:
                what = "a load to LDS" if flight.access.how == "dma" else "a store from LDS"
                message, counter = f"{what} is in flight when its wave ends", self._counter(flight.number)
                waves, missing = ", ".join(map(str, wave_set.waves)), f"{counter}(0) before it"
                evidence = (("rule", "ordered only by latency"), ("waves", waves), ("missing wait", missing))
                fixes = (wait_before(operation.number, counter, 0),)
                gap = SyncGap(counter, flight.number, operation.number)
                self._add(
                    "I403", "end", message, operation.number, flight.number, evidence, known, fixes=fixes, gap=gap
                )
                return

    def check_barrier_counts(self, wave_sets: Sequence[WaveSet]) -> None:
        fewest = min(wave_sets, key=lambda wave_set: wave_set.barriers)
        most = max(wave_sets, key=lambda wave_set: wave_set.barriers)
        if fewest.barriers < most.barriers:
            message = "a wave ends after fewer barriers than another wave of its workgroup"
            evidence = (
                ("wave", f"{fewest.waves[0]}, {several(fewest.barriers, 'barrier')}"),
                ("other wave", f"{most.waves[0]}, {several(most.barriers, 'barrier')}"),
            )
            self._add("I121", "", message, fewest.at, fewest.at, evidence, None, severity=Severity.NOTE)

    def report_outside(
        self, operation: Operation, place: int, size: int, known: Decisions, *, in_doubt: bool = False
    ) -> None:
        message = f"an LDS access may be at byte {place}; the kernel has {size}"
        evidence = (("rule", "outside of LDS"), *((((UNDECIDED, "whether the lane executes"),)) if in_doubt else ()))
        rule = "in doubt" if in_doubt else ""
        self._add("I105", rule, message, operation.number, operation.number, evidence, known)

    def report_unbounded(self, operation: Operation, bounds: Span, size: int, known: Decisions, path: Path) -> None:
        message = f"the address of an LDS access comes from data, and nothing keeps it below {size} bytes"
        evidence = (
            ("rule", "no bound"),
            ("address", "not bounded" if bounds == ALL else f"{bounds[0]:#x} to {bounds[1]:#x}"),
            ("LDS bytes", size),
            (UNDECIDED, "which addresses the data gives"),
        )
        number = operation.number
        self._add("I105", "no bound", message, number, number, evidence, known, path=path)

    def _knows(self, code: str, rule: Hashable, number: int, other: int, known: Decisions) -> bool:
        """True if a pair was found before; then the path is added to it."""
        pair = self._found.get((code, rule, number, other))
        if pair is not None:
            pair.add(known.path)
        return pair is not None

    def _add(  # noqa: PLR0917
        self, code: str, rule: Hashable, message: str, number: int, other: int,
        evidence: tuple[tuple[str, str | int], ...], known: Decisions | None, *, severity: Severity = Severity.ERROR,
        path: Path | None = None, fixes: tuple[Fix, ...] = (), gap: SyncGap | None = None,
    ) -> None:  # fmt: skip
        if fixes:
            remedy = Remedy(code=code, number=number, other=other, fixes=fixes)
            self.remedies.setdefault((code, number, other), remedy)
        key = (code, rule, *(() if code == "I304" else (number, other)))  # equal words are noted once
        path = path or (None if known is None else known.path)
        if key not in self._found:
            ends = ((number, ""), (other, "the other one"))[: 1 + (number != other)]
            concerns = tuple(self._operations[each].instruction.concern(role) for each, role in ends)
            trail = () if known is None else known.trail[-_MOST_DECISIONS:]
            decided = (("path", "; ".join(_join_waves(trail))),) if trail else ()
            finding = Finding(code, message, severity=severity, concerns=concerns, evidence=(*evidence, *decided))
            self._found[key] = FoundPair(finding=finding, number=number, other=other, rule=rule, gap=gap)
        self._found[key].add(path)
        if self._stops and severity is Severity.ERROR:
            raise FirstError


def _join_waves(trail: Sequence[str]) -> Iterator[str]:
    """Decisions in their order; what several waves decide alike, one after the other, is one."""
    for text, same in groupby(trail, key=lambda each: each.partition(": ")[2]):
        found = list(same)
        if not text or len(found) == 1:
            yield from found
            continue
        waves = [each.partition(": ")[0].removeprefix("wave ") for each in found]
        yield f"waves {', '.join(waves[:-1])} and {waves[-1]}: {text}"


def _describe_distance(one: LdsUse, other: LdsUse) -> tuple[tuple[str, str], ...]:
    """Evidence that the bytes of two accesses may be apart: data chooses them, or only bounds are known."""
    if know_distance(one, other):
        return ()
    return (
        ((UNDECIDED, "whether data chooses the same place twice"),)
        if one.origin == other.origin == ANY
        else (DISTANCE,)
    )


def _describe_bytes(octets: int, *, exact: bool = True) -> str:
    first, last, count = (octets & -octets).bit_length() - 1, octets.bit_length() - 1, octets.bit_count()
    return f"{count} of {first:#x} to {last:#x}" + ("" if exact else ", at most")
