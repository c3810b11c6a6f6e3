"""Where a K-tile's bytes lie in LDS: takes a tile, gives an `LdsLayout` whose reads don't meet in a bank.

A DMA writes LDS in the order of its lanes, so the exchange of chunks is done on the global side: each lane fetches the
chunk that belongs at its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rota.emit.gemm_tile import GemmTile
from rota.targets.machine import GFX942, GFX950, Confidence, Fact
from rota.targets.rates import LANES, REGISTER_BYTES

Phases = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BankRule:
    """How LDS serves one wave's read: the lanes of a phase together, each bank one register's worth a clock."""

    banks: Fact
    phases: Phases
    phases_known: Confidence
    source: str


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


def _groups(first: tuple[tuple[int, ...], ...]) -> Phases:
    return (*first, *(tuple(lane + LANES // 2 for lane in lanes) for lanes in first))


def _runs(length: int) -> Phases:
    return tuple(tuple(range(start, start + length)) for start in range(0, LANES, length))


def _lanes(*starts: int) -> tuple[int, ...]:
    return tuple(lane for start in starts for lane in range(start, start + 4))


_HIPKITTENS = "HipKittens, LDS phase experiments on gfx950"

BANK_RULES: dict[tuple[str, int], BankRule] = {
    (GFX950.arch, 16): BankRule(
        banks=Fact(64, "banks of 4 bytes", Confidence.MEASURED_BY_THIRD_PARTY, _HIPKITTENS),
        phases=_groups((_lanes(0, 12, 20, 24), _lanes(4, 8, 16, 28))),
        phases_known=Confidence.MEASURED_BY_THIRD_PARTY,
        source=_HIPKITTENS,
    ),
    (GFX942.arch, 8): BankRule(
        banks=Fact(32, "banks of 4 bytes", Confidence.DOCUMENTED, "AMD, CDNA3 ISA manual, LDS"),
        phases=_runs(16),
        phases_known=Confidence.ESTIMATE,
        source="128 bytes a clock are 16 lanes of 8 bytes; taken as consecutive ones",
    ),
}
"""By architecture and bytes that a lane reads."""


def bank_conflicts(tile: GemmTile, layout: LdsLayout) -> int:
    """Clocks that bank conflicts add to the LDS reads of one part of the tile, all its pieces together."""
    rule = BANK_RULES[tile.machine.arch, tile.read_bytes]
    return sum(
        _extra_clocks([address for lane in phase for address in addresses[lane]], rule.banks.value)
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
            for lane in range(LANES)
        ]
        yield [range(start, start + tile.read_bytes, REGISTER_BYTES) for start in starts]


def _extra_clocks(addresses: list[int], banks: int) -> int:
    """A bank serves one address a clock; lanes that want the same one share it."""
    wanted = Counter(address // REGISTER_BYTES % banks for address in set(addresses))
    return max(wanted.values()) - 1
