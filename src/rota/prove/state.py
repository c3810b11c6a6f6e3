"""The state of waves that run in lockstep: registers, lane masks, LDS accesses and memory ops in flight.

Lane masks are decision diagrams over unknown conditions (Bryant, 1986), so that equal masks are one object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.prove.mbarriers import NO_MARKS, Marks, mark
from rota.prove.named_barriers import NO_BARRIERS, NamedBarriers
from rota.prove.operation import NOT_COUNTED, CountedBy
from rota.prove.symbol import GROUP, Symbol, Value, select_waves

Leaf = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """A decision diagram over lanes: a leaf with a number for each wave, or a choice by an atom.

    Only `Masks` makes them.
    """

    leaf: Leaf | None
    atom: Symbol | None = None
    high: Mask | None = None
    low: Mask | None = None
    atoms: frozenset[Symbol] = frozenset()
    shared: bool = False  # the whole workgroup shares one of the atoms
    rows_differ: bool = False  # some leaf has different bits for different waves
    is_full: bool = False  # a leaf with all lanes of all waves


_OPS: dict[str, Callable[[int, int], int]] = {  # of as many bits as a wave has lanes; others above are dropped
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}


class Masks:
    """All masks of a proof, hash-consed: equal masks are the same object.

    A scalar register holds 32 lanes, so that a mask takes as many `words` as a wave has times 32 lanes.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes, self.words, self.all = lanes, lanes // 32, (1 << lanes) - 1
        self._leaves: dict[Leaf, Mask] = {}
        self._choices: dict[tuple[Symbol, Mask, Mask], Mask] = {}
        self._combined: dict[tuple[str, Mask, Mask], Mask] = {}
        self._folded: dict[tuple[bool, Mask], Leaf] = {}

    def leaf(self, numbers: Leaf) -> Mask:
        found = self._leaves.get(numbers)
        if found is None:
            differ, is_full = any(each != numbers[0] for each in numbers), all(each == self.all for each in numbers)
            found = self._leaves[numbers] = Mask(numbers, rows_differ=differ, is_full=is_full)
        return found

    def every(self, waves: int) -> Mask:
        return self.leaf((self.all,) * waves)

    def choice(self, atom: Symbol, high: Mask, low: Mask) -> Mask:
        """A mask that an atom decides lane by lane; the atoms of both branches have higher numbers."""
        if high is low:
            return high
        found = self._choices.get((atom, high, low))
        if found is None:
            atoms = high.atoms | low.atoms | {atom}
            shared = atom.spread == GROUP or high.shared or low.shared
            differ = high.rows_differ or low.rows_differ
            found = self._choices[atom, high, low] = Mask(None, atom, high, low, atoms, shared, differ)
        return found

    def unknown(self, atom: Symbol, waves: int) -> Mask:
        return self.choice(atom, self.every(waves), self.leaf((0,) * waves))

    def from_lanes(self, lanes: NDArray[np.bool_], waves: int) -> Mask:
        full = np.broadcast_to(lanes, (waves, self.lanes))
        packed = np.packbits(full, axis=1, bitorder="little").view(f"u{self.lanes // 8}")
        return self.leaf(tuple(packed[:, 0].tolist()))

    def combine(self, op: str, one: Mask, other: Mask) -> Mask:
        key = (op, one, other)
        found = self._combined.get(key)
        if found is None:
            found = self._combined[key] = self._combine(op, one, other)
        return found

    def _combine(self, op: str, one: Mask, other: Mask) -> Mask:
        if one.leaf is not None and other.leaf is not None:
            do = _OPS[op]
            return self.leaf(tuple(do(a, b) & self.all for a, b in zip(one.leaf, other.leaf, strict=True)))
        first = min((each.atom for each in (one, other) if each.atom is not None), key=lambda atom: atom.number)
        highs = [each.high if each.atom is first and each.high is not None else each for each in (one, other)]
        lows = [each.low if each.atom is first and each.low is not None else each for each in (one, other)]
        return self.choice(first, self.combine(op, *highs), self.combine(op, *lows))

    def invert(self, mask: Mask) -> Mask:
        return self.combine("nor", mask, mask)

    def lanes_of(self, leaf: Leaf) -> NDArray[np.bool_]:
        octets = np.array(leaf, f"u{self.lanes // 8}")[:, None].view(np.uint8)
        return np.unpackbits(octets, axis=1, bitorder="little").astype(np.bool_)

    def possible(self, mask: Mask) -> Leaf:
        return self._fold(mask, certain=False)

    def certain(self, mask: Mask) -> Leaf:
        return self._fold(mask, certain=True)

    def _fold(self, mask: Mask, *, certain: bool) -> Leaf:
        if mask.leaf is not None:
            return mask.leaf
        key = (certain, mask)
        found = self._folded.get(key)
        if found is None:
            assert mask.high is not None  # noqa: S101
            assert mask.low is not None  # noqa: S101
            pairs = zip(self._fold(mask.high, certain=certain), self._fold(mask.low, certain=certain), strict=True)
            found = self._folded[key] = tuple(a & b if certain else a | b for a, b in pairs)
        return found

    def settle(self, mask: Mask, decided: Callable[[Symbol], bool | None]) -> Mask:
        if not mask.shared or mask.atom is None or mask.high is None or mask.low is None:
            return mask
        if mask.atom.spread == GROUP and (known := decided(mask.atom)) is not None:
            return self.settle(mask.high if known else mask.low, decided)
        high, low = self.settle(mask.high, decided), self.settle(mask.low, decided)
        return self.choice(mask.atom, high, low)

    def select_waves(self, mask: Mask, rows: list[int]) -> Mask:
        if mask.leaf is not None:
            return self.leaf(tuple(mask.leaf[row] for row in rows))
        assert mask.atom is not None  # noqa: S101
        assert mask.high is not None  # noqa: S101
        assert mask.low is not None  # noqa: S101
        return self.choice(mask.atom, self.select_waves(mask.high, rows), self.select_waves(mask.low, rows))

    def substitute(self, mask: Mask, masks: Mapping[Symbol, Mask]) -> Mask:
        if mask.atom is None or mask.high is None or mask.low is None or mask.atoms.isdisjoint(masks):
            return mask
        high, low = self.substitute(mask.high, masks), self.substitute(mask.low, masks)
        chosen = masks.get(mask.atom)
        if chosen is None:
            chosen = self.unknown(mask.atom, len(self.possible(mask)))
        return self.combine("or", self.combine("and", chosen, high), self.combine("andn2", low, chosen))


def atoms_of(mask: Mask) -> list[Symbol]:
    return sorted(mask.atoms, key=lambda atom: atom.number)


Bytes = tuple[int, ...]  # for each wave a bit set of LDS bytes


class Half(NamedTuple):
    """The low (0) or high (1) word of a mask in a scalar register; of 32 lanes there is only the low one."""

    mask: Mask
    which: int


ANY = "any"  # the origin of an address that data chooses


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LdsUse:
    """An access of LDS: its operation, how (read, write, atomic, dma or copy), and the bytes of each wave.

    Only `Accesses` makes them: equal accesses are the same object.  One that isn't exact may use any of its bytes.
    `again` marks a load to LDS that repeats an earlier one between the same two barriers, perhaps with other words.

    `origin` is what the whole workgroup counts an address from, and `relative` are the bytes counted from there.
    Where the address is known, it is 0.  It is `ANY` where data may choose any of the bytes, and None where nothing is
    known of the address but its bounds.
    """

    number: int
    how: str
    bytes: Bytes
    exact: bool
    again: bool = False
    origin: Hashable = 0
    relative: Bytes = ()


def find_common(one: LdsUse, place: int, other: LdsUse, there: int) -> int:
    """The bytes that two waves, at these places of theirs, may both access; 0 if there are none.

    Bytes that are counted from the same origin are the same bytes if their numbers are, wherever the origin is.
    """
    common = one.bytes[place] & other.bytes[there]
    if common and one.relative and one.origin == other.origin and not one.relative[place] & other.relative[there]:
        return 0
    return common


def know_distance(one: LdsUse, other: LdsUse) -> bool:
    """True if it is known how far apart the bytes of two accesses are, so that common ones are not only possible.

    Data may choose bytes that are known.  Of two places that data chooses it isn't known whether they are ever the
    same: they may be the places of a permutation.
    """
    both = one.origin, other.origin
    return None not in both and (both in {(0, ANY), (ANY, 0)} or (one.origin == other.origin != ANY))


class Accesses:
    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], LdsUse] = {}

    def make(
        self, number: int, how: str, octets: Bytes, *, exact: bool, again: bool = False, origin: Hashable = 0,
        relative: Bytes = (),
    ) -> LdsUse:  # fmt: skip
        key = (number, how, octets, exact, again, origin, relative)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = LdsUse(
                number=number, how=how, bytes=octets, exact=exact, again=again, origin=origin, relative=relative
            )
        return found

    def repeat(self, access: LdsUse) -> LdsUse:
        """The same access once more between the same two barriers."""
        return self._vary(access, access.bytes, access.relative, again=True)

    def join(self, one: LdsUse, other: LdsUse) -> LdsUse:
        """The access of two sets of waves by one instruction."""
        octets, exact = (*one.bytes, *other.bytes), one.exact and other.exact
        if one.origin != other.origin:
            return self.make(one.number, one.how, octets, exact=exact, origin=None)
        relative = (*one.relative, *other.relative)
        return self.make(one.number, one.how, octets, exact=exact, origin=one.origin, relative=relative)

    def _vary(self, access: LdsUse, octets: Bytes, relative: Bytes, *, again: bool) -> LdsUse:
        return self.make(
            access.number, access.how, octets, exact=access.exact, again=again, origin=access.origin, relative=relative
        )

    def select_waves(self, access: LdsUse, rows: list[int]) -> LdsUse:
        octets = tuple(access.bytes[row] for row in rows)
        relative = tuple(access.relative[row] for row in rows) if access.relative else ()
        return self._vary(access, octets, relative, again=access.again)


OLDEST = 8  # barriers after which it doesn't matter any more how long a memory op has been in flight


class OwnPlaces(NamedTuple):
    """Which lanes access LDS, each at a place of its own; equal keys are equal places, lane by lane."""

    key: Hashable
    active: Mask


class InFlight(NamedTuple):
    """A memory op in flight: its operation, the registers that it fills, its LDS access, and the epoch of its issue.

    `other_numbers` are the operations that issued it in other waves of the set, by another copy of the code.

    `younger` counts the younger ops in flight at the first barrier after it: a wait for that count would have covered
    it.  `last_wait` is the last wait before that `barrier`, `near_wait` the last one whose count was one too many.
    `waited` are the counters that a wait has seen at 0 since its issue, if another one counts it, too.  `signalled`
    says that its wave had signalled the next barrier and not yet waited for it.  An op that is there on some of the
    paths that were joined only `may` be in flight: no wait can count on it.  `lanes` are known until the next place
    where states are compared.  It was over before those phases of barriers in LDS
    ended at which it is `released`, and its wave had these `lags`.  `data` is what a store writes to one place.
    """

    number: int
    rows: int
    access: LdsUse | None
    epoch: int
    younger: int = -1
    last_wait: int = -1
    near_wait: int = -1
    barrier: int = -1
    other_numbers: tuple[int, ...] = ()
    waited: frozenset[str] = frozenset()
    signalled: bool = False
    may: bool = False
    lanes: OwnPlaces | None = None
    released: Marks = NO_MARKS
    lags: Marks = NO_MARKS
    data: bytes = b""

    def order_like(self, other: InFlight) -> InFlight:
        """The same, ordered by no more than what orders the other one, too."""
        if (self.released, self.lags, self.data) == (other.released, other.lags, other.data):
            return self
        released, lags = _in_both(self.released, other.released, min), _in_both(self.lags, other.lags, max)
        return self._replace(released=released, lags=lags, data=self.data if self.data == other.data else b"")

    @property
    def only_counts(self) -> bool:
        """True if it fills no register and uses no LDS, as a store of global memory."""
        return not self.rows and self.access is None

    @property
    def identity(self) -> Hashable:
        """What decides how the wave goes on: not the epoch, and of an op that only counts at most its waits."""
        if self.only_counts:
            return (self.waited, self.may) if self.waited or self.may else None
        return (self.number, self.rows, self.access, self.other_numbers, self.waited, self.may)

    @property
    def kind(self) -> Hashable:
        """Its identity and when it was issued, whether or not it is certain."""
        return self._replace(may=False).identity, self.issued_since(0)

    def issued_since(self, epoch: int) -> Hashable:
        """Before how many barriers it was issued, if its wave had signalled one, what else orders its access."""
        if self.access is None:
            return None
        ordered = (self.released, self.lags, self.data) if self.released or self.lags or self.data else ()
        return (max(self.epoch - epoch, -OLDEST), self.signalled, *ordered)

    def since(self, epoch: int) -> InFlight:
        """The same, with the epoch of its issue counted from that one."""
        return self._replace(epoch=max(self.epoch - epoch, -OLDEST))


def _in_both(one: Marks, other: Marks, worse: Callable[[int, int], int]) -> Marks:
    found = dict(other)
    return frozenset((place, worse(number, found[place])) for place, number in one if place in found)


def count_younger(queue: Sequence[InFlight]) -> list[int]:
    """For each op, how many younger ones are certainly in flight: at most so many may a wait leave that covers it."""
    counts, younger = [], 0
    for each in reversed(queue):
        counts.append(younger)
        younger += not each.may
    return counts[::-1]


def retire(queue: tuple[InFlight, ...], most: int) -> tuple[tuple[InFlight, ...], tuple[InFlight, ...]]:
    """What is completed when a wait leaves the `most` youngest ops, and what may still be in flight then."""
    count = sum(younger >= most for younger in count_younger(queue))
    return queue[:count], queue[count:]


def covers_queue(queue: Sequence[InFlight], later: Sequence[InFlight]) -> bool:
    """True if a queue has what a later one has, and each op with at most as many younger ones.

    Then a wait that leaves an op of the later queue in flight leaves it in this one, now and after more are issued.
    """
    least = _fewest_younger(queue)
    return all(
        each.only_counts or least.get(each.kind, len(later)) <= younger
        for each, younger in zip(later, count_younger(later), strict=True)
    )


def join_queues(one: Sequence[InFlight], other: Sequence[InFlight]) -> tuple[InFlight, ...]:
    """A queue that covers both: what only one of them has may be in flight."""
    kinds = [each.kind for each in one], [each.kind for each in other]
    joined: list[InFlight] = []
    mine = theirs = 0
    for start, then, size in SequenceMatcher(None, *kinds, autojunk=False).get_matching_blocks():
        between = [each._replace(may=True) for each in (*one[mine:start], *other[theirs:then])]
        joined += sorted(between, key=_order)
        both = zip(one[start : start + size], other[then : then + size], strict=True)
        joined += [a._replace(may=a.may or b.may) for a, b in both]
        mine, theirs = start + size, then + size
    least, kept = _fewest_younger(joined), dict[Hashable, InFlight]()
    for place, (each, younger) in enumerate(zip(joined, count_younger(joined), strict=True)):
        if not each.may:
            kept[place] = each
        elif not each.only_counts and younger == least[each.kind]:  # else a younger one of its kind stands for it
            kept.setdefault(each.kind, each)
    return tuple(kept.values())


def _fewest_younger(queue: Sequence[InFlight]) -> dict[Hashable, int]:
    least: dict[Hashable, int] = {}
    for each, younger in zip(queue, count_younger(queue), strict=True):
        least[each.kind] = min(younger, least.get(each.kind, younger))
    return least


def _order(flight: InFlight) -> tuple[object, ...]:
    return flight.number, flight.rows, () if flight.access is None else flight.access.bytes, sorted(flight.waited)


Queues = dict[CountedBy, tuple[InFlight, ...]]
"""By the counters that count them, memory ops in the order of issue."""


@dataclass(slots=True, kw_only=True, eq=False)
class WaveSet:
    """Waves at one place, their registers, and their memory ops in flight; `queues` are replaced, never changed.

    `pending` are the registers that ops in flight fill, as bits.  `covered` are the accesses since the last barrier
    that a wait has covered, `last_waits` the last wait for each counter.

    A wave that has `signalled` a barrier goes on until it waits for it.  What it does then is concurrent with what
    others do before that barrier and after it: accesses that a wait covers then are `late`, and count for both.
    """

    waves: tuple[int, ...]
    at: int
    registers: dict[int, Value | Half]
    exec: Mask
    queues: Queues = field(default_factory=dict)
    pending: int = 0
    covered: dict[LdsUse, InFlight] = field(default_factory=dict)
    late: dict[LdsUse, InFlight] = field(default_factory=dict)
    signalled: bool = False
    waiting: bool = False
    ended: bool = False
    named: NamedBarriers = NO_BARRIERS
    barriers: int = 0
    last_waits: dict[str, int] = field(default_factory=dict)

    def copy(self) -> WaveSet:
        return replace(self, registers=dict(self.registers), covered=dict(self.covered), late=dict(self.late))

    @property
    def in_flight(self) -> Iterator[InFlight]:
        return chain.from_iterable(self.queues.values())

    @property
    def accesses(self) -> Iterator[LdsUse]:
        """The LDS accesses since the last barrier, and those that no wait has covered yet."""
        return chain(self.covered, self.late, (each.access for each in self.in_flight if each.access is not None))

    def restrict(self, rows: list[int], masks: Masks, accesses: Accesses) -> WaveSet:
        def select(value: Value | Half) -> Value | Half:
            if isinstance(value, Half):
                return Half(masks.select_waves(value.mask, rows), value.which)
            return select_waves(value, rows)

        def select_flight(each: InFlight) -> InFlight:
            if each.access is None:
                return each
            return each._replace(access=accesses.select_waves(each.access, rows), lanes=None)

        def select_accesses(done: dict[LdsUse, InFlight]) -> dict[LdsUse, InFlight]:
            found = ((accesses.select_waves(each, rows), flight) for each, flight in done.items())
            return {access: flight._replace(access=access) for access, flight in found if any(access.bytes)}

        return replace(
            self,
            waves=tuple(self.waves[row] for row in rows),
            registers={row: select(value) for row, value in self.registers.items()},
            exec=masks.select_waves(self.exec, rows),
            queues={by: tuple(map(select_flight, queue)) for by, queue in self.queues.items()},
            covered=select_accesses(self.covered),
            late=select_accesses(self.late),
        )

    def forget_lanes(self) -> None:
        """Forget which lanes access LDS: they depend on conditions that states compared later don't share."""
        if any(each.lanes is not None for each in self.in_flight):
            self.queues = {by: tuple(each._replace(lanes=None) for each in queue) for by, queue in self.queues.items()}

    def complete(self, access: LdsUse, flight: InFlight) -> None:
        done = self.late if self.signalled else self.covered
        old = done.setdefault(access, flight)
        done[access] = old.order_like(flight)  # the set keeps one flight of an access

    def change_flights(self, do: Callable[[CountedBy, InFlight], InFlight]) -> None:
        """Replace what is known of all memory ops; those that a wait has covered are counted by nothing any more."""
        self.covered = {access: do(NOT_COUNTED, flight) for access, flight in self.covered.items()}
        self.late = {access: do(NOT_COUNTED, flight) for access, flight in self.late.items()}
        self.queues = {by: tuple(do(by, flight) for flight in queue) for by, queue in self.queues.items()}

    def release(self, place: int, ends: Callable[[CountedBy, LdsUse], bool]) -> None:
        """Mark what is over when the waves arrive at a barrier in LDS; of accesses in flight, those that it `ends`."""

        def is_over(by: CountedBy, flight: InFlight) -> bool:
            return not by.counters or (flight.access is not None and ends(by, flight.access))

        self.change_flights(lambda by, flight: mark(flight, place) if is_over(by, flight) else flight)

    def drop_accesses(self, is_over: Callable[[InFlight], bool]) -> None:
        """Forget LDS accesses that are over for all others; copies in flight still matter to their own wave."""
        self.covered = {access: flight for access, flight in self.covered.items() if not is_over(flight)}
        self.late = {access: flight for access, flight in self.late.items() if not is_over(flight)}

        def forget(by: CountedBy, flight: InFlight) -> InFlight:
            is_plain = by.counters and flight.access is not None and flight.access.how not in {"dma", "copy"}
            return flight._replace(access=None) if is_plain and is_over(flight) else flight

        self.change_flights(forget)

    def finish(self, masks: Masks) -> None:
        """End the waves: of what they leave, only LDS accesses matter.

        Nobody uses the result of a read that is still in flight, so it ends with its wave: it counts until the next
        barrier and not after.  A write may still land at any time.
        """
        for each in self.in_flight:
            if each.access is not None and each.access.how == "read":
                self.complete(each.access, each._replace(rows=0))
        self.registers, self.exec, self.pending = {}, masks.leaf((0,) * len(self.waves)), 0
        self.queues = {
            by: tuple(each._replace(rows=0) for each in queue if each.access is not None and each.access.how != "read")
            for by, queue in self.queues.items()
        }

    def update_pending(self) -> None:
        """Recompute the pending registers, and drop the oldest ops that only count: no wait can tell them apart."""
        self.pending = 0
        for by, queue in self.queues.items():
            if by.in_order and queue and queue[0].only_counts:
                first = next((place for place, each in enumerate(queue) if not each.only_counts), len(queue))
                self.queues = self.queues | {by: queue[first:]}
            for each in queue:
                self.pending |= each.rows
