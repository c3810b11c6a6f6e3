"""An LDS read as source: takes a binding and a bound read, gives its statement."""

from __future__ import annotations

from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_factors import Piece
from rota.emit.gemm.gemm_instructions import LdsRead, PairRead, ScaleRead
from rota.emit.gemm.gemm_registers import filled
from rota.emit.gemm.pair_words import pair_text


def read_text(binding: GemmBinding, read: LdsRead | ScaleRead | PairRead) -> str:
    """A piece of A or B, the scales of a part, or a pair of columns."""
    if isinstance(read, PairRead):
        return pair_text(binding, read)
    operand = read.operand
    if isinstance(read, ScaleRead):
        return f"ROTA_SCALE_READ({filled(read)}, {operand.value}_scale_lane, {read.lds})"
    word = "ROTA_READ_TRANSPOSED" if binding.tile.transposes(operand) else "ROTA_READ"
    lane = binding.lane(Piece(operand, read.part, read.piece))
    return f"{word}({filled(read)}, {operand.value}_lane{lane}, {read.lds})"
