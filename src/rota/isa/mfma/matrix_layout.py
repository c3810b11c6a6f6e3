"""Where matrix elements lie in lanes: takes a form, gives functions from a lane's elements to matrices, and back.

AMD CDNA3 ISA, "Matrix Arithmetic Instructions", and AMD's matrix instruction calculator.  With M rows, B blocks and G
groups of lanes, M * B * G = 64: lane i + M * (b + B * g) holds of row i of block b the g-th part of K.  8-bit and 6-bit
factors of f8f6f4 instructions come in two parts of 16 elements, G * 16 apart (AMD, matrix core programming on CDNA3 and
CDNA4).  Lane j of a result holds column j mod N; its rows are those of `result_places`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rota.isa.binary.kernel_facts import LANES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.mfma.formats import Values
    from rota.targets.matrix_forms import MatrixForm

_PART = 16
_BLOCK_OF_SCALE = 32  # elements of K that share a scale


def factor(elements: Values, side: int, blocks: int, *, split: bool = False) -> Values:
    """A factor as blocks by rows by K, from its elements by lanes; `split` where they come in two parts."""
    count, groups = len(elements), LANES // (side * blocks)
    if split:
        parts = elements.reshape(count // _PART, _PART, groups, blocks, side)
        return parts.transpose(3, 4, 0, 2, 1).reshape(blocks, side, groups * count)
    whole = elements.reshape(count, groups, blocks, side)
    return whole.transpose(2, 3, 1, 0).reshape(blocks, side, groups * count)


def scales(values: Values, side: int) -> Values:
    """Scales as rows by K, from one a lane: lane i + M * g has that of row i and the g-th 32 elements of K."""
    return values.reshape(LANES // side, side).T.repeat(_BLOCK_OF_SCALE, axis=1)


def decompressed(elements: Values, index: NDArray[np.uint32], start: int) -> Values:
    """All elements of K from two of four: two bits of the index, from bit `start` on, say where each belongs."""
    count = len(elements)
    whole = np.zeros((2 * count, LANES))
    lanes = np.arange(LANES)
    for item in range(count):
        place = (index >> np.uint32(start + 2 * item) & np.uint32(3)).astype(np.int64)
        whole[4 * (item // 2) + place, lanes] += elements[item]
    return whole


def broadcast(blocks: int, cbsz: int, abid: int) -> NDArray[np.int64]:
    """Which block of A each block uses: of every 2 ** cbsz the one that abid names."""
    number = np.arange(blocks)
    return (number & -(1 << cbsz)) + (abid if cbsz else 0)


def lane_pattern(blgp: int) -> NDArray[np.int64]:
    """Which lane's part of B each lane uses."""
    lane = np.arange(LANES)
    patterns = {0: lane, 1: lane % 32, 2: lane % 32 + 32, 3: (lane + 16) % LANES}
    return patterns.get(blgp, lane % 16 + 16 * (blgp - 4))


def result_places(form: MatrixForm) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Block, row and column that each item of a lane's result holds: items by lanes."""
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
    shape = (count, LANES)
    return (
        np.broadcast_to(block, shape).copy(),
        np.broadcast_to(rows, shape).copy(),
        np.broadcast_to(lane % form.columns, shape).copy(),
    )
