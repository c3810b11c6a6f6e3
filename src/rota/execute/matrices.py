"""The operands and their product: takes a sum over K-tiles, gives A and B in tiles and A @ B in accumulators.

Entries are integers in float64, so every sum is exact and right means equal.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rota.program.effects import Place
from rota.program.lowered import TileSum

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_DEPTH = 2  # elements of K in a tile
_LARGEST = 999  # products of K-tiles stay far below 2**53, up to which float64 counts exactly
_LARGEST_SCALE = 9  # so that scaled ones do, too


class Matrices(NamedTuple):
    """A and B by [block, K-tile, slice, k] and the accumulators' right values by [row, column].

    `scales` are the numbers that further operands hold, by [operand, block, K-tile, slice]; `scaled` says which factor
    each of them multiplies.

    A slice is a row of A, or a column of B; the waves that write the tiles share them out.  Behind the K-tiles follow a
    tile of zeros and, last, where GARBAGE points, a tile of NaN.
    """

    a: Floats
    b: Floats
    scales: Floats
    scaled: tuple[int, ...]
    product: dict[Place, Floats]

    @property
    def nothing(self) -> int:
        """The number of the tile of zeros."""
        tiles: int = self.a.shape[1]
        return tiles - 2


@lru_cache(maxsize=64)
def matrices_of(asked: TileSum, blocks: int, tiles: int, slices: int) -> Matrices:
    """Operands for `blocks` blocks of each operand: rows of A and columns of B, or slices of K.

    An accumulator adds up the products of the blocks that are asked for.  The numbers are always the same ones for the
    same shape.
    """
    import numpy as np

    random = np.random.default_rng(blocks)
    further = len(asked.scales)
    both = np.zeros((2, blocks, tiles + 2, slices, _DEPTH))
    both[:, :, :tiles] = random.integers(-_LARGEST, _LARGEST, (2, blocks, tiles, slices, _DEPTH), endpoint=True)
    both[:, :, -1] = np.nan
    scales = np.ones((further, blocks, tiles + 2, slices))
    scales[:, :, :tiles] = random.integers(1, _LARGEST_SCALE, (further, blocks, tiles, slices), endpoint=True)
    scales[:, :, -1] = np.nan
    both.flags.writeable = scales.flags.writeable = False  # shared by all callers
    product: dict[Place, Floats] = {}
    for accumulator, operands in asked.products:
        first, second = operands[0], operands[min(1, len(operands) - 1)]  # a single operand holds its block of both
        factors = [both[0, first.copy, :tiles], both[1, second.copy, :tiles]]  # by [K-tile, slice, k]
        for number, (factor, operand) in enumerate(zip(asked.scales, operands[2:], strict=True)):
            factors[factor] = factors[factor] * scales[number, operand.copy, :tiles, :, np.newaxis]
        rows, columns = (factor.swapaxes(0, 1).reshape(slices, -1) for factor in factors)
        product[accumulator] = product.get(accumulator, np.zeros((slices, slices))) + rows @ columns.T
    return Matrices(both[0], both[1], scales, asked.scales, product)
