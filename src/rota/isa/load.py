"""The way in for machine code: takes a code object's file or bytes, gives a `LoadedKernel` that can be launched."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from rota.errors import Finding, ToolchainError
from rota.isa.code_object import CodeObject, read_kernels
from rota.isa.decoded import load_program
from rota.isa.launch import LoadedKernel
from rota.isa.toolchain import find_toolchain, found_toolchains

_SECONDS = 120


def load_kernel(source: str | PathLike[str] | bytes, name: str | None = None) -> LoadedKernel:
    """The kernel of that name in a code object; without a name, the only one.

    An instruction that isn't known is an error here, before anything runs.
    """
    code = read_object(source)
    return LoadedKernel(program=load_program(code.kernel(name), code.instructions(name)))


def read_object(source: str | PathLike[str] | bytes) -> CodeObject:
    """A code object from a file or bytes, disassembled."""
    hsaco = source if isinstance(source, bytes) else _read(Path(source))
    kernels = read_kernels(hsaco)
    if not kernels:
        raise ToolchainError(Finding(code="T103", message="the code object can't be read: it has no kernel"))
    return CodeObject(
        arch=kernels[0].arch,
        toolchain="",
        hsaco=hsaco,
        assembly="",
        disassembly=_disassembled(hsaco),
        kernels=kernels,
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        raise ToolchainError(Finding(code="T103", message=f"{path} can't be read: {why}")) from error


def _disassembled(hsaco: bytes) -> str:
    objdump = next(_disassemblers(), None) or find_toolchain("llvm-objdump").compiler
    with tempfile.TemporaryDirectory(prefix="rota-") as folder:
        path = Path(folder) / "kernel.hsaco"
        path.write_bytes(hsaco)
        command = (*objdump, "-d", str(path))
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603  # found above
    if done.returncode != 0:
        raise ToolchainError(
            Finding(
                code="T103", message="the code object can't be disassembled", evidence=(("objdump", done.stderr[:200]),)
            )
        )
    return done.stdout


def _disassemblers() -> Iterator[tuple[str, ...]]:
    for toolchain in found_toolchains():
        if toolchain.objdump is not None:
            yield toolchain.objdump
