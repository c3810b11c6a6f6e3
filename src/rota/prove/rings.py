"""Counters whose remainder by a number that is no power of two picks a buffer: `i % 3` of three that take turns.

Arithmetic modulo 2**32 keeps low bits, but no other remainders: after 0xffffffff, a multiple of 3, comes 0.  So such a
counter is widened to `unit * w + r` only if it surely is below a number of the launch, its limit.  What a path knows of
`unit * w - limit` is an arc, which each round narrows that finds that the limit isn't reached yet.  Only where the arc
shows that the limit stays above, a larger number takes the place of w.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rota.isa.wave.operand import File
from rota.prove.decisions import Arc, Decisions, Spans, arc_where, intersect
from rota.prove.operation import Operation
from rota.prove.symbol import GROUP, M32, Linear, Symbol, Symbols, plus

_MOST_UNIT, _MOST_COUNT = 64, 1 << 30
_FIRST_SHIFT, _LAST_SHIFT = 32, 38  # compilers divide by d as they multiply by 2**shift / d, rounded up


class Ring(NamedTuple):
    """What is known of an unknown w: `unit * w` is less than `limit`, a number of the launch of at most `most`."""

    unit: int
    limit: Symbol
    most: int

    @property
    def arc(self) -> Arc:
        """Where `unit * w - limit` is."""
        return -self.most & M32, self.most - 1

    @property
    def bits(self) -> int:
        return (1 << ((self.most - 1) // self.unit).bit_length()) - 1


def ring_of(symbol: Symbol) -> Ring | None:
    """What is known of an unknown that counts rounds of a ring; None for others."""
    if symbol.op not in {"wide", "name"} or len(symbol.args) == 1:
        return None
    found = symbol.args[1]
    return found if isinstance(found, Ring) else None


def find_period(operations: Sequence[Operation], looping: Sequence[bool]) -> int:
    """The least common multiple of the odd numbers that loops divide by, 1 if there are none or too many."""
    factors = (
        each.literal & M32
        for operation in operations
        if looping[operation.number] and operation.spec.root == "mul_hi"
        for each in operation.operands
        if each.file is File.LITERAL
    )
    period = math.lcm(*map(_find_divisor, factors))
    return period if period <= _MOST_UNIT else 1


def _find_divisor(factor: int) -> int:
    """The least odd number by which a product's high word divides; 1 if there is none."""
    for shift in range(_FIRST_SHIFT, _LAST_SHIFT):
        divisor = round((1 << shift) / factor) if factor else 1
        if divisor % 2 and 1 < divisor <= _MOST_UNIT and factor == (1 << shift) // divisor + 1:
            return divisor
    return 1


def find_ring(value: int, unit: int, known: Decisions) -> Ring | None:
    """A ring for the value of a counter, whose limit is the closest number of the launch that is surely larger."""
    found: list[tuple[int, Ring]] = []
    for limit, wave in known.arcs if unit > 1 else ():
        if limit.stable and limit.spread == GROUP and wave is None:
            least, most = find_bounds(limit, known)
            if value < least and most < _MOST_COUNT:
                found.append((least, Ring(unit, limit, most)))
    return min(found, key=lambda each: each[0])[1] if found else None


def find_bounds(limit: Symbol, known: Decisions) -> tuple[int, int]:
    """The least and the largest number that an unknown of the workgroup may be, by what the path has decided."""
    low, high = Spans({}, known.arc_of).value(Linear(limit, 1, 0))
    first, length = intersect(known.arc_of(limit), (low, high - low))
    return (first, first + length) if first + length <= M32 else (low, high)


def decide(condition: Symbol, known: Decisions) -> bool | None:
    """Whether a condition holds by the bounds that follow from how its unknown was made, which the path keeps."""
    if condition.spread != GROUP or (test := arc_where(condition)) is None or not test[0].stable:
        return None
    least, most = find_bounds(test[0], known)
    known.arcs[test[0], None] = least, most - least
    return known.lookup(condition)


def find_distance(symbols: Symbols, symbol: Symbol, ring: Ring) -> Symbol:
    """The unknown that `unit * w - limit` is, about which paths decide."""
    made = plus(symbols, Linear(symbol, ring.unit, 0), Linear(ring.limit, M32, 0))
    assert isinstance(made, Linear)  # noqa: S101
    return made.base


def count_rounds(symbols: Symbols, symbol: Symbol, ring: Ring, offsets: Sequence[int], known: Decisions) -> int:
    """By how much w can grow: what all `unit * w + offset` have in common, as far as the limit stays above."""
    rounds = min(offsets, default=0) // ring.unit
    if not 0 < rounds < _MOST_UNIT:
        return 0
    distance = find_distance(symbols, symbol, ring)
    for (condition, _), holds in known.known.items():
        one, other = condition.args[:2] if condition.op in {"lt_u", "lt_i"} and holds else (None, None)
        if other == (ring.limit, 1, 0) and isinstance(one, tuple) and one[:2] == (symbol, ring.unit):
            offset = one[2] if isinstance(one[2], int) else M32
            if offset < ring.most:  # then the sum doesn't wrap, and both are positive
                below = ring.arc[0], ring.arc[1] - offset
                known.arcs[distance, None] = intersect(known.arc_of(distance), below)
    first, length = known.arc_of(distance)
    start = (first + rounds * ring.unit - ring.arc[0]) & M32
    return rounds if start + length <= ring.arc[1] else 0
