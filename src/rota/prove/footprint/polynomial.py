"""Integers that a kernel computes, as polynomials over what isn't known before a launch.

A polynomial is exact: its value is an integer without limits. What a register of 32 bits loses of it is said by
`rota.prove.footprint.words`, which keeps a sum or product whole until an instruction uses its bits as a number.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

_LONGEST = 200  # characters of a formula; a longer one gets a name
_MOST_TERMS = 48  # of a polynomial; one that grows beyond it becomes an unknown number within its bounds


class Bounds(NamedTuple):
    """The least and the largest integer that a value can be."""

    low: int
    high: int

    def within(self, low: int, high: int) -> bool:
        return low <= self.low and self.high <= high


def bounds_of_bits(bits: int, *, signed: bool = False) -> Bounds:
    """What so many bits can be."""
    return Bounds(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else Bounds(0, (1 << bits) - 1)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Atom:
    """An unknown integer between two bounds.

    `op` says what made it of `args`. `by_lane` is true if lanes of one wave may have different ones. `low` is congruent
    to it modulo 2**32 where that is known: what a register held before bits of it were dropped or put together.
    """

    op: str
    args: tuple[Hashable, ...]
    text: str
    bounds: Bounds
    by_lane: bool
    number: int
    low: Polynomial | None = None

    def __repr__(self) -> str:
        return self.text


def bounds_of(atom: Atom) -> Bounds:
    return atom.bounds


Monomial = tuple[Atom, ...]  # in the order of their numbers, an atom as often as it is a factor


@dataclass(frozen=True, slots=True, repr=False)
class Polynomial:
    """A sum of products with integer factors; `terms` are in order, without zeros."""

    terms: tuple[tuple[Monomial, int], ...]

    def __repr__(self) -> str:
        return describe(self)

    @property
    def constant(self) -> int | None:
        """Its value, if nothing in it is unknown."""
        if not self.terms:
            return 0
        (factors, number), *more = self.terms
        return number if not factors and not more else None

    @property
    def offset(self) -> int:
        """The term without unknown numbers."""
        return self.terms[-1][1] if self.terms and not self.terms[-1][0] else 0

    @property
    def atom(self) -> Atom | None:
        """The atom that it is, if it is just that."""
        if len(self.terms) != 1 or self.terms[0][1] != 1 or len(self.terms[0][0]) != 1:
            return None
        return self.terms[0][0][0]

    def atoms(self) -> Iterator[Atom]:
        for factors, _ in self.terms:
            yield from factors

    @property
    def by_lane(self) -> bool:
        return any(each.by_lane for each in self.atoms())

    def __add__(self, other: Polynomial) -> Polynomial:
        if not self.terms or not other.terms:
            return other if other.terms else self
        found = dict(self.terms)
        for factors, number in other.terms:
            found[factors] = found.get(factors, 0) + number
        return _collect(found)

    def __mul__(self, other: Polynomial) -> Polynomial:
        found: dict[Monomial, int] = {}
        for one, number in self.terms:
            for two, factor in other.terms:
                factors = tuple(sorted((*one, *two), key=_order)) if one and two else one or two
                found[factors] = found.get(factors, 0) + number * factor
        return _collect(found)

    def times(self, factor: int) -> Polynomial:
        return Polynomial(tuple((factors, number * factor) for factors, number in self.terms)) if factor else ZERO

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other.times(-1)

    def divided(self, by: int) -> Polynomial:
        """The quotient by a number that divides each factor."""
        return Polynomial(tuple((factors, number // by) for factors, number in self.terms))

    def split(self, by: int) -> tuple[Polynomial, Polynomial]:
        """The terms that a number divides, and the others; of the constant, the multiple and the rest."""
        whole: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for factors, number in self.terms:
            if not factors:
                whole[factors], rest[factors] = number - number % by, number % by
            else:
                (rest if number % by else whole)[factors] = number
        return _collect(whole), _collect(rest)

    def bounds(self, of: Callable[[Atom], Bounds] = bounds_of) -> Bounds:
        """The least and the largest value, by the bounds of each atom."""
        low = high = 0
        for factors, number in self.terms:
            least, most = product_bounds(factors, of)
            low += number * (least if number > 0 else most)
            high += number * (most if number > 0 else least)
        return Bounds(low, high)


def _order(atom: Atom) -> int:
    return atom.number


def _place(term: tuple[Monomial, int]) -> tuple[int, ...]:
    return (-len(term[0]), *map(_order, term[0]))


def _collect(found: dict[Monomial, int]) -> Polynomial:
    return Polynomial(tuple(sorted(((factors, number) for factors, number in found.items() if number), key=_place)))


def product_bounds(factors: Monomial, of: Callable[[Atom], Bounds] = bounds_of) -> Bounds:
    low = high = 1
    for each in factors:
        ends = [one * two for one in (low, high) for two in of(each)]
        low, high = min(ends), max(ends)
    return Bounds(low, high)


ZERO = Polynomial(())


def number(value: int) -> Polynomial:
    return Polynomial((((), value),)) if value else ZERO


def of_atom(atom: Atom) -> Polynomial:
    return Polynomial((((atom,), 1),))


class Atoms:
    """All atoms of a kernel: the same operation on the same values is the same atom."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Atom] = {}
        self._at_lane: dict[tuple[Atom, Hashable], Polynomial] = {}

    def make(
        self,
        op: str,
        args: tuple[Hashable, ...],
        text: str,
        bounds: Bounds,
        *,
        by_lane: bool = False,
        low: Polynomial | None = None,
    ) -> Polynomial:
        found = self._known.get((op, args))
        if found is None:
            text = text if len(text) < _LONGEST else f"{op}_{len(self._known)}"
            found = Atom(
                op=op, args=args, text=text, bounds=bounds, by_lane=by_lane, number=len(self._known), low=low
            )  # fmt: skip
            self._known[op, args] = found
        return of_atom(found)

    def find(self, op: str, args: tuple[Hashable, ...]) -> Atom | None:
        return self._known.get((op, args))

    def every(self) -> tuple[Atom, ...]:
        return tuple(self._known.values())

    def limit(self, value: Polynomial) -> Polynomial:
        """The value; an unknown number within its bounds if it has too many terms."""
        if len(value.terms) <= _MOST_TERMS:
            return value
        return self.make("large", (value,), f"a sum of {len(value.terms)} terms", value.bounds(), by_lane=value.by_lane)

    def at_lane(self, value: Polynomial, lane: tuple[str, Hashable]) -> Polynomial:
        """The value that another lane has, by its name and by what decides it: what doesn't differ is the same."""
        if not value.by_lane:
            return value
        return substitute(value, lambda atom: self._atom_at_lane(atom, lane))

    def _atom_at_lane(self, atom: Atom, lane: tuple[str, Hashable]) -> Polynomial:
        if not atom.by_lane:
            return of_atom(atom)
        found = self._at_lane.get((atom, lane))
        if found is None:
            low = None if atom.low is None else self.at_lane(atom.low, lane)
            text = f"{atom.text} of {lane[0]}"
            found = self._at_lane[atom, lane] = self.make("lane", (atom, *lane), text, atom.bounds, low=low)
        return found


def substitute(value: Polynomial, replace: Callable[[Atom], Polynomial]) -> Polynomial:
    total = ZERO
    for factors, factor in value.terms:
        product = number(factor)
        for each in factors:
            product = product * replace(each)
        total = total + product
    return total


def parts_of(atom: Atom) -> Iterator[Atom]:
    """The atoms that an atom is made of directly, by arithmetic."""
    for each in atom.args:
        if isinstance(each, Polynomial):
            yield from each.atoms()
        elif isinstance(each, Atom):
            yield each


def atoms_inside(atoms: Iterable[Atom], parts: Callable[[Atom], Iterable[Atom]] = parts_of) -> Iterator[Atom]:
    """Atoms, and those that they are made of by arithmetic; of a choice, not those of its arms."""
    work, seen = list(atoms), set[Atom]()
    while work:
        atom = work.pop()
        if atom not in seen:
            seen.add(atom)
            yield atom
            work += parts(atom)


def describe(value: Polynomial) -> str:
    """As a formula: `4096*block_id + 2*lane + 16`."""
    parts = []
    for factors, factor in value.terms:
        names = "*".join(f"({each.text})" if " " in each.text else each.text for each in factors)
        size = abs(factor)
        text = names if size == 1 and names else f"{size}*{names}" if names else str(size)
        parts.append(f"{'-' if factor < 0 else '+'} {text}")
    return (" ".join(parts) or "0").removeprefix("+ ").replace("- ", "-", 1 if parts and parts[0][0] == "-" else 0)
