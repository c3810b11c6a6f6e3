"""A GEMM kernel in FlyDSL, and what FlyDSL's compiler makes of it.

FlyDSL compiles when a kernel is launched, and takes its settings from the environment: it runs in a process of its own,
which compiles and doesn't launch.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.emission import Emission
from rota.emit.forms import gemm_form
from rota.emit.gemm.gemm_plan import GemmPlan, Register, gemm_plan, target
from rota.emit.gemm.gemm_tile import Dma, Element, Factor, Instruction, LdsRead, Mfma
from rota.emit.text import comment, identifier, is_alone
from rota.errors import ToolchainError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import read_object
from rota.languages.language_code import LanguageCode
from rota.pipeline.geometry import KernelGeometry
from rota.program.entry import Entry
from rota.program.kinds import OpKind, Phase

# A GEMM kernel in FlyDSL.
#
# One statement is one instruction. Waits, barriers, priorities and fences are FlyDSL's own; DMAs and matrix
# instructions are lines of assembly, to which LLVM adds no waits; LDS reads are loads that it sees, so that it
# still guards their registers.

_FAR_APART = 100  # the column of comments
_WORDS = ("fx", "flyc", "ir", "llvm", "rocdl", "arith", "launch", "Memory", "dma", "read", "mma", "zero", "kept")

_FUNCTIONS = '''\
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir import ir
from flydsl._mlir.dialects import arith, llvm
from flydsl.expr import rocdl


def word(value):
    """A value as MLIR has it."""
    return fx.as_ir_value(value)


def fence():
    """Keeps the compiler from moving anything over it."""
    rocdl.sched_barrier(0)


def dma(lds, to, resource, fetch, offset):
    """Global memory to LDS; the address in LDS is m0."""
    text = f"s_add_u32 m0, $1, {to}\\ns_nop 0\\n<dma> $2, $3, $4 offen lds"
    operands = [word(lds), word(fetch), word(resource), word(fx.Int32(offset))]
    binds = "=&{m0},s,v,s,s,~{memory},~{scc}"
    llvm.inline_asm(ir.IntegerType.get_signless(32), operands, text, binds, has_side_effects=True)
    fence()


def read(place, lds):
    """LDS to registers."""
    piece = ir.VectorType.get([<words>], ir.IntegerType.get_signless(32))
    pointer = llvm.inttoptr(ir.Type.parse("!llvm.ptr<3>"), word(place))
    pointer = llvm.getelementptr(pointer.type, pointer, [], [lds], ir.IntegerType.get_signless(8), None)
    value = llvm.LoadOp(piece, pointer, alignment=<bytes>).result
    fence()
    return value


def mma(c, *factors):
    """The sum c + a * b."""
    <factors>
    text, binds = "<instruction> $0, $1, $2, $0", "=<kept>,v,v,0"
    done = llvm.inline_asm(c.type, [a, b, c], text, binds, has_side_effects=True)
    fence()
    return done


def zero():
    """A part of C."""
    part = ir.VectorType.get([<registers>], ir.F32Type.get())
    return kept(arith.constant(part, ir.DenseElementsAttr.get_splat(part, ir.FloatAttr.get_f32(0.0))))


def kept(part):
    """Pins a part of C to its registers."""
    return llvm.inline_asm(part.type, [part], "", "=<kept>,0", has_side_effects=True)


def say(text, *operands):
    """A line of assembly."""
    llvm.inline_asm(None, list(operands), text, ",".join("v" * len(operands)), has_side_effects=True)
    fence()


def store(part, out, row, column, N):
    """A part of C to global memory."""
    for number, down in enumerate(<rows>):
        offset = fx.Int64(row + down) * fx.Int64(N) + fx.Int64(column)
        place = llvm.inttoptr(ir.Type.parse("!llvm.ptr<1>"), word(out + offset * fx.Int64(4)))
        index = arith.constant(ir.IntegerType.get_signless(32), number)
        llvm.StoreOp(llvm.extractelement(part, index), place, alignment=4)'''


def emit_flydsl(
    compiled: CompiledSchedule, geometry: KernelGeometry, *, element: Element | None = None, waves: int | None = None
) -> str:
    """A complete module: the kernel, and a function `launch` that starts it."""
    plan = gemm_plan(compiled, geometry, element=element, waves=waves)
    return "\n".join([*_FlydslKernel(plan).lines(identifier(plan.symbol, _WORDS)), ""])


def flydsl(asked: Emission) -> str:
    """A module with a FlyDSL kernel, for `rota emit`."""
    return emit_flydsl(asked.named, asked.kernel.geometry(), **gemm_form(asked.kernel.shape()))


class _FlydslKernel:
    """Writes one kernel from top to bottom."""

    def __init__(self, plan: GemmPlan) -> None:
        self.plan = plan
        self.tile, self.binding, self.program = plan.tile, plan.binding, plan.program
        self.blocks = tuple(
            f"c_{m}_{n}" for m in range(self.binding.parts(Factor.A)) for n in range(self.binding.parts(Factor.B))
        )
        read = [target(each) for each in self._of(Phase.PROLOGUE) if isinstance(each, LdsRead)]
        self.carried = (*self.blocks, *dict.fromkeys(map(str, read)))

    def _of(self, phase: Phase) -> Iterator[Instruction]:
        for entry in self.program.phase(phase):
            yield from self.plan.instructions(entry)

    def lines(self, name: str) -> Iterator[str]:
        yield from (_remark(line) for line in self.plan.contract(name))
        yield ""
        yield from self._words()
        yield ""
        yield ""
        yield "@fx.struct"
        yield "class Memory:"
        yield f"    bytes: fx.Array[fx.Int8, {self.binding.lds_bytes}, 16]"
        yield ""
        yield ""
        yield "@flyc.kernel"
        yield f"def {name}(A: fx.Pointer, B: fx.Pointer, C: fx.Pointer, N: fx.Int32, K: fx.Int32):"
        yield from self._opening()
        yield from self._phase(Phase.PROLOGUE)
        yield from self._loop()
        yield from self._phase(Phase.EPILOGUE)
        yield from self._closing()
        yield ""
        yield ""
        yield from self._launch(name)

    def _words(self) -> Iterator[str]:
        """The module's own functions."""
        tile = self.tile
        words = tile.read_bytes // tile.register_bytes
        width = words * tile.pieces_per_step
        joined = "a, b = factors"
        if tile.pieces_per_step > 1:
            factor = f"ir.VectorType.get([{width}], ir.IntegerType.get_signless(32))"
            pairs = "(factors[:2], factors[2:])"
            joined = f"a, b = (llvm.shufflevector({factor}, *each, {list(range(width))}) for each in {pairs})"
        meant = {
            "<dma>": tile.dma_instruction,
            "<words>": str(words),
            "<bytes>": str(tile.read_bytes),
            "<factors>": joined,
            "<instruction>": tile.instruction,
            "<kept>": "a" if tile.accumulates_in_agprs else "v",
            "<registers>": str(tile.part_registers),
            "<rows>": str([each // 4 * 4 * tile.lane_groups + each % 4 for each in range(tile.part_registers)]),
        }
        text = _FUNCTIONS
        for mark, meaning in meant.items():
            text = text.replace(mark, meaning)
        yield text

    def _opening(self) -> Iterator[str]:
        tile, size = self.tile, self.tile.element.bytes
        across = tile.across(Factor.B)
        yield "    memory = fx.Int32(fx.ptrtoint(fx.SharedAllocator().allocate(Memory).peek().bytes.ptr))"
        yield "    thread = fx.Int32(fx.thread_idx.x)"
        yield f"    lane = thread & {tile.lanes - 1}"
        yield f"    wave = fx.Int32(rocdl.readfirstlane(fx.Int32.ir_type, word(thread >> {_log2(tile.lanes)})))"
        yield f"    wave_row, wave_column = wave >> {_log2(across)}, wave & {across - 1}"
        if len(self.program.roles) > 1:
            yield f"    wave_group = wave >> {_log2(tile.waves // len(self.program.roles))}"
        yield "    tile_row, tile_column = fx.Int32(fx.block_idx.x), fx.Int32(fx.block_idx.y)"
        yield f"    row_bytes = K * {size}"
        yield f"    trips = ((K >> {_log2(tile.geometry.BK)}) - {self.program.tiles_outside}){self._per_trip()}"
        yield "    # Buffer resources: base, size in bytes (beyond it loads give 0), raw format."
        for operand, where in ((Factor.A, "tile_row"), (Factor.B, "tile_column")):
            name, rows = operand.value, tile.rows(operand)
            start = f"fx.Int64({where}) * fx.Int64(row_bytes * {rows})"
            yield f"    {name}_base = fx.Int64(fx.ptrtoint({operand.name})) + {start}"
            yield (
                f"    {name}_global = fx.Vector.from_elements([fx.Int32({name}_base), "
                f"fx.Int32({name}_base >> 32) & 0xFFFF, row_bytes * {rows}, fx.Int32(0x00027000)], fx.Int32)"
            )
        yield f"    # A DMA fills {tile.dma_rows} rows; a lane fetches the chunk that belongs at its place."
        yield f"    lds = memory + wave * {tile.lanes * tile.dma_bytes}"
        yield f"    dma_rows = row_bytes * {tile.dma_rows}"
        yield from self._fetches()
        yield "    # Each lane's place in the first part of A and of B, for each piece of it."
        yield f"    lane_row, lane_group = lane & {tile.side - 1}, lane >> {_log2(tile.side)}"
        yield from self._places()
        yield from (f"    {name} = zero()" for name in self.blocks)
        yield '    say("s_nop 1")  # a matrix instruction reads a register 2 slots after it was set'

    def _per_trip(self) -> str:
        per_trip = self.program.tiles_per_trip
        if per_trip & (per_trip - 1):
            return f" // {per_trip}"
        return f" >> {_log2(per_trip)}" if per_trip > 1 else ""

    def _fetches(self) -> Iterator[str]:
        tile, layout = self.tile, self.plan.layout
        lanes, each = tile.row_bytes // tile.dma_bytes, layout.chunk_bytes // tile.dma_bytes
        yield f"    row, chunk = thread >> {_log2(lanes)}, (thread & {lanes - 1}) >> {_log2(each)}"
        within = f" + (thread & {each - 1}) * {tile.dma_bytes}" if each > 1 else ""
        for pattern in range(self.plan.patterns):
            row = f"(row + {pattern * tile.dma_rows})" if pattern else "row"
            place = f"{self._exchanged('chunk', row)} * {layout.chunk_bytes}{within}"
            yield f"    fetch{pattern} = row * row_bytes + {place}"

    def _places(self) -> Iterator[str]:
        tile, layout, start = self.tile, self.plan.layout, 0
        for operand, where in ((Factor.A, "wave_row"), (Factor.B, "wave_column")):
            name = operand.value
            yield f"    {name}_row = {where} * {self.binding.wave_rows(operand)} + lane_row"
            for piece in range(self.plan.pieces):
                place = self._exchanged(f"(lane_group + {piece * tile.lane_groups})", f"{name}_row")
                yield (
                    f"    {name}_lane{piece} = memory + {start} + {name}_row * {tile.row_bytes} "
                    f"+ {place} * {layout.chunk_bytes}"
                )
            start += self.binding.buffer_bytes(operand)

    def _exchanged(self, chunk: str, row: str) -> str:
        layout = self.plan.layout
        shifted = f"({row} >> {layout.shift})" if layout.shift else row
        return f"({chunk} ^ ({shifted} & {layout.mask}))"

    def _loop(self) -> Iterator[str]:
        state = f"[{', '.join(self.carried)}]"
        trip = self.program.tiles_per_trip * self.tile.row_bytes
        yield "    # Of what a trip takes from the one before, the list is carried."
        yield f"    for trip, state in range(fx.Int32(0), trips, fx.Int32(1), init={state}):"
        yield f"        {state} = state"
        yield f"        k = fx.Int32(trip) * {trip} + {trip}  # bytes of K before this trip's tiles"
        yield from self._phase(Phase.KERNEL)
        yield f"        state = yield {state}"
        yield f"    {state} = state"
        yield f"    k = trips * {trip} + {trip}"

    def _phase(self, phase: Phase) -> Iterator[str]:
        indent = "        " if phase is Phase.KERNEL else "    "
        yield f"{indent}# {phase.value.lower()}"
        for entry, instructions, what in self.plan.written(phase):
            texts = [self._instruction(each, phase) for each in instructions]
            if entry.op.is_framework:
                texts = list(self._sync(entry))
            for text in texts:
                yield f"{indent}{text}".ljust(_FAR_APART) + "  " + _remark(what)

    def _instruction(self, instruction: Instruction, phase: Phase) -> str:
        if isinstance(instruction, Dma):
            return self._dma(instruction, phase)
        if isinstance(instruction, LdsRead):
            place = f"{instruction.operand.value}_lane{instruction.piece}"
            return f"{target(instruction)} = read({place}, {instruction.lds})"
        return self._mfma(instruction)

    def _dma(self, dma: Dma, phase: Phase) -> str:
        terms = ["k"] if phase is not Phase.PROLOGUE else []
        terms += [str(dma.k_tile * self.tile.row_bytes)] if dma.k_tile else []
        terms += [f"dma_rows * {dma.number}"] if dma.number else []
        fetch = f"fetch{dma.number % self.plan.patterns}"
        return f"dma(lds, {self.plan.lds(dma)}, {dma.operand.value}_global, {fetch}, {' + '.join(terms) or '0'})"

    def _mfma(self, mfma: Mfma) -> str:
        factors: list[Register] = [each for operand in Factor for each in self.plan.factor(mfma, operand)]
        block = f"c_{mfma.a_part}_{mfma.b_part}"
        return f"{block} = mma({', '.join([block, *map(str, factors)])})"

    def _sync(self, entry: Entry) -> Iterator[str]:
        effect = entry.effect
        if entry.op.kind is OpKind.WAIT:
            yield f"rocdl.s_waitcnt({effect.counter}={effect.wait_value}); fence()"
        elif entry.op.kind is OpKind.BARRIER and entry.roles and is_alone(self.program, entry):
            yield f"if wave_group == {entry.roles[0]}:"
            yield "    rocdl.s_barrier()"
            yield "fence()"
        elif entry.op.kind is OpKind.BARRIER:
            yield "rocdl.s_barrier(); fence()"
        elif entry.op.kind is OpKind.PRIORITY:
            yield f"rocdl.s_setprio({effect.wait_value}); fence()"
        else:
            yield "fence()"

    def _closing(self) -> Iterator[str]:
        tile, binding = self.tile, self.binding
        for register in self.plan.unused():
            yield f'    say("", {register})  # nothing uses it, but the schedule reads it'
        yield '    say("s_nop 15\\ns_nop 3")  # the last results are in their registers'
        yield from (f"    {name} = kept({name})" for name in self.blocks)
        a_rows, b_rows = binding.wave_rows(Factor.A), binding.wave_rows(Factor.B)
        yield f"    row = tile_row * {tile.geometry.BM} + wave_row * {a_rows} + lane_group * 4"
        yield f"    column = tile_column * {tile.geometry.BN} + wave_column * {b_rows} + lane_row"
        yield "    out = fx.Int64(fx.ptrtoint(C))"
        for m in range(binding.parts(Factor.A)):
            for n in range(binding.parts(Factor.B)):
                first, second = binding.first_row(Factor.A, m), binding.first_row(Factor.B, n)
                yield f"    store(c_{m}_{n}, out, row + {first}, column + {second}, N)"

    def _launch(self, name: str) -> Iterator[str]:
        tile, geometry = self.tile, self.tile.geometry
        threads, per_simd = tile.waves * tile.lanes, -(-tile.waves // tile.simds)
        yield "@flyc.jit"
        yield "def launch("
        yield "    A: fx.Pointer, B: fx.Pointer, C: fx.Pointer, M: fx.Int32, N: fx.Int32, K: fx.Int32,"
        yield "    stream: fx.Stream = fx.Stream(None),"
        yield "):"
        yield '    """Starts the kernel; A, B and C are `flyc.from_c_void_p(fx.Int8, tensor.data_ptr())`."""'
        size = f'"rocdl.flat_work_group_size": "{threads},{threads}"'
        yield f'    attributes = {{"rocdl.waves_per_eu": {per_simd}, {size}}}'
        yield f"    {name}(A, B, C, N, K, value_attrs=attributes).launch("
        yield f"        grid=(M // {geometry.BM}, N // {geometry.BN}, 1), block=({threads}, 1, 1), stream=stream"
        yield "    )"


def _log2(number: int) -> int:
    return number.bit_length() - 1


def _remark(text: str) -> str:
    return "# " + comment(text).removeprefix("// ")


# A FlyDSL kernel as machine code.
#
# FlyDSL compiles when a kernel is launched, and takes its settings from the environment: it runs in a process of
# its own, which compiles and doesn't launch.

_BINARY = re.compile(r'bin = "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2})|\\(.)", re.DOTALL)
_START = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("emitted", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
import flydsl.compiler as flyc, flydsl.expr as fx
null = flyc.from_c_void_p(fx.Int8, 0)
module.launch(null, null, null, *map(int, sys.argv[2:]))
"""


def compile_flydsl(
    compiled: CompiledSchedule, geometry: KernelGeometry, *, edit: Callable[[str], str] = str
) -> LanguageCode:
    """The schedule as FlyDSL, compiled by the FlyDSL that is installed; `edit` changes the source before."""
    if find_spec("flydsl") is None:
        raise ToolchainError.of("T301", "FlyDSL is not installed", fixes=("pip install flydsl torch",))
    plan = gemm_plan(compiled, geometry)
    source = edit(emit_flydsl(compiled, geometry))
    arch = plan.tile.machine.arch
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / f"{plan.symbol}.py"
        path.write_text(source, encoding="utf-8")
        sizes = (geometry.BM, geometry.BN, geometry.BK * plan.program.tiles_outside)
        settings = {
            "COMPILE_ONLY": "1",
            "ARCH": arch,
            "FLYDSL_GPU_ARCH": arch,
            "FLYDSL_DUMP_IR": "1",
            "FLYDSL_DUMP_DIR": str(folder / "dumps"),
            "FLYDSL_RUNTIME_ENABLE_CACHE": "0",
            "ROCM_PATH": str(_with_linker(folder)),
        }
        command = [sys.executable, "-c", _START, str(path), *map(str, sizes)]
        done = subprocess.run(  # noqa: S603  # our own text, in the interpreter that runs this
            command, env=os.environ | settings, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ToolchainError.of(
                "T102",
                "FlyDSL refused the kernel",
                evidence=(("said", " ".join(done.stderr.strip().splitlines()[-3:])[-400:]),),
            )
        code = read_dumped(folder / "dumps")
    return LanguageCode(compiled=compiled, geometry=geometry, source=source, code=code)


def read_dumped(folder: Path) -> CodeObject:
    """The code object among what FlyDSL dumps with FLYDSL_DUMP_IR=1, below the folder of FLYDSL_DUMP_DIR."""
    found = sorted(folder.rglob("*_gpu_module_to_binary.mlir"))
    binaries = [match for path in found if (match := _BINARY.search(path.read_text(encoding="latin1")))]
    if len(binaries) != 1:
        raise ToolchainError.of(
            "T103",
            f"{folder} holds {len(binaries)} code objects of FlyDSL; expected one",
            fixes=("set FLYDSL_DUMP_IR=1 and FLYDSL_DUMP_DIR to an empty folder, and compile one kernel",),
        )
    return read_object(_ESCAPED.sub(_unescape, binaries[0][1].encode("latin1")))


def _unescape(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 16)]) if match[1] else match[2]


def _with_linker(folder: Path) -> Path:
    """A folder in which FlyDSL finds the linker where ROCm has it."""
    installed = next((path for name in ("ld.lld-22", "ld.lld") if (path := shutil.which(name))), None)
    linker = folder / "rocm" / "llvm" / "bin" / "ld.lld"
    linker.parent.mkdir(parents=True)
    called = installed or f"{sys.executable} -m ziglang ld.lld"
    linker.write_text(f'#!/bin/sh\nexec {called} "$@"\n', encoding="utf-8")
    linker.chmod(0o755)
    return folder / "rocm"
