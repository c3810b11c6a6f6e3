"""Faults of the native core in words: takes its records, gives the findings that the NumPy interpreter would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.memory_order import under_way


if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.memory import Memory
    from rota.isa.step import Step
    from rota.isa.wave import Faults

_HELD, _OUTSIDE, _UNDER_WAY, _ENDLESS, _RACE, _LEAVES_LDS, _STRIDE, _MISALIGNED = 103, 105, 106, 108, 109, 205, 305, 405
_WRITES = 2  # a race's row: twice whether the later access writes, and whether the earlier one does


def tell(records: NDArray[Any], steps: Sequence[Step], faults: Faults, memory: Memory) -> None:
    """Adds a fault for each record, in the order in which they happened."""
    for code, pc, other_pc, wave, other_wave, row, detail, detail1 in records.tolist():
        instruction = steps[pc].instruction
        other = steps[other_pc].instruction if other_pc >= 0 else None
        if code == _HELD and other is not None:
            too_early(faults, instruction, wave, row, other)
        elif code == _OUTSIDE:
            memory.outside(instruction, detail & 0xFFFF_FFFF_FFFF_FFFF)
        elif code == _UNDER_WAY:
            under_way(faults, instruction, wave, np.array([detail // 4]), writes=bool(row), other=other)
        elif code == _RACE and other is not None:
            ends = ((wave, instruction, row // _WRITES), (other_wave, other, row % _WRITES))
            races(faults, *ends, covered=bool(detail))
        elif code == _LEAVES_LDS:
            leaves_lds(faults, instruction, detail, detail1)
        elif code == _ENDLESS:
            raise endless(instruction, wave, detail)
        else:
            raise AssertionError(f"fault {code} at {instruction.text} has no words")
