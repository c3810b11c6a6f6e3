"""Matrix instructions: takes an MFMA or SMFMAC, gives a `Step` that multiplies in the register layout of the ISA.

Which instructions there are is the architecture's to say (`MatrixForm`).  EXEC is ignored, as the ISA says.  Sums are
formed in float64 and rounded once to float32, to the nearest even: in which order the hardware adds, and how it rounds
in between, AMD doesn't publish (a third party measured it: MMA-Sim, arXiv:2511.10909).  Where all products and partial
sums fit the result exactly, as small integers do, there is nothing to round and the result is the machine's; other
results are judged within a bound.  Integers wrap around.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.mfma.formats import BITS, BY_FIELD, Values, elements_of, scale_values
from rota.isa.mfma.matrix_layout import broadcast, decompressed, factor, lane_pattern, result_places, scales
from rota.isa.wave.operand import File, Operand, parse_operand, unknown
from rota.isa.wave.step import Step
from rota.targets.matrix_forms import ANY, MatrixForm, Pipe

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave
    from rota.targets.architecture import Architecture, Float8

_SUMS: dict[str, Any] = {"f32": np.float32, "i32": np.int32, "f64": np.float64}
Product = Callable[["Wave"], Values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """What an instruction's modifiers say."""

    left: str
    right: str
    cbsz: int = 0
    abid: int = 0
    blgp: int = 0
    negate: tuple[bool, bool, bool] = (False, False, False)
    bytes_of_scales: tuple[int, int] = (0, 0)


def decode_matrix(instruction: Instruction, architecture: Architecture) -> Step | None:
    """The step of a matrix instruction, or None if the opcode isn't one."""
    if not instruction.opcode.startswith(("v_mfma_", "v_smfmac_")):
        return None
    form = next((each for each in architecture.matrix_forms if each.name == instruction.opcode), None)
    if form is None:
        raise unknown(instruction)
    fields = fields_of(instruction, form)
    target, left, right, third, *more = (parse_operand(text, instruction) for text in instruction.operands)
    _check_widths(instruction, form, fields, (target, left, right, third, *more))
    multiply = _multiplier(form, fields, architecture.float8, (left, right, *(more or [third])))
    addend = target if form.sparse else third
    add = _adder(form, addend, negate=fields.negate[2])
    first, last = target.first, target.first + target.count

    def act(wave: Wave) -> None:
        wave.v[first:last] = add(wave, multiply(wave))

    sources = frozenset(row for each in (left, right, third, addend, *more) for row in each.rows)
    written = frozenset(target.rows)
    return Step(instruction=instruction, act=act, sources=sources, results=written, touches=sources | written)


def fields_of(instruction: Instruction, form: MatrixForm) -> Fields:
    """The modifiers, where the instruction has them and their values are legal; others are refused."""
    given = dict(modifier.partition(":")[::2] for modifier in instruction.modifiers)
    numbers = {name: int(given.pop(name, "0"), 0) for name in ("cbsz", "abid", "blgp")}
    vectors = {
        name: [int(bit) for bit in given.pop(name).strip("[]").split(",")] if name in given else [0, 0, 0]
        for name in ("neg", "op_sel", "op_sel_hi")
    }
    cbsz, abid, blgp = numbers.values()
    refused = unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    selected = [low + 2 * high for low, high in zip(vectors["op_sel"], vectors["op_sel_hi"], strict=True)]
    if given or (any(selected) and not form.scaled) or (any(vectors["neg"]) and form.pipe is not Pipe.DOUBLE):
        raise refused
    if form.left == ANY:
        if abid or max(cbsz, blgp) >= len(BY_FIELD):
            raise refused
        return Fields(left=BY_FIELD[cbsz], right=BY_FIELD[blgp], bytes_of_scales=(selected[0], selected[1]))
    if not _legal(form, cbsz, abid, blgp):
        raise refused
    negate = tuple(bool(bit) for bit in vectors["neg"])
    return Fields(
        left=form.left, right=form.right, cbsz=cbsz, abid=abid, blgp=blgp, negate=(negate[0], negate[1], negate[2])
    )


def _legal(form: MatrixForm, cbsz: int, abid: int, blgp: int) -> bool:
    if form.sparse:
        return blgp == 0 and abid < (_index_sets(form) if cbsz == 0 else 1)
    if (cbsz or abid) and not form.broadcasts:
        return False
    return 1 << cbsz <= form.blocks and abid < 1 << cbsz and (blgp == 0 or (form.permutes and blgp < 8))


def _index_sets(form: MatrixForm) -> int:
    """How many sets of two-bit indices a register holds."""
    return 32 // (form.rows * form.depth // LANES)


def index_start(form: MatrixForm, fields: Fields) -> int:
    """The first bit of the indices that a sparse instruction uses."""
    return fields.abid * 32 // _index_sets(form) if form.sparse and not fields.cbsz else 0


def _check_widths(instruction: Instruction, form: MatrixForm, fields: Fields, operands: tuple[Operand, ...]) -> None:
    target, left, right, third, *more = operands
    area = form.blocks * form.depth // (2 if form.sparse else 1)
    lengths = (
        form.rows * area * BITS[fields.left] // (32 * LANES),
        form.columns * form.blocks * form.depth * BITS[fields.right] // (32 * LANES),
        form.rows * form.columns * form.blocks * (2 if form.total == "f64" else 1) // LANES,
    )
    extra = 1 if form.sparse else lengths[2]
    fits = (left.count, right.count, target.count) == lengths and (third.file is File.LITERAL or third.count == extra)
    vectors = (target, left, right, *more, *((third,) if form.sparse or third.file is not File.LITERAL else ()))
    if not fits or len(more) != 2 * form.scaled or any(each.file is not File.VECTOR or each.signed for each in vectors):
        raise unknown(instruction, "operand width")


def _rows(operand: Operand) -> slice:
    return slice(operand.first, operand.first + operand.count)


def _multiplier(form: MatrixForm, fields: Fields, float8: Float8, operands: tuple[Operand, ...]) -> Product:
    """The product of the factors, blocks by rows by columns."""
    a, b = (_rows(operand) for operand in operands[:2])
    read_a, read_b = elements_of(fields.left, float8), elements_of(fields.right, float8)
    split_a, split_b = (form.left == ANY and BITS[kind] > 4 for kind in (fields.left, fields.right))
    blocks, lanes = broadcast(form.blocks, fields.cbsz, fields.abid), lane_pattern(fields.blgp)
    sign = -1.0 if fields.negate[0] != fields.negate[1] else 1.0
    start = index_start(form, fields)

    def scale(wave: Wave, side: int, size: int) -> Values:
        return scales(scale_values(wave.v[operands[2 + side].first], fields.bytes_of_scales[side]), size)

    def product(wave: Wave) -> Values:
        left, right = read_a(wave.v[a]), read_b(wave.v[b])
        if form.sparse:
            left = decompressed(left, wave.v[operands[2].first], start)
        if fields.blgp:
            right = right[:, lanes]
        left = factor(left, form.rows, form.blocks, split=split_a)
        right = factor(right, form.columns, form.blocks, split=split_b)
        if fields.cbsz and not form.sparse:
            left = left[blocks]
        if form.scaled:
            left = left * scale(wave, 0, form.rows)
            right = right * scale(wave, 1, form.columns)
        return sign * _multiplied(left, right)

    return product


def _multiplied(left: Values, right: Values) -> Values:
    """Sums over K, one product after the other as the native core has it: no BLAS decides about the last bit."""
    total = np.zeros((len(left), left.shape[1], right.shape[1]))
    for k in range(left.shape[2]):
        total += left[:, :, k, None] * right[:, None, :, k]
    return total


def _adder(form: MatrixForm, addend: Operand, *, negate: bool) -> Callable[[Wave, Values], Any]:
    """Brings the product into the registers' layout, adds srcC and rounds."""
    dtype, places = np.dtype(_SUMS[form.total]), result_places(form)
    rows = _rows(addend)
    wide = dtype.itemsize == 8

    def constant() -> Any:  # noqa: ANN401  # a number of the sum's type
        if wide and addend.floating is not None:
            return np.float64(addend.floating)
        bits = addend.literal & (0xFFFF_FFFF_FFFF_FFFF if wide else 0xFFFF_FFFF)
        return np.array(bits, np.uint64 if wide else np.uint32).view(dtype)[()]

    literal = constant() if addend.file is File.LITERAL else None

    def given(wave: Wave) -> Any:  # noqa: ANN401
        if literal is not None:
            return literal
        held = wave.v[rows]
        return np.ascontiguousarray(held.T).view(dtype).T if wide else held.view(dtype)

    def total(wave: Wave, product: Values) -> Any:  # noqa: ANN401
        spread, more = product[places], given(wave)
        if dtype.kind == "i":
            return (spread.astype(np.int64) + more).astype(np.uint32)
        sums = spread + np.float64(-1.0 if negate else 1.0) * more
        if wide:
            return np.ascontiguousarray(sums.T).view(np.uint32).T
        return sums.astype(np.float32).view(np.uint32)

    return total
