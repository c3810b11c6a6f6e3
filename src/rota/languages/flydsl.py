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
from rota.emit.text import Template, identifier, is_alone, log2, remark
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

_TEMPLATE = Template("rota.languages", "flydsl.py.txt")


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
    def __init__(self, plan: GemmPlan) -> None:
        self.plan = plan
        self.tile, self.binding, self.program = plan.tile, plan.binding, plan.program
        self.blocks = tuple(
            f"c_{m}_{n}" for m in range(self.tile.parts(Factor.A)) for n in range(self.tile.parts(Factor.B))
        )
        reads = (each for entry in self.program.prologue for each in plan.instructions(entry))
        read = (str(target(each)) for each in reads if isinstance(each, LdsRead))
        self.carried = (*self.blocks, *dict.fromkeys(read))

    def lines(self, name: str) -> Iterator[str]:
        tile, binding, program = self.tile, self.binding, self.program
        words, roles = tile.read_bytes // tile.register_bytes, len(program.roles)
        factors = "a, b = factors"
        if tile.pieces_per_step > 1:
            width = words * tile.pieces_per_step
            factor = f"ir.VectorType.get([{width}], ir.IntegerType.get_signless(32))"
            pairs = "(factors[:2], factors[2:])"
            factors = f"a, b = (llvm.shufflevector({factor}, *each, {list(range(width))}) for each in {pairs})"
        stores = (
            f"store(c_{m}_{n}, out, row + {binding.first_row(Factor.A, m)}, "
            f"column + {binding.first_row(Factor.B, n)}, N)"
            for m in range(binding.tile.parts(Factor.A))
            for n in range(binding.tile.parts(Factor.B))
        )
        unused = self.plan.find_unused()
        return _TEMPLATE.lines(
            "kernel",
            name=name,
            tile=tile,
            binding=binding,
            program=program,
            contract=map(remark, self.plan.contract(name)),
            words=words,
            factors=factors,
            rows=str([each // 4 * 4 * tile.lane_groups + each % 4 for each in range(tile.part_registers)]),
            group=[f"wave_group = wave >> {log2(tile.waves // roles)}"] if roles > 1 else (),
            per_trip=self._per_trip(),
            resources=self._resources(),
            fetches=self._fetches(),
            places=self._places(),
            sums=(f"{each} = zero()" for each in self.blocks),
            prologue=self._phase(Phase.PROLOGUE),
            state=f"[{', '.join(self.carried)}]",
            loop=self._phase(Phase.KERNEL),
            epilogue=self._phase(Phase.EPILOGUE),
            unused=(f'say("", {each})  # nothing uses it, but the schedule reads it' for each in unused),
            kept_sums=(f"{each} = kept({each})" for each in self.blocks),
            stores=stores,
            **self.plan.lane_words(),
        )

    def _resources(self) -> Iterator[str]:
        for operand, where in ((Factor.A, "tile_row"), (Factor.B, "tile_column")):
            name, rows = operand.value, self.tile.rows(operand)
            start = f"fx.Int64({where}) * fx.Int64(row_bytes * {rows})"
            yield f"{name}_base = fx.Int64(fx.ptrtoint({operand.name})) + {start}"
            yield (
                f"{name}_global = fx.Vector.from_elements([fx.Int32({name}_base), "
                f"fx.Int32({name}_base >> 32) & 0xFFFF, row_bytes * {rows}, fx.Int32(0x00027000)], fx.Int32)"
            )

    def _per_trip(self) -> str:
        per_trip = self.program.tiles_per_trip
        if per_trip & (per_trip - 1):
            return f" // {per_trip}"
        return f" >> {log2(per_trip)}" if per_trip > 1 else ""

    def _fetches(self) -> Iterator[str]:
        tile, layout = self.tile, self.plan.layout
        lanes, each = tile.row_bytes // tile.dma_bytes, layout.chunk_bytes // tile.dma_bytes
        yield f"row, chunk = thread >> {log2(lanes)}, (thread & {lanes - 1}) >> {log2(each)}"
        within = f" + (thread & {each - 1}) * {tile.dma_bytes}" if each > 1 else ""
        for pattern in range(self.plan.patterns):
            row = f"(row + {pattern * tile.dma_rows})" if pattern else "row"
            place = f"{self._exchange('chunk', row)} * {layout.chunk_bytes}{within}"
            yield f"fetch{pattern} = row * row_bytes + {place}"

    def _places(self) -> Iterator[str]:
        tile, layout, start = self.tile, self.plan.layout, 0
        for operand, where in ((Factor.A, "wave_row"), (Factor.B, "wave_column")):
            name = operand.value
            yield f"{name}_row = {where} * {self.binding.wave_rows(operand)} + lane_row"
            for piece in range(self.plan.pieces):
                place = self._exchange(f"(lane_group + {piece * tile.lane_groups})", f"{name}_row")
                yield (
                    f"{name}_lane{piece} = memory + {start} + {name}_row * {tile.row_bytes} "
                    f"+ {place} * {layout.chunk_bytes}"
                )
            start += self.binding.buffer_bytes(operand)

    def _exchange(self, chunk: str, row: str) -> str:
        layout = self.plan.layout
        shifted = f"({row} >> {layout.shift})" if layout.shift else row
        return f"({chunk} ^ ({shifted} & {layout.mask}))"

    def _phase(self, phase: Phase) -> Iterator[str]:
        indent = "        " if phase is Phase.KERNEL else "    "
        yield f"{indent}# {phase.value.lower()}"
        for entry, instructions, what in self.plan.list_written(phase):
            texts = [self._instruction(each, phase) for each in instructions]
            if entry.op.is_framework:
                texts = list(self._sync(entry))
            for text in texts:
                yield f"{indent}{text}".ljust(_FAR_APART) + "  " + remark(what)

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
