"""HIP source as people write it: files that include `<hip/hip_runtime.h>`, with their own folders and macros.

Where a ROCm is installed, its headers and device libraries are used. Elsewhere the folder `include` beside this module
stands in: the part of HIP that device code needs, with the host's functions declared and never defined. What it lacks,
the compiler refuses, and the finding says which name or header that is. Only device code is compiled.

A build knows its flags: `read_build` takes them from CMake's compile_commands.json.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from rota.errors import ToolchainError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import BARE, find_toolchain, read_file, rocm_roots

HIP_SUFFIXES = frozenset({".hip", ".cpp", ".cu", ".cc", ".cxx"})

_STAND_IN = Path(__file__).parent / "include"
_PRELUDE = "hip/rota_math.h"  # before all else: see its first lines
_RUNTIME = Path("hip") / "hip_runtime.h"


@dataclass(frozen=True, slots=True, kw_only=True)
class HipFlags:
    """What a source is compiled with, beyond rota's own flags; relative folders are relative to `at`."""

    include: tuple[str, ...] = ()  # folders, searched in this order before the file's own
    define: tuple[str, ...] = ()  # NAME or NAME=VALUE
    standard: str | None = None  # such as c++17; c++20 by default
    clang: tuple[str, ...] = ()  # any others, as clang takes them
    at: Path | None = None  # the current folder by default

    def arguments(self) -> tuple[str, ...]:
        """As clang takes them."""
        folders = (f"-I{folder}" for folder in self.include)
        macros = (f"-D{macro}" for macro in self.define)
        standard = () if self.standard is None else (f"-std={self.standard}",)
        return (*folders, *macros, *standard, *self.clang)


_NO_FLAGS = HipFlags()


def compile_hip(path: Path, arch: str, *, compiler: str | None = None, flags: HipFlags = _NO_FLAGS) -> CodeObject:
    """Compiles a HIP file for `arch`, where it lies, with line tables and its own folder on the include path.

    Raises T103 if it can't be read and T102 if the compiler refuses it; the finding names what the stand-in for ROCm's
    headers lacks.
    """
    read_file(path)
    toolchain = find_toolchain(compiler)
    rocm = None if toolchain.name == "ziglang" else find_rocm()  # the wheel lacks clang's own headers for HIP
    headers = _stand_in(toolchain.name) if rocm is None else (f"--rocm-path={rocm}",)
    own = (f"-I{path.parent.resolve()}", *headers)
    given = ("-gline-tables-only", *flags.arguments(), *own)
    try:
        return toolchain.compile_file(path, arch, given, at=(flags.at or Path.cwd()).resolve())
    except ToolchainError as error:
        if rocm is not None or error.findings[0].code != "T102":
            raise
        raise _name_lacking(error) from error


def find_rocm() -> Path | None:
    """The first ROCm that has HIP's headers."""
    return next((root for root in rocm_roots() if (root / "include" / _RUNTIME).is_file()), None)


def _stand_in(toolchain: str) -> tuple[str, ...]:
    flags = (*BARE, "-isystem", str(_STAND_IN), "-include", _PRELUDE)
    if toolchain != "ziglang" or (spec := find_spec("ziglang")) is None or spec.origin is None:
        return flags
    return (*flags, "-idirafter", str(Path(spec.origin).parent / "lib" / "include"))  # its clang doesn't look there


# What a compiler says about a name or a header that it doesn't know.

_HEADER = re.compile(r"fatal error: '([^']+)' file not found")
_NAMES = tuple(
    re.compile(pattern)
    for pattern in (
        r"use of undeclared (?:identifier|template) '([^']+)'",
        r"unknown type name '([^']+)'",
        r"no (?:type|template|member) named '([^']+)'",
        r"no matching (?:member )?function for call to '([^']+)'",
        r"no matching constructor for initialization of '([^']+)'",
        r"reference to __host__ function '([^']+)'",
        r"undefined (?:hidden |protected )?symbol: (.+)",
        r"no libcall available for (\w+)",
    )
)
_ROCM_HEADER = re.compile(r"(?:hip|roc|rocm|ck|thrust|miopen|rccl|hsa|amd)\w*[/.]", re.IGNORECASE)


def _name_lacking(error: ToolchainError) -> ToolchainError:
    finding = error.findings[0]
    lines = [str(text) for label, text in finding.evidence if label.startswith("error ")]
    headers = list(dict.fromkeys(found[1] for line in lines if (found := _HEADER.search(line))))
    names = list(dict.fromkeys(found[1] for line in lines for each in _NAMES if (found := each.search(line))))
    if not headers and not names:
        return error
    lacking = ", ".join((*(f"<{header}>" for header in headers), *names))
    evidence = (
        ("lacking", lacking),
        ("headers", "rota's stand-in for HIP's, since no ROCm was found"),
        *finding.evidence,
    )
    fixes = []
    if any(not _ROCM_HEADER.match(header) for header in headers):
        fixes.append("name the folder of a header of your own with -I")
    if names or any(_ROCM_HEADER.match(header) for header in headers):
        fixes.append(f"if {lacking} is ROCm's, install ROCm or set ROCM_PATH: its headers and libraries are used then")
    return ToolchainError.of("T102", finding.message, evidence=evidence, fixes=(*fixes, *finding.fixes))


# Builds: https://clang.llvm.org/docs/JSONCompilationDatabase.html


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildEntry:
    """A HIP file of a build, what its device code is compiled with, and for which processors."""

    file: Path
    flags: HipFlags
    processors: tuple[str, ...] = ()


def read_build(build: Path) -> tuple[BuildEntry, ...]:
    """The HIP entries of a build folder's compile_commands.json, in its order, each different one once.

    HIP is a file named *.hip, one compiled with `-x hip`, and C++ with `__global__` in its text. A file that isn't
    there is listed too, since nobody knows what it holds: compiling it ends in T103. Raises T103 if the database can't
    be read, T204 if it is malformed.
    """
    database = build / "compile_commands.json" if build.is_dir() or build.suffix != ".json" else build
    try:
        entries = json.loads(read_file(database))
    except ValueError as error:  # also of bytes that are no UTF-8
        raise _malformed(database, "it is no JSON", str(error)) from error
    if not isinstance(entries, list):
        raise _malformed(database, "it is no list of entries", type(entries).__name__)
    found = (_read_entry(database, number, entry) for number, entry in enumerate(entries))
    return tuple(dict.fromkeys(entry for entry in found if entry is not None))


def _read_entry(database: Path, number: int, entry: object) -> BuildEntry | None:
    where = f"entry {number}"
    if not isinstance(entry, dict):
        raise _malformed(database, f"{where} is no object", repr(entry)[:60])
    for key in ("directory", "file"):
        if not isinstance(entry.get(key), str):
            raise _malformed(database, f"{where} has no {key}", repr(entry.get(key))[:60])
    # Relative names are relative to `directory`, and that to the database, as clang's own tools have it.
    folder = database.parent.resolve() / entry["directory"]
    file = folder / entry["file"]
    words = _words(database, where, entry)[1:]
    words = [word for given in words for word in _expand(given, folder)]
    if not _is_hip(file, words):
        return None
    named = (found[1] for word in words if (found := _PROCESSOR.match(word)) is not None)
    return BuildEntry(file=file, flags=_device_flags(words, folder), processors=tuple(dict.fromkeys(named)))


def _words(database: Path, where: str, entry: dict[str, object]) -> list[str]:
    arguments, command = entry.get("arguments"), entry.get("command")
    if isinstance(arguments, list) and arguments and all(isinstance(word, str) for word in arguments):
        return [str(word) for word in arguments]
    if arguments is not None or not isinstance(command, str) or not command.strip():
        raise _malformed(database, f"{where} has neither arguments nor a command", repr(arguments or command)[:60])
    try:
        return shlex.split(command)
    except ValueError as error:
        raise _malformed(database, f"{where} has a command with an open quote", command[:60]) from error


def _expand(word: str, folder: Path) -> Sequence[str]:
    """The words of a response file; one that isn't there has none, and the compiler names what is missed."""
    if not word.startswith("@"):
        return (word,)
    file = folder / word[1:]
    return shlex.split(file.read_text("utf-8", errors="replace")) if file.is_file() else ()


def _is_hip(file: Path, words: Sequence[str]) -> bool:
    if file.suffix == ".hip" or "-xhip" in words or ("-x", "hip") in pairwise(words):
        return True
    if file.suffix not in HIP_SUFFIXES:
        return False
    return not file.is_file() or b"__global__" in file.read_bytes()


_PROCESSOR = re.compile(r"--(?:offload|cuda-gpu)-arch=(gfx\w+)")
_WITH_VALUE = ("-isystem", "-iquote", "-idirafter", "-include", "-imacros", "-I", "-D", "-U", "-mllvm")
_KEPT = ("-isystem", "-iquote", "-idirafter", "-include", "-imacros", "-I", "-D", "-U", "-O", "-f", "-m")
_HOST = (
    "-march", "-mtune", "-mcpu", "-mllvm=", "-mmacosx", "-mlinker",  # the host's processor; rota names the device
    "-fgpu-rdc", "-flto", "-fopenmp", "-fuse-ld", "-fplugin", "-fmodule", "-fprofile", "-fcoverage", "-fdiagnostics",
    "-fcolor", "-fno-color", "-fsanitize", "-foffload", "-fsyntax-only", "-ftime",
)  # fmt: skip
_SKIPPED_VALUE = (
    "-o",
    "-x",
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-Xlinker",
    "-Xassembler",
    "-Xclang",
    "-arch",
    "-target",
    "-L",
    "-l",
)


def _device_flags(words: Sequence[str], folder: Path) -> HipFlags:
    """The words that decide what device code is; the rest is about the host, the output or dependencies."""
    kept: list[str] = []
    standard = None
    rest = iter(words)
    for word in rest:
        if word in _SKIPPED_VALUE:
            next(rest, None)
        elif word in _WITH_VALUE:
            kept += _pair(word, rest)
        elif (found := re.match(r"--?std=(.+)", word)) is not None:
            standard = found[1]
        elif word.startswith(_KEPT) and not word.startswith(_HOST):
            kept.append(word)
    return HipFlags(standard=standard, clang=tuple(kept), at=folder)


def _pair(word: str, rest: Iterator[str]) -> tuple[str, ...]:
    value = next(rest, None)
    return () if value is None else (word, value)


def _malformed(database: Path, why: str, given: str) -> ToolchainError:
    form = 'each entry is {"directory": ..., "file": ..., "command": ... or "arguments": [...]}'
    return ToolchainError.of("T204", f"{database.name}: {why}", evidence=(("given", given),), fixes=(form,))
