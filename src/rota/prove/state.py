"""Waves that run in lockstep: what is known of their registers, and the memory ops that they have under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.prove.symbol import GROUP, Symbol, Value, select_waves

ALL64 = 0xFFFF_FFFF_FFFF_FFFF
Leaf = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """A leaf, or a choice of an atom; made by `Masks` alone."""

    leaf: Leaf | None
    atom: Symbol | None = None
    high: Mask | None = None
    low: Mask | None = None
    atoms: frozenset[Symbol] = frozenset()
    shared: bool = False  # an atom is one that the workgroup shares
    rows_differ: bool = False  # not all waves have the same numbers at the leaves

    @property
    def is_full(self) -> bool:
        """Is every lane of every wave known to be in?"""
        return self.leaf is not None and all(number == ALL64 for number in self.leaf)


_OPS: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b & ALL64,
    "orn2": lambda a, b: (a | ~b) & ALL64,
    "nand": lambda a, b: ~(a & b) & ALL64,
    "nor": lambda a, b: ~(a | b) & ALL64,
    "xnor": lambda a, b: ~(a ^ b) & ALL64,
}


class Masks:
    """All masks of a proof; equal ones are one."""

    def __init__(self) -> None:
        self._leaves: dict[Leaf, Mask] = {}
        self._choices: dict[tuple[Symbol, Mask, Mask], Mask] = {}
        self._combined: dict[tuple[str, Mask, Mask], Mask] = {}
        self._folded: dict[tuple[bool, Mask], Leaf] = {}

    def leaf(self, numbers: Leaf) -> Mask:
        """A known mask, a number per wave."""
        found = self._leaves.get(numbers)
        if found is None:
            found = self._leaves[numbers] = Mask(numbers, rows_differ=any(each != numbers[0] for each in numbers))
        return found

    def choice(self, atom: Symbol, high: Mask, low: Mask) -> Mask:
        """A mask that an unknown one decides, lane by lane; atoms of the branches come later in the order."""
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
        """The unknown mask itself."""
        return self.choice(atom, self.leaf((ALL64,) * waves), self.leaf((0,) * waves))

    def from_lanes(self, lanes: NDArray[np.bool_], waves: int) -> Mask:
        """The mask of what a comparison gave."""
        full = np.broadcast_to(lanes, (waves, 64))
        packed = np.packbits(full, axis=1, bitorder="little").view(np.uint64)
        return self.leaf(tuple(packed[:, 0].tolist()))

    def combine(self, op: str, one: Mask, other: Mask) -> Mask:
        """A bitwise operation."""
        key = (op, one, other)
        found = self._combined.get(key)
        if found is None:
            found = self._combined[key] = self._combine(op, one, other)
        return found

    def _combine(self, op: str, one: Mask, other: Mask) -> Mask:
        if one.leaf is not None and other.leaf is not None:
            do = _OPS[op]
            return self.leaf(tuple(do(a, b) for a, b in zip(one.leaf, other.leaf, strict=True)))
        first = min((each.atom for each in (one, other) if each.atom is not None), key=lambda atom: atom.number)
        parts = [
            (each.high, each.low)
            if each.atom is first and each.high is not None and each.low is not None
            else (each, each)
            for each in (one, other)
        ]
        (one_high, one_low), (other_high, other_low) = parts
        return self.choice(first, self.combine(op, one_high, other_high), self.combine(op, one_low, other_low))

    def invert(self, mask: Mask) -> Mask:
        """All lanes that are not in it."""
        return self.combine("nor", mask, mask)

    def possible(self, mask: Mask) -> Leaf:
        """The lanes that may be in."""
        return self._fold(mask, certain=False)

    def certain(self, mask: Mask) -> Leaf:
        """The lanes that are in, whatever the atoms are."""
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
        """The mask with what was decided about atoms that the workgroup shares."""
        if not mask.shared or mask.atom is None or mask.high is None or mask.low is None:
            return mask
        if mask.atom.spread == GROUP and (known := decided(mask.atom)) is not None:
            return self.settle(mask.high if known else mask.low, decided)
        high, low = self.settle(mask.high, decided), self.settle(mask.low, decided)
        return self.choice(mask.atom, high, low)

    def select_waves(self, mask: Mask, rows: list[int]) -> Mask:
        """The mask for some of the waves."""
        if mask.leaf is not None:
            return self.leaf(tuple(mask.leaf[row] for row in rows))
        assert mask.atom is not None  # noqa: S101
        assert mask.high is not None  # noqa: S101
        assert mask.low is not None  # noqa: S101
        return self.choice(mask.atom, self.select_waves(mask.high, rows), self.select_waves(mask.low, rows))

    def rename(self, mask: Mask, names: Mapping[Symbol, Symbol]) -> Mask:
        """The mask with other atoms."""
        waves = len(self.possible(mask))
        return self.substitute(mask, {old: self.unknown(new, waves) for old, new in names.items() if new is not old})

    def substitute(self, mask: Mask, masks: Mapping[Symbol, Mask]) -> Mask:
        """The mask with other masks in the place of atoms."""
        if mask.atom is None or mask.high is None or mask.low is None or mask.atoms.isdisjoint(masks):
            return mask
        high, low = self.substitute(mask.high, masks), self.substitute(mask.low, masks)
        chosen = masks.get(mask.atom)
        if chosen is None:
            chosen = self.unknown(mask.atom, len(self.possible(mask)))
        return self.combine("or", self.combine("and", chosen, high), self.combine("andn2", low, chosen))


def atoms_of(mask: Mask) -> list[Symbol]:
    """The atoms in their order."""
    return sorted(mask.atoms, key=lambda atom: atom.number)


def lanes_of(leaf: Leaf) -> NDArray[np.bool_]:
    """A row of 64 flags per wave."""
    octets = np.array(leaf, np.uint64)[:, None].view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little").astype(np.bool_)


Bytes = tuple[int, ...]  # for each wave of a wave_set a number whose bit b stands for byte b of LDS


class Half(NamedTuple):
    """One half of a mask in a scalar register: 0 the low one, 1 the high one."""

    mask: Mask
    which: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LdsUse:
    """A use of LDS: by which operation, how (read, write, atomic or dma), and the bytes of each wave.

    Made by `Accesses` alone: equal ones are one.  If it isn't exact, it may use any of the bytes.  `again` tells a load
    to LDS from the same load earlier in a stretch between barriers, of other words perhaps.
    """

    number: int
    how: str
    bytes: Bytes
    exact: bool
    again: bool = False


class Accesses:
    """All accesses of a proof."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str, Bytes, bool, bool], LdsUse] = {}

    def make(self, number: int, how: str, octets: Bytes, *, exact: bool, again: bool = False) -> LdsUse:
        """The one access of that kind."""
        key = (number, how, octets, exact, again)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = LdsUse(number=number, how=how, bytes=octets, exact=exact, again=again)
        return found

    def select_waves(self, access: LdsUse, rows: list[int]) -> LdsUse:
        """That of some of the waves."""
        octets = tuple(access.bytes[row] for row in rows)
        return self.make(access.number, access.how, octets, exact=access.exact, again=access.again)


class InFlight(NamedTuple):
    """A memory op under way: its operation, the registers that it fills, what it uses of LDS, and when it was issued.

    `also` are the operations that it is in other waves of its wave_set, which came by another copy of the code.

    `due` is how many younger ones were under way at the first barrier behind it: a wait for so many was due.  `wait` is
    the last wait before that `barrier`, `near` the last wait that would have covered it with a count one less.
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

    @property
    def only_counts(self) -> bool:
        """Is it only counted, as a store is?"""
        return not self.rows and self.access is None

    @property
    def identity(self) -> tuple[object, ...] | None:
        """All that decides what follows: not when it was issued, and of one that is only counted nothing."""
        return None if self.only_counts else (self.number, self.rows, self.access, self.other_numbers)


@dataclass(slots=True, kw_only=True, eq=False)
class WaveSet:
    """The waves, where they are, their registers, and their memory ops in the order of issue.

    `done` are accesses of this stretch between barriers that a wait has covered.  `waited` are the last waits for each
    counter.
    """

    waves: tuple[int, ...]
    at: int
    registers: dict[int, Value | Half]
    exec: Mask
    vm: tuple[InFlight, ...] = ()
    ds: tuple[InFlight, ...] = ()
    sm: tuple[InFlight, ...] = ()
    flat: tuple[tuple[InFlight, frozenset[str]], ...] = ()
    pending: int = 0
    covered: dict[LdsUse, InFlight] = field(default_factory=dict)
    waiting: bool = False
    ended: bool = False
    barriers: int = 0
    last_waits: tuple[int, int] = (-1, -1)

    def copy(self) -> WaveSet:
        """For another path."""
        return WaveSet(
            waves=self.waves,
            at=self.at,
            registers=dict(self.registers),
            exec=self.exec,
            vm=self.vm,
            ds=self.ds,
            sm=self.sm,
            flat=self.flat,
            pending=self.pending,
            covered=dict(self.covered),
            waiting=self.waiting,
            ended=self.ended,
            barriers=self.barriers,
            last_waits=self.last_waits,
        )

    def restrict(self, rows: list[int], masks: Masks, accesses: Accesses) -> WaveSet:
        """Some of the waves, on their own."""

        def kept(value: Value | Half) -> Value | Half:
            return (
                Half(masks.select_waves(value.mask, rows), value.which)
                if isinstance(value, Half)
                else select_waves(value, rows)
            )

        def access(each: LdsUse | None) -> LdsUse | None:
            return None if each is None else accesses.select_waves(each, rows)

        def flight(each: InFlight) -> InFlight:
            return each._replace(access=access(each.access))

        covered: dict[LdsUse, InFlight] = {}
        for each, before in self.covered.items():
            one = access(each)
            if one is not None and any(one.bytes):
                covered[one] = before._replace(access=one)
        return WaveSet(
            waves=tuple(self.waves[row] for row in rows),
            at=self.at,
            registers={row: kept(value) for row, value in self.registers.items()},
            exec=masks.select_waves(self.exec, rows),
            vm=tuple(map(flight, self.vm)),
            ds=tuple(map(flight, self.ds)),
            sm=self.sm,
            flat=tuple((flight(each), seen) for each, seen in self.flat),
            pending=self.pending,
            covered=covered,
            waiting=self.waiting,
            ended=self.ended,
            barriers=self.barriers,
            last_waits=self.last_waits,
        )

    def finish(self, masks: Masks) -> None:
        """Its waves have ended: of what they leave behind, only uses of LDS matter.

        Nobody is left to see what a read under way brings, so it is over with its wave: it counts in this stretch
        between barriers, and in none behind it.  A write lands whenever it does.
        """
        left = (*self.ds, *(each for each, _ in self.flat))
        for each in left:
            if each.access is not None and each.access.how == "read":
                self.covered.setdefault(each.access, each._replace(rows=0))
        self.registers, self.exec, self.sm, self.pending = {}, masks.leaf((0,) * len(self.waves)), (), 0
        self.vm = tuple(each._replace(rows=0) for each in self.vm if each.access is not None)
        self.ds = tuple(each._replace(rows=0) for each in self.ds if _lands(each))
        self.flat = tuple((each._replace(rows=0), seen) for each, seen in self.flat if _lands(each))

    def update_pending(self) -> None:
        """The registers that are waited for; the oldest ops that are only counted are not waited for by anybody."""
        self.pending = 0
        for name in ("vm", "ds"):
            queue = getattr(self, name)
            if queue and queue[0].only_counts:
                first = next((place for place, each in enumerate(queue) if not each.only_counts), len(queue))
                setattr(self, name, queue[first:])
        for each in (*self.vm, *self.ds, *self.sm):
            self.pending |= each.rows
        for each, _ in self.flat:
            self.pending |= each.rows


def _lands(flight: InFlight) -> bool:
    """Does it change LDS?"""
    return flight.access is not None and flight.access.how != "read"
