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


class Matrices(NamedTuple):
    """A and B by [block, K-tile, slice, k] and the accumulators' right values by [row, column].

    A slice is a row of A, or a column of B; the waves that write the tiles share them out.  Behind the K-tiles follow a
    tile of zeros and, last, where GARBAGE points, a tile of NaN.
    """

    a: Floats
    b: Floats
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
    both = np.zeros((2, blocks, tiles + 2, slices, _DEPTH))
    both[:, :, :tiles] = random.integers(-_LARGEST, _LARGEST, (2, blocks, tiles, slices, _DEPTH), endpoint=True)
    both[:, :, -1] = np.nan
    both.flags.writeable = False  # shared by all callers
    a, b = both
    rows, columns = (block[:, :tiles].swapaxes(1, 2).reshape(blocks, slices, -1) for block in (a, b))
    product: dict[Place, Floats] = {}
    for accumulator, operands in asked.products:
        added = rows[operands[0].copy] @ columns[operands[-1].copy].T
        product[accumulator] = product.get(accumulator, np.zeros((slices, slices))) + added
    return Matrices(a, b, product)
