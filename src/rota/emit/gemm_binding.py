"""What a GEMM's ops stand for: takes a schedule and a tile, gives each op's machine instructions with coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.compiler.compiled import CompiledSchedule
from rota.declare.effects import Action
from rota.declare.values import Home, LoopSpec
from rota.declare.vocabulary import CHANNEL_A, CHANNEL_B
from rota.emit.gemm_tile import GemmTile, Operand
from rota.errors import EmissionError, Finding
from rota.program.loop import Step


class Dma(NamedTuple):
    """One DMA of all waves: its LDS byte within the operand's buffers, its number among the tile's, and the K-tile."""

    operand: Operand
    lds: int
    number: int
    k_tile: int


class LdsRead(NamedTuple):
    """One LDS read of a piece of a part into a copy of its registers; `lds` is the part's start in the buffers."""

    operand: Operand
    lds: int
    part: int
    piece: int
    copy: int


class Mfma(NamedTuple):
    """One matrix instruction: a step of K for a part of A and a part of B, from given copies of their registers."""

    step: int
    a_part: int
    b_part: int
    a_copy: int
    b_copy: int


Instruction = Dma | LdsRead | Mfma


class _Piece(NamedTuple):
    """What one LDS read brings: a part of the operand, counted over its whole tile, and a piece of that."""

    operand: Operand
    part: int
    piece: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers:
    """How an operand lies in LDS: `stages` copies of a K-tile, each cut into `slices` that are loaded on their own."""

    stages: int
    slices: int


class GemmBinding:
    """Gives the instructions of a step.

    A slice is a run of the tile's rows, and every wave multiplies a run of each slice, so that an op of a slice is the
    same for all waves.
    """

    def __init__(self, compiled: CompiledSchedule, tile: GemmTile) -> None:
        if compiled.loop is None and compiled.config.depth < 2:
            raise _unfit("a single buffer moves K-tiles through registers, for which no kernel is written")
        self.tile = tile
        self._config = compiled.config
        self._names = _Names(compiled.loop, tile) if compiled.loop else None
        self.buffers = self._names.buffers(compiled) if self._names else self._seed_buffers()
        for operand in Operand:
            rows = tile.rows(operand) // self.buffers[operand].slices
            if rows % tile.dma_rows or rows % (tile.across(operand) * tile.side):
                raise _unfit(f"{operand.name}'s slices of {rows} rows are not whole DMAs, or not whole parts")
        if compiled.lds_bytes is not None and compiled.lds_bytes != self.lds_bytes:
            raise _unfit(f"the schedule takes {compiled.lds_bytes} bytes of LDS, this geometry {self.lds_bytes}")

    @property
    def lds_bytes(self) -> int:
        """LDS of all buffers."""
        return sum(self.buffer_bytes(operand) for operand in Operand)

    @property
    def copies(self) -> int:
        """The most copies that any register value has."""
        return self._names.register_copies if self._names else 1

    def buffer_bytes(self, operand: Operand) -> int:
        """LDS of one operand."""
        return self.buffers[operand].stages * self.tile.tile_bytes(operand)

    def parts(self, operand: Operand) -> int:
        """Parts of one wave."""
        return self.tile.own_rows(operand) // self.tile.side

    def first_row(self, operand: Operand, part: int) -> int:
        """Where a part begins in the workgroup's tile, for the first wave."""
        own = self.parts(operand) // self.buffers[operand].slices
        return part // own * self._slice_rows(operand) + part % own * self.tile.side

    def wave_rows(self, operand: Operand) -> int:
        """How many rows further the next wave's parts begin."""
        return self.tile.own_rows(operand) // self.buffers[operand].slices

    def instructions(self, step: Step) -> tuple[Instruction, ...]:
        """What an op stands for, in order; nothing for waits, barriers and fences."""
        action, counted = step.effect.action, step.effect.tokens
        if action is Action.DMA:
            found: tuple[Instruction, ...] = tuple(self._dmas(step))
        elif action is Action.LDS_READ:
            found = tuple(self._reads(step))
        elif action is Action.COMPUTE:
            found = tuple(self._mfmas(step))
            counted = self._names.loop.ops[step.entry.op.subtile].instructions if self._names else len(found)
        else:
            return ()
        if counted != len(found):
            consequence = "its time" if action is Action.COMPUTE else "waits that follow"
            raise EmissionError(
                Finding(
                    code="T202",
                    message=f"{step.entry.op} counts {counted}, but stands for {len(found)} instructions of each wave: "
                    f"{consequence} would be wrong",
                    concerns=(step.concern(),),
                    evidence=(("tokens" if step.effect.tokens else "declared", counted), ("instructions", len(found))),
                    fixes=("give the loop, target or geometry the counts of this tile and number of waves",),
                )
            )
        return found

    def _dmas(self, step: Step) -> list[Instruction]:
        place = step.effect.writes[0]
        if self._names:
            operand, slice_, numbers = self._names.loads(step)
        else:
            operand, slice_ = self._operand(place.channel), place.subtile
            numbers = range(self._slice_rows(operand) // self.tile.dma_rows)
        first = slice_ * (self._slice_rows(operand) // self.tile.dma_rows)
        stage = place.stage * self.tile.tile_bytes(operand)
        bytes_each = self.tile.dma_rows * self.tile.row_bytes
        instance, fetches = step.effect.instance, step.effect.fetches
        k_tile = instance.iteration if instance else fetches or 0
        return [Dma(operand, stage + (first + n) * bytes_each, first + n, k_tile) for n in numbers]

    def _reads(self, step: Step) -> list[Instruction]:
        source, target = step.effect.reads[0], step.effect.writes[0]
        if self._names:
            pieces, copy = self._names.pieces[target.channel], target.stage
        else:
            pieces, copy = self._slice_pieces(self._operand(source.channel), source.subtile), 0
        reads: list[Instruction] = []
        for operand, part, piece in pieces:
            stage = source.stage * self.tile.tile_bytes(operand)
            lds = stage + self.first_row(operand, part) * self.tile.row_bytes
            reads.append(LdsRead(operand, lds, part, piece, copy))
        return reads

    def _mfmas(self, step: Step) -> list[Instruction]:
        held: dict[Operand, dict[tuple[int, int], int]] = {operand: {} for operand in Operand}
        for place in step.effect.reads:
            if self._names:
                pieces, copy = self._names.pieces.get(place.channel, ()), place.stage
            else:
                pieces, copy = self._slice_pieces(self._operand(place.channel), place.subtile), 0
            for operand, part, piece in pieces:
                held[operand][part, piece // self.tile.pieces_per_step] = copy
        a, b = held[Operand.A], held[Operand.B]
        steps = sorted({k for _, k in a})
        if not a or steps != sorted({k for _, k in b}):
            raise _unfit(f"{step.entry.op} doesn't multiply the same steps of A and B")
        a_parts, b_parts = sorted({part for part, _ in a}), sorted({part for part, _ in b})
        return [Mfma(k, m, n, a[m, k], b[n, k]) for k in steps for m in a_parts for n in b_parts]

    def _slice_rows(self, operand: Operand) -> int:
        return self.tile.rows(operand) // self.buffers[operand].slices

    def _slice_pieces(self, operand: Operand, slice_: int) -> Sequence[_Piece]:
        return _pieces_of_slice(self.tile, operand, slice_, self.buffers[operand].slices)

    def _seed_buffers(self) -> dict[Operand, Buffers]:
        config = self._config
        return {
            Operand.A: Buffers(stages=config.depth, slices=config.m_mmas),
            Operand.B: Buffers(stages=config.depth, slices=config.n_mmas),
        }

    @staticmethod
    def _operand(channel: int) -> Operand:
        return {CHANNEL_A: Operand.A, CHANNEL_B: Operand.B}[channel]


class _Names:
    """A loop by values as GEMM: LDS tiles whose names begin with A or B are slices of that operand, in their order."""

    def __init__(self, loop: LoopSpec, tile: GemmTile) -> None:
        self.loop = loop
        self.tile = tile
        self.register_copies = 1
        self.slices: dict[Operand, list[str]] = {operand: [] for operand in Operand}
        for value in loop.values:
            if value.home is Home.LDS:
                if value.name[0] not in Operand.__members__:
                    raise _unfit(f"the LDS tile {value.name} is neither A nor B")
                self.slices[Operand[value.name[0]]].append(value.name)
        if not all(self.slices.values()):
            raise _unfit("a GEMM has LDS tiles of A and of B")
        self.pieces: dict[int, Sequence[_Piece]] = {}
        numbers = {value.name: number for number, value in enumerate(loop.values)}
        for operand, names in self.slices.items():
            for slice_, name in enumerate(names):
                readers = [op for op in loop.ops if any(read.value == name for read in op.reads)]
                pieces = _pieces_of_slice(tile, operand, slice_, len(names))
                if not readers or len(pieces) % len(readers):
                    raise _unfit(f"{len(pieces)} pieces of {name} are not shared evenly by {len(readers)} reads")
                share = len(pieces) // len(readers)
                for index, reader in enumerate(readers):
                    self.pieces[numbers[reader.writes[0]]] = pieces[index * share : (index + 1) * share]

    def buffers(self, compiled: CompiledSchedule) -> dict[Operand, Buffers]:
        """Copies of the tiles, which are the same for all slices of an operand."""
        copies = dict(compiled.placement.copies if compiled.placement else ())
        homes = {value.name: value.home for value in self.loop.values}
        self.register_copies = max(
            (count for name, count in copies.items() if homes[name] is Home.REGISTERS), default=1
        )
        found: dict[Operand, Buffers] = {}
        for operand, names in self.slices.items():
            stages = {copies.get(name, 1) for name in names}
            if len(stages) > 1:
                raise _unfit(f"the slices of {operand.name} have different numbers of copies: {sorted(stages)}")
            found[operand] = Buffers(stages=stages.pop(), slices=len(names))
        return found

    def loads(self, step: Step) -> tuple[Operand, int, range]:
        """The slice that a load fills, and which of its DMAs."""
        name = self.loop.values[step.effect.writes[0].channel].name
        operand = Operand[name[0]]
        writers = self.loop.writers(name)
        index = next(number for number, op in enumerate(writers) if op.name == step.entry.op.label)
        rows = self.tile.rows(operand) // len(self.slices[operand])
        share = rows // self.tile.dma_rows // len(writers)
        return operand, self.slices[operand].index(name), range(index * share, (index + 1) * share)


def _pieces_of_slice(tile: GemmTile, operand: Operand, slice_: int, slices: int) -> Sequence[_Piece]:
    parts = tile.own_rows(operand) // tile.side // slices
    pieces = tile.steps * tile.pieces_per_step
    return [
        _Piece(operand, part, piece) for part in range(slice_ * parts, (slice_ + 1) * parts) for piece in range(pieces)
    ]


def _unfit(message: str) -> EmissionError:
    return EmissionError(Finding(code="T203", message=message))
