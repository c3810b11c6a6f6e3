"""The plan of a GEMM that every language shares.

Where the bytes of A and B lie in LDS, which lanes fetch them, and what each entry is in machine instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.emission import unfit, with_register_waits
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import BLayout, Dma, Element, Factor, GemmTile, Instruction, LdsRead, Mfma, gemm_tile
from rota.emit.gemm.lds_layout import LdsLayout, bank_conflicts, free_layout, plain_layout
from rota.emit.gemm.program_form import form_of
from rota.emit.text import Reasons, check_words, describe_entry, log2, sync_reasons
from rota.pipeline.geometry import KernelGeometry
from rota.program.entry import Entry
from rota.program.kinds import Phase
from rota.program.lowered import Lowerable, LoweredProgram

Binder = Callable[[Lowerable, GemmTile], GemmBinding]
SPOKEN = {Element.BF16: "bf16", Element.FP16: "fp16", Element.FP8: "fp8 (OCP E4M3)"}
"""What languages other than HIP write."""


class Register(NamedTuple):
    """Where an LDS read puts a piece of a part: one of the copies of its registers."""

    operand: Factor
    copy: int
    part: int
    piece: int

    def __str__(self) -> str:
        return f"{self.operand.value}{self.copy}_{self.part}_{self.piece}"


class Written(NamedTuple):
    """One entry with its instructions (none where it synchronises), and what a comment says of it."""

    entry: Entry
    instructions: tuple[Instruction, ...]
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmPlan:
    """The schedule with all waits planned, its tile on the machine, and what its ops are bound to."""

    compiled: CompiledSchedule
    tile: GemmTile
    binding: GemmBinding
    layout: LdsLayout
    reasons: Reasons = field(repr=False)

    @property
    def program(self) -> LoweredProgram:
        return self.compiled.lowered

    @property
    def symbol(self) -> str:
        return form_of(self.program).symbol

    @property
    def pieces(self) -> int:
        """LDS reads of one part."""
        return self.tile.steps * self.tile.pieces_per_step

    def lane_words(self) -> dict[str, object]:
        """What the templates of languages without layouts of their own say about threads, lanes and rows."""
        tile, across = self.tile, self.tile.across(Factor.B)
        return {
            "threads": tile.waves * tile.lanes,
            "per_simd": -(-tile.waves // tile.simds),
            "lane_mask": tile.lanes - 1,
            "lane_bits": log2(tile.lanes),
            "across_mask": across - 1,
            "across_bits": log2(across),
            "side_mask": tile.side - 1,
            "side_bits": log2(tile.side),
            "depth_bits": log2(tile.geometry.BK),
            "wave_bytes": tile.lanes * tile.dma_bytes,
            "trip": self.program.tiles_per_trip * tile.row_bytes,
            "a_rows": self.binding.wave_rows(Factor.A),
            "b_rows": self.binding.wave_rows(Factor.B),
            "kept": "a" if tile.accumulates_in_agprs else "v",
        }

    @property
    def patterns(self) -> int:
        """DMAs until the exchange of chunks repeats."""
        return max(1, self.layout.period // self.tile.dma_rows)

    def list_written(self, phase: Phase) -> Iterator[Written]:
        for entry in self.program.phase(phase):
            yield Written(entry, self.instructions(entry), describe_entry(self.program, entry, self.reasons))

    def instructions(self, entry: Entry) -> tuple[Instruction, ...]:
        """What an op represents; none are of scales or of pairs of columns, which no plan has."""
        found = self.binding.instructions(entry)
        return tuple(each for each in found if isinstance(each, Dma | LdsRead | Mfma))

    def factor(self, mfma: Mfma, operand: Factor) -> tuple[Register, ...]:
        part, copies = mfma.factor(operand)
        first = mfma.step * self.tile.pieces_per_step
        return tuple(Register(operand, copy, part, first + number) for number, copy in enumerate(copies))

    def find_unused(self) -> tuple[Register, ...]:
        """Registers that the epilogue reads once more than it uses them: a compiler would drop the read."""
        found: dict[Register, None] = {}
        for entry in self.program.epilogue:
            for each in self.binding.instructions(entry):
                if isinstance(each, LdsRead):
                    found[target(each)] = None
                elif isinstance(each, Mfma):
                    for operand in Factor:
                        for register in self.factor(each, operand):
                            found.pop(register, None)
        return tuple(found)

    def lds(self, dma: Dma) -> int:
        """Where a DMA's bytes begin: B's buffers lie after A's."""
        return dma.lds + (self.binding.buffer_bytes(Factor.A) if dma.operand is Factor.B else 0)

    def contract(self, name: str) -> Iterator[str]:
        """What a caller must keep, and what the schedule rests on: lines of a comment."""
        geometry, program, tile = self.tile.geometry, self.program, self.tile
        free, plain = (bank_conflicts(tile, layout) for layout in (self.layout, plain_layout(tile)))
        yield f"{name}: C = A x B^T on {tile.machine.name} ({tile.machine.arch})."
        yield f"A: M x K, B: N x K, {SPOKEN[tile.element]}, row-major; C: M x N, fp32, row-major, overwritten."
        yield "Rows follow one another without gaps; A and B are aligned to 16 bytes."
        yield f"Grid (M / {geometry.BM}, N / {geometry.BN}), {tile.waves} waves; M and N are multiples of these."
        yield (
            f"K / {geometry.BK} = {program.tiles_outside} + {program.tiles_per_trip} * trips, for any trips >= 0; "
            f"{max(geometry.BM, geometry.BN)} rows take less than 2 GiB."
        )
        yield "The kernel checks none of these: where one doesn't hold, C is wrong."
        yield (
            f"LDS: {self.binding.lds_bytes} bytes; bank conflicts of a part's reads: {free} clocks "
            f"({plain} without the exchange of chunks)."
        )
        certificate = self.compiled.certificate
        yield f"The schedule is {str(certificate).splitlines()[0]}" if certificate else "The schedule is not proved."
        yield "Comments give the entry: its number in its phase, its op, and why a wait or barrier is there."


def target(read: LdsRead) -> Register:
    return Register(read.operand, read.copy, read.part, read.piece)


def gemm_plan(
    compiled: CompiledSchedule,
    geometry: KernelGeometry,
    *,
    element: Element | None = None,
    waves: int | None = None,
    bound: Binder = GemmBinding,
) -> GemmPlan:
    """The plan; waits for registers are planned first where the schedule left them to the compiler."""
    check_words(compiled.lowered)
    planned = with_register_waits(compiled)
    tile = gemm_tile(planned, geometry, element=element, waves=waves)
    if tile.b_layout is not BLayout.NK:
        raise unfit(
            f"the loop reads B as {tile.b_layout.spoken}, which is written in HIP alone",
            fixes=("`rota emit KERNEL --form kernel` writes it", "shape.b_layout=nk schedules the loop for B as N x K"),
        )
    if tile.element is Element.FP4 or tile.has_scales:
        raise unfit("fp4 and scales of blocks are written in HIP alone", fixes=("emit it in the form kernel",))
    return GemmPlan(
        compiled=planned,
        tile=tile,
        binding=bound(planned, tile),
        layout=free_layout(tile),
        reasons=sync_reasons(planned),
    )
