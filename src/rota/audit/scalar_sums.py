"""Where a scalar register is counted from: takes instructions one by one, gives a register and the constant since."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from rota.isa.code.disassembly import Instruction

_SCALARS = re.compile(r"s(?:\[(\d+):(\d+)\]|(\d+))")
_SUMS = ("s_add_i32", "s_add_u32", "s_or_b32")  # an OR adds where the compiler knows that no bits meet
_WRITES_NOTHING = ("s_cmp", "s_bitcmp", "s_store", "s_setreg")


class ScalarSums:
    """Follows copies and sums with constants, in the order of the text."""

    def __init__(self) -> None:
        self._defined: Counter[str] = Counter()
        self._sums: dict[str, tuple[str, int]] = {}

    def of(self, register: str) -> tuple[str, int]:
        """What it is counted from, at which definition of that, and how far."""
        return self._sums.get(register, (f"{register} of {self._defined[register]}", 0))

    def step(self, each: Instruction) -> None:
        """Take note of one instruction."""
        written = written_scalars(each)
        if not written:
            return
        found = self._sum(each) if len(written) == 1 else None
        for register in written:
            self._defined[register] += 1
            self._sums.pop(register, None)
            if found is not None:
                self._sums[register] = found

    def _sum(self, each: Instruction) -> tuple[str, int] | None:
        sources = [operand for operand in each.operands[1:] if _SCALARS.fullmatch(operand)]
        constants = [number for operand in each.operands[1:] if (number := constant(operand)) is not None]
        if len(sources) != 1 or len(sources) + len(constants) != len(each.operands) - 1:
            return None
        if each.opcode == "s_mov_b32" or each.opcode in _SUMS:
            base, before = self.of(sources[0])
            return base, before + sum(constants)
        return None


def written_scalars(each: Instruction) -> list[str]:
    """The scalar registers that an instruction writes by name."""
    writes = each.operands and not each.opcode.startswith(_WRITES_NOTHING)
    return list(_registers(each.operands[0])) if writes else []


def constant(operand: str) -> int | None:
    """A literal."""
    try:
        return int(operand, 0)
    except ValueError:
        return None


def _registers(operand: str) -> Iterator[str]:
    match = _SCALARS.fullmatch(operand)
    if match is not None:
        first, last = (match[1], match[2]) if match[1] else (match[3], match[3])
        yield from (f"s{number}" for number in range(int(first), int(last) + 1))
