"""Registers of a loop: takes which rows its operations read and write, gives places, rows that go together as one.

Registers that the same instructions read and write are one place: the four of a fragment, the sixteen of a sum.  A
place that matrix instructions alone add to is an accumulator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rota.isa.wave.operand import ACC
from rota.lift.natural_loops import MATRIX
from rota.program.effects import Place, Space
from rota.prove.operation import VECTORS, Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterUses:
    """What each operation reads and writes, and the registers of each place by name."""

    reads: dict[int, tuple[Place, ...]]
    writes: dict[int, tuple[Place, ...]]
    sizes: tuple[tuple[str, int], ...]


def derive_register_places(chain: Sequence[Operation]) -> RegisterUses:
    """Places of the vector registers that a loop writes."""
    users: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    matrix = {each.number for each in chain if each.name.startswith(MATRIX)}
    for each in chain:
        for row in _rows(each.reads):
            users[row].append((each.number, 0))
        for row in _rows(each.writes):
            users[row].append((each.number, 1))
    together: defaultdict[tuple[tuple[int, int], ...], list[int]] = defaultdict(list)
    for row, uses in users.items():
        if any(writes for _, writes in uses):
            together[tuple(uses)].append(row)
    reads: defaultdict[int, list[Place]] = defaultdict(list)
    writes: defaultdict[int, list[Place]] = defaultdict(list)
    sizes = []
    for going, rows in sorted(together.items(), key=lambda pair: min(pair[1])):
        readers, writers = ({number for number, how in going if how == which} for which in (0, 1))
        sums = readers == writers and writers <= matrix
        place = Place(Space.ACCUMULATOR if sums else Space.REGISTER, _name(sorted(rows)))
        sizes.append((place.name, len(rows)))
        for number in sorted(writers):
            writes[number].append(place)
        for number in sorted(readers):
            if not sums:
                reads[number].append(place)
    return RegisterUses(
        reads={number: tuple(each) for number, each in reads.items()},
        writes={number: tuple(each) for number, each in writes.items()},
        sizes=tuple(sizes),
    )


def _rows(bits: int) -> list[int]:
    bits &= VECTORS
    rows = []
    while bits:
        low = bits & -bits
        rows.append(low.bit_length() - 1)
        bits ^= low
    return rows


def _name(rows: Sequence[int]) -> str:
    starts = [rows[0], *(after for before, after in pairwise(rows) if after != before + 1)]
    ends = [*(before for before, after in pairwise(rows) if after != before + 1), rows[-1]]
    return ",".join(map(_span, starts, ends))


def _span(first: int, last: int) -> str:
    file, base = ("a", ACC) if first >= ACC else ("v", 0)
    return f"{file}{first - base}" if first == last else f"{file}[{first - base}:{last - base}]"
