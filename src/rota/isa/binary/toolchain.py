"""Compilers and disassemblers for AMD GPUs.

Every toolchain takes the same three steps, source to assembly, assembly to object, object to code object: the assembly
is wanted anyway, and the ziglang wheel can't link in one step. Source that rota writes needs no headers and no device
libraries; `rota.isa.binary.hip_source` compiles files that do.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path

from rota.errors import ToolchainError
from rota.isa.binary.code_object import CodeObject, kernels_of
from rota.isa.binary.elf import ElfFile, read_elf, read_lines, unbundle
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import derive_flow, parse_listing
from rota.targets.registry import architecture_named

# Disassembly. The disassembler gets a new file with the executable bytes and a symbol wherever code is known to begin,
# so that damaged headers and stripped tables don't matter. Its sweep starts anew at each symbol, so that data between
# functions doesn't shift what follows.

_DISASSEMBLER_SECONDS = 120
_ATTEMPTS = 3  # of a tool that somebody else kills
_KEPT = 8  # listings
_HEADER_BYTES, _SECTION_BYTES, _SYMBOL_BYTES = 64, 64, 24
_AMDGPU, _HSA, _ABI = 224, 64, 2  # EM_AMDGPU, ELFOSABI_AMDGPU_HSA, code object version 4
_SHARED = 3  # ET_DYN
_PROGRAM, _SYMBOLS, _STRINGS = 1, 2, 3  # kinds of sections
_CODE = 6  # flags of a section: loaded, executable
_GLOBAL_FUNCTION = 0x12
_WORD_BYTES = 4
_PLAIN_NAME = re.compile(r"[\w.$@]+")


def _run_tool(command: tuple[str, ...], folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end, again if somebody kills it: that says nothing about its input."""
    for _ in range(_ATTEMPTS):
        done = subprocess.run(  # noqa: S603  # found below, or named by the caller
            command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
        if done.returncode != -signal.SIGKILL:
            return done
    message = f"{Path(command[0]).name} was killed {_ATTEMPTS} times by somebody else"
    raise ToolchainError.of("S301", message, evidence=(("command", " ".join(command)),))


@lru_cache(maxsize=_KEPT)  # kernels are loaded again and again
def _listing(bare: bytes, objdump: tuple[str, ...], options: tuple[str, ...] = ()) -> str:
    with tempfile.TemporaryDirectory(prefix="rota-") as name:
        folder = Path(name)
        (folder / "code").write_bytes(bare)
        command = (*objdump, "-d", "--disassemble-zeroes", *options, "code")
        try:
            done = _run_tool(command, folder, _DISASSEMBLER_SECONDS)
        except FileNotFoundError as error:
            raise _refuse_disassembly("T101", f"no disassembler found: {objdump[0]}", command, str(error)) from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _refuse_disassembly("T103", "the disassembler failed or did not end", command, str(error)) from error
    if done.returncode != 0:
        raise _refuse_disassembly("T103", "the disassembler refused the machine code", command, done.stderr)
    return done.stdout


def bare_file(file: ElfFile, starts: Mapping[int, str]) -> bytes:
    """An ELF file with the executable bytes at their addresses, a symbol at each start, and nothing else."""
    code = [segment for segment in file.segments if segment.executable and segment.contents]
    names = _Strings()
    symbols = [b"\0" * _SYMBOL_BYTES]
    for number, segment in enumerate(code, 1):
        symbols += [
            struct.pack("<IBBHQQ", names.place(_plain(starts[start], start)), _GLOBAL_FUNCTION, 0, number, start, 0)
            for start in sorted(starts)
            if segment.holds(start)
        ]
    titles = _Strings()
    text, table, strings, last = (titles.place(name) for name in (".text", ".symtab", ".strtab", ".shstrtab"))
    sections = [
        *((text, _PROGRAM, _CODE, segment.address, segment.contents, 0, 0, 4, 0) for segment in code),
        (table, _SYMBOLS, 0, 0, b"".join(symbols), len(code) + 2, 1, 8, _SYMBOL_BYTES),
        (strings, _STRINGS, 0, 0, names.contents, 0, 0, 1, 0),
        (last, _STRINGS, 0, 0, titles.contents, 0, 0, 1, 0),
    ]
    headers, body = [b"\0" * _SECTION_BYTES], b""
    for title, kind, flags, address, contents, link, info, align, entry in sections:
        place = (title, kind, flags, address, _HEADER_BYTES + len(body), len(contents), link, info, align, entry)
        headers.append(struct.pack("<IIQQQQIIQQ", *place))
        body += contents
    ident = struct.pack("<4sBBBBB7x", b"\x7fELF", 2, 1, 1, _HSA, _ABI)
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH", _SHARED, _AMDGPU, 1, 0, 0, _HEADER_BYTES + len(body), file.flags & 0xFF,
        _HEADER_BYTES, 0, 0, _SECTION_BYTES, len(headers), len(headers) - 1,
    )  # fmt: skip
    return header + body + b"".join(headers)


class _Strings:
    def __init__(self) -> None:
        self.contents = b"\0"

    def place(self, name: str) -> int:
        at = len(self.contents)
        self.contents += name.encode() + b"\0"
        return at


def _plain(name: str, address: int) -> str:
    """A name that fits a line of a listing; a damaged symbol table may hold anything."""
    return name if _PLAIN_NAME.fullmatch(name) else f"code_{address:x}"


def _refuse_disassembly(code: str, message: str, command: Iterable[str], said: str) -> ToolchainError:
    evidence = (("command", " ".join(command)), ("said", said.strip()[:200] or "nothing"))
    fixes = ("apt-get install llvm-22",) if code == "T101" else ()
    return ToolchainError.of(code, message, evidence=evidence, fixes=fixes)


# Sweeps. Data that looks like the first half of an instruction misleads the disassembler about what follows. So it runs
# again with every jump target as a further start, until no jump goes between two instructions.

_MOST_SWEEPS = 8


def read_code_object(
    contents: bytes,
    objdump: tuple[str, ...] | None,
    *,
    arch: str | None = None,
    toolchain: str = "",
    assembly: str = "",
) -> CodeObject:
    """Reads a code object of any producer; of a bundle, the one for `arch`."""
    hsaco = unbundle(contents, arch)
    file = read_elf(hsaco)
    kernels = kernels_of(file)
    return CodeObject(
        arch=kernels[0].arch,
        toolchain=toolchain,
        hsaco=hsaco,
        assembly=assembly,
        disassembly=assembly if objdump is None else _sweep(file, kernels, objdump),
        kernels=kernels,
        lines=read_lines(hsaco),
    )


def read_object(source: str | PathLike[str] | bytes, arch: str | None = None) -> CodeObject:
    """Reads and disassembles a code object; of a bundle, the one for `arch`."""
    contents = source if isinstance(source, bytes) else read_file(Path(source))
    return read_code_object(contents, find_objdump(), arch=arch)


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        raise ToolchainError.of("T103", f"{path} can't be read: {why}") from error


def _sweep(file: ElfFile, kernels: tuple[KernelFacts, ...], objdump: tuple[str, ...]) -> str:
    starts = {
        symbol.address: symbol.name for symbol in file.symbols if symbol.function and file.code_at(symbol.address)
    }
    names = {kernel.name for kernel in kernels}
    functions = [place for place, name in starts.items() if name not in names]
    entries = {kernel.entry: kernel.name for kernel in kernels if kernel.entry is not None}
    bodies = [range(each.address + 1, each.address + each.size) for each in file.symbols if each.function]
    # With preloaded arguments the entry lies inside a function, after its first loads.
    inside = {entry for entry in entries if any(entry in body for body in bodies)}
    starts = {**{entry: name for entry, name in entries.items() if entry not in inside}, **starts}
    for _ in range(_MOST_SWEEPS):
        text = _list_respelled(file, starts, objdump, kernels[0].arch)
        listing = parse_listing(text)
        missing = [to for entry in entries for _, to in derive_flow(listing, entry, functions).missing]
        astray = {to for to in missing if file.code_at(to) and to not in starts}
        astray |= {entry for entry in entries if entry not in listing.lines and entry not in starts}
        if not astray:
            break
        starts |= {place: f"code_{place:x}" for place in astray}
    return text


# Words that other assemblers write in another way. Only words that the disassembler didn't know are respelled, in a
# copy of the code, again and again, since one that isn't known misleads it about the next. The listing keeps the words
# of the file.

_MOST_RESPELLED = 64  # listings
_UNDECODED = re.compile(r"^\s*\.long .*//\s*(?P<address>[0-9A-Fa-f]+):", re.MULTILINE)
_WORDS = re.compile(r"//\s*(?P<address>[0-9A-Fa-f]+):(?P<words>(?: [0-9A-Fa-f]{8})+)", re.MULTILINE)


def _list_respelled(file: ElfFile, starts: Mapping[int, str], objdump: tuple[str, ...], arch: str) -> str:
    architecture = architecture_named(arch)
    if architecture is None or (rules := architecture.listing) is None:
        return _listing(bare_file(file, starts), objdump)
    changed: dict[int, tuple[int, int]] = {}
    for _ in range(_MOST_RESPELLED):
        text = _listing(bare_file(_respell(file, changed), starts), objdump, rules.options)
        found: dict[int, tuple[int, int]] = {}
        for each in _UNDECODED.finditer(text):
            address = int(each["address"], 16)
            if (octets := file.bytes_at(address, 2 * _WORD_BYTES)) is not None and address not in changed:
                words = struct.unpack("<II", octets)
                respelled = next(filter(None, (rule.apply(words) for rule in rules.respellings)), None)
                found |= {} if respelled is None else {address: respelled}
        if not found:
            break
        changed |= found
    return _WORDS.sub(lambda each: _put_back(each, file, changed), text) if changed else text


def _respell(file: ElfFile, changed: Mapping[int, tuple[int, int]]) -> ElfFile:
    segments = []
    for segment in file.segments:
        contents = bytearray(segment.contents)
        for address, words in changed.items():
            if segment.holds(address, 2 * _WORD_BYTES):
                struct.pack_into("<II", contents, address - segment.address, *words)
        segments.append(replace(segment, contents=bytes(contents)))
    return replace(file, segments=tuple(segments))


def _put_back(found: re.Match[str], file: ElfFile, changed: Mapping[int, tuple[int, int]]) -> str:
    """A line's words as the file has them."""
    if (address := int(found["address"], 16)) not in changed:
        return found[0]
    count = len(found["words"].split())
    octets = file.bytes_at(address, _WORD_BYTES * count) or b""
    words = struct.unpack(f"<{len(octets) // _WORD_BYTES}I", octets)
    return f"// {found['address']}:" + "".join(f" {word:08X}" for word in words)


_COMPILER_SECONDS = 300
_HIP = ("-x", "hip", "--cuda-device-only")
_WELL = (
    "-O3", "-std=c++20",
    "-cuid=0",  # otherwise a hash of the folder enters the code object
    "-fno-discard-value-names",  # so that the notes have the names of arguments
)  # fmt: skip
BARE = ("-nogpuinc", "-nogpulib")  # neither headers nor device libraries of ROCm
_VERSIONS = (22, *range(30, 22, -1), 21, 20)  # 22 is what rota is tested with; gfx950 needs 20
_ERROR_LINES = 5
_INSTALL = (
    "apt-get install clang-22 lld-22 llvm-22",
    "pip install 'rota[hip]'   (the ziglang wheel: clang and lld, no disassembler)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """One compiler: the commands for it, its linker and its disassembler, if it has one."""

    name: str
    compiler: tuple[str, ...]
    linker: tuple[str, ...]
    objdump: tuple[str, ...] | None

    def compile(self, source: str, arch: str) -> CodeObject:
        """Compiles HIP source to a code object for `arch`, such as gfx950."""
        with tempfile.TemporaryDirectory(prefix="rota-") as name:
            folder = Path(name)
            (folder / "kernel.hip").write_text(source, encoding="utf-8")
            front = (*self.compiler, *_HIP, *BARE, *_WELL, f"--offload-arch={arch}")
            self._run((*front, "-S", "kernel.hip", "-o", "kernel.s"), folder, arch)
            return self._assemble(folder, arch)

    def compile_file(self, path: Path, arch: str, flags: Sequence[str], *, at: Path) -> CodeObject:
        """Compiles a HIP file where it lies; `flags` may name folders relative to `at`, and override -O and -std.

        A function that is declared and never defined is an error (T102), not something to resolve at load time.
        """
        with tempfile.TemporaryDirectory(prefix="rota-") as name:
            folder = Path(name)
            out = ("-S", str(path.resolve()), "-o", str(folder / "kernel.s"))
            self._run((*self.compiler, *_HIP, *_WELL, f"--offload-arch={arch}", *flags, *out), at, arch)
            return self._assemble(folder, arch, "--no-undefined")

    def assemble(self, assembly: str, arch: str, path: Path | None = None) -> CodeObject:
        """Assembles text for `arch`; with the `path` that it is from, instructions have their lines of it."""
        lines = () if path is None else ("-g",)
        marker = "" if path is None else f'# 1 "{os.fspath(path.resolve())}"\n'
        with tempfile.TemporaryDirectory(prefix="rota-") as name:
            folder = Path(name)
            (folder / "kernel.s").write_text(marker + assembly, encoding="utf-8")
            return self._assemble(folder, arch, flags=lines)

    def version(self) -> str:
        return self._run((*self.compiler, "--version"), Path.cwd(), "any").splitlines()[0]

    def _assemble(self, folder: Path, arch: str, *linked: str, flags: tuple[str, ...] = ()) -> CodeObject:
        back = ("-x", "assembler", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-c", "kernel.s", "-o", "kernel.o")
        self._run((*self.compiler, *flags, *back), folder, arch)
        self._run((*self.linker, "-shared", *linked, "kernel.o", "-o", "kernel.hsaco"), folder, arch)
        assembly = (folder / "kernel.s").read_text(encoding="utf-8")
        hsaco = (folder / "kernel.hsaco").read_bytes()
        return read_code_object(hsaco, self.objdump, toolchain=self.name, assembly=assembly)

    def _run(self, command: tuple[str, ...], folder: Path, arch: str) -> str:
        try:
            done = _run_tool(command, folder, _COMPILER_SECONDS)
        except FileNotFoundError as error:  # a clang without its linker
            raise _absent(f"{self.name} needs {command[0]}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _refuse_compilation(self.name, arch, command, str(error)) from error
        if done.returncode != 0:
            raise _refuse_compilation(self.name, arch, command, done.stderr)
        return done.stdout


def find_toolchain(compiler: str | None = None) -> Toolchain:
    """The compiler at that path or name, or the first one found: ROCm's, clang++-22, another clang++, ziglang."""
    if compiler is not None:
        return explicit_toolchain(compiler)
    for toolchain in find_toolchains():
        return toolchain
    raise _absent("rocm, clang++ 20 to 30, ziglang")


def find_toolchains() -> Iterator[Toolchain]:
    for clang in _rocm_clangs():
        yield _clang("rocm", clang)
    for name in (*(f"clang++-{version}" for version in _VERSIONS), "clang++"):
        if (path := shutil.which(name)) is not None:
            yield _clang(name, Path(path))
    if (zig := ziglang_toolchain()) is not None:
        yield zig


def explicit_toolchain(compiler: str) -> Toolchain:
    """The clang at that path, or of that name on the PATH; "ziglang" is the wheel."""
    if compiler == "ziglang":
        if (zig := ziglang_toolchain()) is None:
            raise _absent(compiler)
        return zig
    if (path := shutil.which(compiler)) is None:
        raise _absent(compiler)
    return _clang(Path(path).name, Path(path))


def find_objdump() -> tuple[str, ...]:
    """The first disassembler of the toolchains on this machine, or an llvm-objdump without a compiler."""
    for toolchain in find_toolchains():
        if toolchain.objdump is not None:
            return toolchain.objdump
    for name in (*(f"llvm-objdump-{version}" for version in _VERSIONS), "llvm-objdump"):
        if (path := shutil.which(name)) is not None:
            return (path,)
    raise _absent("llvm-objdump, which reads machine code")


def ziglang_toolchain() -> Toolchain | None:
    if importlib.util.find_spec("ziglang") is None:
        return None
    zig = (sys.executable, "-m", "ziglang")
    return Toolchain(name="ziglang", compiler=(*zig, "clang"), linker=(*zig, "ld.lld"), objdump=None)


def rocm_roots() -> Iterator[Path]:
    """Where a ROCm may be: ROCM_PATH, its usual place, and around the hipcc on the PATH."""
    if os.environ.get("ROCM_PATH"):
        yield Path(os.environ["ROCM_PATH"])
    yield Path("/opt/rocm")
    hipcc = shutil.which("hipcc")
    if hipcc is not None:
        yield Path(hipcc).resolve().parents[1]


def _rocm_clangs() -> Iterator[Path]:
    seen = set()
    for root in rocm_roots():
        clang = root / "llvm" / "bin" / "clang++"
        if clang.is_file() and clang.resolve() not in seen:
            seen.add(clang.resolve())
            yield clang


def _clang(name: str, clang: Path) -> Toolchain:
    """A clang with its lld and objdump: beside it, or with the same version suffix on the PATH."""
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
    evidence = (("looked in", "ROCM_PATH, /opt/rocm, PATH, the packages of this Python"),)
    return ToolchainError.of("T101", f"no toolchain found: {wanted}", evidence=evidence, fixes=_INSTALL)


def _refuse_compilation(toolchain: str, arch: str, command: tuple[str, ...], said: str) -> ToolchainError:
    lines = [line for line in said.splitlines() if "error" in line.lower()] or said.splitlines()
    message = f"{toolchain} refused the source for {arch}: {lines[0] if lines else 'no message'}"
    errors = ((f"error {number}", line) for number, line in enumerate(lines[:_ERROR_LINES], 1))
    return ToolchainError.of("T102", message, evidence=(("command", " ".join(command)), *errors))
