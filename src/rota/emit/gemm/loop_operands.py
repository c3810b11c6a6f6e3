"""The operands of a loop by values: takes a program and a tile, gives which rows of A and B its values hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rota.emit.gemm.block_sum_loop import SumParts
from rota.emit.gemm.gemm_factors import ColumnPair, Factor, Piece
from rota.emit.gemm.gemm_loop import GemmLoop
from rota.emit.gemm.gemm_operands import Buffers
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.gemm.k_tiles import stated_k_tile
from rota.emit.refusal import unfit
from rota.program.effects import Place, Space
from rota.program.entry import Entry
from rota.program.loop_spec import LoopSpec
from rota.program.lowered import LoweredProgram


class LoopOperands:
    """A GEMM's loop, with the copies that its values have in a program."""

    def __init__(self, program: LoweredProgram, loop: LoopSpec, tile: GemmTile) -> None:
        self.gemm = GemmLoop(loop, tile)
        self.ops = {op.name: op for op in loop.ops}
        self.counts = dict(_copies(program))
        self.copies = max(count for (space, _), count in self.counts.items() if space is Space.REGISTER)
        self.buffers: Mapping[Factor, Buffers] = dict(self._buffers())

    def loads(self, entry: Entry) -> tuple[Factor, range]:
        """Which DMAs a load is, of all that bring its operand's tile."""
        return self.gemm.loads(self.ops[entry.op.name])

    @property
    def scale_stages(self) -> Mapping[Factor, int]:
        """Copies in LDS of the scales of each operand; nothing where there are none."""
        return {operand: self.counts[Space.LDS, name] for name, operand in self.gemm.scales.tiles.items()}

    def scale_loads(self, entry: Entry) -> tuple[Factor, range] | None:
        """Which DMAs a load of scales is, of all that bring its operand's; None for other loads."""
        op = self.ops[entry.op.name]
        return self.gemm.scales.loads(op) if op.writes[0] in self.gemm.scales.tiles else None

    def scale_parts(self, place: Place) -> tuple[Factor, Sequence[int]] | None:
        """The parts whose scales a place in registers holds; None where it holds something else."""
        return self.gemm.scales.parts.get(place.name)

    def sums(self, place: Place) -> SumParts | None:
        """The parts of A and B whose products a place in registers sums; None where it holds something else."""
        return self.gemm.sums.get(place.name)

    def k_tile(self, entry: Entry) -> int:
        """The K-tile that a load fetches, counted from the trip's k."""
        return stated_k_tile(entry)

    def pieces(self, entry: Entry, place: Place) -> Sequence[Piece]:
        """What a place in registers holds."""
        return self.gemm.pieces[place.name]

    def pairs(self, place: Place) -> Sequence[ColumnPair]:
        """What a place in registers holds of B in pairs of columns; nothing where it holds something else."""
        return self.gemm.pairs.reads.get(place.name, ())

    def copy(self, place: Place) -> int:
        """Which copy of its pieces' registers a place is."""
        return place.copy

    def fix(self, entry: Entry, due: int) -> str:
        """How an op is declared as so many instructions."""
        return f"instructions={due}"

    def _buffers(self) -> Iterator[tuple[Factor, Buffers]]:
        """Copies of the tiles, which are the same for all slices of an operand."""
        for operand, names in self.gemm.slices.items():
            counts = {name: self.counts[Space.LDS, name] for name in names}
            if len(set(counts.values())) > 1:
                raise unfit(
                    f"the slices of {operand.name} have different numbers of copies in LDS; the full form rotates all "
                    "slices of an operand together",
                    evidence=tuple(counts.items()),
                )
            yield operand, Buffers(stages=counts[names[0]], slices=len(names))


def _copies(program: LoweredProgram) -> Iterator[tuple[tuple[Space, str], int]]:
    """How many copies each value has: as many as are written."""
    counts: dict[tuple[Space, str], int] = {}
    for entry in program.entries:
        for place in entry.effect.writes:
            key = place.space, place.name
            counts[key] = max(counts.get(key, 0), place.copy + 1)
    yield from counts.items()
