"""A matrix instruction for the native core: takes one, fills its record, gives the name that the core runs it by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota.isa.binary.kernel_facts import LANES
from rota.isa.mfma.formats import BITS
from rota.isa.mfma.matrix import fields_of, index_start
from rota.isa.wave.operand import File, parse_operand
from rota.targets.matrix_forms import ANY

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.targets.architecture import Architecture

_KINDS = ("bf16", "f16", "i8", "f32", "xf32", "fp8", "bf8", "fp6", "bf6", "fp4")  # as in matrix.c
_TOTALS = ("f32", "i32")


def matrix_record(record: Any, instruction: Instruction, architecture: Architecture) -> str | None:  # noqa: ANN401
    """None for products of float64, whose sums depend on their order: NumPy has the last word on those."""
    form = next(each for each in architecture.matrix_forms if each.name == instruction.opcode)
    fields = fields_of(instruction, form)
    third = parse_operand(instruction.operands[3], instruction)
    if form.total not in _TOTALS or form.rows != form.columns or third.file not in {File.VECTOR, File.LITERAL}:
        return None
    if form.rows * form.depth * form.blocks % LANES:
        return None
    record["matrix"][:16] = (
        form.rows, form.depth, form.blocks, _KINDS.index(fields.left), _KINDS.index(fields.right),
        form.total == "i32", form.sparse, form.scaled, fields.cbsz, fields.abid, fields.blgp,
        index_start(form, fields), *fields.bytes_of_scales,
        *(form.left == ANY and BITS[kind] > 4 for kind in (fields.left, fields.right)),
    )  # fmt: skip
    return "rota_matrix"
