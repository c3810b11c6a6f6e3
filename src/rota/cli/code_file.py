"""Machine code named on the command line: takes FILE or FILE:kernel, gives a code object and the kernel's name.

Assembly is assembled, for the processor that it names; a HIP source is compiled, for --device.
"""

from __future__ import annotations

import re
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rota.isa.binary.code_object import CodeObject

OBJECTS = frozenset({".co", ".hsaco"})
SOURCES = frozenset({".hip", ".s"})
_TARGET = re.compile(r'^\s*\.amdgcn_target\s+"amdgcn-amd-amdhsa--(gfx\w+)', re.MULTILINE)


def split_name(text: str) -> tuple[str, str | None]:
    """The file and the kernel's name, if there is one."""
    place, colon, name = text.rpartition(":")
    return (place, name) if colon and Path(place).suffix in OBJECTS | SOURCES else (text, None)


def names_machine_code(text: str) -> bool:
    """Is it a code object, a source, a folder, or a pattern of these, with or without a kernel's name?"""
    place = split_name(text)[0]
    return Path(place).suffix in OBJECTS | SOURCES or Path(place).is_dir() or (has_magic(place) and ".py:" not in place)


def code_files(place: str) -> list[Path]:
    """The files that a name, a folder or a pattern stands for: of folders all that hold code, or source of it."""
    if not Path(place).is_dir() and not has_magic(place):
        return [Path(place)]
    named = [Path(place)] if Path(place).is_dir() else [*map(Path, glob(place, recursive=True))]  # noqa: PTH207
    found = [file for each in named for file in (each.rglob("*") if each.is_dir() else (each,))]
    return sorted({file for file in found if file.suffix in OBJECTS | SOURCES and file.is_file()})


def read_code(file: Path, *, device: str | None = None, compiler: str | None = None) -> CodeObject:
    """The code object that a file is, or that is made of it."""
    if file.suffix not in SOURCES:
        from rota.prove.proved_object import read_object_to_prove

        return read_object_to_prove(file)
    if not file.is_file():
        raise click.UsageError(f"there is no file {file}")
    from rota.isa.binary.toolchain import find_toolchain

    text = file.read_text(encoding="utf-8", errors="replace")
    arch = _arch(file, text, device)
    if file.suffix == ".s":
        return find_toolchain(compiler).assemble(text, arch)
    from rota.isa.load import compile_source
    from rota.prove.proved_object import read_object_to_prove

    return read_object_to_prove(compile_source(file, arch, compiler=compiler).hsaco)  # again, with its lines


def _arch(file: Path, text: str, device: str | None) -> str:
    from rota.targets.registry import device_named

    if device is not None:
        return device_named(device).arch
    named = _TARGET.search(text) if file.suffix == ".s" else None
    if named is None:
        raise click.UsageError(f"{file.name} is source: --device says what it is compiled for")
    return named[1]


def named_code(text: str, *, device: str | None = None, compiler: str | None = None) -> tuple[CodeObject, str | None]:
    """One file, and the kernel's name, if there is one."""
    place, name = split_name(text)
    if Path(place).is_dir():
        raise click.UsageError(f"{place} is a folder: name one file")
    return read_code(Path(place), device=device, compiler=compiler), name
