"""Machine code as text: takes what is loaded of a code object, gives the listing of llvm-objdump.

The file itself is never given to the disassembler.  A new one is, which holds the executable bytes, and a symbol where
code is known to begin: damaged headers and tables do no harm, a stripped file is as good as another, and the sweep
starts anew at each of these places, so that data between functions doesn't shift what follows.
"""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from rota.errors import Finding, ToolchainError
from rota.isa.binary.elf import ElfFile

_SECONDS = 120
_KEPT = 8  # listings
_HEADER_BYTES, _SECTION_BYTES, _SYMBOL_BYTES = 64, 64, 24
_AMDGPU, _HSA, _ABI = 224, 64, 2  # EM_AMDGPU, ELFOSABI_AMDGPU_HSA, code object version 4
_SHARED = 3  # ET_DYN
_PROGRAM, _SYMBOLS, _STRINGS = 1, 2, 3  # kinds of sections
_CODE = 6  # flags of a section: loaded, executable
_GLOBAL_FUNCTION = 0x12
_PLAIN_NAME = re.compile(r"[\w.$@]+")


def disassemble(file: ElfFile, starts: Mapping[int, str], objdump: tuple[str, ...]) -> str:
    """The listing of everything executable; `starts` are the addresses where code is known to begin, with a name.

    The same code gives the same listing, so the last ones are kept: kernels are loaded again and again.
    """
    return _listing(bare_file(file, starts), objdump)


@lru_cache(maxsize=_KEPT)
def _listing(bare: bytes, objdump: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory(prefix="rota-") as name:
        folder = Path(name)
        (folder / "code").write_bytes(bare)
        command = (*objdump, "-d", "--disassemble-zeroes", "code")
        try:
            done = subprocess.run(  # noqa: S603  # found by `rota.isa.binary.toolchain`, or named by the caller
                command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
            )
        except FileNotFoundError as error:
            raise _refused("T101", f"no disassembler found: {objdump[0]}", command, str(error)) from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _refused("T103", "the disassembler came to no end", command, str(error)) from error
    if done.returncode != 0:
        raise _refused("T103", "the disassembler refused the machine code", command, done.stderr)
    return done.stdout


def bare_file(file: ElfFile, starts: Mapping[int, str]) -> bytes:
    """An ELF file with the executable bytes at their addresses and a symbol at each start, and nothing else."""
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
    """A table of names."""

    def __init__(self) -> None:
        self.contents = b"\0"

    def place(self, name: str) -> int:
        at = len(self.contents)
        self.contents += name.encode() + b"\0"
        return at


def _plain(name: str, address: int) -> str:
    """A name that a listing can show on one line; a damaged symbol table may say anything."""
    return name if _PLAIN_NAME.fullmatch(name) else f"code_{address:x}"


def _refused(code: str, message: str, command: Iterable[str], said: str) -> ToolchainError:
    return ToolchainError(
        Finding(
            code=code,
            message=message,
            evidence=(("command", " ".join(command)), ("said", said.strip()[:200] or "nothing")),
            fixes=("apt-get install llvm-22",) if code == "T101" else (),
        )
    )
