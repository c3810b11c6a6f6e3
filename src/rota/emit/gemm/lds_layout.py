"""Where a K-tile's bytes lie in LDS, so that reads don't collide in a bank.

A DMA writes LDS in the order of its lanes, so the exchange of chunks happens on the global side: each lane fetches the
chunk that belongs at its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from rota.emit.gemm.gemm_tile import Factor, GemmTile
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

    def exchange(self, chunk: str, row: str, shift: str = "{} >> {}") -> str:
        """The place of a chunk in a row, as source; `shift` is how a language writes a shift within `&`."""
        return f"({chunk} ^ ({shift.format(row, self.shift) if self.shift else row} & {self.mask}))"

    def place(self, row: int, byte: int) -> int:
        chunk, within = divmod(byte, self.chunk_bytes)
        return row * self.row_bytes + (chunk ^ ((row >> self.shift) & self.mask)) * self.chunk_bytes + within


def bank_conflicts(tile: GemmTile, layout: LdsLayout) -> int:
    """Clocks that bank conflicts add to the LDS reads of one part of the tile, all its pieces together."""
    rule, word = architecture_of(tile.machine).bank_rule(tile.read_bytes), tile.register_bytes
    return sum(
        rule.count_turns(address // word for lane in phase for address in addresses[lane]) - 1
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
    for piece in range(tile.steps * tile.pieces_per_step):
        starts = [
            layout.place(lane % tile.side, (piece * tile.lane_groups + lane // tile.side) * tile.read_bytes)
            for lane in range(tile.lanes)
        ]
        yield [range(start, start + tile.read_bytes, tile.register_bytes) for start in starts]


# B as K x N in LDS.
#
# A row of a panel is one k. A transposing read has sixteen lanes work together: each reads a few elements of one k
# that lie side by side, and gets the elements of its own column, of as many k. Where there is no such read, each
# lane reads a pair of columns of one k. So the k that a lane reads and the column that it gets are its own, and
# reads of other k are at constant distances; each part of columns, or pair of parts, has a lane address of its own.
# In a row, chunks of sixteen columns change places by some bits of k, so that lanes don't meet in a bank: a DMA
# writes LDS in the order of its lanes, and each lane fetches the chunk that belongs at its place.

TEAM = 16
"""Lanes that transpose together, and the columns that they get."""
PANELS = 2
"""Of a tile: halves of its columns, which may be loaded on their own, or be of different matrices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPanels:
    """Bit number i of a chunk's place in row k is flipped if bit `exchange[i]` of k is set; -1 leaves it alone."""

    tile: GemmTile
    exchange: tuple[int, ...] = ()

    @property
    def columns(self) -> int:
        return self.tile.geometry.BN // PANELS

    @property
    def row_bytes(self) -> int:
        return self.columns * self.tile.element.bytes

    @property
    def panel_bytes(self) -> int:
        return self.tile.geometry.BK * self.row_bytes

    @property
    def dmas(self) -> int:
        """DMAs of all waves that bring one panel."""
        return self.tile.dmas(Factor.B) // PANELS

    @property
    def dma_rows(self) -> int:
        return self.tile.geometry.BK // self.dmas

    @property
    def chunk_bytes(self) -> int:
        return TEAM * self.tile.element.bytes

    @property
    def chunks(self) -> int:
        return self.row_bytes // self.chunk_bytes

    @property
    def patterns(self) -> int:
        """DMAs until the exchange of chunks repeats."""
        period = 1 << (max(self.exchange, default=-1) + 1)
        return max(1, period // self.dma_rows)

    @property
    def read_bytes(self) -> int:
        return self.tile.register_bytes if self.tile.pairs else self.tile.piece_bytes(Factor.B)

    @property
    def columns_each(self) -> int:
        return self.read_bytes // self.tile.element.bytes

    @property
    def side_by_side(self) -> int:
        """Lanes that read sixteen columns of one k."""
        return TEAM // self.columns_each

    @property
    def reach(self) -> int:
        """So many k a lane gets with one read."""
        return 1 if self.tile.pairs else self.columns_each

    @property
    def step_reads(self) -> int:
        """Reads that bring what a matrix instruction takes, of a part or of a pair of them."""
        tile = self.tile
        return tile.step_pieces(Factor.B) * tile.piece_bytes(Factor.B) // tile.element.bytes // self.reach

    @property
    def run(self) -> int:
        """So many k in a row a lane has of A."""
        return self.tile.read_bytes // self.tile.element.bytes

    def find_flip(self, k: int) -> int:
        return sum((k >> bit & 1) << place for place, bit in enumerate(self.exchange) if bit >= 0)

    def place(self, k: int, column: int) -> int:
        panel, within = divmod(column, self.columns)
        chunk, rest = divmod(within, TEAM)
        start = panel * self.panel_bytes + k * self.row_bytes
        return start + (chunk ^ self.find_flip(k)) * self.chunk_bytes + rest * self.tile.element.bytes

    def piece_k(self, piece: int) -> int:
        """The first k of a read, for the first lanes; as A has it, whose reads are wider."""
        step, number = divmod(piece, self.step_reads)
        wide, narrow = divmod(number * self.reach, self.run)
        return step * self.tile.geometry.MMA_K + wide * self.tile.lane_groups * self.run + narrow

    def lane_k(self, lane: int) -> int:
        """The k that a lane reads of a piece, from its first."""
        within = 0 if self.tile.pairs else lane % TEAM // self.side_by_side
        return lane // self.tile.side * self.run + within

    def lane_column(self, lane: int) -> int:
        """The first column that a lane reads of a part, or of a pair of them."""
        if self.tile.pairs:
            return lane % self.tile.side * self.columns_each
        return lane % self.tile.side // TEAM * TEAM + lane % self.side_by_side * self.reach

    def offset(self, piece: int) -> int:
        return self.piece_k(piece) * self.row_bytes

    def number(self, k: int, column: int) -> int:
        return column // self.columns * self.dmas + k // self.dma_rows

    def find_dmas(self, piece: int, starts: Iterator[int]) -> set[int]:
        """The DMAs that bring a piece of the parts that begin in these columns."""
        first = self.piece_k(piece)
        rows = {first + self.lane_k(lane) for lane in range(self.tile.lanes)}
        return {self.number(k, start) for start in starts for k in rows}

    @property
    def conflicts(self) -> int:
        """Clocks that bank conflicts add to the reads of a part, or pair, served as plain reads of that width are.

        From one piece to the next all lanes move by the same distance, so every piece has as many conflicts.
        """
        tile = self.tile
        width, word = self.read_bytes, tile.register_bytes
        rule = architecture_of(tile.machine).bank_rule(width)
        lanes = range(tile.lanes)
        starts = [
            self.place(k, column)
            for k, column in zip(map(self.lane_k, lanes), map(self.lane_column, lanes), strict=True)
        ]
        lost = 0
        for phase in rule.phases:
            words = (at // word for lane in phase for at in range(starts[lane], starts[lane] + width, word))
            lost += rule.count_turns(words) - 1
        return lost * tile.steps * self.step_reads


@cache
def column_panels(tile: GemmTile) -> ColumnPanels:
    """The exchange with the fewest conflicts, the simplest of these.

    Only bits of k by which lanes differ take part: those by which pieces differ would make their distances depend on
    the lane.
    """
    plain = ColumnPanels(tile=tile)
    varied = 0
    for lane in range(tile.lanes):
        varied |= plain.lane_k(lane)
    bits = [-1, *(bit for bit in range(varied.bit_length()) if varied >> bit & 1)]
    places = range((plain.chunks - 1).bit_length())
    exchanges = [
        replace(plain, exchange=chosen)
        for chosen in sorted(product(bits, repeat=len(places)), key=lambda chosen: sum(bit >= 0 for bit in chosen))
        if all(bit < 0 or chosen.count(bit) == 1 for bit in chosen)
    ]
    free = next((panels for panels in exchanges if panels.conflicts == 0), None)
    return free or min(exchanges, key=lambda panels: panels.conflicts)
