"""Conversion of TF32 fragments: takes the reads of a stream, gives what each of its packs reads and makes.

A fragment has eight single-precision numbers a lane.  Four instructions round them, two at a time, to bfloat16; what
rounding left is found either number by number (convert back into a temporary register, subtract: sixteen
instructions), or by two small matrix instructions; four instructions round that too.  So a fragment takes 24 packs or
10.

Reads of an operand that isn't contiguous in K bring one number each of as many fragments as they are wide.  With a
width of V, read V q + m fills the registers from 8 m + V q on, one for each fragment f; number V q + m of fragment f
belongs into register 8 f + V q + m.  So registers 8 m + V q + f and 8 f + V q + m are swapped first, for every q and
m < f, in the order of the former.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rota.lift.schedule_table import ScheduleTable, unreadable

_NUMBERS = 8  # of a fragment, a lane
_ROUNDED = _NUMBERS // 2  # instructions, each for two numbers
_BY_NUMBER = 2 * _ROUNDED + 2 * _NUMBERS
_BY_MATRIX = 2 * _ROUNDED + 2
_SMALL = "v_mfma_f32_4x4x4_16b_bf16"
_TEMPORARY = "temporary"


class Pack(NamedTuple):
    """One conversion: its value, what it reads, the register it shares, and its name if it is a matrix instruction."""

    name: str
    reads: tuple[str, ...]
    shared: str = ""
    matrix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TF32Packs:
    """The packs of one stream: its values are `reads`, in order, for so many `fragments`."""

    table: ScheduleTable
    operand: str
    part: int
    reads: tuple[str, ...]
    count: int
    fragments: int

    def packs(self) -> Iterator[Pack]:
        """One after the other, as the stream numbers them."""
        each, swaps = self._each()
        width = self.fragments if swaps else 0
        pairs = sorted((_NUMBERS * m + width * q + f, q, m, f) for q, m, f in _swapped_pairs(width))
        for _, q, m, f in pairs:
            yield Pack(self._swap(q, m, f), (self.reads[width * q + m], self.reads[width * q + f]))
        for fragment in range(self.fragments):
            yield from self._by_number(fragment) if each == _BY_NUMBER else self._by_matrix(fragment)

    def halves(self, fragment: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The values that hold a fragment's rounded numbers, and those of what rounding left."""
        stem = f"{self._stem}_{fragment}"
        high, low = ([f"{stem}_{half}{n}" for n in range(_ROUNDED)] for half in ("high", "low"))
        return tuple(high), tuple(low)

    @property
    def _stem(self) -> str:
        return f"pack{self.operand.lower()}{self.part}"

    @property
    def _width(self) -> int:
        """How many fragments a read brings numbers of."""
        axis = "AB".index(self.operand)
        return 1 if self.table.layout[axis] == "TN"[axis] else self.table.vector_widths[axis]

    def _each(self) -> tuple[int, int]:
        """How many packs a fragment takes, and how many swaps come first."""
        width = self._width
        swaps = _ROUNDED * (width - 1)
        each, rest = divmod(self.count - swaps, self.fragments)
        whole = len(self.reads) == _NUMBERS and self.fragments == width and _NUMBERS % width == 0
        if rest or each not in (_BY_NUMBER, _BY_MATRIX) or not (whole if swaps else self._reads_each):
            told = f"{self.count} packs and {len(self.reads)} reads for {self.fragments} fragments of {self.operand}"
            raise unreadable(self.table, f"{told}: a fragment takes {_BY_NUMBER} packs or {_BY_MATRIX}")
        return each, swaps

    @property
    def _reads_each(self) -> int:
        """Reads that fill a fragment alone; 0 where that comes out uneven."""
        each, rest = divmod(len(self.reads), self.fragments)
        return 0 if rest or not each or _NUMBERS % each else each

    def _swap(self, q: int, m: int, f: int) -> str:
        return f"{self._stem}_swap{q}_{min(m, f)}_{max(m, f)}"

    def _numbers(self, fragment: int, first: int, last: int) -> tuple[str, ...]:
        """The values that hold numbers `first` to `last` of a fragment; of a swapped register its reads besides."""
        width = self._width
        if width == 1:
            each = self._reads_each
            held, start = _NUMBERS // each, fragment * each
            return self.reads[start + first // held : start + last // held + 1]
        found: dict[str, None] = {}
        for q, m in (divmod(number, width) for number in range(first, last + 1)):
            found[self.reads[width * q + m]] = None
            if m != fragment:
                found |= {self.reads[width * q + fragment]: None, self._swap(q, m, fragment): None}
        return tuple(found)

    def _rounded(self, fragment: int) -> Iterator[Pack]:
        for number, name in enumerate(self.halves(fragment)[0]):
            yield Pack(name, self._numbers(fragment, 2 * number, 2 * number + 1))

    def _by_number(self, fragment: int) -> Iterator[Pack]:
        yield from self._rounded(fragment)
        high, low = self.halves(fragment)
        left = []
        for number in range(_NUMBERS):
            back = f"{self._stem}_{fragment}_back{number}"
            left.append(f"{self._stem}_{fragment}_left{number}")
            yield Pack(back, (high[number // 2],), shared=_TEMPORARY)
            yield Pack(left[-1], (back, *self._numbers(fragment, number, number)))
        yield from self._rounded_again(low, [(left[2 * n], left[2 * n + 1]) for n in range(_ROUNDED)])

    def _by_matrix(self, fragment: int) -> Iterator[Pack]:
        yield from self._rounded(fragment)
        high, low = self.halves(fragment)
        left = [f"{self._stem}_{fragment}_left{number}" for number in range(2)]
        for number, name in enumerate(left):
            numbers = self._numbers(fragment, 4 * number, 4 * number + 3)
            yield Pack(name, (*high[2 * number : 2 * number + 2], *numbers), matrix=_SMALL)
        yield from self._rounded_again(low, [(left[n // 2],) for n in range(_ROUNDED)])

    @staticmethod
    def _rounded_again(low: tuple[str, ...], left: list[tuple[str, ...]]) -> Iterator[Pack]:
        """The last numbers first; each lands in registers that the one before has read."""
        before: tuple[str, ...] = ()
        for number in reversed(range(_ROUNDED)):
            yield Pack(low[number], (*left[number], *before))
            before = (low[number],)


def _swapped_pairs(width: int) -> Iterator[tuple[int, int, int]]:
    """Of each block of reads, which numbers of which fragments change places."""
    for q in range(_NUMBERS // width if width else 0):
        for m in range(width):
            yield from ((q, m, f) for f in range(m + 1, width))
