"""The registers of a GEMM kernel as its source names them: takes a bound instruction, gives those it fills or uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rota.emit.gemm.gemm_factors import ColumnPair, Factor
from rota.emit.gemm.gemm_instructions import BlockAdd, BoundInstruction, LdsRead, Mfma, PairPack, PairRead, ScaleRead


def filled(read: LdsRead | ScaleRead | PairRead) -> str:
    """What a read of LDS fills."""
    if isinstance(read, LdsRead):
        return of_piece(read.operand, read.copy, read.part, read.piece)
    if isinstance(read, ScaleRead):
        return of_scale(read.operand, read.copy, read.part)
    return of_pair(read.pair, read.copy)


def multiplied(mfma: Mfma) -> list[str]:
    """Factors and their scales."""
    return [*_of_factor(mfma, Factor.A), *_of_factor(mfma, Factor.B), *scaling(mfma)]


def scaling(each: Mfma | BlockAdd) -> list[str]:
    """The scales of a part of A and of one of B; none where there are none."""
    parts = zip(Factor, (each.a_part, each.b_part), each.scale_copies, strict=False)
    return [of_scale(operand, copy, part) for operand, part, copy in parts]


def of_piece(operand: Factor, copy: int, part: int, piece: int) -> str:
    """A piece of a part of A or B."""
    return f"{operand.value}[{copy}][{part}][{piece}]"


def of_scale(operand: Factor, copy: int, part: int) -> str:
    """The scales of a part of A or B."""
    return f"{operand.value}_scale[{copy}][{part}]"


def of_pair(pair: ColumnPair, copy: int) -> str:
    """One k of a pair of columns of B, as it is read."""
    return f"b_pairs[{copy}][{pair.pair}][{pair.number}]"


def read_for_nothing(instructions: Iterable[BoundInstruction]) -> list[str]:
    """Registers that are read once more than they are used; the compiler would drop the read."""
    unused: dict[str, None] = {}
    for each in instructions:
        for register in _used(each):
            unused.pop(register, None)
        if isinstance(each, LdsRead | ScaleRead | PairRead):
            unused[filled(each)] = None
    return list(unused)


def _used(instruction: BoundInstruction) -> Sequence[str]:
    if isinstance(instruction, Mfma):
        return multiplied(instruction)
    if isinstance(instruction, BlockAdd):
        return scaling(instruction)
    if isinstance(instruction, PairPack):
        return [*map(of_pair, instruction.sources, instruction.copies)]
    return ()


def _of_factor(mfma: Mfma, operand: Factor) -> list[str]:
    part, copies = mfma.factor(operand)
    first = mfma.step * len(copies)
    return [of_piece(operand, copy, part, first + number) for number, copy in enumerate(copies)]
