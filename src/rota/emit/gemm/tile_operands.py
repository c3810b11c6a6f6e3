"""The operands of a sum over K-tiles: takes a program and a tile, gives which rows of A and B its places hold.

LDS tiles and fragments are named A and B.  The parts of an LDS tile are slices of its rows; a fragment's copies are the
slices that it was read from.  Scales of blocks are channels of their own, A_scale and B_scale, loaded a K-tile at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota.emit.gemm.gemm_factors import ColumnPair, Factor, Piece
from rota.emit.gemm.gemm_operands import Buffers
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.refusal import no_product, unfit
from rota.program.effects import Place, Space
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.loop_spec import SCALE_OPERANDS
from rota.program.lowered import LoweredProgram, TileSum

_KNOBS = {OpKind.DMA: "vm_per_load", OpKind.LDS_READ: "lgkm_per_load"}
_SCALED = dict(zip(SCALE_OPERANDS, Factor, strict=True))


class TileOperands:
    """Slices of A by the grid's rows, of B by its columns, in as many stages as are read."""

    copies = 1

    def __init__(self, program: LoweredProgram, semantics: TileSum, tile: GemmTile) -> None:
        self.tile = tile
        self.grid = semantics.grid
        if tile.block_sums:
            raise unfit("a sum over K-tiles has no sums of blocks: such a loop is declared by values")
        if tile.pairs:
            raise unfit(
                "a sum over K-tiles has no vector ops: a loop that turns pairs of columns is declared by values"
            )
        if tile.has_scales:
            _check_scales(semantics)
        read = (place for entry in program.entries for place in entry.effect.reads if place.space is Space.LDS)
        self.stages = 1 + max((place.copy for place in read), default=0)
        self.scale_stages: Mapping[Factor, int] = dict.fromkeys(Factor, self.stages) if tile.has_scales else {}
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

    def scale_loads(self, entry: Entry) -> tuple[Factor, range] | None:
        """Which DMAs a load of scales is: all that bring its operand's; None for other loads."""
        scaled = self._scaled(entry.effect.writes[0])
        if scaled is None:
            return None
        operand, slices = scaled
        if len(entry.effect.writes) < slices:
            raise unfit(
                f"{entry.op} brings the scales of {len(entry.effect.writes)} of {slices} slices of {operand.name}; one "
                "load brings those of a K-tile",
                concerns=[entry.concern()],
                fixes=(f'ChannelSpec(name="{operand.name}_scale", whole_tile=True, ...)',),
            )
        return operand, range(self.tile.scale_loads(operand))

    def scale_parts(self, place: Place) -> tuple[Factor, Sequence[int]] | None:
        """The parts whose scales a place in registers holds; None where it holds something else."""
        scaled = self._scaled(place)
        if scaled is None:
            return None
        operand, slices = scaled
        own = self.tile.parts(operand) // slices
        return operand, range(place.copy * own, (place.copy + 1) * own)

    def sums(self, place: Place) -> None:
        """A sum over K-tiles has no other sums."""

    def fix(self, entry: Entry, due: int) -> str:
        """How an op is declared as so many instructions."""
        place = (*entry.effect.reads, *entry.effect.writes)[0]
        if self._scaled(place) is not None:
            return f"{_KNOBS[entry.op.kind]}={due} in {place.name}'s ChannelSpec, if the op has no cost of its own"
        knob = f"{_KNOBS[entry.op.kind]}_{self._operand(entry, place).value}"
        return f"{knob}={due} in the pipeline config, if the op has no cost of its own"

    def _scaled(self, place: Place) -> tuple[Factor, int] | None:
        """The operand whose scales a place holds, and its slices; None where it holds something else."""
        operand = _SCALED.get(place.name) if self.tile.has_scales else None
        return None if operand is None else (operand, self.buffers[operand].slices)

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


def _check_scales(semantics: TileSum) -> None:
    """Every product has the scales of its own rows of A and of its own columns of B, and nothing else."""
    for product in semantics.products:
        a, b, *further = product.operands
        due = {(name, factor.copy) for name, factor in zip(SCALE_OPERANDS, (a, b), strict=True)}
        if {(place.name, place.copy) for place in further} != due or len(further) != len(due):
            raise no_product(
                f"{product.accumulator} multiplies {a} and {b} with {', '.join(map(str, further))}; the scales of "
                "their blocks are due",
                evidence=(("due", ", ".join(f"{name}[{copy}]" for name, copy in sorted(due))),),
                fixes=tuple(
                    f'ChannelSpec(name="{name}", match_field={field}, whole_tile=True, ...)'
                    for field, name in enumerate(SCALE_OPERANDS)
                ),
            )
