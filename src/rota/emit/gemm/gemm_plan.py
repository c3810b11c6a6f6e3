"""The plan of a GEMM that every language prints.

It is made before anything is printed: the waits, what each entry is in machine instructions, the wait states between
them, where the bytes of A and B lie in LDS, and which lanes fetch them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import NamedTuple

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_loop import packs_of, pairs_of
from rota.emit.gemm.gemm_tile import (
    BLayout,
    BlockAdd,
    BoundInstruction,
    Dma,
    Element,
    Factor,
    GemmTile,
    LdsRead,
    Mfma,
    PairPack,
    PairRead,
    Piece,
    Register,
    ScaleRead,
    block_adds,
    gemm_tile,
)
from rota.emit.gemm.lds_layout import ColumnPanels, LdsLayout, bank_conflicts, column_panels, free_layout, plain_layout
from rota.emit.gemm.program_form import form_of
from rota.emit.planning import AsmSpacing, Issue, Maker, plan_schedule
from rota.emit.text import describe_entry, sync_reasons, unfit
from rota.pipeline.geometry import KernelGeometry
from rota.program.entry import Entry
from rota.program.kinds import Phase
from rota.program.lowered import Lowerable, LoweredProgram
from rota.targets.architecture import architecture_of

Binder = Callable[[Lowerable, GemmTile], GemmBinding]


class Statement(NamedTuple):
    """One entry: its instructions (none where it synchronises), the wait states before each, and what a comment says.

    The last statement of a phase has wait states after it as well, for what may follow.
    """

    entry: Entry
    instructions: tuple[BoundInstruction, ...]
    states: tuple[int, ...]
    what: str
    states_after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmPlan:
    """The schedule with all waits planned, its tile on the machine, what its ops are bound to, and its statements."""

    compiled: CompiledSchedule
    tile: GemmTile
    binding: GemmBinding
    layout: LdsLayout
    statements: Mapping[Phase, tuple[Statement, ...]]

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

    @property
    def patterns(self) -> int:
        """DMAs until the exchange of chunks repeats."""
        return max(1, self.layout.period // self.tile.dma_rows)

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """The parts of C that a wave has, by those of A and B."""
        return [(m, n) for m in range(self.tile.parts(Factor.A)) for n in range(self.tile.parts(Factor.B))]

    @property
    def product(self) -> str:
        return "A x B" if self.tile.b_layout is BLayout.KN else "A x B^T"

    @property
    def element(self) -> str:
        """What A and B hold, in words."""
        if self.tile.element in (Element.FP8, Element.FP8_PAIR):
            return f"fp8 ({architecture_of(self.tile.machine).float8.value} E4M3)"
        return {
            Element.BF16: "bf16",
            Element.FP16: "fp16",
            Element.FP4: "fp4 (OCP E2M1, the first of two in the low bits)",
        }[self.tile.element]

    def list_instructions(self, phase: Phase) -> Iterator[BoundInstruction]:
        return chain.from_iterable(each.instructions for each in self.statements[phase])

    def find_unused(self) -> tuple[Register, ...]:
        """Registers that the epilogue reads once more than it uses them: a compiler would drop the read."""
        found: dict[Register, None] = {}
        for each in self.list_instructions(Phase.EPILOGUE):
            if isinstance(each, LdsRead | ScaleRead | PairRead):
                found[each.target] = None
            elif isinstance(each, Mfma | BlockAdd | PairPack):
                for register in each.uses:
                    found.pop(register, None)
        return tuple(found)

    def lds(self, dma: Dma) -> int:
        """Where a DMA's bytes begin: B's buffers lie after A's."""
        return dma.lds + (self.binding.buffer_bytes(Factor.A) if dma.operand is Factor.B else 0)

    def offset(self, dma: Dma, phase: Phase) -> list[str]:
        """What comes before a DMA's bytes of a row, as terms."""
        ahead = [str(dma.k_tile * self.tile.row_bytes)] if dma.k_tile else []
        return ahead if phase is Phase.PROLOGUE else ["k", *ahead]

    @property
    def conflicts(self) -> tuple[int, int]:
        """Clocks that bank conflicts add to the reads of a part, and as many without the exchange of chunks."""
        tile = self.tile
        free, plain = (bank_conflicts(tile, layout) for layout in (self.layout, plain_layout(tile)))
        if tile.by_columns(Factor.B):
            return free + column_panels(tile).conflicts, plain + ColumnPanels(tile=tile).conflicts
        return free, plain


def gemm_plan(
    compiled: CompiledSchedule,
    geometry: KernelGeometry,
    *,
    element: Element | None = None,
    waves: int | None = None,
    bound: Binder = GemmBinding,
    plain: bool = False,
) -> GemmPlan:
    """The plan; waits for registers are planned first where the schedule left them to the compiler.

    A `plain` one is as languages other than HIP write it: A and B row by row, and no scales of blocks.
    """
    planned = plan_schedule(compiled)
    tile = gemm_tile(planned, geometry, element=element, waves=waves)
    if plain:
        _check_plain(tile)
    binding = bound(planned, tile)
    return GemmPlan(
        compiled=planned,
        tile=tile,
        binding=binding,
        layout=free_layout(tile),
        statements=_plan_statements(planned, binding),
    )


def _check_plain(tile: GemmTile) -> None:
    if tile.b_layout is not BLayout.NK:
        raise unfit(
            f"the loop reads B as {tile.b_layout.spoken}, which is written in HIP alone",
            fixes=("`rota emit KERNEL --form kernel` writes it", "shape.b_layout=nk schedules the loop for B as N x K"),
        )
    if tile.element is Element.FP4 or tile.has_scales:
        raise unfit("fp4 and scales of blocks are written in HIP alone", fixes=("emit it in the form kernel",))


def _plan_statements(compiled: CompiledSchedule, binding: GemmBinding) -> dict[Phase, tuple[Statement, ...]]:
    program, reasons = compiled.lowered, sync_reasons(compiled)
    bound = {phase: [(entry, binding.instructions(entry)) for entry in program.phase(phase)] for phase in Phase}
    missing: Mapping[tuple[Phase, int], int] = {}
    if binding.tile.pairs or binding.tile.block_sums:  # which are vector instructions in assembly
        issues = {phase: issues_of(each for _, found in bound[phase] for each in found) for phase in Phase}
        missing = spacing_of(binding.tile).find_missing(issues)
    found: dict[Phase, tuple[Statement, ...]] = {}
    for phase in Phase:
        number = 0
        statements: list[Statement] = []
        for entry, instructions in bound[phase]:
            numbers = range(number, number + len(instructions))
            states = tuple(missing.get((phase, each), 0) for each in numbers)
            statements.append(Statement(entry, instructions, states, describe_entry(program, entry, reasons)))
            number = numbers.stop
        if after := missing.get((phase, number)):
            statements[-1] = statements[-1]._replace(states_after=after)
        found[phase] = tuple(statements)
    return found


ReadOrCompute = LdsRead | ScaleRead | PairRead | PairPack | Mfma | BlockAdd
"""Any instruction but a DMA."""


def plan_k_tile(binding: GemmBinding) -> Iterator[tuple[int, Sequence[ReadOrCompute] | None]]:
    """One K-tile in the first buffers, unpipelined: instructions in groups, and the wait states before each group.

    Step by step of K come all pieces of a step, then all its products.  None waits for all reads.
    """
    tile, spacing = binding.tile, spacing_of(binding.tile)
    blocks = [*product(range(tile.parts(Factor.A)), range(tile.parts(Factor.B)))]
    scale_copies, sum_copy = (0, 0) if tile.scaled else (), 0 if tile.block_sums else None
    for operand in Factor if tile.has_scales else ():
        for part in range(tile.parts(operand)):
            lds = binding.first_row(operand, part) * tile.geometry.scale_line
            yield 0, [ScaleRead(operand, lds, part, 0)]
    for step in range(tile.steps):
        a, b = (range(step * each, (step + 1) * each) for each in map(tile.step_pieces, Factor))
        for operand, pieces in zip(Factor, (a, b), strict=True):
            for part in range(tile.parts(operand)):
                yield 0, [each for piece in pieces for each in _reads_of(binding, Piece(operand, part, piece))]
        yield 0, None
        turned = [Piece(Factor.B, part, piece) for part in range(tile.parts(Factor.B)) for piece in b]
        turns = [[*packs_of(tile, piece, Counter(), 0)] for piece in turned] if tile.pairs else []
        yield from ((0, packs) for packs in turns)
        mfmas = [Mfma(step, *block, (0,) * len(a), (0,) * len(b), scale_copies, sum_copy) for block in blocks]
        issues = {Phase.KERNEL: [*map(issue_of, chain(*turns)), *map(issue_of, mfmas)]}
        missing = spacing.find_missing(issues, [[Phase.KERNEL]])
        for number, mfma in enumerate(mfmas, sum(map(len, turns))):
            yield missing.get((Phase.KERNEL, number), 0), [mfma]
    for number, block in enumerate(blocks if tile.block_sums else ()):
        states = 0 if number else spacing.between(Maker.MATRIX, Maker.PACKED)
        yield states, [*block_adds(*block, 0, (0, 0))]


def _reads_of(binding: GemmBinding, read: Piece) -> Iterator[ReadOrCompute]:
    """What brings a piece from the first buffers; a pair of columns comes with the even part's."""
    if not (read.operand is Factor.B and binding.tile.pairs):
        yield LdsRead(read.operand, binding.read_offset(read), read.part, read.piece, 0)
    elif read.part % 2 == 0:
        for pair in pairs_of(binding.tile, read):
            yield PairRead(binding.read_offset(binding.read_of(pair)), pair, 0)


def spacing_of(tile: GemmTile) -> AsmSpacing:
    return AsmSpacing(architecture_of(tile.machine), tile.instruction)


def issues_of(instructions: Iterable[BoundInstruction]) -> list[Issue]:
    """Of a phase, after which a matrix instruction may follow that reads what was packed last."""
    found = [issue_of(each) for each in instructions]
    packed = tuple(place for each in found if each.maker is Maker.VECTOR for place in each.writes)
    return [*found, Issue(Maker.MATRIX, packed, instructions=0)]


def issue_of(instruction: BoundInstruction) -> Issue:
    """What wait states depend on; what LDS reads fill is guarded by the compiler."""
    if isinstance(instruction, PairPack):
        return Issue(Maker.VECTOR, writes=(instruction.target,))
    if isinstance(instruction, Mfma):
        return Issue(Maker.MATRIX, instruction.uses, (instruction.block,))
    if isinstance(instruction, BlockAdd):
        return Issue(Maker.PACKED, (instruction.block,))
    return Issue(Maker.MEMORY)
