"""A code object as a file: takes its bytes, gives an `ElfFile`, what is loaded of it and what it names.

pyelftools knows ELF; this module knows what a code object is, and how far damaged bytes are followed.  Section headers
and local symbols may be stripped: what is loaded is read from the segments, what is missing elsewhere from .dynsym.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rota.errors import Finding, ToolchainError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_IDENT = b"\x7fELF\x02\x01"  # 64-bit, little-endian
_VENDOR = "AMDGPU"
_METADATA: int | str = 32  # NT_AMDGPU_METADATA; pyelftools gives a name instead to types that it knows
_EXECUTABLE, _WRITABLE = 1, 2
_MOST_SYMBOLS = 100_000
_WORD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Bytes that are loaded, and where; `size` is what they take in memory, zeros behind them included."""

    address: int
    contents: bytes
    size: int
    executable: bool
    writable: bool

    def holds(self, address: int, count: int = 1) -> bool:
        """Does the file have so many bytes from that address on?"""
        return self.address <= address and address + count <= self.address + len(self.contents)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfSymbol:
    """A name for an address; `function` is what the file says it is, labels are none."""

    name: str
    address: int
    size: int
    function: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """A word that a loader fills in: where it is, how, and from what; `symbol` is an address, None if nobody has it."""

    address: int
    kind: int
    addend: int
    symbol: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfFile:
    """The flags, the segments that are loaded, every symbol once, and the metadata of the notes, if there is any."""

    flags: int
    segments: tuple[Segment, ...]
    symbols: tuple[ElfSymbol, ...]
    metadata: bytes | None
    relocations: tuple[Relocation, ...] = ()

    def bytes_at(self, address: int, count: int) -> bytes | None:
        """So many loaded bytes, or None where no segment holds them all."""
        for segment in self.segments:
            if segment.holds(address, count):
                start = address - segment.address
                return segment.contents[start : start + count]
        return None

    def code_at(self, address: int) -> bool:
        """May an instruction stand there?"""
        return address % _WORD == 0 and any(
            segment.executable and segment.holds(address, _WORD) for segment in self.segments
        )


class Metered(io.BytesIO):
    """A file that is read at most 64 times over: damaged tables may overlap, or have entries of no size.

    Each read is charged 16 bytes more than it gives, so that many small ones end too.  Files of real compilers and
    assemblers were charged up to 4.3 times their size.
    """

    def __init__(self, contents: bytes) -> None:
        super().__init__(contents)
        self._left = 2**16 + 64 * len(contents)

    def read(self, size: int | None = -1, /) -> bytes:
        """As a file does, until too much was read."""
        found = super().read(size)
        self._left -= 16 + len(found)
        if self._left < 0:
            raise EOFError("its tables overlap")
        return found


def read_elf(contents: bytes) -> ElfFile:
    """The parts of an ELF file for AMD GPUs; anything else is a T103 error."""
    if contents[:6] != _IDENT:
        raise unreadable(f"not an ELF file: starts with {contents[:6]!r}")
    try:
        return _parts(contents)
    except ToolchainError:
        raise
    except Exception as error:  # pyelftools says nowhere all that it may raise
        raise unreadable(f"the ELF file is cut short or damaged: {error!r:.200}") from error


def unreadable(why: str) -> ToolchainError:
    """The T103 error."""
    return ToolchainError(Finding(code="T103", message=f"the code object can't be read: {why}"))


def damaged(why: str) -> ToolchainError:
    """The T103 error for a file whose parts don't fit together."""
    return unreadable(f"its notes or descriptors are damaged: {why}")


def _parts(contents: bytes) -> ElfFile:
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(Metered(contents))
    if elf["e_machine"] != "EM_AMDGPU":
        raise unreadable(f"an ELF file for machine {elf['e_machine']}, not for AMDGPU")
    return ElfFile(
        flags=elf["e_flags"],
        segments=tuple(_segments(elf, contents)),
        symbols=_symbols(elf),
        metadata=_metadata(elf),
        relocations=tuple(_relocations(elf)),
    )


def _metadata(elf: ELFFile) -> bytes | None:
    from elftools.elf.segments import NoteSegment

    noted = [
        note["n_descdata"]
        for segment in elf.iter_segments("PT_NOTE")
        if isinstance(segment, NoteSegment)
        for note in segment.iter_notes()
        if (note["n_name"], note["n_type"]) == (_VENDOR, _METADATA)
    ]
    if len(noted) > 1:
        raise damaged(f"{len(noted)} notes with metadata")
    return noted[0] if noted else None


def _segments(elf: ELFFile, contents: bytes) -> Iterator[Segment]:
    """What is loaded; damaged headers may name the same bytes many times over, so their sum is bounded too."""
    total = 0
    for segment in elf.iter_segments("PT_LOAD"):
        start, size, memory = segment["p_offset"], segment["p_filesz"], segment["p_memsz"]
        loaded = contents[start : start + size]
        total += len(loaded)
        if len(loaded) != size or size > memory or total > 2 * len(contents):
            raise unreadable("the ELF file is cut short or damaged: a segment is not in the file")
        flags = segment["p_flags"]
        yield Segment(
            address=segment["p_vaddr"],
            contents=loaded,
            size=memory,
            executable=bool(flags & _EXECUTABLE),
            writable=bool(flags & _WRITABLE),
        )


def _relocations(elf: ELFFile) -> Iterator[Relocation]:
    """What the dynamic segment asks for; the sum of two tables is bounded by how often the file may be read."""
    from elftools.elf.dynamic import DynamicSegment

    for segment in elf.iter_segments("PT_DYNAMIC"):
        if not isinstance(segment, DynamicSegment):
            continue
        table = segment.get_relocation_tables().get("RELA")
        if table is None:
            continue
        symbols: list[Any] | None = None
        for each in table.iter_relocations():
            number, found = each["r_info_sym"], None
            if number:
                symbols = list(segment.iter_symbols()) if symbols is None else symbols
                known = number < len(symbols) and symbols[number]["st_shndx"] != "SHN_UNDEF"
                found = symbols[number]["st_value"] if known else None
            kind, addend = each["r_info_type"], each["r_addend"]
            yield Relocation(address=each["r_offset"], kind=kind, addend=addend, symbol=found if number else 0)


def _symbols(elf: ELFFile) -> tuple[ElfSymbol, ...]:
    """Every symbol once: what .symtab and .dynsym say, and what the dynamic segment does where sections are gone."""
    found: dict[tuple[str, int], ElfSymbol] = {}
    for symbol in _raw_symbols(elf):
        if len(found) > _MOST_SYMBOLS:
            raise unreadable(f"it has more than {_MOST_SYMBOLS:,} symbols")
        if symbol.name and symbol["st_shndx"] != "SHN_UNDEF":
            kind = symbol["st_info"]["type"]
            known = found.get((symbol.name, symbol["st_value"]))
            found[symbol.name, symbol["st_value"]] = ElfSymbol(
                name=symbol.name,
                address=symbol["st_value"],
                size=symbol["st_size"],
                function=kind in {"STT_FUNC", "STT_GNU_IFUNC"} or (known is not None and known.function),
            )
    return tuple(found.values())


def _raw_symbols(elf: ELFFile) -> Iterator[Any]:
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.sections import SymbolTableSection

    tables = [section for section in elf.iter_sections() if isinstance(section, SymbolTableSection)]
    for section in tables:
        yield from section.iter_symbols()
    if not tables:
        for segment in elf.iter_segments("PT_DYNAMIC"):
            if isinstance(segment, DynamicSegment):
                yield from segment.iter_symbols()
