"""A GEMM kernel in Gluon, the waits that its compiler adds, and the machine code it makes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.forms import gemm_form, refuse_attention
from rota.emit.gemm.gemm_binding import InterleavedBinding
from rota.emit.gemm.gemm_plan import GemmPlan, Statement, gemm_plan
from rota.emit.gemm.gemm_tile import Dma, Element, Factor, LdsRead, Mfma, Register
from rota.emit.text import WHOLE_SLICES, Addition, Emission, Template, identifier, is_alone, sync_text, unfit
from rota.languages.language_code import LanguageCode, PlainKernel
from rota.pipeline.geometry import WAVE_GRIDS, KernelGeometry
from rota.program.kinds import OpKind, Phase
from rota.targets.device import registers_per_lane
from rota.triton import compile_kernel

# What the compiler adds to a Gluon kernel.
#
# LLVM follows the LDS reads that it takes to be in flight, and waits for one before its registers are used. It
# doesn't see waits that are lines of assembly, but those that it adds itself, and the one that a barrier of Gluon's
# takes for all reads before it. (LLVM, SIInsertWaitcnts: where ways meet, the newest read of each register counts.)

_LARGEST = 15  # that lgkmcnt's field of four bits says; LLVM waits for fewer than that


class _Step(NamedTuple):
    """What LLVM sees of one instruction: the registers it reads into or uses, or a barrier."""

    number: int
    reads: tuple[Register, ...] = ()
    uses: tuple[Register, ...] = ()
    drains: bool = False


@dataclass(slots=True)
class _InFlight:
    """For each register that is being read into, how many reads began after its own."""

    newer: dict[Register, int] = field(default_factory=dict)

    def read(self, register: Register) -> None:
        self.newer = {each: count + 1 for each, count in self.newer.items()}
        self.newer[register] = 0

    def count_needed(self, uses: Sequence[Register]) -> int | None:
        counts = [self.newer[each] for each in uses if each in self.newer]
        return min(*counts, _LARGEST - 1) if counts else None

    def wait(self, count: int) -> None:
        self.newer = {each: newer for each, newer in self.newer.items() if newer < count}

    def join(self, other: _InFlight) -> _InFlight:
        either = self.newer.keys() | other.newer.keys()
        none = max((*self.newer.values(), *other.newer.values()), default=0)
        return _InFlight({each: min(self.newer.get(each, none), other.newer.get(each, none)) for each in either})


_Found = dict[tuple[Phase, int, bool], int]


def additions(plan: GemmPlan) -> tuple[Addition, ...]:
    steps = {phase: tuple(_steps(plan, phase)) for phase in Phase}
    found: _Found = {}
    before = _run(Phase.PROLOGUE, steps[Phase.PROLOGUE], _InFlight(), found)
    entering = before
    while True:
        leaving = _run(Phase.KERNEL, steps[Phase.KERNEL], entering, found)
        again = entering.join(leaving)
        if again == entering:
            break
        entering = again
    _run(Phase.EPILOGUE, steps[Phase.EPILOGUE], before.join(leaving), found)
    order = list(Phase)
    keys = sorted(found, key=lambda key: (order.index(key[0]), key[1], not key[2]))
    return tuple(
        Addition(phase=key[0], before=key[1], counter="lgkmcnt", count=found[key], at_barrier=key[2]) for key in keys
    )


def _run(phase: Phase, steps: Sequence[_Step], state: _InFlight, found: _Found) -> _InFlight:
    """What is in flight after the steps; a wait that was found for one way in stays for all of them."""
    state = _InFlight(dict(state.newer))
    for step in steps:
        key = phase, step.number, step.drains
        needed = (0 if state.newer else None) if step.drains else state.count_needed(step.uses)
        if needed is not None or key in found:
            needed = min(each for each in (needed, found.get(key)) if each is not None)
            found[key] = needed
            state.wait(needed)
        for register in step.reads:
            state.read(register)
    return state


def _steps(plan: GemmPlan, phase: Phase) -> Iterator[_Step]:
    number = 0
    for entry, instructions, *_ in plan.statements[phase]:
        if entry.op.kind is OpKind.BARRIER:
            yield _Step(number, drains=True)
        elif entry.op.kind is OpKind.PRIORITY:
            number += 1
        for each in instructions:
            if isinstance(each, LdsRead):
                yield _Step(number, reads=(each.target,))
            elif isinstance(each, Mfma):
                yield _Step(number, uses=each.uses)
            number += 1


# A GEMM kernel in Gluon.
#
# One statement is one instruction of every wave: waves take turns at parts of a tile, so that a part of all of them
# is one tensor. Loads, reads, matrix instructions and barriers are Gluon's own; a wait is a line of assembly, since
# Gluon has none for LDS reads, and adds a barrier to the one it has for loads. The compiler doesn't see those
# lines, and adds waits of its own, which `additions` says in advance.

_TYPES = {Element.BF16: "gl.bfloat16", Element.FP16: "gl.float16", Element.FP8: "gl.float8e4nv"}
_POINTERS = {Element.BF16: "*bf16", Element.FP16: "*fp16", Element.FP8: "*fp8e4nv"}
_GENERATIONS = {"gfx950": 4}


def gluon_plan(
    compiled: CompiledSchedule, geometry: KernelGeometry, *, element: Element | None = None, waves: int | None = None
) -> GemmPlan:
    """What is written; what Gluon can't say is refused."""
    plan = gemm_plan(compiled, geometry, element=element, waves=waves, bound=InterleavedBinding, plain=True)
    arch = plan.tile.machine.arch
    if arch not in _GENERATIONS:
        raise unfit(f"no Gluon is written for {arch}", evidence=(("known", ", ".join(_GENERATIONS)),))
    for operand in Factor:
        if left := plan.tile.rows(operand) % plan.tile.dma_rows:
            raise unfit(
                f"the last DMA of {operand.name} fetches {plan.tile.dma_rows - left} rows beyond the tile; for Gluon's "
                "loads there is no end of memory after which they bring zeros",
                evidence=(("rows", plan.tile.rows(operand)), ("rows of a DMA", plan.tile.dma_rows)),
                fixes=("`--form hip` and `--form flydsl` write it", "rows that whole DMAs bring"),
            )
    for entry in plan.program.entries:
        if is_alone(plan.program, entry):
            raise unfit(
                f"{entry.op} is executed by one group of waves alone; in Gluon all waves execute every statement",
                concerns=(entry.concern(),),
                fixes=(
                    "give the schedule without stagger: `--set target.pipeline.warp_stagger.enabled=false`",
                    "`--form hip`, `--form flydsl` and `--form mojo` write groups of waves",
                ),
            )
    return plan


def gluon_signature(plan: GemmPlan) -> dict[str, str]:
    """The types of the kernel's parameters, as Triton writes them."""
    pointer = _POINTERS[plan.tile.element]
    return {"A": pointer, "B": pointer, "C": "*fp32", "N": "i32", "K": "i32"}


def emit_gluon(
    compiled: CompiledSchedule, geometry: KernelGeometry, *, element: Element | None = None, waves: int | None = None
) -> str:
    """A complete module with one kernel."""
    plan = gluon_plan(compiled, geometry, element=element, waves=waves)
    name = identifier(plan.symbol, ("gl", "gluon", "cdna4", "async_copy", "fence", "gemm_parameters"))
    return "\n".join([*_GluonKernel(plan).lines(name), ""])


def gluon(asked: Emission) -> str:
    """A module with a Gluon kernel, for `rota emit`."""
    refuse_attention(asked, "gluon")
    return emit_gluon(asked.named, asked.kernel.geometry(), **gemm_form(asked.kernel.shape()))


class _GluonKernel(PlainKernel):
    template = Template("rota.languages", "gluon.py.txt")

    def lines(self, name: str) -> Iterator[str]:
        tile, program, layout = self.tile, self.program, self.plan.layout
        lanes, registers = tile.row_bytes // tile.dma_bytes, range(tile.part_registers)
        unused = dict.fromkeys(self._name(register) for register in self.plan.find_unused())
        return self.template.lines(
            "kernel",
            name=name,
            tile=tile,
            program=program,
            contract=self.contract(name),
            added=self._list_additions(),
            generation=_GENERATIONS[tile.machine.arch],
            waves=list(WAVE_GRIDS[tile.waves]),
            width=tile.read_bytes // tile.element.bytes,
            lanes=lanes,
            lane_rows=tile.lanes // lanes,
            chunk=layout.chunk_bytes // tile.element.bytes,
            per_phase=1 << layout.shift,
            phases=layout.mask + 1,
            memory=self._memory(),
            starts=self._starts(),
            fetches=self._list_fetches(),
            a_rows=self._rows(Factor.A),
            b_rows=self._rows(Factor.B),
            keep=",".join([*(f"={self.kept}" for _ in registers), *map(str, registers)]),
            sums=(f'c_{m}_{n} = gl.inline_asm("", keep, [zero], zero.type)' for m, n in self.plan.blocks),
            prologue=self.phase(Phase.PROLOGUE),
            trip=program.tiles_per_trip * tile.row_bytes,
            loop=self.phase(Phase.KERNEL),
            epilogue=self.phase(Phase.EPILOGUE),
            unused=(
                f'gl.inline_asm("", ("v",), [{each}]); fence()  # nothing uses it, but the schedule reads it'
                for each in unused
            ),
            stores=(
                f"gl.store(out + {self.binding.first_row(Factor.A, m)} * N.to(gl.int64) + "
                f"{self.binding.first_row(Factor.B, n)}, c_{m}_{n})"
                for m, n in self.plan.blocks
            ),
        )

    def _list_additions(self) -> Iterator[str]:
        added = additions(self.plan)
        for phase in Phase:
            counts = sorted(each.count for each in added if each.phase is phase)
            texts = [f"{len(list(same))} x lgkmcnt({count})" for count, same in groupby(counts)]
            yield f"#   {phase.value.lower()}: {', '.join(texts) or 'nothing'}"

    def _memory(self) -> Iterator[str]:
        tile = self.tile
        for operand in Factor:
            name, rows = operand.value, self.binding.buffers[operand].stages * tile.rows(operand)
            to = f"[{rows // tile.dma_rows}, {tile.dma_rows}, {tile.row_bytes}]"
            source = f"[{rows // self._rows(operand)}, {self._rows(operand)}, {tile.geometry.BK}]"
            yield f"{name}_to = gl.allocate_shared_memory(gl.int8, {to}, plain)"
            yield f"{name}_from = {name}_to.reinterpret({_TYPES[tile.element]}, {source}, exchanged)"

    def _starts(self) -> Iterator[str]:
        tile = self.tile
        for operand, axis in ((Factor.A, 0), (Factor.B, 1)):
            start = f"gl.program_id({axis}).to(gl.int64) * {tile.rows(operand)} * row_bytes"
            yield f"{operand.value}_at0 = {operand.name}.to(gl.pointer_type(gl.int8)) + {start}"
            for number in range(1, tile.rows(operand) // tile.dma_rows if self._rows_in_scalars else 1):
                yield f"{operand.value}_at{number} = {operand.value}_at0 + {number * tile.dma_rows} * row_bytes"

    def _list_fetches(self) -> Iterator[str]:
        tile, layout, chunk = self.tile, self.plan.layout, self.plan.layout.chunk_bytes
        numbers = range(max(tile.rows(operand) for operand in Factor) // tile.dma_rows)
        for number in numbers[: self.plan.patterns] if self._rows_in_scalars else numbers:
            place = f"((column // {chunk}) ^ ((row >> {layout.shift}) & {layout.mask})) * {chunk} + column % {chunk}"
            start = f"(row - {number * tile.dma_rows})" if self._rows_in_scalars and number else "row"
            yield f"fetch{number} = {start} * row_bytes + {place}"
            yield f"row += {tile.dma_rows}"

    @property
    def _rows_in_scalars(self) -> bool:
        """True if there are too few vector registers for the rows of each DMA."""
        tile, free_for_addresses = self.tile, 64
        held = tile.accumulator_registers + tile.fragment_registers
        return not tile.accumulates_in_agprs and held + free_for_addresses > registers_per_lane(
            tile.machine, tile.waves
        )

    def _rows(self, operand: Factor) -> int:
        return self.tile.across(operand) * self.tile.side

    def write(self, statement: Statement, phase: Phase) -> Iterator[str]:
        if statement.entry.op.is_framework:
            yield sync_text(self.program, statement.entry, "gluon")
        waiting: list[LdsRead] = []
        for each in statement.instructions:
            if isinstance(each, Dma):
                yield self._dma(each, phase)
            elif isinstance(each, LdsRead):
                waiting.append(each)
                if len(waiting) == self.tile.pieces_per_step:
                    yield self._read(waiting)
                    waiting = []
            elif isinstance(each, Mfma):
                yield self._mfma(each)
        if waiting:
            raise unfit(
                "a read of less than a step of K can't be written in Gluon: a tensor is whole steps",
                fixes=(WHOLE_SLICES,),
            )

    def _dma(self, dma: Dma, phase: Phase) -> str:
        operand, tile, terms = dma.operand, self.tile, self.plan.offset(dma, phase)
        at, fetch = (dma.number, dma.number % self.plan.patterns) if self._rows_in_scalars else (0, dma.number)
        start = f"{operand.value}_at{at}" + (f" + ({' + '.join(terms)})" if terms else "")
        to = f"{operand.value}_to.index({dma.lds // tile.row_bytes // tile.dma_rows})"
        return f"async_copy.buffer_load_to_shared({to}, {start}, fetch{fetch}); fence()"

    def _read(self, reads: Sequence[LdsRead]) -> str:
        first, operand, tile = reads[0], reads[0].operand, self.tile
        due = [first._replace(piece=first.piece + number) for number in range(tile.pieces_per_step)]
        if first.piece % tile.pieces_per_step or list(reads) != due:
            raise unfit("the reads of a step of K don't follow one another; in Gluon they are one statement")
        depth = tile.geometry.MMA_K
        source = f"{operand.value}_from.index({first.lds // tile.row_bytes // self._rows(operand)})"
        if tile.steps > 1:
            source += f".slice({first.piece // tile.pieces_per_step * depth}, {depth}, 1)"
        if operand is Factor.B:
            source += ".permute([1, 0])"
        return f"{self._name(first.target)} = async_copy.load_shared_relaxed({source}, of_{operand.value}); fence()"

    def _name(self, register: Register) -> str:
        part, piece = register.numbers
        return register._replace(numbers=(part, piece // self.tile.pieces_per_step)).name

    def _mfma(self, mfma: Mfma) -> str:
        a, b = (self._factor(mfma, operand) for operand in Factor)
        block = f"c_{mfma.a_part}_{mfma.b_part}"
        kept = ', "a"' if self.tile.accumulates_in_agprs else ""
        if self.tile.element is Element.FP8:  # Triton has no other instruction of this shape; without scales they are 1
            return f'{block} = cdna4.mfma_scaled({a}, None, "e4m3", {b}, None, "e4m3", {block}{kept}); fence()'
        return f"{block} = cdna4.mfma({a}, {b}, {block}{kept}); fence()"

    def _factor(self, mfma: Mfma, operand: Factor) -> str:
        names = {self._name(register) for register in mfma.factors(operand)}
        if len(names) > 1:
            raise unfit("a matrix instruction takes pieces of different copies; in Gluon a step of K is one tensor")
        return names.pop()


def compile_gluon(
    compiled: CompiledSchedule, geometry: KernelGeometry, *, edit: Callable[[str], str] = str
) -> LanguageCode:
    """The schedule as Gluon, compiled by the Triton that is installed; `edit` changes the source before."""
    plan = gluon_plan(compiled, geometry)
    source = edit(emit_gluon(compiled, geometry))
    signature = {name: f"{kind}:16" for name, kind in gluon_signature(plan).items()}
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{plan.symbol}.py"
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(plan.symbol, path)
        assert spec is not None  # noqa: S101  # the file is there
        assert spec.loader is not None  # noqa: S101
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        kernel = getattr(module, plan.symbol)
        arch = plan.tile.machine.arch
        made = compile_kernel(kernel, signature=signature, device=arch, num_warps=plan.tile.waves)
    return LanguageCode(
        compiled=compiled,
        geometry=geometry,
        source=source,
        code=made.code,
        bound=InterleavedBinding,
        additions=additions(plan),
        dynamic_lds=made.dynamic_lds,
    )
