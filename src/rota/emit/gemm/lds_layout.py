"""Where a K-tile's bytes lie in LDS: takes a tile, gives an `LdsLayout` whose reads don't meet in a bank.

A DMA writes LDS in the order of its lanes, so the exchange of chunks is done on the global side: each lane fetches the
chunk that belongs at its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rota.emit.gemm.gemm_tile import GemmTile
from rota.targets.architecture import architecture_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LdsLayout:
    """Rows of `row_bytes`; in row r the chunk c of K lies at place c XOR ((r >> shift) AND mask)."""

    row_bytes: int
    chunk_bytes: int
    shift: int = 0
    mask: int = 0

    @property
    def period(self) -> int:
        """Rows after which the exchange repeats."""
        return (self.mask + 1) << self.shift

    def place(self, row: int, byte: int) -> int:
        """The address of a row's byte of K, from the tile's start."""
        chunk, within = divmod(byte, self.chunk_bytes)
        return row * self.row_bytes + (chunk ^ ((row >> self.shift) & self.mask)) * self.chunk_bytes + within


def bank_conflicts(tile: GemmTile, layout: LdsLayout) -> int:
    """Clocks that bank conflicts add to the LDS reads of one part of the tile, all its pieces together."""
    rule, word = architecture_of(tile.machine).bank_rule(tile.read_bytes), tile.register_bytes
    return sum(
        extra_clocks([address // word for lane in phase for address in addresses[lane]], rule.banks.value)
        for addresses in _reads(tile, layout)
        for phase in rule.phases
    )


def free_layout(tile: GemmTile) -> LdsLayout:
    """The exchange with the fewest conflicts, the simplest of these; none at all, if the plain layout has none."""
    plain = plain_layout(tile)
    chunks = plain.row_bytes // plain.chunk_bytes
    exchanges = [plain]
    mask = 1
    while mask < chunks:
        shift = 0
        while (mask + 1) << shift <= tile.side:  # parts of a tile must repeat the exchange, to be at constant offsets
            exchanges.append(replace(plain, shift=shift, mask=mask))
            shift += 1
        mask = 2 * mask + 1
    return min(exchanges, key=lambda layout: bank_conflicts(tile, layout))


def plain_layout(tile: GemmTile) -> LdsLayout:
    """K in order in every row; a chunk is what one lane reads at once."""
    return LdsLayout(row_bytes=tile.row_bytes, chunk_bytes=tile.read_bytes)


def _reads(tile: GemmTile, layout: LdsLayout) -> Iterator[list[range]]:
    """For each piece of a part, the bytes that every lane reads."""
    for piece in range(tile.steps * tile.pieces_per_step):
        starts = [
            layout.place(lane % tile.side, (piece * tile.lane_groups + lane // tile.side) * tile.read_bytes)
            for lane in range(tile.lanes)
        ]
        yield [range(start, start + tile.read_bytes, tile.register_bytes) for start in starts]


def extra_clocks(words: list[int], banks: int) -> int:
    """A bank serves one address a clock; lanes that want the same one share it."""
    wanted = Counter(word % banks for word in set(words))
    return max(wanted.values()) - 1
