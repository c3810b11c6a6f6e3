"""Masks of lanes, such as EXEC and VCC: takes comparisons, gives exactly when each lane of each wave is in.

A mask is a decision tree over unknown masks (atoms): a leaf has one number of 64 bits per wave, a choice takes, in each
lane, one branch where its atom is set and the other where it isn't.  Atoms stand in the order of their numbers, and
equal branches are one, so that equal masks are the same object: restoring a saved EXEC gives the very mask it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rota.prove.symbol import GROUP, Symbol

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
    def full(self) -> bool:
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

    def of_lanes(self, lanes: NDArray[np.bool_], waves: int) -> Mask:
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

    def inverted(self, mask: Mask) -> Mask:
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

    def settled(self, mask: Mask, decided: Callable[[Symbol], bool | None]) -> Mask:
        """The mask with what was decided about atoms that the workgroup shares."""
        if not mask.shared or mask.atom is None or mask.high is None or mask.low is None:
            return mask
        if mask.atom.spread == GROUP and (known := decided(mask.atom)) is not None:
            return self.settled(mask.high if known else mask.low, decided)
        high, low = self.settled(mask.high, decided), self.settled(mask.low, decided)
        return self.choice(mask.atom, high, low)

    def of_waves(self, mask: Mask, rows: list[int]) -> Mask:
        """The mask for some of the waves."""
        if mask.leaf is not None:
            return self.leaf(tuple(mask.leaf[row] for row in rows))
        assert mask.atom is not None  # noqa: S101
        assert mask.high is not None  # noqa: S101
        assert mask.low is not None  # noqa: S101
        return self.choice(mask.atom, self.of_waves(mask.high, rows), self.of_waves(mask.low, rows))

    def renamed(self, mask: Mask, names: Mapping[Symbol, Symbol]) -> Mask:
        """The mask with other atoms."""
        waves = len(self.possible(mask))
        return self.substituted(mask, {old: self.unknown(new, waves) for old, new in names.items() if new is not old})

    def substituted(self, mask: Mask, masks: Mapping[Symbol, Mask]) -> Mask:
        """The mask with other masks in the place of atoms."""
        if mask.atom is None or mask.high is None or mask.low is None or mask.atoms.isdisjoint(masks):
            return mask
        high, low = self.substituted(mask.high, masks), self.substituted(mask.low, masks)
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
