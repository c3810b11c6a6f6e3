"""Is a loop by values C = A x B^T: takes a loop and its tile, computes what it declares, and compares.

An oracle of its own: it knows nothing of how emission binds ops.  Every row of a piece of A and B (of which two stand
for all 16, and one element for all of a step of K) is one large whole number, so that products of the wrong pieces, or
none, or two, or transposed ones, give another C.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rota.kernels.gemm import GemmShape
from rota.pipeline.geometry import KernelGeometry
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value

TILES = 3  # K-tiles that are computed, so that a value of the iteration before differs
ROWS = DEPTH = 64
GEOMETRY = KernelGeometry(BM=ROWS, BN=ROWS, BK=DEPTH)
SHAPE = GemmShape(name="drawn", instruction="v_mfma_f32_16x16x32_bf16", mma=(16, 32), rows=ROWS, columns=ROWS, waves=4)
PARTS, STEPS, LINES = 2, 2, 2  # of one wave, each way, and along K; rows that stand for those of a part
TILE_BYTES, DMA_BYTES = ROWS * DEPTH * 2, 16 * 64 * 4
PIECE_REGISTERS = BLOCK_REGISTERS = 4

Held = Mapping[tuple[int, int], int]  # by row and step


class WrongError(Exception):
    """The loop is no GEMM."""


@dataclass(frozen=True)
class Factor:
    """One side of a product: its rows, its steps, and the numbers."""

    rows: tuple[int, ...]
    steps: tuple[int, ...]
    numbers: Held


def is_gemm(loop: LoopSpec) -> bool:
    """Does the loop add A_t x B_t^T, over all K-tiles t, to accumulators that are C?"""
    try:
        return _computes_c(loop)
    except WrongError:
        return False


def _computes_c(loop: LoopSpec) -> bool:
    draw = random.Random(7)  # numbers, not secrets
    sums: dict[str, dict[tuple[int, int], int]] = {}
    places: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    rows = range(PARTS * LINES)
    due: dict[tuple[int, int], int] = dict.fromkeys(((m, n) for m in rows for n in rows), 0)
    history: list[Mapping[str, Held]] = []
    for _ in range(TILES):
        whole = {name: {(row, step): draw.getrandbits(60) for row in rows for step in range(STEPS)} for name in "AB"}
        for m, n in due:
            due[m, n] += sum(whole["A"][m, k] * whole["B"][n, k] for k in range(STEPS))
        history.append(_read(loop, whole))
        for op in loop.ops:
            if op.kind is OpKind.MMA:
                _multiply(loop, op, history, sums, places)
            elif op.kind not in (OpKind.DMA, OpKind.LDS_READ):
                raise WrongError
    found: dict[tuple[int, int], int] = {}
    for name, blocks in sums.items():
        down, across = places[name]
        for i, j in blocks:
            if (down[i], across[j]) in found:
                return False
            found[down[i], across[j]] = blocks[i, j]
    return found == due


def _read(loop: LoopSpec, whole: Mapping[str, Held]) -> Mapping[str, Held]:
    """What the registers hold after the loads and reads of one iteration."""
    tiles: dict[str, list[dict[tuple[int, int], int]]] = {}
    if not all(value.operand for value in loop.values if value.home is Home.LDS):
        raise WrongError
    for operand in "AB":
        names = [value.name for value in loop.values if value.home is Home.LDS and value.operand == operand]
        pieces = [
            {(part * LINES + line, step): whole[operand][part * LINES + line, step] for line in range(LINES)}
            for part in range(PARTS)
            for step in range(STEPS)
        ]
        if not names or len(pieces) % len(names):
            raise WrongError
        share = len(pieces) // len(names)
        for number, name in enumerate(names):
            brought = sum(op.instructions for op in loop.writers(name))
            moved = sum(op.moved for op in loop.writers(name))
            size = TILE_BYTES // len(names)
            if not brought * DMA_BYTES == moved == size == loop.value(name).size:
                raise WrongError
            tiles[name] = pieces[number * share : (number + 1) * share]
    held: dict[str, Held] = {}
    for op in loop.ops:
        if op.kind is OpKind.LDS_READ:
            (read,), (value,) = op.reads, op.writes
            if read.distance or read.value not in tiles or loop.value(value).size != PIECE_REGISTERS * op.instructions:
                raise WrongError
            source = tiles[read.value]
            if len(source) < op.instructions:
                raise WrongError
            held[value] = {place: number for piece in source[: op.instructions] for place, number in piece.items()}
            tiles[read.value] = source[op.instructions :]
    if any(tiles.values()):
        raise WrongError  # a piece that nothing reads is never multiplied
    return held


def _multiply(
    loop: LoopSpec,
    op: LoopOp,
    history: Sequence[Mapping[str, Held]],
    sums: dict[str, dict[tuple[int, int], int]],
    places: dict[str, tuple[tuple[int, ...], tuple[int, ...]]],
) -> None:
    half = len(op.reads) // 2
    if op.inputs or len(op.reads) % 2 or len(op.writes) != 1 or not half:
        raise WrongError
    left, right = (_factor(reads, history) for reads in (op.reads[:half], op.reads[half:]))
    (name,) = op.writes
    if left.steps != right.steps or loop.value(name).home is not Home.ACCUMULATOR:
        raise WrongError
    count = len(left.rows) * len(right.rows) // LINES**2
    if op.instructions != count * len(left.steps) or loop.value(name).size != count * BLOCK_REGISTERS:
        raise WrongError
    down, across = places.setdefault(name, (left.rows, right.rows))
    if (len(down), len(across)) != (len(left.rows), len(right.rows)):
        raise WrongError
    block = sums.setdefault(name, {})
    for i, m in enumerate(left.rows):
        for j, n in enumerate(right.rows):
            product = sum(left.numbers[m, k] * right.numbers[n, k] for k in left.steps)
            block[i, j] = block.get((i, j), 0) + product


def _factor(reads: Sequence[Read], history: Sequence[Mapping[str, Held]]) -> Factor:
    numbers: dict[tuple[int, int], int] = {}
    for read in reads:
        if len(history) <= read.distance or read.value not in history[-1 - read.distance]:
            raise WrongError
        held = history[-1 - read.distance][read.value]
        if numbers.keys() & held.keys():
            raise WrongError
        numbers |= held
    rows, steps = (tuple(sorted({key[axis] for key in numbers})) for axis in (0, 1))
    if len(numbers) != len(rows) * len(steps):
        raise WrongError
    return Factor(rows, steps, numbers)


Edit = tuple[str, LoopSpec]


def edited(loop: LoopSpec, draw: random.Random) -> Edit:
    """The loop after one drawn edit, and what was done; a loop that can't be declared ends in a `RotaError`."""
    name, edit = draw.choice(list(_EDITS.items()))
    return name, edit(loop, draw)


def _of(loop: LoopSpec, kind: OpKind, draw: random.Random) -> LoopOp:
    return draw.choice([op for op in loop.ops if op.kind is kind])


def _changed(loop: LoopSpec, op: LoopOp, to: LoopOp) -> LoopSpec:
    return _with_ops(loop, [to if each is op else each for each in loop.ops])


def _with_ops(loop: LoopSpec, ops: Sequence[LoopOp]) -> LoopSpec:
    """Accumulators that nothing writes any more are not declared either."""
    written = {name for op in ops for name in op.writes}
    values = [value for value in loop.values if value.home is not Home.ACCUMULATOR or value.name in written]
    return replace(loop, values=tuple(values), ops=tuple(ops))


def _drop(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    gone = draw.choice(loop.ops)
    if gone.kind is not OpKind.LDS_READ:
        return _with_ops(loop, [op for op in loop.ops if op is not gone])
    ops = [
        replace(op, reads=tuple(read for read in op.reads if read.value not in gone.writes))
        for op in loop.ops
        if op is not gone
    ]
    values = tuple(value for value in loop.values if value.name not in gone.writes)
    return replace(loop, values=values, ops=tuple(ops))


def _twice(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    op = draw.choice([op for op in loop.ops if op.kind is not OpKind.LDS_READ])
    return replace(loop, ops=(*loop.ops, replace(op, name="again")))


def _twice_elsewhere(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    op = _of(loop, OpKind.MMA, draw)
    more = replace(loop.value(op.writes[0]), name="more")
    return replace(loop, values=(*loop.values, more), ops=(*loop.ops, replace(op, name="again", writes=("more",))))


def _other_operand(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    op, other = _of(loop, OpKind.MMA, draw), _of(loop, OpKind.LDS_READ, draw)
    reads = list(op.reads)
    reads[draw.randrange(len(reads))] = Read(value=other.writes[0])
    return _changed(loop, op, replace(op, reads=tuple(reads)))


def _other_tile(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    op, other = _of(loop, OpKind.LDS_READ, draw), _of(loop, OpKind.DMA, draw)
    return _changed(loop, op, replace(op, reads=(Read(value=other.writes[0]),)))


def _other_sum(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    op, other = _of(loop, OpKind.MMA, draw), _of(loop, OpKind.MMA, draw)
    return _changed(loop, op, replace(op, writes=other.writes))


def _exchanged_sums(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    """Every op of two accumulators adds to the other one: only names change."""
    one, two = _of(loop, OpKind.MMA, draw).writes, _of(loop, OpKind.MMA, draw).writes
    other = {one: two, two: one}
    return replace(loop, ops=tuple(replace(op, writes=other.get(op.writes, op.writes)) for op in loop.ops))


def _exchanged_operands(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    op = _of(loop, OpKind.MMA, draw)
    return _changed(loop, op, replace(op, reads=op.reads[::-1]))


def _exchanged_ops(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    ops = list(loop.ops)
    one, two = draw.sample(range(len(ops)), 2)
    ops[one], ops[two] = ops[two], ops[one]
    return replace(loop, ops=tuple(ops))


def _exchanged_values(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    values = list(loop.values)
    one, two = draw.sample(range(len(values)), 2)
    values[one], values[two] = values[two], values[one]
    return replace(loop, values=tuple(values))


def _from_before(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    op = draw.choice([op for op in loop.ops if op.reads])
    reads = list(op.reads)
    place = draw.randrange(len(reads))
    reads[place] = replace(reads[place], distance=1)
    return _changed(loop, op, replace(op, reads=tuple(reads)))


def _other_size(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    value = draw.choice(loop.values)
    size = draw.choice((2 * value.size, value.size // 2))
    values = tuple(replace(each, size=size) if each is value else each for each in loop.values)
    return replace(loop, values=values)


def _other_count(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    op = draw.choice(loop.ops)
    return _changed(loop, op, replace(op, instructions=op.instructions + draw.choice((-1, 1))))


def _other_bytes(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    op = _of(loop, OpKind.DMA, draw)
    return _changed(loop, op, replace(op, moved=2 * op.moved))


def _reads_a_sum(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    op, other = _of(loop, OpKind.MMA, draw), _of(loop, OpKind.MMA, draw)
    return _changed(loop, op, replace(op, reads=(*op.reads, Read(value=other.writes[0]))))


def _other_rows(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    """A tile that says that it is the other operand's, or nothing."""
    tile = draw.choice([value for value in loop.values if value.home is Home.LDS])
    said = draw.choice([each for each in ("", "A", "B") if each != tile.operand])
    return replace(loop, values=tuple(replace(each, operand=said) if each is tile else each for each in loop.values))


def _renamed_tile(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    """What a tile is called says nothing."""
    return _with_name(loop, draw.choice([value for value in loop.values if value.home is Home.LDS]).name)


def _vector_op(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    source = _of(loop, OpKind.LDS_READ, draw).writes[0]
    extra = LoopOp(name="scale", kind=OpKind.VALU, reads=(Read(value=source),), writes=("x",))
    return replace(loop, values=(*loop.values, Value(name="x", home=Home.REGISTERS, size=4)), ops=(*loop.ops, extra))


def _renamed(loop: LoopSpec, draw: random.Random) -> LoopSpec:
    return _with_name(loop, draw.choice([value for value in loop.values if value.home is not Home.LDS]).name)


def _with_name(loop: LoopSpec, before: str) -> LoopSpec:
    def name(each: str) -> str:
        return "renamed" if each == before else each

    return replace(
        loop,
        values=tuple(replace(each, name=name(each.name)) for each in loop.values),
        ops=tuple(
            replace(
                op,
                reads=tuple(replace(read, value=name(read.value)) for read in op.reads),
                writes=tuple(map(name, op.writes)),
            )
            for op in loop.ops
        ),
    )


_EDITS = {
    edit.__name__.strip("_"): edit
    for edit in (
        _drop,
        _twice,
        _twice_elsewhere,
        _other_operand,
        _other_tile,
        _other_sum,
        _exchanged_sums,
        _exchanged_operands,
        _exchanged_ops,
        _exchanged_values,
        _from_before,
        _other_size,
        _other_count,
        _other_bytes,
        _reads_a_sum,
        _other_rows,
        _renamed_tile,
        _vector_op,
        _renamed,
    )
}
