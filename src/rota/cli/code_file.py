"""Machine code named on the command line: FILE or FILE:kernel.

Assembly is assembled for the processor that it names; HIP source is compiled for --device.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from rota.cli.arguments import compile_kernel
from rota.cli.commands.emit import source_of
from rota.cli.output import progress
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.kernels.kernel import Kernel
from rota.targets.architecture import architecture_of

if TYPE_CHECKING:
    from rota.isa.binary.code_object import CodeObject
    from rota.isa.binary.hip_source import HipFlags

OBJECTS = frozenset({".co", ".hsaco"})
SOURCES = frozenset({".hip", ".s", ".cpp", ".cu", ".cc", ".cxx"})
_ANY_CPP = frozenset({".cpp", ".cu", ".cc", ".cxx"})  # in a folder, HIP only if it has a kernel
_TARGET = re.compile(r'^\s*\.amdgcn_target\s+"amdgcn-amd-amdhsa--(gfx\w+)', re.MULTILINE)


def split_name(text: str) -> tuple[str, str | None]:
    """The file and the kernel's name, if there is one."""
    place, colon, name = text.rpartition(":")
    return (place, name) if colon and Path(place).suffix in OBJECTS | SOURCES else (text, None)


def names_machine_code(text: str) -> bool:
    """True for a code object, a source, a folder, or a pattern of these, with or without a kernel's name."""
    place = split_name(text)[0]
    return Path(place).suffix in OBJECTS | SOURCES or Path(place).is_dir() or (has_magic(place) and ".py:" not in place)


def code_files(place: str) -> list[Path]:
    """The files that a name, a folder or a pattern represents: of folders all that hold code, or source of it."""
    if not Path(place).is_dir() and not has_magic(place):
        return [Path(place)]
    named = [Path(place)] if Path(place).is_dir() else [*map(Path, glob(place, recursive=True))]  # noqa: PTH207
    found = [file for each in named for file in (each.rglob("*") if each.is_dir() else (each,))]
    return sorted({file for file in found if file.suffix in OBJECTS | SOURCES and file.is_file() and _has_code(file)})


def _has_code(file: Path) -> bool:
    return file.suffix not in _ANY_CPP or b"__global__" in file.read_bytes()


class Compilation(NamedTuple):
    """For what a source is compiled, by what, and with which flags."""

    device: str | None = None
    compiler: str | None = None
    flags: HipFlags | None = None
    processors: tuple[str, ...] = ()  # that a build compiles it for: the first one that is known, without a device


def read_code(file: Path, how: Compilation = Compilation()) -> CodeObject:  # noqa: B008  # frozen
    """The code object that a file is, or that is made of it."""
    if file.suffix not in SOURCES:
        from rota.isa.binary.toolchain import read_object

        return read_object(file)
    if not file.is_file():
        raise click.UsageError(f"there is no file {file}")
    from rota.isa.binary.toolchain import find_toolchain

    text = file.read_text(encoding="utf-8", errors="replace")
    arch = _arch(file, text, how)
    if file.suffix == ".s":
        return find_toolchain(how.compiler).assemble(text, arch, file)
    from rota.isa.binary.hip_source import HipFlags, compile_hip
    from rota.isa.binary.toolchain import read_object

    made = compile_hip(file, arch, compiler=how.compiler, flags=how.flags or HipFlags())
    return read_object(made.hsaco)  # again, with its lines


def _arch(file: Path, text: str, how: Compilation) -> str:
    from rota.targets.registry import list_architectures, machine_named

    if how.device is not None:
        return machine_named(how.device).arch
    known = {each.toolchain: bool(each.unmodelled or each.assumed) for each in list_architectures()}
    built = sorted((each for each in how.processors if each in known), key=known.__getitem__)
    if built:  # one that is modelled whole, before those that are in part
        return built[0]
    named = _TARGET.search(text) if file.suffix == ".s" else None
    if named is None:
        raise click.UsageError(f"{file.name} is source: --device says what it is compiled for")
    return named[1]


def find_code(text: str, *, device: str | None = None, compiler: str | None = None) -> tuple[CodeObject, str | None]:
    """One file, and the kernel's name, if there is one."""
    place, name = split_name(text)
    if Path(place).is_dir():
        raise click.UsageError(f"{place} is a folder: name one file")
    return read_code(Path(place), Compilation(device, compiler)), name


Command = TypeVar("Command", bound=Callable[..., object])
Block = int | tuple[int, int, int]
_AXES = 3


def compiler_option(command: Command) -> Command:
    return click.option(
        "--compiler", metavar="NAME", help="A clang++ by path or name, or ziglang; by default the first found."
    )(command)


class BlockType(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions alone
    """Work items of a workgroup: a number, or up to three of them as 16x16."""

    name = "block"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Block:
        """An int, whose shape isn't said, or all three sizes."""
        parts = str(value).lower().split("x")
        if not all(part.isdecimal() for part in parts) or len(parts) > _AXES:
            self.fail(f"{value!r} is no block: 256, or 16x16, or 8x8x4", param, ctx)
        sizes = [int(part) for part in parts]
        from rota.isa.binary.kernel_facts import MOST_WORK_ITEMS  # loaded with machine code, not with every command

        if not 1 <= math.prod(sizes) <= MOST_WORK_ITEMS:
            self.fail(f"a workgroup has 1 to {MOST_WORK_ITEMS} work items, not {math.prod(sizes)}", param, ctx)
        x, y, z = (*sizes, 1, 1)[:_AXES]
        return x if len(parts) == 1 else (x, y, z)


def block_option(command: Command) -> Command:
    return click.option(
        "--block", type=BlockType(), metavar="X[xY[xZ]]", help="Work items of a workgroup, of machine code: 256, 16x16."
    )(command)


def dynamic_lds_option(command: Command) -> Command:
    return click.option(
        "--dynamic-lds", type=click.IntRange(0), help="Bytes of LDS that the launch adds, as Triton's do."
    )(command)


def device_option(command: Command) -> Command:
    return click.option(
        "--device", metavar="DEVICE", help="What source is compiled for, or machine code is predicted for."
    )(command)


class Built(NamedTuple):
    compiled: CompiledSchedule
    code: CodeObject


def build_code(
    kernel: Kernel, compiler: str | None, form: str = "hip", options: Mapping[str, str] | None = None
) -> Built:
    """The compiler is looked for first: without one there is no need to search for a schedule."""
    from rota.isa.binary.toolchain import find_toolchain

    toolchain = find_toolchain(compiler)
    compiled = compile_kernel(kernel)
    with progress(f"{toolchain.name} compiles {kernel.name}"):
        code = toolchain.compile(
            source_of(kernel, compiled, form, options), architecture_of(compiled.machine).toolchain
        )
    return Built(compiled, code)
