"""Compilers for AMD GPUs: takes HIP source and an architecture, gives a `CodeObject`.

Every toolchain goes the same three steps, source to assembly, assembly to object, object to code object: the assembly
is wanted anyway, and the ziglang wheel can't link in one step.  No ROCm headers or device libraries are used.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rota.errors import Finding, ToolchainError
from rota.isa.binary.code_object import CodeObject, read_kernels
from rota.isa.binary.line_table import read_lines
from rota.isa.binary.object_file import read_code_object

_SECONDS = 300
_FRONT = (
    "-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-O3", "-std=c++20",
    "-cuid=0",  # otherwise a hash of the folder enters the code object
)  # fmt: skip
_VERSIONS = (22, *range(30, 22, -1), 21, 20)  # 22 is what rota is tested with; gfx950 needs 20
_ERROR_LINES = 5
_INSTALL = (
    "apt-get install clang-22 lld-22 llvm-22",
    "pip install 'rota[hip]'   (the ziglang wheel: clang and lld, no disassembler)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """One compiler: the commands that start it, its linker and its disassembler, if it has one."""

    name: str
    compiler: tuple[str, ...]
    linker: tuple[str, ...]
    objdump: tuple[str, ...] | None

    def compile(self, source: str, arch: str) -> CodeObject:
        """HIP source as a code object for `arch`, such as gfx950."""
        with tempfile.TemporaryDirectory(prefix="rota-") as name:
            folder = Path(name)
            (folder / "kernel.hip").write_text(source, encoding="utf-8")
            front = (*self.compiler, *_FRONT, f"--offload-arch={arch}", "-S", "kernel.hip", "-o", "kernel.s")
            self._run(front, folder, arch)
            return self._assembled(folder, arch)

    def assemble(self, assembly: str, arch: str) -> CodeObject:
        """Assembly as a code object: what a compiler would have made, edited."""
        with tempfile.TemporaryDirectory(prefix="rota-") as name:
            folder = Path(name)
            (folder / "kernel.s").write_text(assembly, encoding="utf-8")
            return self._assembled(folder, arch)

    def version(self) -> str:
        """The first line of what the compiler says about itself."""
        return self._run((*self.compiler, "--version"), Path.cwd(), "any").splitlines()[0]

    def _assembled(self, folder: Path, arch: str) -> CodeObject:
        back = ("-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-c", "kernel.s", "-o", "kernel.o")
        self._run((*self.compiler, *back), folder, arch)
        self._run((*self.linker, "-shared", "kernel.o", "-o", "kernel.hsaco"), folder, arch)
        assembly = (folder / "kernel.s").read_text(encoding="utf-8")
        hsaco = (folder / "kernel.hsaco").read_bytes()
        if self.objdump is not None:
            return read_code_object(hsaco, self.objdump, toolchain=self.name, assembly=assembly)
        return CodeObject(
            arch=arch,
            toolchain=self.name,
            hsaco=hsaco,
            assembly=assembly,
            disassembly=assembly,
            kernels=read_kernels(hsaco),
            lines=read_lines(hsaco),
        )

    def _run(self, command: tuple[str, ...], folder: Path, arch: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603  # the commands are found below or named by the caller
                command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except FileNotFoundError as error:  # a clang without its linker
            raise _absent(f"{self.name} needs {command[0]}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _refused(self.name, arch, command, str(error)) from error
        if done.returncode != 0:
            raise _refused(self.name, arch, command, done.stderr)
        return done.stdout


def find_toolchain(compiler: str | None = None) -> Toolchain:
    """The compiler at that path or name, or the first one found: ROCm's, clang++-22, another clang++, ziglang."""
    if compiler is not None:
        return explicit_toolchain(compiler)
    for toolchain in found_toolchains():
        return toolchain
    raise _absent("rocm, clang++ 20 to 30, ziglang")


def found_toolchains() -> Iterator[Toolchain]:
    """Every toolchain on this machine, the preferred one first."""
    for clang in _rocm_clangs():
        yield _clang("rocm", clang)
    for name in (*(f"clang++-{version}" for version in _VERSIONS), "clang++"):
        path = shutil.which(name)
        if path is not None:
            yield _clang(name, Path(path))
    zig = ziglang_toolchain()
    if zig is not None:
        yield zig


def explicit_toolchain(compiler: str) -> Toolchain:
    """The clang at that path, or of that name on the PATH; "ziglang" is the wheel."""
    if compiler == "ziglang":
        zig = ziglang_toolchain()
        if zig is None:
            raise _absent(compiler)
        return zig
    path = shutil.which(compiler)
    if path is None:
        raise _absent(compiler)
    return _clang(Path(path).name, Path(path))


def find_objdump() -> tuple[str, ...]:
    """The first disassembler of the toolchains on this machine, or a llvm-objdump without a compiler."""
    for toolchain in found_toolchains():
        if toolchain.objdump is not None:
            return toolchain.objdump
    for name in (*(f"llvm-objdump-{version}" for version in _VERSIONS), "llvm-objdump"):
        path = shutil.which(name)
        if path is not None:
            return (path,)
    raise _absent("llvm-objdump, which reads machine code")


def ziglang_toolchain() -> Toolchain | None:
    """The ziglang wheel of this Python, if it is installed.  It disassembles nothing."""
    if importlib.util.find_spec("ziglang") is None:
        return None
    zig = (sys.executable, "-m", "ziglang")
    return Toolchain(name="ziglang", compiler=(*zig, "clang"), linker=(*zig, "ld.lld"), objdump=None)


def _rocm_clangs() -> Iterator[Path]:
    """ROCm's clang under ROCM_PATH, in its usual place, and beside the hipcc on the PATH."""
    roots = [Path(os.environ["ROCM_PATH"])] if os.environ.get("ROCM_PATH") else []
    roots.append(Path("/opt/rocm"))
    hipcc = shutil.which("hipcc")
    if hipcc is not None:
        roots.append(Path(hipcc).resolve().parents[1])
    seen = set()
    for root in roots:
        clang = root / "llvm" / "bin" / "clang++"
        if clang.is_file() and clang.resolve() not in seen:
            seen.add(clang.resolve())
            yield clang


def _clang(name: str, clang: Path) -> Toolchain:
    """A clang with the lld and the objdump that belong to it: beside it, or with its version on the PATH."""
    version = re.search(r"-\d+$", clang.name)
    suffix = version[0] if version else ""
    return Toolchain(
        name=name,
        compiler=(str(clang),),
        linker=(_companion(clang, "ld.lld", suffix) or f"ld.lld{suffix}",),
        objdump=None if (found := _companion(clang, "llvm-objdump", suffix)) is None else (found,),
    )


def _companion(clang: Path, tool: str, suffix: str) -> str | None:
    for path in (clang.parent / f"{tool}{suffix}", clang.resolve().parent / tool):
        if path.is_file():
            return str(path)
    return shutil.which(f"{tool}{suffix}") or shutil.which(tool)


def _absent(wanted: str) -> ToolchainError:
    return ToolchainError(
        Finding(
            code="T101",
            message=f"no toolchain found: {wanted}",
            evidence=(("looked in", "ROCM_PATH, /opt/rocm, PATH, the packages of this Python"),),
            fixes=_INSTALL,
        )
    )


def _refused(toolchain: str, arch: str, command: tuple[str, ...], said: str) -> ToolchainError:
    """The compiler's own first errors, without the lines of context around them."""
    lines = [line for line in said.splitlines() if "error" in line.lower()] or said.splitlines()
    return ToolchainError(
        Finding(
            code="T102",
            message=f"{toolchain} refused the source for {arch}: {lines[0] if lines else 'no message'}",
            evidence=(
                ("command", " ".join(command)),
                *((f"error {number}", line) for number, line in enumerate(lines[:_ERROR_LINES], 1)),
            ),
        )
    )
