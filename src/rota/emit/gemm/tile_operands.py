"""The operands of a sum over K-tiles: takes a program and a tile, gives which rows of A and B its places hold.

LDS tiles and fragments are named A and B.  The parts of an LDS tile are slices of its rows; a fragment's copies are the
slices that it was read from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rota.emit.gemm.gemm_factors import ColumnPair, Factor, Piece
from rota.emit.gemm.gemm_operands import Buffers
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.refusal import no_product, unfit
from rota.program.effects import Place, Space
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram, TileSum

_KNOBS = {OpKind.DMA: "vm_per_load", OpKind.LDS_READ: "lgkm_per_load"}


class TileOperands:
    """Slices of A by the grid's rows, of B by its columns, in as many stages as are read."""

    copies = 1
    scale_stages: Mapping[Factor, int] = MappingProxyType({})

    def __init__(self, program: LoweredProgram, semantics: TileSum, tile: GemmTile) -> None:
        self.tile = tile
        self.grid = semantics.grid
        if tile.has_scales:
            raise unfit("a sum over K-tiles has no scales of blocks: such a loop is declared by values")
        if tile.pairs:
            raise unfit(
                "a sum over K-tiles has no vector ops: a loop that turns pairs of columns is declared by values"
            )
        read = (place for entry in program.entries for place in entry.effect.reads if place.space is Space.LDS)
        self.stages = 1 + max((place.copy for place in read), default=0)
        self.buffers: Mapping[Factor, Buffers] = {
            operand: Buffers(stages=self.stages, slices=slices)
            for operand, slices in zip(Factor, self.grid, strict=True)
        }

    def loads(self, entry: Entry) -> tuple[Factor, range]:
        """Which DMAs a load is, of all that bring its operand's tile."""
        place = entry.effect.writes[0]
        operand = self._operand(entry, place)
        each = self.tile.slice_rows(operand, self.buffers[operand].slices) // self.tile.dma_rows
        return operand, range(place.part * each, (place.part + 1) * each)

    def k_tile(self, entry: Entry) -> int:
        """The K-tile that a load fetches, counted from the trip's k."""
        return entry.effect.fetches or 0

    def pieces(self, entry: Entry, place: Place) -> Sequence[Piece]:
        """What a place in registers holds."""
        operand = self._operand(entry, place)
        return self.tile.slice_pieces(operand, place.copy, self.buffers[operand].slices)

    def pairs(self, place: Place) -> Sequence[ColumnPair]:
        """A sum over K-tiles has no pairs of columns."""
        return ()

    def copy(self, place: Place) -> int:
        """Every slice has registers of its own."""
        return 0

    def scale_loads(self, entry: Entry) -> None:
        """A sum over K-tiles has no scales."""

    def scale_parts(self, place: Place) -> None:
        """A sum over K-tiles has no scales."""

    def sums(self, place: Place) -> None:
        """A sum over K-tiles has no other sums."""

    def fix(self, entry: Entry, due: int) -> str:
        """How an op is declared as so many instructions."""
        place = (*entry.effect.reads, *entry.effect.writes)[0]
        knob = f"{_KNOBS[entry.op.kind]}_{self._operand(entry, place).value}"
        return f"{knob}={due} in the pipeline config, if the op has no cost of its own"

    def _operand(self, entry: Entry, place: Place) -> Factor:
        """The operand, if there is one of that name and it has so many tiles."""
        operand = Factor.__members__.get(place.name)
        rows, columns = self.grid
        stage, piece = (place.copy, place.part) if place.space is Space.LDS else (0, place.copy)
        if operand is None or piece >= self.buffers[operand].slices or stage >= self.stages:
            raise no_product(
                f"{entry.op} works on {place}, which a grid of {rows} x {columns} "
                f"tiles of A and B in {self.stages} stages doesn't have",
                concerns=[entry.concern()],
                evidence=(("rows of tiles (A)", rows), ("columns (B)", columns)),
            )
        return operand
