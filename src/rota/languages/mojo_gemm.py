"""A GEMM kernel in Mojo: takes a compiled schedule and a geometry, gives the schedule as tables and a kernel for them.

The tables hold the schedule's entries in the reference's vocabulary, and the kernel walks them with `comptime for`: an
author keeps the kernel and takes other tables of the same shape.  Waits, barriers and priorities are intrinsics; DMAs
and matrix instructions are lines of assembly, to which LLVM adds no waits; LDS reads are loads that it sees.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.emission import Emission
from rota.emit.forms import gemm_form
from rota.emit.gemm.gemm_factors import Element, Factor
from rota.emit.gemm.gemm_plan import GemmPlan, gemm_plan
from rota.emit.text.names import comment, identifier
from rota.languages.mojo_table import (
    FRAGMENTS,
    LOADS,
    dmas_of_slice,
    extras,
    parts_of_slice,
)
from rota.languages.mojo_vocabulary import mojo_tables
from rota.pipeline.geometry import KernelGeometry
from rota.program.phase import Phase

_OWN = ("OpDesc", "ScheduleEntry", "Extra", "entry", "fence", "meet", "step", "main", "prologue", "kernel", "epilogue")


def emit_mojo(
    compiled: CompiledSchedule, geometry: KernelGeometry, *, element: Element | None = None, waves: int | None = None
) -> str:
    """A complete program: tables, kernel, and a `main` that launches it once, so that it is compiled."""
    plan = gemm_plan(compiled, geometry, element=element, waves=waves)
    return "\n".join([*_MojoKernel(plan).lines(identifier(plan.symbol, _OWN)), ""])


def mojo(asked: Emission) -> str:
    """A Mojo program, for `rota emit`."""
    return emit_mojo(asked.named, asked.kernel.geometry(), **gemm_form(asked.kernel.shape()))


class _MojoKernel:
    """Writes one program from top to bottom."""

    def __init__(self, plan: GemmPlan) -> None:
        self.plan = plan
        self.tile, self.binding, self.program = plan.tile, plan.binding, plan.program
        self.words = self.tile.read_bytes // self.tile.register_bytes
        self.piece = f"SIMD[DType.uint32, {self.words}]"
        self.part = f"SIMD[DType.float32, {self.tile.part_registers}]"
        self.kept = "a" if self.tile.accumulates_in_agprs else "v"
        self.fragments = {each: f"Array[{self.piece}, {self.binding.parts(each) * plan.pieces}]" for each in Factor}
        self.blocks = self.binding.parts(Factor.A) * self.binding.parts(Factor.B)
        self.sums = f"Array[{self.part}, {self.blocks}]"

    def lines(self, name: str) -> Iterator[str]:
        yield from (f"# {comment(line).removeprefix('// ')}" for line in self.plan.contract(name))
        yield "# mojo build --emit asm --target-accelerator " + self.tile.toolchain
        yield ""
        yield "from std.collections import Array"
        yield "from std.memory import AddressSpace, Pointer, stack_allocation"
        yield "from std.sys import inlined_assembly, llvm_intrinsic"
        yield "from std.sys.intrinsics import readfirstlane"
        yield "from std.utils import StaticTuple"
        yield "from max.gpu import MAX_THREADS_PER_BLOCK_METADATA, block_idx, thread_idx"
        yield "from max.gpu.host import DeviceContext"
        yield ""
        yield from mojo_tables(self.plan)
        yield from self._words()
        yield from self._step()
        yield ""
        yield ""
        yield from self._kernel(name)
        yield ""
        yield ""
        yield from self._main(name)

    def _words(self) -> Iterator[str]:
        tile = self.tile
        yield ""
        yield ""
        yield "@always_inline"
        yield "def fence():"
        yield '    """Keeps the compiler from moving anything over it."""'
        yield '    llvm_intrinsic["llvm.amdgcn.sched.barrier", NoneType](Int32(0))'
        yield ""
        yield ""
        yield "@always_inline"
        yield "def meet():"
        yield '    """The barrier of all waves, without a fence of memory."""'
        yield '    llvm_intrinsic["llvm.amdgcn.s.barrier", NoneType]()'
        yield "    fence()"
        yield ""
        yield ""
        yield "@always_inline"
        yield ("def dma[to: Int](lds: UInt32, resource: SIMD[DType.uint32, 4], fetch: Int32, offset: Int32):")
        yield '    """Global memory to LDS; the address in LDS is m0."""'
        yield "    _ = inlined_assembly["
        yield f'        "s_add_u32 m0, $1, $2\\n\\ts_nop 0\\n\\t{tile.dma_instruction} $3, $4, $5 offen lds",'
        yield "        Int32,"
        yield '        constraints="=&{m0},s,n,v,s,s,~{memory},~{scc}",'
        yield "        has_side_effect=True,"
        yield "    ](lds, Int32(to), fetch, resource, offset)"
        yield "    fence()"
        yield ""
        yield ""
        yield "@always_inline"
        width = self.words * tile.pieces_per_step
        factor = f"SIMD[DType.uint32, {width}]"
        yield f"def mma(c: {self.part}, a: {factor}, b: {factor}) -> {self.part}:"
        yield '    """The sum c + a * b."""'
        yield "    var done = inlined_assembly["
        yield f'        "{tile.instruction} $0, $1, $2, $0",'
        yield f"        {self.part},"
        yield f'        constraints="={self.kept},v,v,0",'
        yield "        has_side_effect=True,"
        yield "    ](a, b, c)"
        yield "    fence()"
        yield "    return done"
        yield ""
        yield ""
        yield "@always_inline"
        yield f"def kept(c: {self.part}) -> {self.part}:"
        yield '    """A part of C in registers of its own."""'
        yield (f'    return inlined_assembly["", {self.part}, constraints="={self.kept},0", has_side_effect=True](c)')

    def _step(self) -> Iterator[str]:
        yield ""
        yield ""
        yield "@always_inline"
        yield "def step[tag: Int, stage: Int, subtile: Int, k_offset: Int, wait_value: Int]("
        yield f"    mut a: {self.fragments[Factor.A]},"
        yield f"    mut b: {self.fragments[Factor.B]},"
        yield f"    mut c: {self.sums},"
        yield "    lds: UInt32,"
        yield "    a_global: SIMD[DType.uint32, 4],"
        yield "    b_global: SIMD[DType.uint32, 4],"
        yield f"    fetch: Array[Int32, {self.plan.patterns}],"
        yield "    dma_rows: Int32,"
        yield "    memory: Pointer[UInt8, MutUntrackedOrigin, address_space=AddressSpace.SHARED],"
        yield f"    a_lane: Array[Int32, {self.plan.pieces}],"
        yield f"    b_lane: Array[Int32, {self.plan.pieces}],"
        yield "    k: Int32,"
        yield "):"
        yield '    """One entry of a table."""'
        yield "    comptime offset = 0 if k_offset == K_OFFSET_NONE else k_offset"
        branch = "comptime if"
        for tag, operand in LOADS.items():
            yield f"    {branch} tag == {tag.name}:"
            yield from self._load(operand)
            branch = "elif"
        for tag, operand in FRAGMENTS.items():
            yield f"    elif tag == {tag.name}:"
            yield from self._fragment(operand)
        yield "    elif tag == MMA:"
        yield from self._compute()
        yield "    elif tag == BARRIER:"
        yield "        meet()"
        yield "    elif tag == WAIT_VM:"
        yield "        comptime field = (wait_value & 15) | 0xF70 | ((wait_value >> 4) << 14)"
        yield '        llvm_intrinsic["llvm.amdgcn.s.waitcnt", NoneType](Int32(field))'
        yield "        fence()"
        yield "    elif tag == WAIT_LGKM:"
        yield "        comptime field = 0xC07F | (wait_value << 8)"
        yield '        llvm_intrinsic["llvm.amdgcn.s.waitcnt", NoneType](Int32(field))'
        yield "        fence()"
        yield "    elif tag == SET_PRIO:"
        yield '        llvm_intrinsic["llvm.amdgcn.s.setprio", NoneType](Int16(wait_value))'
        yield "        fence()"
        yield "    elif tag == SCHEDULE_BARRIER:"
        yield "        fence()"
        yield "    else:"
        yield '        comptime assert False, "the kernel has no such entry"'

    def _load(self, operand: Factor) -> Iterator[str]:
        tile, each = self.tile, dmas_of_slice(self.plan, operand)
        start = self.binding.buffer_bytes(Factor.A) if operand is Factor.B else 0
        moved = tile.dma_rows * tile.row_bytes
        yield f"        comptime for i in range({each}):"
        yield f"            comptime number = subtile * {each} + i"
        yield f"            comptime to = {start} + stage * {tile.tile_bytes(operand)} + number * {moved}"
        pattern = f"number % {self.plan.patterns}" if self.plan.patterns > 1 else "0"
        yield (
            f"            dma[to](lds, {operand.value}_global, fetch[{pattern}], "
            f"k + Int32(offset * {tile.row_bytes}) + Int32(number) * dma_rows)"
        )

    def _fragment(self, operand: Factor) -> Iterator[str]:
        tile, own, name = self.tile, parts_of_slice(self.plan, operand), operand.value
        slice_rows = tile.rows(operand) // self.binding.buffers[operand].slices
        pieces = self.plan.pieces
        yield f"        comptime for i in range({own * pieces}):"
        yield f"            comptime part = subtile * {own} + i // {pieces}"
        yield f"            comptime row = subtile * {slice_rows} + i // {pieces} * {tile.side}"
        yield f"            comptime place = stage * {tile.tile_bytes(operand)} + row * {tile.row_bytes}"
        yield f"            var source = memory.unsafe_offset(Int({name}_lane[i % {pieces}])).unsafe_offset(place)"
        yield (
            f"            {name}[part * {pieces} + i % {pieces}] = source.unsafe_bitcast[UInt32]()"
            f".unsafe_load[width={self.words}, alignment={tile.read_bytes}]()"
        )
        yield "            fence()"

    def _compute(self) -> Iterator[str]:
        tile, pieces, per_step = self.tile, self.plan.pieces, self.tile.pieces_per_step
        rows, columns = parts_of_slice(self.plan, Factor.A), parts_of_slice(self.plan, Factor.B)
        yield f"        comptime for i in range({tile.steps * rows * columns}):"
        yield f"            comptime first = i // {rows * columns} * {per_step}"
        yield f"            comptime m = stage * {rows} + i // {columns} % {rows}"
        yield f"            comptime n = subtile * {columns} + i % {columns}"
        yield f"            comptime block = m * {self.binding.parts(Factor.B)} + n"
        factors = [f"{name}[{part} * {pieces} + first]" for name, part in (("a", "m"), ("b", "n"))]
        if per_step > 1:
            factors = [f"{each}.join({each[:-1]} + 1])" for each in factors]
        yield f"            c[block] = mma(c[block], {', '.join(factors)})"

    def _kernel(self, name: str) -> Iterator[str]:
        tile = self.tile
        threads, per_simd = tile.waves * tile.lanes, -(-tile.waves // tile.simds)
        yield f"@__llvm_metadata(`rocdl.waves_per_eu`=SIMDLength({per_simd}))"
        yield f"@__llvm_metadata(MAX_THREADS_PER_BLOCK_METADATA=StaticTuple[Int32, 1](Int32({threads})))"
        yield f"def {name}("
        yield "    A: Pointer[UInt8, MutAnyOrigin],"
        yield "    B: Pointer[UInt8, MutAnyOrigin],"
        yield "    C: Pointer[Float32, MutAnyOrigin],"
        yield "    N: Int32,"
        yield "    K: Int32,"
        yield "):"
        yield from self._opening()
        trip = self.program.tiles_per_trip * tile.row_bytes
        yield "    comptime before = prologue()"
        yield "    comptime trip = kernel()"
        yield "    comptime after = epilogue()"
        yield "    var k = Int32(0)"
        yield from self._walk("before", Phase.PROLOGUE, "    ")
        yield f"    k = {trip}  # bytes of K before this trip's tiles"
        yield "    while trips > 0:"
        yield from self._walk("trip", Phase.KERNEL, "        ")
        yield f"        k += {trip}"
        yield "        trips -= 1"
        yield from self._walk("after", Phase.EPILOGUE, "    ")
        yield from self._closing()

    def _walk(self, table: str, phase: Phase, indent: str) -> Iterator[str]:
        beside = extras(self.plan, phase)
        yield f"{indent}comptime for i in range(len({table})):"
        rows = sum(entry.listed for entry in self.program.phase(phase))
        for extra in beside:
            if extra.before < rows:
                yield from (f"{indent}    {line}" for line in _beside(f"comptime if i == {extra.before}:", extra.group))
        arguments = "a, b, c, lds, a_global, b_global, fetch, dma_rows, memory, a_lane, b_lane, k"
        yield f"{indent}    comptime e = {table}[i]"
        yield f"{indent}    step[e.op.tag, e.op.stage, e.op.subtile, e.op.k_offset, e.op.wait_value]({arguments})"
        for extra in beside:
            if extra.before == rows:
                yield from (f"{indent}{line}" for line in _beside("", extra.group))

    def _opening(self) -> Iterator[str]:
        tile, layout, across = self.tile, self.plan.layout, self.tile.across(Factor.B)
        yield (
            f"    var memory = stack_allocation[{self.binding.lds_bytes}, DType.uint8, alignment=16, "
            "address_space=AddressSpace.SHARED]()"
        )
        yield "    var thread = Int32(thread_idx.x)"
        yield f"    var lane = thread & {tile.lanes - 1}"
        yield f"    var wave = readfirstlane(thread >> {_log2(tile.lanes)})"
        yield f"    var wave_row = wave >> {_log2(across)}"
        yield f"    var wave_column = wave & {across - 1}"
        if len(self.program.roles) > 1:
            yield f"    var wave_group = wave >> {_log2(tile.waves // len(self.program.roles))}"
        yield "    var tile_row = Int32(block_idx.x)"
        yield "    var tile_column = Int32(block_idx.y)"
        yield f"    var row_bytes = K * {tile.element.bytes}"
        per_trip, outside = self.program.tiles_per_trip, self.program.tiles_outside
        yield f"    var trips = ((K >> {_log2(tile.geometry.BK)}) - {outside}) // {per_trip}"
        yield "    # Buffer resources: base, size in bytes (beyond it loads give 0), raw format."
        for operand, where in ((Factor.A, "tile_row"), (Factor.B, "tile_column")):
            name, rows = operand.value, tile.rows(operand)
            yield f"    var {name}_base = UInt64(Int({operand.name})) + UInt64({where}) * UInt64(row_bytes * {rows})"
            yield (
                f"    var {name}_global = SIMD[DType.uint32, 4](UInt32({name}_base & 0xFFFFFFFF), "
                f"UInt32(({name}_base >> 32) & 0xFFFF), UInt32(row_bytes * {rows}), 0x00027000)"
            )
        yield f"    # A DMA fills {tile.dma_rows} rows; a lane fetches the chunk that belongs at its place."
        yield f"    var lds = UInt32(Int(memory)) + UInt32(wave * {tile.lanes * tile.dma_bytes})"
        yield f"    var dma_rows = row_bytes * {tile.dma_rows}"
        lanes, each = tile.row_bytes // tile.dma_bytes, layout.chunk_bytes // tile.dma_bytes
        yield f"    var row = thread >> {_log2(lanes)}"
        yield f"    var chunk = (thread & {lanes - 1}) >> {_log2(each)}"
        within = f" + (thread & {each - 1}) * {tile.dma_bytes}" if each > 1 else ""
        yield f"    var fetch = Array[Int32, {self.plan.patterns}](fill=0)"
        for pattern in range(self.plan.patterns):
            place = f"{self._exchanged('chunk', f'(row + {pattern * tile.dma_rows})')} * {layout.chunk_bytes}{within}"
            yield f"    fetch[{pattern}] = row * row_bytes + {place}"
        yield "    # Each lane's place in the first part of A and of B, for each piece of it."
        yield f"    var lane_row = lane & {tile.side - 1}"
        yield f"    var lane_group = lane >> {_log2(tile.side)}"
        start = 0
        for operand, where in ((Factor.A, "wave_row"), (Factor.B, "wave_column")):
            name = operand.value
            yield f"    var {name}_row = {where} * {self.binding.wave_rows(operand)} + lane_row"
            yield f"    var {name}_lane = Array[Int32, {self.plan.pieces}](fill=0)"
            for piece in range(self.plan.pieces):
                place = self._exchanged(f"(lane_group + {piece * tile.lane_groups})", f"{name}_row")
                yield (
                    f"    {name}_lane[{piece}] = {start} + {name}_row * {tile.row_bytes} + {place} "
                    f"* {layout.chunk_bytes}"
                )
            start += self.binding.buffer_bytes(operand)
        for operand in Factor:
            yield f"    var {operand.value} = {self.fragments[operand]}(uninitialized=True)"
        yield f"    var c = {self.sums}(uninitialized=True)"
        yield f"    comptime for i in range({self.blocks}):"
        yield f"        c[i] = kept({self.part}(0))"
        yield '    inlined_assembly["s_nop 1", NoneType, constraints="", has_side_effect=True]()'
        yield "    fence()"

    def _exchanged(self, chunk: str, row: str) -> str:
        layout = self.plan.layout
        return f"({chunk} ^ (({row} >> {layout.shift}) & {layout.mask}))"

    def _closing(self) -> Iterator[str]:
        tile, binding = self.tile, self.binding
        for register in self.plan.unused():
            held = f"{register.operand.value}[{register.part * self.plan.pieces + register.piece}]"
            yield "    # Nothing uses it, but the schedule reads it."
            yield f'    inlined_assembly["", NoneType, constraints="v", has_side_effect=True]({held})'
        yield '    inlined_assembly["s_nop 15\\n\\ts_nop 3", NoneType, constraints="", has_side_effect=True]()'
        yield "    fence()"
        yield f"    comptime for i in range({self.blocks}):"
        yield "        c[i] = kept(c[i])"
        a_rows, b_rows = binding.wave_rows(Factor.A), binding.wave_rows(Factor.B)
        yield f"    var first = Int(tile_row * {tile.geometry.BM} + wave_row * {a_rows} + lane_group * 4)"
        yield f"    var column = Int(tile_column * {tile.geometry.BN} + wave_column * {b_rows} + lane_row)"
        for m in range(binding.parts(Factor.A)):
            for n in range(binding.parts(Factor.B)):
                row, right = binding.first_row(Factor.A, m), binding.first_row(Factor.B, n)
                block = m * binding.parts(Factor.B) + n
                for each in range(tile.part_registers):
                    down = row + each // 4 * 4 * tile.lane_groups + each % 4
                    place = f"(first + {down}) * Int(N) + column + {right}"
                    yield f"    C.unsafe_store({place}, c[{block}][{each}])"

    def _main(self, name: str) -> Iterator[str]:
        geometry, threads = self.tile.geometry, self.tile.waves * self.tile.lanes
        depth = geometry.BK * self.program.tiles_outside
        size = self.tile.element.bytes
        yield "def main() raises:"
        yield "    with DeviceContext() as context:"
        yield f"        var a = context.enqueue_create_buffer[DType.uint8]({geometry.BM * depth * size})"
        yield f"        var b = context.enqueue_create_buffer[DType.uint8]({geometry.BN * depth * size})"
        yield f"        var c = context.enqueue_create_buffer[DType.float32]({geometry.BM * geometry.BN})"
        yield (
            f"        context.enqueue_function[{name}](a.unsafe_ptr(), b.unsafe_ptr(), c.unsafe_ptr(), "
            f"Int32({geometry.BN}), Int32({depth}), grid_dim=(1, 1), block_dim={threads})"
        )
        yield "        context.synchronize()"


def _beside(condition: str, group: int) -> Iterator[str]:
    """A barrier that is in no table."""
    indent = ""
    if condition:
        yield condition
        indent = "    "
    if group >= 0:
        yield f"{indent}if wave_group == {group}:"
        yield f"{indent}    meet()"
    else:
        yield f"{indent}meet()"


def _log2(number: int) -> int:
    return number.bit_length() - 1
