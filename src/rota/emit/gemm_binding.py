"""What a GEMM's ops stand for: takes a schedule and a tile, gives each op's machine instructions with coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rota.compiler.compiled import CompiledSchedule
from rota.declare.effects import Action, Place, Space
from rota.declare.values import Home
from rota.declare.vocabulary import CHANNEL_A, CHANNEL_B
from rota.emit.gemm_instructions import Dma, Instruction, LdsRead, Mfma
from rota.emit.gemm_loop import GemmLoop
from rota.emit.gemm_meaning import check_meaning
from rota.emit.gemm_tile import GemmTile, Operand, Piece
from rota.emit.refusal import miscounted, no_product, unfit
from rota.errors import EmissionError
from rota.program.loop import Step, steps_of

_OPERANDS = {CHANNEL_A: Operand.A, CHANNEL_B: Operand.B}
_KNOBS = {Action.DMA: "vm_per_load", Action.LDS_READ: "lgkm_per_load"}


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
        """What computes anything but C = A x B^T is refused."""
        if compiled.loop is None and compiled.config.depth < 2:
            raise unfit(
                "a single buffer moves K-tiles through registers; the full form writes GEMMs whose loads go to LDS "
                "directly, by DMA"
            )
        self.tile = tile
        self._config = compiled.config
        self._loop = GemmLoop(compiled.loop, tile) if compiled.loop else None
        self._copies: Mapping[str, int] = dict(compiled.placement.copies if compiled.placement else ())
        self.buffers = dict(self._loop_buffers(self._loop)) if self._loop else self._stage_buffers()
        for operand in Operand:
            tile.slice_rows(operand, self.buffers[operand].slices)
        if compiled.lds_bytes is not None and compiled.lds_bytes != self.lds_bytes:
            raise unfit(
                f"the schedule takes {compiled.lds_bytes} bytes of LDS, the tiles of this geometry {self.lds_bytes}",
                evidence=(("the schedule", compiled.lds_bytes), ("this geometry", self.lds_bytes)),
                fixes=("give the geometry that the schedule was made for",),
            )
        check_meaning(self, steps_of(compiled))

    @property
    def lds_bytes(self) -> int:
        """LDS of all buffers."""
        return sum(self.buffer_bytes(operand) for operand in Operand)

    @property
    def copies(self) -> int:
        """The most copies that any register value has."""
        if self._loop is None:
            return 1
        held = [value.name for value in self._loop.loop.values if value.home is Home.REGISTERS]
        return max(self._copies.get(name, 1) for name in held)

    def buffer_bytes(self, operand: Operand) -> int:
        """LDS of one operand."""
        return self.buffers[operand].stages * self.tile.tile_bytes(operand)

    def parts(self, operand: Operand) -> int:
        """Parts of one wave."""
        return self.tile.parts(operand)

    def first_row(self, operand: Operand, part: int) -> int:
        """Where a part begins in the workgroup's tile, for the first wave."""
        own = self.parts(operand) // self.buffers[operand].slices
        return part // own * self._slice_rows(operand) + part % own * self.tile.side

    def wave_rows(self, operand: Operand) -> int:
        """How many rows further the next wave's parts begin."""
        return self.tile.own_rows(operand) // self.buffers[operand].slices

    def instructions(self, step: Step) -> tuple[Instruction, ...]:
        """What an op stands for, in order; nothing for waits, barriers and fences."""
        if step.entry.op.is_framework:
            return ()
        action, counted = step.effect.action, step.effect.tokens
        if action is Action.DMA:
            found: tuple[Instruction, ...] = tuple(self._dmas(step))
        elif action is Action.LDS_READ:
            found = tuple(self._reads(step))
        elif action is Action.COMPUTE:
            found = tuple(self._mfmas(step))
            counted = self._loop.loop.ops[step.entry.op.subtile].instructions if self._loop else len(found)
        else:
            raise unfit(
                f"{step.entry.op} is none of a GEMM's ops, which are loads to LDS, LDS reads and matrix ops",
                concerns=[step.concern()],
                evidence=(("what it does", action.value),),
            )
        if counted != len(found):
            raise self._miscounted(step, counted, len(found))
        return found

    def _miscounted(self, step: Step, counted: int, due: int) -> EmissionError:
        geometry = self.tile.geometry
        if self._loop:
            fix = f"instructions={due}"
        else:
            place = (*step.effect.reads, *step.effect.writes)[0]
            knob = f"{_KNOBS[step.effect.action]}_{self._operand(step, place).value}"
            fix = f"{knob}={due} in the pipeline config, if the op has no cost of its own"
        wrong = "its time is" if step.effect.action is Action.COMPUTE else "the waits behind it count"
        return miscounted(
            f"{step.entry.op} is declared as {counted} instructions of each wave, but takes {due} here: {wrong} wrong",
            concerns=[step.concern()],
            evidence=(
                ("declared", counted),
                ("needed", due),
                ("here", f"a tile of {geometry.BM}x{geometry.BN}x{geometry.BK} by {self.tile.waves} waves"),
            ),
            fixes=[fix, "or give the geometry and the waves that the schedule was made for"],
        )

    def _dmas(self, step: Step) -> Iterator[Instruction]:
        place = step.effect.writes[0]
        if self._loop:
            operand, numbers = self._loop.loads(self._loop.loop.ops[step.entry.op.subtile])
        else:
            operand = self._operand(step, place)
            each = self._slice_rows(operand) // self.tile.dma_rows
            numbers = range(place.subtile * each, (place.subtile + 1) * each)
        stage = place.stage * self.tile.tile_bytes(operand)
        bytes_each = self.tile.dma_rows * self.tile.row_bytes
        instance, fetches = step.effect.instance, step.effect.fetches
        k_tile = instance.iteration if instance else fetches or 0
        for number in numbers:
            yield Dma(operand, stage + number * bytes_each, number, k_tile)

    def _reads(self, step: Step) -> Iterator[Instruction]:
        source, target = step.effect.reads[0], step.effect.writes[0]
        for operand, part, piece in self._pieces(step, target):
            stage = source.stage * self.tile.tile_bytes(operand)
            lds = stage + self.first_row(operand, part) * self.tile.row_bytes
            yield LdsRead(operand, lds, part, piece, self._copy(target))

    def _mfmas(self, step: Step) -> Iterator[Instruction]:
        held = {piece: self._copy(place) for place in step.effect.reads for piece in self._pieces(step, place)}
        parts = {operand: sorted({each.part for each in held if each.operand is operand}) for operand in Operand}
        per_step = self.tile.pieces_per_step
        for k in sorted({each.piece // per_step for each in held}):
            pieces = range(k * per_step, (k + 1) * per_step)
            for m in parts[Operand.A]:
                for n in parts[Operand.B]:
                    a, b = (
                        tuple(held[Piece(operand, part, piece)] for piece in pieces)
                        for operand, part in ((Operand.A, m), (Operand.B, n))
                    )
                    yield Mfma(k, m, n, a, b)

    def _pieces(self, step: Step, place: Place) -> Sequence[Piece]:
        """What a place in registers holds."""
        if self._loop:
            return self._loop.pieces[self._loop.loop.values[place.channel].name]
        operand = self._operand(step, place)
        return self.tile.slice_pieces(operand, place.subtile, self.buffers[operand].slices)

    def _copy(self, place: Place) -> int:
        return place.stage if self._loop else 0

    def _operand(self, step: Step, place: Place) -> Operand:
        """The operand of a body by stages, if it has that channel and so many tiles of it."""
        operand = _OPERANDS.get(place.channel)
        buffers = self.buffers[operand] if operand else Buffers(stages=0, slices=0)
        stages = buffers.stages if place.space is Space.LDS else 1
        if operand is None or place.subtile >= buffers.slices or place.stage >= stages:
            raise no_product(
                f"{step.entry.op} works on {place}, which a grid of {self._config.m_mmas} x {self._config.n_mmas} "
                f"tiles of A and B in {self._config.depth} stages doesn't have",
                concerns=[step.concern()],
                evidence=(("rows of tiles (A)", self._config.m_mmas), ("columns (B)", self._config.n_mmas)),
            )
        return operand

    def _slice_rows(self, operand: Operand) -> int:
        return self.tile.rows(operand) // self.buffers[operand].slices

    def _loop_buffers(self, loop: GemmLoop) -> Iterator[tuple[Operand, Buffers]]:
        """Copies of the tiles, which are the same for all slices of an operand."""
        for operand, names in loop.slices.items():
            counts = {name: self._copies.get(name, 1) for name in names}
            if len(set(counts.values())) > 1:
                raise unfit(
                    f"the slices of {operand.name} have different numbers of copies in LDS; the full form rotates all "
                    "slices of an operand together",
                    evidence=tuple(counts.items()),
                )
            yield operand, Buffers(stages=counts[names[0]], slices=len(names))

    def _stage_buffers(self) -> dict[Operand, Buffers]:
        config = self._config
        return {
            Operand.A: Buffers(stages=config.depth, slices=config.m_mmas),
            Operand.B: Buffers(stages=config.depth, slices=config.n_mmas),
        }
