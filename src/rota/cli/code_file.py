"""Machine code named on the command line: FILE or FILE:kernel; and what a project says once about its kernels.

Assembly is assembled for the processor that it names; HIP source is compiled for --device.

A project speaks in `[tool.rota]` in pyproject.toml, or a file rota.toml:

    device = "mi355x"
    fail-on = "required"

    [[kernels]]
    name = "gemm_*"
    block = "16x16"

The first entry of `kernels` whose patterns match a kernel and its file says what differs for it. The command line wins.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from rota.cli.arguments import compile_kernel
from rota.cli.commands.emit import source_of
from rota.cli.output import progress
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import did_you_mean
from rota.kernels.kernel import Kernel
from rota.prove.causes import EvidenceLevel
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


FILE, TABLE = "rota.toml", "pyproject.toml"
_LEVELS = frozenset(each.value.replace(" ", "-") for each in EvidenceLevel)
_WORDS = {
    "lds-reads": {"strict", "lenient"},
    "vmcnt": {"in-order", "any-order"},
    "fail-on": _LEVELS,
    "assume": {"lds-in-bounds"},
}  # fmt: skip
_KINDS: dict[str, tuple[type, ...]] = {
    "block": (int, str, list), "device": (str,), "fail-on": (str,), "lds-reads": (str,), "vmcnt": (str,),
    "assume": (list,), "steps": (int,), "seconds": (int, float), "extents": (list,), "ranges": (list,),
    "same": (list,), "where": (list,),
}  # fmt: skip
_PROJECT: dict[str, tuple[type, ...]] = {
    **_KINDS, "baseline": (str,), "store": (str,), "jobs": (int,), "timeout": (int, float), "build-dir": (str,),
    "compiler": (str,), "flags": (list,), "kernels": (list,),
}  # fmt: skip
_KERNEL: dict[str, tuple[type, ...]] = {**_KINDS, "name": (str,), "file": (str,)}
_TEXTS = frozenset({"flags", "extents", "ranges", "same", "where"})
_PATHS = ("baseline", "store", "build-dir")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The settings of a project, and of some of its kernels; paths are from the folder of the file that says them."""

    file: Path | None = None
    settings: Mapping[str, Any]
    kernels: tuple[Mapping[str, Any], ...] = ()

    def settings_for(self, file: str, kernel: str = "") -> dict[str, Any]:
        """What is said about a kernel of a file; without a kernel, about the file."""
        own = next((each for each in self.kernels if _matches(each, self._shorten(file), kernel)), {})
        return {**self.settings, **{name: value for name, value in own.items() if name not in {"name", "file"}}}

    def _shorten(self, file: str) -> str:
        if self.file is None:
            return file
        path, root = Path(file).resolve(), self.file.parent.resolve()
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


NO_PROJECT = Project(settings={})


def _matches(entry: Mapping[str, Any], file: str, kernel: str) -> bool:
    in_file = "file" not in entry or fnmatchcase(file, entry["file"]) or fnmatchcase(Path(file).name, entry["file"])
    # Before a file is compiled, its kernels aren't known: only entries without a name are about it.
    return in_file and ("name" not in entry or (kernel != "" and fnmatchcase(kernel, entry["name"])))


def find_project(start: Path) -> Project:
    """The nearest file with settings, from a folder upwards; no settings if there is none."""
    for folder in (start.resolve(), *start.resolve().parents):
        for name in (FILE, TABLE):
            file = folder / name
            if file.is_file() and (said := _read(file)) is not None:
                return _project(file, said)
    return NO_PROJECT


def _read(file: Path) -> Mapping[str, Any] | None:
    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if file.name == TABLE:  # somebody else's file, which somebody else's tool complains about
            return None
        raise click.UsageError(f"{file} can't be read: {error}") from error
    if file.name == FILE:
        return said
    tool = said.get("tool", {}).get("rota")
    return tool if isinstance(tool, dict) else None


def _project(file: Path, said: Mapping[str, Any]) -> Project:
    settings = _check(file, said, _PROJECT, "")
    kernels = []
    for number, entry in enumerate(settings.pop("kernels", []), 1):
        where = f"kernels, entry {number}: "
        if not isinstance(entry, dict):
            raise click.UsageError(f"{file}: {where}a table is expected")
        kernels.append(_check(file, entry, _KERNEL, where))
    for name in _PATHS:
        if name in settings:
            settings[name] = file.parent / settings[name]
    return Project(file=file, settings=settings, kernels=tuple(kernels))


def _check(file: Path, said: Mapping[str, Any], known: Mapping[str, tuple[type, ...]], where: str) -> dict[str, Any]:
    found = {}
    for name, value in said.items():
        if name not in known:
            raise click.UsageError(f"{file}: {where}{name!r} is no setting; {'; '.join(did_you_mean(name, known))}")
        if not isinstance(value, known[name]) or isinstance(value, bool):
            raise click.UsageError(f"{file}: {where}{name} is {value!r}, which is no {known[name][0].__name__}")
        for word in value if isinstance(value, list) and name != "kernels" else [value]:
            if name in _WORDS and word not in sorted(_WORDS[name]):  # a word that can't be hashed is none, either
                raise click.UsageError(f"{file}: {where}{name} is {word!r}; known: {', '.join(sorted(_WORDS[name]))}")
            if name in _TEXTS and not isinstance(word, str):
                raise click.UsageError(f"{file}: {where}{name} has {word!r}, which is no text")
        found[name] = value
    if "block" in found:
        from rota.cli.code_file import BlockType

        block = found["block"]
        text = "x".join(map(str, block)) if isinstance(block, list) else str(block)
        try:
            found["block"] = BlockType().convert(text, None, None)
        except click.BadParameter as error:
            raise click.UsageError(f"{file}: {where}{error.message}") from error
    return found
