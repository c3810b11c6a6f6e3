"""Data parallel primitives: takes the modifiers of a _dpp instruction, gives whom each lane reads and which write.

Lane i of a row of 16 reads another lane of its row, or of the wave.  A lane whose source lies outside the row, or is
one that EXEC leaves out, reads zero with bound_ctrl:1, and otherwise doesn't write (AMD, CDNA3 ISA, "Data Parallel
Processing").  Rows and banks that the masks leave out don't write either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.valu.modifiers import fields_of, flags
from rota.isa.wave.operand import unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

_LANE = np.arange(LANES)
_ROW, _PLACE = _LANE // 16, _LANE % 16
_MODIFIERS = ("row_mask", "bank_mask", "bound_ctrl")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCrossing:
    """How a _dpp instruction crosses lanes: `source` for each lane, or -1; `enabled` by the masks."""

    source: NDArray[np.int64]
    enabled: NDArray[np.bool_]
    zero: bool  # what a lane without a source reads; otherwise it doesn't write

    def read(self, wave: Wave, values: Any) -> Any:  # noqa: ANN401
        """What each lane reads of a value per lane."""
        moved = np.broadcast_to(values, LANES)[np.maximum(self.source, 0)]
        return np.where(self._found(wave), moved, moved.dtype.type(0))

    def writes(self, wave: Wave) -> NDArray[np.bool_]:
        """The lanes that write."""
        some = wave.active & self.enabled
        return some if self.zero else some & self._found(wave)

    def _found(self, wave: Wave) -> NDArray[np.bool_]:
        return (self.source >= 0) & wave.active[np.maximum(self.source, 0)]


def crossing_of(instruction: Instruction) -> LaneCrossing:
    """The crossing that the modifiers name."""
    fields = fields_of(instruction)
    rows, banks, bound = (fields.pop(name, "0") for name in _MODIFIERS)
    if len(fields) != 1:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    ((name, value),) = fields.items()
    source = _sources(name, value)
    if source is None:
        raise unknown(instruction, f"modifier {name}:{value}")
    enabled = (int(rows, 0) >> _ROW & 1) & (int(banks, 0) >> _PLACE // 4 & 1) == 1
    return LaneCrossing(source=source.astype(np.int64), enabled=enabled, zero=bound == "1")


def _sources(name: str, value: str) -> NDArray[np.int64] | None:  # noqa: PLR0911  # one line per form
    within = _ROW * 16
    if name == "quad_perm":
        return np.asarray(_LANE // 4 * 4 + np.array(flags(value, 0, 4))[_LANE % 4])
    if name in {"row_shl", "row_shr"} and 1 <= int(value) <= 15:
        place = _PLACE + int(value) * (1 if name == "row_shl" else -1)
        return np.where((place >= 0) & (place < 16), within + place, -1)
    if name == "row_ror" and 1 <= int(value) <= 15:
        return within + (_PLACE - int(value)) % 16
    if name in {"wave_shl", "wave_shr"} and value == "1":
        lane = _LANE + (1 if name == "wave_shl" else -1)
        return np.where((lane >= 0) & (lane < LANES), lane, -1)
    if name in {"wave_rol", "wave_ror"} and value == "1":
        return (_LANE + (1 if name == "wave_rol" else -1)) % LANES
    if name == "row_mirror":
        return within + 15 - _PLACE
    if name == "row_half_mirror":
        return _LANE // 8 * 8 + 7 - _LANE % 8
    if name == "row_bcast" and value == "15":
        return np.where(_ROW > 0, within - 1, -1)
    if name == "row_bcast" and value == "31":
        return np.where(_ROW > 1, 31, -1)
    return within + int(value) if name == "row_newbcast" and 0 <= int(value) <= 15 else None
