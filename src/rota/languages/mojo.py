"""A GEMM kernel in Mojo: the schedule as tables in the reference's vocabulary, a kernel for them, and back."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.forms import gemm_form, refuse_attention
from rota.emit.gemm.gemm_plan import GemmPlan, gemm_plan
from rota.emit.gemm.gemm_tile import BoundInstruction, Dma, Element, Factor, LdsRead, Mfma
from rota.emit.gemm.program_form import form_of
from rota.emit.text import WHOLE_SLICES, Emission, Template, identifier, remark, sync_text, unfit
from rota.errors import ToolchainError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.languages.language_code import LanguageCode, PlainKernel, run_compiler
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.op import DoubleBufferTag, FrameworkTag, KOffsetKind, OpDesc
from rota.program.entry import Entry
from rota.program.kinds import OpKind, OpRole, Phase, ResourceKind

# A schedule as a table in the reference's vocabulary.
#
# A schedule by stages has its rows' fields itself. Of a loop by values they follow from what its ops are bound to:
# a load or read is a slice of A or B, a compute the product of two slices. A kernel that walks the table knows no
# more than the rows: what it would do with each of them must be what the entry is bound to.

LOADS = {DoubleBufferTag.LOAD_A: Factor.A, DoubleBufferTag.LOAD_B: Factor.B}
FRAGMENTS = {DoubleBufferTag.MMA_LOAD_A: Factor.A, DoubleBufferTag.MMA_LOAD_B: Factor.B}


class TableRow(NamedTuple):
    """One entry: the fields of its op, then those of its place; `k_offset` in K-tiles, None where an op has none."""

    tag: int
    stage: int = 0
    subtile: int = 0
    k_offset: int | None = None
    vm_cost: int = 0
    lgkm_cost: int = 0
    wait_value: int = 0
    resource: str = ResourceKind.SCALAR.name
    latency: int = 0
    role: str = OpRole.SYNC.name
    channel: int = -1
    vgpr_def: int = 0
    vgpr_kill: int = 0
    time_slot: int = 0
    phase: str = ""
    is_prefetch: bool = False


class Extra(NamedTuple):
    """A barrier beside the table that keeps two wave groups apart: before which row, and of which group; -1 is both."""

    before: int
    group: int


def table_rows(plan: GemmPlan) -> Mapping[Phase, tuple[TableRow, ...]]:
    """The table of each phase; what a walk of it couldn't tell is refused."""
    found: dict[Phase, tuple[TableRow, ...]] = {}
    in_stages = form_of(plan.program).in_stages
    for phase in Phase:
        listed = [each[:2] for each in plan.statements[phase] if each.entry.listed]
        rows: list[TableRow] = []
        for (entry, instructions), written in zip(listed, plan.compiled.phase(phase), strict=True):
            if in_stages:
                row = _of_stages(written.op, written.time_slot, phase, is_prefetch=written.is_prefetch)
            else:
                row = _of_values(plan, entry, instructions)
            if walk(plan, row) != instructions:
                raise unfit(
                    f"{entry.op} is no whole slice of A or B, which is what a row of a table represents",
                    concerns=(entry.concern(),),
                    fixes=(WHOLE_SLICES,),
                )
            rows.append(row)
        found[phase] = tuple(rows)
    return found


def extras(plan: GemmPlan, phase: Phase) -> tuple[Extra, ...]:
    found: list[Extra] = []
    rows = 0
    for entry in plan.program.phase(phase):
        if not entry.listed:
            found.append(Extra(rows, -1 if entry.roles is None else entry.roles[0]))
        rows += entry.listed
    return tuple(found)


def walk(plan: GemmPlan, row: TableRow) -> tuple[BoundInstruction, ...]:
    """What a walk makes of a row: the machine instructions of a load, a read or a compute."""
    if row.tag in LOADS:
        return tuple(_dmas(plan, LOADS[DoubleBufferTag(row.tag)], row))
    if row.tag in FRAGMENTS:
        return tuple(_reads(plan, FRAGMENTS[DoubleBufferTag(row.tag)], row))
    return tuple(_mfmas(plan, row)) if row.tag == DoubleBufferTag.MMA else ()


def dmas_of_slice(plan: GemmPlan, operand: Factor) -> int:
    return plan.tile.slice_dmas(operand, plan.binding.buffers[operand].slices)


def parts_of_slice(plan: GemmPlan, operand: Factor) -> int:
    """Parts of a slice that one wave multiplies."""
    return plan.tile.parts(operand) // plan.binding.buffers[operand].slices


def _dmas(plan: GemmPlan, operand: Factor, row: TableRow) -> Iterator[BoundInstruction]:
    each, tile = dmas_of_slice(plan, operand), plan.tile
    for number in range(row.subtile * each, (row.subtile + 1) * each):
        lds = row.stage * tile.tile_bytes(operand) + number * tile.dma_rows * tile.row_bytes
        yield Dma(operand, lds, number, row.k_offset or 0)


def _reads(plan: GemmPlan, operand: Factor, row: TableRow) -> Iterator[BoundInstruction]:
    own, tile = parts_of_slice(plan, operand), plan.tile
    for part in range(row.subtile * own, (row.subtile + 1) * own):
        lds = row.stage * tile.tile_bytes(operand) + plan.binding.first_row(operand, part) * tile.row_bytes
        yield from (LdsRead(operand, lds, part, piece, 0) for piece in range(plan.pieces))


def _mfmas(plan: GemmPlan, row: TableRow) -> Iterator[BoundInstruction]:
    rows, columns = parts_of_slice(plan, Factor.A), parts_of_slice(plan, Factor.B)
    copies = (0,) * plan.tile.pieces_per_step
    for step in range(plan.tile.steps):
        for m in range(row.stage * rows, (row.stage + 1) * rows):
            for n in range(row.subtile * columns, (row.subtile + 1) * columns):
                yield Mfma(step, m, n, copies, copies)


def _of_stages(op: OpDesc, slot: int, phase: Phase, *, is_prefetch: bool) -> TableRow:
    placed = op.channel, op.vgpr_def, op.vgpr_kill, slot, phase.name, is_prefetch
    counted = op.vm_cost, op.lgkm_cost, op.wait_value, op.resource.name, op.latency, op.role.name
    return TableRow(int(op.tag), op.stage, op.subtile, op.k_offset.value, *counted, *placed)


def _of_values(plan: GemmPlan, entry: Entry, instructions: Sequence[BoundInstruction]) -> TableRow:
    """A load is never left out, so that none is a prefetch; latencies and registers are not the table's to say."""
    effect = entry.effect
    tokens = {} if entry.op.is_framework else {effect.counter: effect.tokens}
    costs = tokens.get("vmcnt", 0), tokens.get("lgkmcnt", 0)
    row = TableRow(-1, 0, 0, None, *costs, effect.wait_value, time_slot=entry.time_slot, phase=entry.phase.name)
    if entry.op.is_framework:
        role = OpRole.SYNC if entry.op.kind in (OpKind.WAIT, OpKind.BARRIER) else OpRole.FENCE
        return row._replace(tag=FrameworkTag[sync_text(plan.program, entry, "mojo")], role=role.name)
    return _data(plan, row, instructions[0])


def _data(plan: GemmPlan, row: TableRow, first: BoundInstruction) -> TableRow:
    if isinstance(first, Mfma):
        m, n = first.a_part // parts_of_slice(plan, Factor.A), first.b_part // parts_of_slice(plan, Factor.B)
        multiplies = row._replace(resource=ResourceKind.MMA_UNIT.name, role=OpRole.COMPUTE.name)
        return multiplies._replace(tag=int(DoubleBufferTag.MMA), stage=m, subtile=n)
    assert isinstance(first, Dma | LdsRead)  # noqa: S101  # of a plain plan
    operand = first.operand
    channel = list(Factor).index(operand)
    placed = row._replace(channel=channel, stage=first.lds // plan.tile.tile_bytes(operand))
    if isinstance(first, Dma):
        subtile = first.number // dmas_of_slice(plan, operand)
        fetches = placed._replace(resource=ResourceKind.GLOBAL_MEM.name, role=OpRole.GLOBAL_LOAD.name)
        return fetches._replace(tag=int(list(LOADS)[channel]), subtile=subtile, k_offset=first.k_tile)
    subtile = first.part // parts_of_slice(plan, operand)
    reads = placed._replace(resource=ResourceKind.LDS.name, role=OpRole.FRAGMENT_LOAD.name)
    return reads._replace(tag=int(list(FRAGMENTS)[channel]), subtile=subtile)


_TEMPLATE = Template("rota.languages", "mojo.txt")
NO_OFFSET = -128
"""What represents no K offset in a table."""
_OP = tuple(TableRow._fields[:13])


def emit_mojo_table(compiled: CompiledSchedule, geometry: KernelGeometry) -> str:
    """The tables alone, with a `main` that prints their rows: Mojo's own reading of them."""
    plan = gemm_plan(compiled, geometry, plain=True)
    return "\n".join([*mojo_tables(plan), "", "", *_printing(), ""])


def mojo_tables(plan: GemmPlan) -> Iterator[str]:
    """The vocabulary, and a function for each phase."""
    for tag in (*DoubleBufferTag, *FrameworkTag):
        yield f"comptime {tag.name} = {tag.value}"
    for kind in KOffsetKind:
        yield f"comptime {_offset(kind.value)} = {NO_OFFSET if kind.value is None else kind.value}"
    for names in (ResourceKind, OpRole, Phase):
        for number, each in enumerate(names):
            yield f"comptime {_constant(names.__name__, each.name)} = {number}"
    yield from _TEMPLATE.lines("structs", fields=(f"var {name}: Int" for name in _OP))
    rows = table_rows(plan)
    for phase in Phase:
        yield ""
        yield ""
        yield f"def {phase.name.lower()}() -> List[ScheduleEntry]:"
        yield f'    """The entries of the {phase.name.lower()}: {", ".join(_OP)}; time_slot, phase, is_prefetch."""'
        yield "    var table = List[ScheduleEntry]()"
        for row, entry in zip(rows[phase], plan.compiled.phase(phase), strict=True):
            yield f"    table.append({_print_row(row)})  {remark(str(entry.op))}"
        yield "    return table^"


def _print_row(row: TableRow) -> str:
    tags: dict[int, str] = {int(tag): tag.name for tag in (*DoubleBufferTag, *FrameworkTag)}
    op: list[object] = list(row[:13])
    op[0] = tags[row.tag]
    op[3] = _offset(row.k_offset)
    op[7] = _constant("ResourceKind", row.resource)
    op[9] = _constant("OpRole", row.role)
    return f"ScheduleEntry(OpDesc({', '.join(map(str, op))}), {row.time_slot}, PHASE_{row.phase}, {row.is_prefetch})"


def _offset(multiple: int | None) -> str:
    known = {kind.value: kind.name for kind in KOffsetKind}
    return f"K_OFFSET_{known[multiple]}" if multiple in known else str(multiple)


def _constant(kind: str, name: str) -> str:
    return {"ResourceKind": "RESOURCE", "OpRole": "ROLE", "Phase": "PHASE"}[kind] + f"_{name}"


def _printing() -> Iterator[str]:
    fields = ", ".join(f"e.op.{name}" for name in _OP)
    yield "def main():"
    for phase in Phase:
        yield f"    for e in {phase.name.lower()}():"
        yield f"        print({fields}, e.time_slot, e.phase, Int(e.is_prefetch))"


# A GEMM kernel in Mojo.
#
# The tables hold the schedule's entries in the reference's vocabulary, and the kernel walks them with `comptime
# for`: an author keeps the kernel and takes other tables of the same shape. Waits, barriers and priorities are
# intrinsics; DMAs and matrix instructions are lines of assembly, to which LLVM adds no waits; LDS reads are loads
# that it sees.

_OWN = ("OpDesc", "ScheduleEntry", "Extra", "entry", "fence", "meet", "step", "main", "prologue", "kernel", "epilogue")


def emit_mojo(
    compiled: CompiledSchedule, geometry: KernelGeometry, *, element: Element | None = None, waves: int | None = None
) -> str:
    """A complete program: tables, kernel, and a `main` that launches it once, so that it is compiled."""
    plan = gemm_plan(compiled, geometry, element=element, waves=waves, plain=True)
    return "\n".join([*_MojoKernel(plan).lines(identifier(plan.symbol, _OWN)), ""])


def mojo(asked: Emission) -> str:
    """A Mojo program, for `rota emit`."""
    refuse_attention(asked, "mojo")
    return emit_mojo(asked.named, asked.kernel.geometry(), **gemm_form(asked.kernel.shape()))


class _MojoKernel(PlainKernel):
    template = _TEMPLATE

    @property
    def words(self) -> int:
        return self.tile.read_bytes // self.tile.register_bytes

    def lines(self, name: str) -> Iterator[str]:
        plan, tile, binding, program = self.plan, self.tile, self.binding, self.program
        part = f"SIMD[DType.float32, {tile.part_registers}]"
        piece = f"SIMD[DType.uint32, {self.words}]"
        a_fragments, b_fragments = (f"Array[{piece}, {binding.tile.parts(each) * plan.pieces}]" for each in Factor)
        blocks = len(plan.blocks)
        rows, columns = parts_of_slice(plan, Factor.A), parts_of_slice(plan, Factor.B)
        factors = [f"{operand}[{row} * {plan.pieces} + first]" for operand, row in (("a", "m"), ("b", "n"))]
        if tile.pieces_per_step > 1:
            factors = [f"{each}.join({each[:-1]} + 1])" for each in factors]
        geometry, depth = tile.geometry, tile.geometry.BK * program.tiles_outside
        return _TEMPLATE.lines(
            "program",
            name=name,
            plan=plan,
            tile=tile,
            contract=self.contract(name),
            tables=mojo_tables(plan),
            part=part,
            factor=f"SIMD[DType.uint32, {self.words * tile.pieces_per_step}]",
            a_fragments=a_fragments,
            b_fragments=b_fragments,
            sums=f"Array[{part}, {blocks}]",
            load_a=self._load(Factor.A),
            load_b=self._load(Factor.B),
            read_a=self._read(Factor.A),
            read_b=self._read(Factor.B),
            rows=rows,
            columns=columns,
            blocks_of_step=rows * columns,
            products=tile.steps * rows * columns,
            b_parts=binding.tile.parts(Factor.B),
            factors=", ".join(factors),
            blocks=blocks,
            prologue=self._walk("before", Phase.PROLOGUE),
            loop=self._walk("trip", Phase.KERNEL),
            epilogue=self._walk("after", Phase.EPILOGUE),
            unused=self._keep_unused(),
            stores=self._stores(),
            a_bytes=geometry.BM * depth * tile.element.bytes,
            b_bytes=geometry.BN * depth * tile.element.bytes,
            c_elements=geometry.BM * geometry.BN,
            depth=depth,
            **self.lane_words(),
        )

    def _load(self, operand: Factor) -> Iterator[str]:
        return _TEMPLATE.lines(
            "load",
            tile=self.tile,
            operand=operand.value,
            each=dmas_of_slice(self.plan, operand),
            start=self.binding.buffer_bytes(Factor.A) if operand is Factor.B else 0,
            stage_bytes=self.tile.tile_bytes(operand),
            moved=self.tile.dma_rows * self.tile.row_bytes,
            pattern=f"number % {self.plan.patterns}" if self.plan.patterns > 1 else "0",
        )

    def _read(self, operand: Factor) -> Iterator[str]:
        own, pieces = parts_of_slice(self.plan, operand), self.plan.pieces
        return _TEMPLATE.lines(
            "read",
            tile=self.tile,
            operand=operand.value,
            count=own * pieces,
            own=own,
            pieces=pieces,
            slice_rows=self.tile.rows(operand) // self.binding.buffers[operand].slices,
            stage_bytes=self.tile.tile_bytes(operand),
            words=self.words,
        )

    def _walk(self, table: str, phase: Phase) -> Iterator[str]:
        rows = sum(entry.listed for entry in self.program.phase(phase))
        before: list[str] = []
        after: list[str] = []
        for extra in extras(self.plan, phase):
            meet = ["meet()"] if extra.group < 0 else [f"if wave_group == {extra.group}:", "    meet()"]
            if extra.before < rows:
                before += [f"comptime if i == {extra.before}:", *(f"    {line}" for line in meet)]
            else:
                after += meet
        return _TEMPLATE.lines("walk", table=table, before=before, after=after)

    def _keep_unused(self) -> Iterator[str]:
        for register in self.plan.find_unused():
            part, piece = register.numbers
            held = f"{register.array}[{part * self.plan.pieces + piece}]"
            yield "# Nothing uses it, but the schedule reads it."
            yield f'inlined_assembly["", NoneType, constraints="v", has_side_effect=True]({held})'

    def _stores(self) -> Iterator[str]:
        for block, (m, n) in enumerate(self.plan.blocks):
            row, right = self.binding.first_row(Factor.A, m), self.binding.first_row(Factor.B, n)
            for each in range(self.tile.part_registers):
                down = row + each // 4 * 4 * self.tile.lane_groups + each % 4
                yield f"C.unsafe_store((first + {down}) * Int(N) + column + {right}, c[{block}][{each}])"


_TARGET = re.compile(r"\b\S+-amd-amdhsa-(?:unknown)?-(gfx\w+)")  # LLVM has several ways to spell it


def compile_mojo(
    compiled: CompiledSchedule, geometry: KernelGeometry, *, edit: Callable[[str], str] = str
) -> LanguageCode:
    """The schedule as Mojo, compiled by the Mojo that is installed; `edit` changes the source before."""
    plan = gemm_plan(compiled, geometry, plain=True)
    source = edit(emit_mojo(compiled, geometry))
    arch = plan.tile.machine.arch
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / f"{plan.symbol}.mojo"
        path.write_text(source, encoding="utf-8")
        _run("build", "--emit", "asm", "--target-accelerator", arch, str(path), "-o", str(folder / "host.s"))
        code = read_assembly(folder, arch)
    return LanguageCode(compiled=compiled, geometry=geometry, source=source, code=code)


def read_assembly(folder: Path, arch: str) -> CodeObject:
    """The kernel in the assembly that `mojo build --emit asm --target-accelerator` puts beside the host's."""
    found = sorted(folder.glob("*.amdgcn"))
    if len(found) != 1:
        raise ToolchainError.of(
            "T103",
            f"{folder} holds the assembly of {len(found)} kernels of Mojo; expected one",
            fixes=(f"mojo build --emit asm --target-accelerator {arch} kernel.mojo -o folder/host.s",),
        )
    text = _TARGET.sub(r"amdgcn-amd-amdhsa--\1", found[0].read_text(encoding="utf-8"))
    return find_toolchain().assemble(text, arch)


def tables_by_mojo(compiled: CompiledSchedule, geometry: KernelGeometry) -> Mapping[Phase, tuple[TableRow, ...]]:
    """The tables as Mojo itself reads them: compiled for the host, run, and printed."""
    with TemporaryDirectory() as name:
        path = Path(name) / "table.mojo"
        path.write_text(emit_mojo_table(compiled, geometry), encoding="utf-8")
        printed = _run("run", str(path))
    rows = [_parse_row(line.split()) for line in printed.splitlines()]
    return {phase: tuple(row for row in rows if row.phase == phase.name) for phase in Phase}


def _parse_row(words: list[str]) -> TableRow:
    numbers = [int(word) for word in words]
    tag, stage, subtile, k_offset, vm_cost, lgkm_cost, wait_value, resource = numbers[:8]
    latency, role, channel, vgpr_def, vgpr_kill, time_slot, phase, is_prefetch = numbers[8:]
    offset = None if k_offset == NO_OFFSET else k_offset
    names = list(ResourceKind)[resource].name, latency, list(OpRole)[role].name, channel, vgpr_def, vgpr_kill
    place = time_slot, list(Phase)[phase].name, bool(is_prefetch)
    return TableRow(tag, stage, subtile, offset, vm_cost, lgkm_cost, wait_value, *names, *place)


def _run(*arguments: str) -> str:
    beside = Path(sys.executable).parent / "mojo"
    mojo = str(beside) if beside.exists() else shutil.which("mojo")
    if mojo is None:
        raise ToolchainError.of("T301", "Mojo is not installed", fixes=("pip install mojo max",))
    return run_compiler("Mojo", [mojo, *arguments])
