"""What a synchronised program can do without: takes it, gives the waits and barriers that it needs, with their reasons.

An order that was found afterwards may meet with one wait what took two before.  Waits and barriers are left out one by
one, then waits are weakened, as long as every obligation is met; leaving out one makes no other needless that was
needed before.  Derived without the proof, which checks the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rota.program.entry import Effect, Entry, Place, Space
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.sync.obligation import Obligation, derive_obligations


class Indispensable(NamedTuple):
    """How many tokens a wait may leave (0 for a barrier), and the obligation that any less would break."""

    leaves: int
    reason: Obligation


def derive_needed(program: LoweredProgram) -> dict[int, Indispensable | None]:
    """Which waits and barriers are needed, by the identity of their entries; None if one isn't.

    All waves run the same entries, and the program meets its obligations.
    """
    standing = _Standing(program)
    needed = {key: standing.without(key) for key in list(standing.counts) if key not in standing.parts}
    return {key: None if reason is None else standing.weakened(key, reason) for key, reason in needed.items()}


class _Standing:
    """The waits, with their counts, and barriers that remain; `parts` of barriers always stay."""

    def __init__(self, program: LoweredProgram) -> None:
        self.machine = program.machine
        added = {id(entry): entry for entry in program.entries if entry.op.is_framework}
        self.counts = {key: entry.effect.wait_value for key, entry in added.items()}
        self.counters = {key: entry.effect.counter for key, entry in added.items()}
        self.parts = {key for key, entry in added.items() if _is_part_of_a_barrier(entry.effect)}
        self.users: dict[int, list[Obligation]] = {key: [] for key in added}
        for each in derive_obligations(program):
            line = each.timeline
            own = line.waits_between(each.counter, each.earlier, each.later)
            barriers = line.barriers_between(each.earlier, each.later) if each.crosses else ()
            for key in {id(line.steps[moment]) for moment in (*own, *barriers)}:
                self.users[key].append(each)

    def without(self, key: int) -> Obligation | None:
        """Remove one, if that breaks no obligation."""
        count = self.counts.pop(key)
        reason = self._unmet(key)
        if reason is not None:
            self.counts[key] = count
        return reason

    def weakened(self, key: int, reason: Obligation) -> Indispensable:
        """The largest count that breaks no obligation."""
        counter = self.counters[key]
        while counter is not None and self.counts[key] < self.machine.largest_wait(counter):
            self.counts[key] += 1
            unmet = self._unmet(key)
            if unmet is not None:
                self.counts[key] -= 1
                return Indispensable(self.counts[key], unmet)
        return Indispensable(self.counts[key], reason)

    def _unmet(self, key: int) -> Obligation | None:
        return next((each for each in self.users[key] if not self._met(each)), None)

    def _met(self, obligation: Obligation) -> bool:
        line, at = obligation.timeline, obligation.compiler_covers
        if at is not None and self._behind(obligation, at):
            return True
        for moment in line.waits_between(obligation.counter, obligation.earlier, obligation.later):
            count = self.counts.get(id(line.steps[moment]))
            if count is not None and count <= obligation.younger_tokens(moment) and self._behind(obligation, moment):
                return True
        return False

    def _behind(self, obligation: Obligation, moment: int) -> bool:
        line, needed = obligation.timeline, obligation.barriers_needed(moment)
        fences = line.barriers_between(moment, obligation.later) if needed else ()
        return sum(id(line.steps[each]) in self.counts for each in fences) >= needed


def _is_part_of_a_barrier(effect: Effect) -> bool:
    return effect.kind is OpKind.BARRIER and (effect.arrives is None or effect.awaits is None)


# Which entries of a loop may pass each other.
#
# An order of the kernel that keeps all of this meets every obligation that the given one meets: memory ops of a
# counter and its waits keep their order, so that every wait counts the same; no access to memory passes a barrier;
# and no op passes another that it shares a register with, or the wait that its operands are covered by. What
# computes keeps its order, too. It is sufficient, not necessary; a schedule is proved again whatever its order.

_TRIPS = 3  # after the prologue; what is covered where is settled by then


def derive_must_follow(program: LoweredProgram) -> tuple[frozenset[int], ...]:
    """For each entry of the kernel, the entries it must not overtake; transitive ones may be missing."""
    predecessors: list[set[int]] = [set() for _ in program.kernel]
    for earlier, later in (
        *_find_fixed_pairs(program.kernel),
        *_find_conflicts(program.kernel),
        *_find_covered(program),
    ):
        predecessors[later].add(earlier)
    return tuple(map(frozenset, predecessors))


def _find_fixed_pairs(kernel: Sequence[Entry]) -> Iterator[tuple[int, int]]:
    """Pairs whose order is fixed: on one counter, on the matrix unit, among waits and barriers."""
    last: dict[str, int] = {}
    barrier, since = None, list[int]()
    for number, entry in enumerate(kernel):
        effect = entry.effect
        chains = [effect.counter or (effect.kind.name if effect.kind is OpKind.MMA else "")]
        chains += ["synchronisation"] if entry.op.is_framework else []
        for chain in filter(None, chains):
            if chain in last:
                yield last[chain], number
            last[chain] = number
        if effect.kind is OpKind.BARRIER:
            yield from ((each, number) for each in since)
            barrier, since = number, []
        elif effect.counter is not None:
            since.append(number)
            if barrier is not None:
                yield barrier, number


def _find_conflicts(kernel: Sequence[Entry]) -> Iterator[tuple[int, int]]:
    """Pairs of which one writes what the other reads or writes; additions to one sum commute."""
    writer: dict[Place, int] = {}
    readers: dict[Place, list[int]] = {}
    for number, entry in enumerate(kernel):
        for place in entry.effect.reads:
            if place in writer:
                yield writer[place], number
            readers.setdefault(place, []).append(number)
        for place in entry.effect.writes:
            if place in writer and place.space is not Space.ACCUMULATOR:
                yield writer[place], number
            yield from ((each, number) for each in readers.pop(place, ()) if each != number)
            writer[place] = number


class _Flight:
    """What a wave has in flight: which op filled a place last, and which wait covered it."""

    def __init__(self) -> None:
        self.pending: dict[str, list[tuple[int, tuple[Place, ...]]]] = {}
        self.filled: dict[Place, int] = {}
        self.covered: dict[Place, tuple[int, int] | None] = {}
        self.ops = 0

    def wait(self, counter: str, left: int, moment: tuple[int, int]) -> None:
        """Complete all but the youngest `left` tokens."""
        tokens = self.pending.setdefault(counter, [])
        over = max(len(tokens) - left, 0)
        for op, places in tokens[:over]:
            for place in places:
                if self.filled[place] == op:
                    self.covered[place] = moment
        del tokens[:over]

    def issue(self, counter: str, count: int, places: tuple[Place, ...]) -> None:
        """Issue an op whose last token says that its places are filled."""
        self.ops += 1
        for place in places:
            self.filled[place], self.covered[place] = self.ops, None
        self.pending.setdefault(counter, []).extend([(self.ops, ())] * (count - 1) + [(self.ops, places)])


def _find_covered(program: LoweredProgram) -> Iterator[tuple[int, int]]:
    """From each wait of the kernel to the ops of the same trip whose operands it covers."""
    flight, outside = _Flight(), -1
    written = [(outside, number, entry) for number, entry in enumerate(program.prologue)]
    written += [(trip, number, entry) for trip in range(_TRIPS) for number, entry in enumerate(program.kernel)]
    for trip, number, entry in written:
        effect = entry.effect
        if effect.kind is OpKind.WAIT:
            flight.wait(effect.counter or "", effect.wait_value, (trip, number))
            continue
        for place in effect.reads:
            moment = flight.covered.get(place)
            if moment is not None and moment[0] == trip != outside:
                yield moment[1], number
        if effect.counter is not None and effect.tokens:
            flight.issue(effect.counter, effect.tokens, effect.writes)
