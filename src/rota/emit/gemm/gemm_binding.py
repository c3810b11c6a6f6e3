"""What a GEMM's ops stand for: takes a program and a tile, gives each op's machine instructions with coordinates."""

from __future__ import annotations

from collections.abc import Iterator

from rota.emit.gemm.column_panels import column_panels
from rota.emit.gemm.gemm_factors import ColumnPair, Element, Factor, Piece
from rota.emit.gemm.gemm_instructions import (
    BoundInstruction,
    Dma,
    LdsRead,
    Mfma,
    PairRead,
    ScaleDma,
    ScaleRead,
    block_adds,
)
from rota.emit.gemm.gemm_semantics import check_semantics
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.gemm.pair_loop import packs_of
from rota.emit.gemm.program_form import form_of
from rota.emit.refusal import miscounted, no_gemm_op, unfit
from rota.errors import EmissionError
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable


class GemmBinding:
    """Gives the instructions of an entry.

    A slice is a run of the tile's rows, and every wave multiplies a run of each slice, so that an op of a slice is the
    same for all waves.  `states_addresses` is whether the source itself writes where in LDS a DMA puts its bytes.
    """

    states_addresses = True

    def __init__(self, compiled: Lowerable, tile: GemmTile) -> None:
        """What computes anything but C = A x B^T is refused."""
        program = compiled.lowered
        self.tile = tile
        self._operands = form_of(program).operands(tile)
        self.buffers = self._operands.buffers
        self.scale_stages = self._operands.scale_stages
        reads = (OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED)
        self._makers = {OpKind.DMA: self._dmas, OpKind.MMA: self._mfmas, **dict.fromkeys(reads, self._reads)}
        if tile.block_sums:
            self._makers[OpKind.VALU] = self._adds
        if tile.pairs:
            self._makers[OpKind.VALU] = self._packs
        for entry in program.entries:
            if not entry.op.is_framework and entry.op.kind not in self._makers:
                raise no_gemm_op(entry.op, entry.op.kind, entry.concern())
        for operand in Factor:
            tile.slice_rows(operand, self.buffers[operand].slices)
        if program.lds_bytes is not None and program.lds_bytes != self.lds_bytes:
            raise unfit(
                f"the schedule takes {program.lds_bytes} bytes of LDS, the tiles of this geometry {self.lds_bytes}",
                evidence=(("the schedule", program.lds_bytes), ("this geometry", self.lds_bytes)),
                fixes=("give the geometry that the schedule was made for",),
            )
        check_semantics(self, program)

    def matrix_instruction(self, step: int) -> tuple[str, ...]:
        """What multiplies a step of K, and its modifiers."""
        return self.tile.instruction, *self.tile.modifiers(step)

    @property
    def lds_bytes(self) -> int:
        """LDS of all buffers."""
        scales = sum(stages * self.tile.scale_bytes(operand) for operand, stages in self.scale_stages.items())
        return sum(self.buffer_bytes(operand) for operand in Factor) + scales

    @property
    def copies(self) -> int:
        """The most copies that any register value has."""
        return self._operands.copies

    def buffer_bytes(self, operand: Factor) -> int:
        """LDS of one operand."""
        return self.buffers[operand].stages * self.tile.tile_bytes(operand)

    def scale_start(self, operand: Factor) -> int:
        """Where an operand's scales begin in LDS: behind both operands, A's first."""
        first = sum(self.buffer_bytes(each) for each in Factor)
        before = self.scale_stages[Factor.A] * self.tile.scale_bytes(Factor.A) if operand is Factor.B else 0
        return first + before

    def parts(self, operand: Factor) -> int:
        """Parts of one wave."""
        return self.tile.parts(operand)

    def first_row(self, operand: Factor, part: int) -> int:
        """Where a part begins in the workgroup's tile, for the first wave."""
        slices = self.buffers[operand].slices
        own = self.parts(operand) // slices
        return part // own * (self.tile.rows(operand) // slices) + part % own * self.tile.side

    def wave_rows(self, operand: Factor) -> int:
        """How many rows further the next wave's parts begin."""
        return self.tile.own_rows(operand) // self.buffers[operand].slices

    def column(self, part: int) -> int:
        """The first column of a part of C, for the first wave; the others are a `column_step` apart."""
        return self.first_row(Factor.B, part - part % self.column_step) + part % self.column_step

    @property
    def column_step(self) -> int:
        """The columns of two parts take turns where B is read in pairs of them."""
        return 2 if self.tile.pairs else 1

    def lane(self, read: Piece) -> int:
        """Which of an operand's lane addresses a piece is read through: one for each piece, or for each part."""
        return read.part if self.tile.by_columns(read.operand) else read.piece

    def read_offset(self, read: Piece) -> int:
        """How far behind that address it lies, in the first buffer."""
        if self.tile.by_columns(read.operand):
            return column_panels(self.tile).offset(read.piece)
        return self.first_row(read.operand, read.part) * self.tile.row_bytes

    def brought_by(self, read: Piece) -> set[int]:
        """The DMAs that bring a piece of all waves, by their numbers among the operand's."""
        operand, tile = read.operand, self.tile
        first = self.first_row(operand, read.part)
        starts = (first + wave * self.wave_rows(operand) for wave in range(tile.across(operand)))
        if tile.by_columns(operand):
            return column_panels(tile).brought_by(read.piece, starts)
        return {row // tile.dma_rows for start in starts for row in range(start, start + tile.side)}

    def read_of(self, pair: ColumnPair) -> Piece:
        """A read of a pair of parts, as one of the first of them: so it is counted, addressed and brought."""
        return Piece(Factor.B, 2 * pair.pair, pair.number)

    def instructions(self, entry: Entry) -> tuple[BoundInstruction, ...]:
        """What an op stands for, in order; nothing for waits, barriers and fences."""
        if entry.op.is_framework:
            return ()
        found = tuple(self._makers[entry.op.kind](entry))
        counted = entry.effect.tokens
        if entry.op.kind.computes:
            counted = entry.op.work.instructions if entry.op.work else len(found)
        if counted != len(found):
            raise self._miscounted(entry, counted, len(found))
        return found

    def _miscounted(self, entry: Entry, counted: int, due: int) -> EmissionError:
        geometry = self.tile.geometry
        wrong = "its time is" if entry.op.kind.computes else "the waits behind it count"
        return miscounted(
            f"{entry.op} is declared as {counted} instructions of each wave, but takes {due} here: {wrong} wrong",
            concerns=[entry.concern()],
            evidence=(
                ("declared", counted),
                ("needed", due),
                ("here", f"a tile of {geometry.BM}x{geometry.BN}x{geometry.BK} by {self.tile.waves} waves"),
            ),
            fixes=[
                self._operands.fix(entry, due),
                "or give the geometry and the waves that the schedule was made for",
            ],
        )

    def _dmas(self, entry: Entry) -> Iterator[BoundInstruction]:
        if (scales := self._operands.scale_loads(entry)) is not None:
            operand, numbers = scales
            stage = entry.effect.writes[0].copy * self.tile.scale_bytes(operand)
            for number in numbers:
                lds = stage + number * self.tile.scale_dma_bytes
                yield ScaleDma(operand, lds, number, self._operands.k_tile(entry))
            return
        operand, numbers = self._operands.loads(entry)
        stage = entry.effect.writes[0].copy * self.tile.tile_bytes(operand)
        bytes_each = self.tile.dma_rows * self.tile.row_bytes
        for number in numbers:
            yield Dma(operand, stage + number * bytes_each, number, self._operands.k_tile(entry))

    def _reads(self, entry: Entry) -> Iterator[BoundInstruction]:
        source, target = entry.effect.reads[0], entry.effect.writes[0]
        if (scales := self._operands.scale_parts(target)) is not None:
            operand, parts = scales
            start = source.copy * self.tile.scale_bytes(operand)
            for part in parts:
                lds = start + self.first_row(operand, part) * self.tile.geometry.scale_line
                yield ScaleRead(operand, lds, part, self._operands.copy(target))
            return
        for pair in self._operands.pairs(target):
            lds = source.copy * self.tile.tile_bytes(Factor.B) + self.read_offset(self.read_of(pair))
            yield PairRead(lds, pair, self._operands.copy(target))
        for read in () if self._operands.pairs(target) else self._operands.pieces(entry, target):
            lds = source.copy * self.tile.tile_bytes(read.operand) + self.read_offset(read)
            yield LdsRead(read.operand, lds, read.part, read.piece, self._operands.copy(target))

    def _packs(self, entry: Entry) -> Iterator[BoundInstruction]:
        operands, target = self._operands, entry.effect.writes[0]
        held = {pair: operands.copy(place) for place in entry.effect.reads for pair in operands.pairs(place)}
        for piece in operands.pieces(entry, target):
            yield from packs_of(self.tile, piece, held, operands.copy(target))

    def _mfmas(self, entry: Entry) -> Iterator[BoundInstruction]:
        held = {
            piece: self._operands.copy(place)
            for place in entry.effect.reads
            if self._operands.scale_parts(place) is None
            for piece in self._operands.pieces(entry, place)
        }
        scales = self._scales(entry)
        sum_copy = self._operands.copy(entry.effect.writes[0]) if self.tile.block_sums else None
        parts = {operand: sorted({each.part for each in held if each.operand is operand}) for operand in Factor}
        per_step = {operand: self.tile.step_pieces(operand) for operand in Factor}
        for k in sorted({each.piece // per_step[each.operand] for each in held}):
            for m in parts[Factor.A]:
                for n in parts[Factor.B]:
                    a, b = (
                        tuple(
                            held[Piece(operand, part, piece)]
                            for piece in range(k * per_step[operand], (k + 1) * per_step[operand])
                        )
                        for operand, part in ((Factor.A, m), (Factor.B, n))
                    )
                    copies = (scales[Factor.A, m], scales[Factor.B, n]) if scales else ()
                    yield Mfma(k, m, n, a, b, copies, sum_copy)

    def _adds(self, entry: Entry) -> Iterator[BoundInstruction]:
        scales = self._scales(entry)
        for place in entry.effect.reads:
            if (parts := self._operands.sums(place)) is None:
                continue
            copy = self._operands.copy(place)
            for m in parts[Factor.A]:
                for n in parts[Factor.B]:
                    yield from block_adds(m, n, copy, (scales[Factor.A, m], scales[Factor.B, n]))

    def _scales(self, entry: Entry) -> dict[tuple[Factor, int], int]:
        """The copy of each part's scales that an op reads."""
        return {
            (scaled[0], part): self._operands.copy(place)
            for place in entry.effect.reads
            if (scaled := self._operands.scale_parts(place)) is not None
            for part in scaled[1]
        }


class InterleavedBinding(GemmBinding):
    """Waves take turns at the parts of a slice: a part of all waves together is one run of rows.

    That is how languages of tiles deal them out: an op on such a run is one instruction of every wave.  Addresses are
    the compiler's.
    """

    states_addresses = False

    def matrix_instruction(self, step: int) -> tuple[str, ...]:
        """Of fp8 with scales, which are 1."""
        del step
        if self.tile.element is Element.FP8:
            return self.tile.instruction.replace("v_mfma_", "v_mfma_scale_"), "op_sel_hi:[0,0,0]"
        return (self.tile.instruction,)

    def first_row(self, operand: Factor, part: int) -> int:
        """Where a part begins in the workgroup's tile, for the first wave."""
        slices = self.buffers[operand].slices
        slice_, own = divmod(part, self.parts(operand) // slices)
        return slice_ * (self.tile.rows(operand) // slices) + own * self.tile.across(operand) * self.tile.side

    def wave_rows(self, operand: Factor) -> int:
        """How many rows further the next wave's parts begin: it is its turn."""
        del operand
        return self.tile.side
