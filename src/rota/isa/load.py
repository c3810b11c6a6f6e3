"""The way in for machine code: takes a code object's file or bytes, gives a `LoadedKernel` that can be launched."""

from __future__ import annotations

import os
from dataclasses import replace
from os import PathLike
from pathlib import Path

from rota.errors import Finding, ToolchainError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.object_file import read_code_object
from rota.isa.binary.toolchain import find_objdump, find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.loaded_kernel import LoadedKernel

SOURCES = frozenset({".hip", ".cpp", ".cu"})
"""How the names of files end that have to be compiled first."""


def load_kernel(
    source: str | PathLike[str] | bytes, name: str | None = None, *, arch: str | None = None
) -> LoadedKernel:
    """The kernel of that name in a code object, or in that of a bundle for `arch`; without a name, the only one.

    An instruction that isn't known is an error here, before anything runs.
    """
    code = read_object(source, arch)
    instructions = code.instructions(name)
    # Only code that asks where it stands can find what is loaded with it.
    image = code.image() if any(each.opcode == "s_getpc_b64" for each in instructions) else b""
    return LoadedKernel(program=load_program(code.kernel(name), instructions, image=image))


def load_source(path: Path, arch: str, name: str | None = None, *, compiler: str | None = None) -> LoadedKernel:
    """The kernel in a HIP source, compiled for `arch` with its lines, and with what lies beside it."""
    return load_kernel(compile_source(path, arch, compiler=compiler).hsaco, name)


def compile_source(path: Path, arch: str, *, compiler: str | None = None) -> CodeObject:
    """A HIP source, compiled for `arch` with its lines, and with what lies beside it."""
    toolchain = find_toolchain(compiler)
    beside = (f"-I{path.parent.resolve()}", "-gline-tables-only")
    text = _read(path).decode("utf-8", errors="replace")
    told = os.fspath(path.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    return replace(toolchain, compiler=(*toolchain.compiler, *beside)).compile(f'#line 1 "{told}"\n{text}', arch)


def read_object(source: str | PathLike[str] | bytes, arch: str | None = None) -> CodeObject:
    """A code object from a file or bytes, disassembled."""
    contents = source if isinstance(source, bytes) else _read(Path(source))
    return read_code_object(contents, find_objdump(), arch=arch)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        raise ToolchainError(Finding(code="T103", message=f"{path} can't be read: {why}")) from error
