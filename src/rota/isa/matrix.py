"""Matrix instructions (MFMA, SMFMAC), in the register layout of the ISA.

The architecture says which instructions there are (`MatrixForm`). EXEC is ignored, as the ISA says. Sums are formed in
float64 and rounded once to float32, to the nearest even: AMD doesn't publish in which order the hardware adds, and how
it rounds in between (a third party measured it: MMA-Sim, arXiv:2511.10909). Where all products and partial sums fit the
result exactly, as small integers do, there is nothing to round and the result is the machine's; other results are
judged within a bound. Integers wrap around.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.isa.binary.kernel_facts import LANES
from rota.isa.disassembly import Instruction
from rota.isa.matrix_elements import BITS, BY_FIELD, Values, decompress, elements_of, multiply
from rota.isa.opcodes import IsaUnit
from rota.isa.wave.operand import File, Operand, parse_operand, unknown
from rota.isa.wave.wave import Step, Wave, make_step
from rota.isa.wmma import decode_wmma
from rota.targets.architecture import ANY, Architecture, Float8, MatrixForm, Pipe

# Layout (AMD CDNA3 ISA, "Matrix Arithmetic Instructions", and AMD's matrix instruction calculator). With M rows, B
# blocks and G groups of lanes, M * B * G = 64: lane i + M * (b + B * g) holds of row i of block b the g-th part of K.
# 8-bit and 6-bit factors of f8f6f4 instructions come in two parts of 16 elements, G * 16 apart (AMD, matrix core
# programming on CDNA3 and CDNA4). Lane j of a result holds column j mod N; its rows are those of `result_places`.

_PART = 16
_BLOCK_OF_SCALE = 32  # elements of K that share a scale


def factor(elements: Values, side: int, blocks: int, *, split: bool = False) -> Values:
    """A factor as blocks by rows by K, from elements by lanes; `split` if elements come in two parts."""
    count, groups = len(elements), LANES // (side * blocks)
    if split:
        parts = elements.reshape(count // _PART, _PART, groups, blocks, side)
        return parts.transpose(3, 4, 0, 2, 1).reshape(blocks, side, groups * count)
    whole = elements.reshape(count, groups, blocks, side)
    return whole.transpose(2, 3, 1, 0).reshape(blocks, side, groups * count)


def broadcast(blocks: int, cbsz: int, abid: int) -> NDArray[np.int64]:
    """The block of A that each block uses: of every 2 ** cbsz the one that abid names."""
    number = np.arange(blocks)
    return (number & -(1 << cbsz)) + (abid if cbsz else 0)


def result_places(form: MatrixForm) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Block, row and column of each item of a lane's result, items by lanes."""
    count = form.rows * form.columns * form.blocks // LANES
    item, lane = np.arange(count)[:, None], np.arange(LANES)[None]
    group = lane // form.columns
    if form.total == "f64":
        rows, block = (lane // 16, group % 4) if form.rows == 4 else (4 * item + group, 0 * lane)
    elif form.rows == 4:
        rows, block = item, group
    else:
        each = form.rows * form.columns // LANES  # items of a block
        rows = 4 * group + item % 4 + (8 * (item % each // 4) if form.rows == 32 else 0)
        block = item // each
    b, r, c = (np.broadcast_to(each, (count, LANES)).copy() for each in (block, rows, lane % form.columns))
    return b, r, c


_SUMS: dict[str, Any] = {"f32": np.float32, "i32": np.int32, "f64": np.float64}
Product = Callable[["Wave"], Values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    left: str
    right: str
    cbsz: int = 0
    abid: int = 0
    blgp: int = 0
    negate: tuple[bool, bool, bool] = (False, False, False)
    bytes_of_scales: tuple[int, int] = (0, 0)


def decode_matrix(instruction: Instruction, architecture: Architecture) -> Step | None:
    if instruction.spec.unit is not IsaUnit.MATRIX:
        return None
    if (step := decode_wmma(instruction, architecture)) is not None:
        return step
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

    return make_step(instruction, act)


def fields_of(instruction: Instruction, form: MatrixForm) -> Fields:
    """The modifiers; raises I102 for those that the instruction lacks and for illegal values."""
    given = instruction.fields
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
    if form.sparse:
        legal = blgp == 0 and abid < (_index_sets(form) if cbsz == 0 else 1)
    else:
        legal = 1 << cbsz <= form.blocks and abid < 1 << cbsz and (blgp == 0 or (form.permutes and blgp < 8))
        legal = legal and (form.broadcasts or not (cbsz or abid))
    if not legal:
        raise refused
    x, y, z = (bool(bit) for bit in vectors["neg"])
    return Fields(left=form.left, right=form.right, cbsz=cbsz, abid=abid, blgp=blgp, negate=(x, y, z))


def _index_sets(form: MatrixForm) -> int:
    return 32 // (form.rows * form.depth // LANES)


def index_start(form: MatrixForm, fields: Fields) -> int:
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


def _multiplier(form: MatrixForm, fields: Fields, float8: Float8, operands: tuple[Operand, ...]) -> Product:
    a, b = (slice(each.first, each.first + each.count) for each in operands[:2])
    read_a, read_b = elements_of(fields.left, float8), elements_of(fields.right, float8)
    split_a, split_b = (form.left == ANY and BITS[kind] > 4 for kind in (fields.left, fields.right))
    blocks, lane = broadcast(form.blocks, fields.cbsz, fields.abid), np.arange(LANES)
    patterns = {0: lane, 1: lane % 32, 2: lane % 32 + 32, 3: (lane + 16) % LANES}
    lanes = patterns.get(fields.blgp, lane % 16 + 16 * (fields.blgp - 4))
    sign = -1.0 if fields.negate[0] != fields.negate[1] else 1.0
    start = index_start(form, fields)

    def scale(wave: Wave, side: int, size: int) -> Values:
        register, byte = wave.v[operands[2 + side].first], fields.bytes_of_scales[side]
        codes = (register >> np.uint32(8 * byte) & np.uint32(0xFF)).astype(np.int64)
        powers: Values = np.where(codes == 0xFF, np.nan, np.ldexp(1.0, codes - 127))
        return powers.reshape(LANES // size, size).T.repeat(_BLOCK_OF_SCALE, axis=1)

    def product(wave: Wave) -> Values:
        left, right = read_a(wave.v[a]), read_b(wave.v[b])
        if form.sparse:
            left = decompress(left, wave.v[operands[2].first], start)
        if fields.blgp:
            right = right[:, lanes]
        left = factor(left, form.rows, form.blocks, split=split_a)
        right = factor(right, form.columns, form.blocks, split=split_b)
        if fields.cbsz and not form.sparse:
            left = left[blocks]
        if form.scaled:
            left = left * scale(wave, 0, form.rows)
            right = right * scale(wave, 1, form.columns)
        return sign * multiply(left, right)

    return product


def _adder(form: MatrixForm, addend: Operand, *, negate: bool) -> Callable[[Wave, Values], Any]:
    """Brings the product into the layout of the registers, adds srcC and rounds."""
    dtype, places = np.dtype(_SUMS[form.total]), result_places(form)
    rows = slice(addend.first, addend.first + addend.count)
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
