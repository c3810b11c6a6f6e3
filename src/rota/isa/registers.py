"""Registers by name and by row.

A wave's registers are numbered in rows: from 0 on the VGPRs, from 1,024 on the scalar registers, by their number in the
encoding. Rows 256 to 511 are the AGPRs, where an architecture has them, else the VGPRs from v256 on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

ACC, SCALAR = 256, 1024
VCC, M0, EXEC, SCC = 106, 124, 126, 253
NAMED = {
    "vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1), "m0": (M0, 1),
    "exec": (EXEC, 2), "exec_lo": (EXEC, 1), "exec_hi": (EXEC + 1, 1),
    "flat_scratch": (102, 2), "flat_scratch_lo": (102, 1), "flat_scratch_hi": (103, 1),
    "xnack_mask": (104, 2), "xnack_mask_lo": (104, 1), "xnack_mask_hi": (105, 1),
    **{f"ttmp{number}": (108 + number, 1) for number in range(16)},
}  # fmt: skip
"""Scalar registers that have names: first number and count."""
FLAGS = {"src_scc": (SCC, 1), "src_vccz": (VCC, 2), "src_execz": (EXEC, 2)}
"""Operands that read a bit of state: SCC, or whether VCC or EXEC is zero."""

Rows = frozenset[int]
NO_ROWS: Rows = frozenset()
VCC_ROWS: Rows = frozenset({SCALAR + VCC, SCALAR + VCC + 1})
# Trap handlers write them, and launches of some machines.
TRAP_ROWS: Rows = frozenset(range(SCALAR + 108, SCALAR + 124))
LAUNCH_ROWS: Rows = frozenset(range(SCALAR + 114, SCALAR + 118))  # ttmp6 to ttmp9, which those launches fill
EXEC_ROWS: Rows = frozenset({SCALAR + EXEC, SCALAR + EXEC + 1})
M0_ROWS: Rows = frozenset({SCALAR + M0})
SCC_ROWS: Rows = frozenset({SCALAR + SCC})

_REGISTER = re.compile(r"(?<![\w.])(?P<file>[vas])(?:(?P<one>\d+)|\[(?P<first>\d+):(?P<last>\d+)\])(?!\w)")
_WORD = re.compile(r"[a-z_0-9]+")
_NAMES = {first: name for name, (first, count) in NAMED.items() if count == 1 and first >= VCC}


class RegisterRange(NamedTuple):
    """`size` registers of a file (v, a or s) from number `first` on."""

    file: str
    first: int
    size: int

    @property
    def rows(self) -> Sequence[int]:
        start = self.first + {"v": 0, "a": ACC, "s": SCALAR}[self.file]
        return range(start, start + self.size)


def ranges_in(text: str) -> Iterator[RegisterRange]:
    """The numbered registers that a text names, with or without signs around them."""
    for found in _REGISTER.finditer(text):
        first, last = int(found["one"] or found["first"]), int(found["one"] or found["last"])
        yield RegisterRange(found["file"], first, last - first + 1)


@lru_cache(maxsize=4096)  # an unrolled loop names the same registers again and again
def parse_range(text: str) -> RegisterRange | None:
    """The registers that an operand is, numbered or with a name of their own; None if it isn't just that."""
    if text in NAMED:
        return RegisterRange("s", *NAMED[text])
    found = _REGISTER.fullmatch(text)
    return None if found is None else next(ranges_in(text))


@lru_cache(maxsize=4096)
def rows_in(text: str) -> Rows:
    """The rows that an operand names; a flag names none."""
    rows = {row for each in ranges_in(text) for row in each.rows}
    for word in _WORD.findall(text):
        if word in NAMED:
            rows.update(RegisterRange("s", *NAMED[word]).rows)
    return frozenset(rows)


def flags_in(text: str) -> Rows:
    """The rows that an operand asks about by a flag."""
    return frozenset(RegisterRange("s", *FLAGS[text]).rows) if text in FLAGS else NO_ROWS


def vector_rows(rows: Rows) -> Rows:
    return frozenset(row for row in rows if row < SCALAR)


def scalar_rows(rows: Rows) -> Rows:
    return frozenset(row for row in rows if row >= SCALAR)


def is_scalar(row: int) -> bool:
    return row >= SCALAR


def is_beyond(text: str, *, accumulators: bool) -> bool:
    """True if an operand names a vector register that the machine lacks: above v255, or an accumulator."""
    named = ranges_in(text)
    return any(
        each.file == "v" and each.first + each.size > ACC if accumulators else each.file == "a" for each in named
    )


def row_name(row: int, text: str) -> str:
    """A register by its row; the instruction that names it tells an accumulator from a VGPR above v255."""
    if row >= SCALAR:
        return _NAMES.get(row - SCALAR, f"s{row - SCALAR}")
    accumulates = any(each.file == "a" and row in each.rows for each in ranges_in(text))
    return f"a{row - ACC}" if accumulates else f"v{row}"
