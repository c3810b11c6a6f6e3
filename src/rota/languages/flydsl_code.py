"""A FlyDSL kernel as machine code: takes an emitted schedule or a folder of dumps, gives the code object and its audit.

FlyDSL compiles when a kernel is launched, and takes its settings from the environment: it runs in a process of its own,
which compiles and doesn't launch.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_plan import gemm_plan
from rota.errors import Finding, ToolchainError
from rota.isa.binary.code_object import CodeObject
from rota.isa.load import read_object
from rota.languages.flydsl_gemm import emit_flydsl
from rota.languages.language_code import LanguageCode
from rota.pipeline.geometry import KernelGeometry

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
        raise ToolchainError(
            Finding(code="T301", message="FlyDSL is not installed", fixes=("pip install flydsl torch",))
        )
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
            raise ToolchainError(
                Finding(
                    code="T102",
                    message="FlyDSL refused the kernel",
                    evidence=(("said", " ".join(done.stderr.strip().splitlines()[-3:])[-400:]),),
                )
            )
        code = read_dumped(folder / "dumps")
    return LanguageCode(compiled=compiled, geometry=geometry, source=source, code=code)


def read_dumped(folder: Path) -> CodeObject:
    """The code object among what FlyDSL dumps with FLYDSL_DUMP_IR=1, below the folder of FLYDSL_DUMP_DIR."""
    found = sorted(folder.rglob("*_gpu_module_to_binary.mlir"))
    binaries = [match for path in found if (match := _BINARY.search(path.read_text(encoding="latin1")))]
    if len(binaries) != 1:
        raise ToolchainError(
            Finding(
                code="T103",
                message=f"{folder} holds {len(binaries)} code objects of FlyDSL; expected one",
                fixes=("set FLYDSL_DUMP_IR=1 and FLYDSL_DUMP_DIR to an empty folder, and compile one kernel",),
            )
        )
    return read_object(_ESCAPED.sub(_unescaped, binaries[0][1].encode("latin1")))


def _unescaped(match: re.Match[bytes]) -> bytes:
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
