"""A GEMM kernel in FlyDSL, and what FlyDSL's compiler makes of it.

FlyDSL compiles when a kernel is launched, and takes its settings from the environment: it runs in a process of its own,
which compiles and doesn't launch.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.forms import gemm_form, refuse_attention
from rota.emit.gemm.gemm_plan import Statement, gemm_plan
from rota.emit.gemm.gemm_tile import Dma, Element, Factor, LdsRead, Mfma
from rota.emit.text import Emission, Template, identifier, sync_text
from rota.errors import ToolchainError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import read_object
from rota.languages.language_code import LanguageCode, PlainKernel, log2, run_compiler
from rota.pipeline.geometry import KernelGeometry
from rota.program.kinds import Phase

# A GEMM kernel in FlyDSL.
#
# One statement is one instruction. Waits, barriers, priorities and fences are FlyDSL's own; DMAs and matrix
# instructions are lines of assembly, to which LLVM adds no waits; LDS reads are loads that it sees, so that it
# still guards their registers.

_WORDS = ("fx", "flyc", "ir", "llvm", "rocdl", "arith", "launch", "Memory", "dma", "read", "mma", "zero", "kept")


def emit_flydsl(
    compiled: CompiledSchedule, geometry: KernelGeometry, *, element: Element | None = None, waves: int | None = None
) -> str:
    """A complete module: the kernel, and a function `launch` that starts it."""
    plan = gemm_plan(compiled, geometry, element=element, waves=waves, plain=True)
    return "\n".join([*_FlydslKernel(plan).lines(identifier(plan.symbol, _WORDS)), ""])


def flydsl(asked: Emission) -> str:
    """A module with a FlyDSL kernel, for `rota emit`."""
    refuse_attention(asked, "flydsl")
    return emit_flydsl(asked.named, asked.kernel.geometry(), **gemm_form(asked.kernel.shape()))


class _FlydslKernel(PlainKernel):
    template = Template("rota.languages", "flydsl.py.txt")

    def lines(self, name: str) -> Iterator[str]:
        plan, tile, binding, program = self.plan, self.tile, self.binding, self.program
        words = tile.read_bytes // tile.register_bytes
        factors = "a, b = factors"
        if tile.pieces_per_step > 1:
            width = words * tile.pieces_per_step
            factor = f"ir.VectorType.get([{width}], ir.IntegerType.get_signless(32))"
            pairs = "(factors[:2], factors[2:])"
            factors = f"a, b = (llvm.shufflevector({factor}, *each, {list(range(width))}) for each in {pairs})"
        blocks = [f"c_{m}_{n}" for m, n in plan.blocks]
        reads = (each for each in plan.list_instructions(Phase.PROLOGUE) if isinstance(each, LdsRead))
        carried = [*blocks, *dict.fromkeys(each.target.name for each in reads)]
        per_trip = program.tiles_per_trip
        shifted = f" >> {log2(per_trip)}" if per_trip > 1 else ""
        unused = (each.name for each in plan.find_unused())
        return self.template.lines(
            "kernel",
            name=name,
            tile=tile,
            binding=binding,
            program=program,
            contract=self.contract(name),
            words=words,
            factors=factors,
            rows=str([each // 4 * 4 * tile.lane_groups + each % 4 for each in range(tile.part_registers)]),
            per_trip=f" // {per_trip}" if per_trip & (per_trip - 1) else shifted,
            sums=(f"{each} = zero()" for each in blocks),
            prologue=self.phase(Phase.PROLOGUE),
            state=f"[{', '.join(carried)}]",
            loop=self.phase(Phase.KERNEL),
            epilogue=self.phase(Phase.EPILOGUE),
            unused=(f'say("", {each})  # nothing uses it, but the schedule reads it' for each in unused),
            kept_sums=(f"{each} = kept({each})" for each in blocks),
            stores=(
                f"store(c_{m}_{n}, out, row + {binding.first_row(Factor.A, m)}, "
                f"column + {binding.first_row(Factor.B, n)}, N)"
                for m, n in plan.blocks
            ),
            **self.lane_words(),
        )

    def write(self, statement: Statement, phase: Phase) -> Iterator[str]:
        if statement.entry.op.is_framework:
            yield from sync_text(self.program, statement.entry, "flydsl").splitlines()
        for each in statement.instructions:
            if isinstance(each, Dma):
                rows = [f"dma_rows * {each.number}"] if each.number else []
                offset = " + ".join([*self.plan.offset(each, phase), *rows]) or "0"
                fetch = f"fetch{each.number % self.plan.patterns}"
                yield f"dma(lds, {self.plan.lds(each)}, {each.operand.value}_global, {fetch}, {offset})"
            elif isinstance(each, LdsRead):
                yield f"{each.target.name} = read({each.operand.value}_lane{each.piece}, {each.lds})"
            elif isinstance(each, Mfma):
                block = f"c_{each.a_part}_{each.b_part}"
                yield f"{block} = mma({', '.join([block, *(factor.name for factor in each.uses)])})"


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
    plan = gemm_plan(compiled, geometry, plain=True)
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
        run_compiler("FlyDSL", command, os.environ | settings)
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
