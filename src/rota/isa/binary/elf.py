"""A code object as an ELF file: its segments, symbols, notes, line table and bundles.

pyelftools knows ELF; this module knows what a code object is, and how far damaged bytes are followed. Section headers
and local symbols may be stripped: what is loaded is read from the segments, what is missing elsewhere from .dynsym.
"""

from __future__ import annotations

import io
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from rota.errors import SourceLine, ToolchainError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_IDENT = b"\x7fELF\x02\x01"  # 64-bit, little-endian
_VENDOR = "AMDGPU"
_METADATA: int | str = 32  # NT_AMDGPU_METADATA; pyelftools gives a name instead to types that it knows
_EXECUTABLE = 1
_MOST_SYMBOLS = 100_000
_WORD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Bytes to load and their address; `size` is their size in memory, with the zeros after them."""

    address: int
    contents: bytes
    size: int
    executable: bool

    def holds(self, address: int, count: int = 1) -> bool:
        return self.address <= address and address + count <= self.address + len(self.contents)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfSymbol:
    name: str
    address: int
    size: int
    function: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """A word that a loader fills in; `symbol` is an address, None if it is defined elsewhere."""

    address: int
    kind: int
    addend: int
    symbol: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfFile:
    """What a code object consists of; `metadata` are the notes, if there are any."""

    flags: int
    segments: tuple[Segment, ...]
    symbols: tuple[ElfSymbol, ...]
    metadata: bytes | None
    relocations: tuple[Relocation, ...] = ()

    def bytes_at(self, address: int, count: int) -> bytes | None:
        """`count` loaded bytes; None if no segment holds them all."""
        for segment in self.segments:
            if segment.holds(address, count):
                start = address - segment.address
                return segment.contents[start : start + count]
        return None

    def code_at(self, address: int) -> bool:
        return address % _WORD == 0 and any(
            segment.executable and segment.holds(address, _WORD) for segment in self.segments
        )


class Metered(io.BytesIO):
    """A file that can be read at most 64 times over, because damaged tables may overlap or have empty entries.

    Each read is charged 16 bytes extra, so that many small ones end too. Files of real compilers and assemblers were
    charged up to 4.3 times their size.
    """

    def __init__(self, contents: bytes) -> None:
        super().__init__(contents)
        self._left = 2**16 + 64 * len(contents)

    def read(self, size: int | None = -1, /) -> bytes:
        """Reads as `io.BytesIO` does; raises EOFError beyond the limit."""
        found = super().read(size)
        self._left -= 16 + len(found)
        if self._left < 0:
            raise EOFError("its tables overlap")
        return found


def read_elf(contents: bytes) -> ElfFile:
    """Reads an ELF file for AMD GPUs; raises T103 for anything else."""
    if contents[:6] != _IDENT:
        raise unreadable(f"not an ELF file: starts with {contents[:6]!r}")
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(Metered(contents))
        if elf["e_machine"] != "EM_AMDGPU":
            raise unreadable(f"an ELF file for machine {elf['e_machine']}, not for AMDGPU")  # noqa: TRY301
        return ElfFile(
            flags=elf["e_flags"],
            segments=tuple(_segments(elf, contents)),
            symbols=_symbols(elf),
            metadata=_metadata(elf),
            relocations=tuple(_relocations(elf)),
        )
    except ToolchainError:
        raise
    except Exception as error:  # pyelftools says nowhere all that it may raise
        raise unreadable(f"the ELF file is cut short or damaged: {error!r:.200}") from error


def replace_words(contents: bytes, address: int, words: Sequence[int]) -> bytes:
    """The file with other words at a loaded address; raises T103 if it has no bytes for them."""
    from elftools.elf.elffile import ELFFile

    made = struct.pack(f"<{len(words)}I", *words)
    for segment in ELFFile(io.BytesIO(contents)).iter_segments("PT_LOAD"):
        start = address - segment["p_vaddr"]
        if 0 <= start <= segment["p_filesz"] - len(made):
            at = segment["p_offset"] + start
            return contents[:at] + made + contents[at + len(made) :]
    raise damaged(f"no segment loads {address:#x}")


def unreadable(why: str) -> ToolchainError:
    return ToolchainError.of("T103", f"the code object can't be read: {why}")


def damaged(why: str) -> ToolchainError:
    return unreadable(f"its notes or descriptors are damaged: {why}")


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
    """Bounds the sum of the segments, because damaged headers may name the same bytes many times."""
    total = 0
    for segment in elf.iter_segments("PT_LOAD"):
        start, size, memory = segment["p_offset"], segment["p_filesz"], segment["p_memsz"]
        loaded = contents[start : start + size]
        total += len(loaded)
        if len(loaded) != size or size > memory or total > 2 * len(contents):
            raise unreadable("the ELF file is cut short or damaged: a segment is not in the file")
        executable = bool(segment["p_flags"] & _EXECUTABLE)
        yield Segment(address=segment["p_vaddr"], contents=loaded, size=memory, executable=executable)


def _relocations(elf: ELFFile) -> Iterator[Relocation]:
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
    """Every symbol once: from .symtab and .dynsym, or from the dynamic segment if sections are stripped."""
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.sections import SymbolTableSection

    found: dict[tuple[str, int], ElfSymbol] = {}
    tables: list[Any] = [section for section in elf.iter_sections() if isinstance(section, SymbolTableSection)]
    if not tables:
        tables = [segment for segment in elf.iter_segments("PT_DYNAMIC") if isinstance(segment, DynamicSegment)]
    for symbol in chain.from_iterable(table.iter_symbols() for table in tables):
        if len(found) > _MOST_SYMBOLS:
            raise unreadable(f"it has more than {_MOST_SYMBOLS:,} symbols")
        if symbol.name and symbol["st_shndx"] != "SHN_UNDEF":
            name, address = key = symbol.name, symbol["st_value"]
            function = symbol["st_info"]["type"] in {"STT_FUNC", "STT_GNU_IFUNC"}
            function = function or ((known := found.get(key)) is not None and known.function)
            found[key] = ElfSymbol(name=name, address=address, size=symbol["st_size"], function=function)
    return tuple(found.values())


# Notes (LLVM, "User Guide for AMDGPU Backend", section "Code Object V3 Metadata" and those after it). Hand-written
# assembly leaves out keys that LLVM demands; the caller decides what that means.

T = TypeVar("T", int, str, list[Any])

_MOST = 2**32 - 1  # the descriptor holds each of these numbers in 32 bits or fewer


def unpack_notes(metadata: bytes) -> object:
    import msgpack

    try:
        return msgpack.unpackb(metadata)  # bounds lengths by the size of its input, and nesting
    except Exception as error:  # what msgpack tells its users to catch
        raise damaged(f"{error!r:.200}") from error


def get_required(notes: object, key: str, kind: type[T]) -> T:
    value = get_optional(notes, key, kind)
    if value is None:
        raise damaged(f"no {key}")
    return value


def get_optional(notes: object, key: str, kind: type[T]) -> T | None:
    """The value of a key; None if the producer left it out, which LLVM gives no meaning."""
    if not isinstance(notes, dict):
        raise damaged(f"{notes!r:.80} instead of a map")
    if key not in notes:
        return None
    value: Any = notes[key]
    if isinstance(value, int) and not 0 <= value <= _MOST:
        raise damaged(f"{key} is {value}")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise damaged(f"{key} is {value!r:.80}")
    return value


def get_numbers(notes: object, key: str, count: int) -> tuple[int, ...] | None:
    value = get_optional(notes, key, list)
    if value is None:
        return None
    if len(value) != count or not all(type(each) is int and 0 <= each <= _MOST for each in value):
        raise damaged(f"{key} is {value!r:.80}")
    return tuple(value)


# Line tables. HIP compiled with -g has one, and so has everything that Triton compiles. It only helps readers: what
# can't be read is left out, and instructions then have no source line.

_MOST_ROWS = 1_000_000
_COMPRESSED = 0x800  # SHF_COMPRESSED


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTable:
    """The code from each of the `starts` (ascending) up to the next comes from the source at the same index."""

    starts: tuple[int, ...] = ()
    sources: tuple[SourceLine | None, ...] = ()

    def at(self, address: int) -> SourceLine | None:
        place = bisect_right(self.starts, address) - 1
        return self.sources[place] if place >= 0 else None


NO_LINES = LineTable()  # that of a code object without debug information


def read_lines(hsaco: bytes) -> LineTable:
    """The line table of a code object; an empty one if it has none, or a damaged one."""
    from elftools.elf.elffile import ELFFile

    rows: dict[int, SourceLine | None] = {}
    try:
        elf = ELFFile(Metered(hsaco))
        debug = [section for section in elf.iter_sections() if section.name.startswith((".debug", ".zdebug"))]
        # Compressed sections are refused, because few bytes may expand to any number.
        packed = any(each.name.startswith(".zdebug") or each["sh_flags"] & _COMPRESSED for each in debug)
        if any(section.name == ".debug_line" for section in debug) and not packed:
            for address, source in _rows(elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)):
                # A row without a line ends the one before it, unless another one begins there.
                if source is not None or rows.get(address) is None:
                    rows[address] = source
                if len(rows) > _MOST_ROWS:
                    return NO_LINES
    except Exception:  # noqa: BLE001  # pyelftools says nowhere all that it may raise
        return NO_LINES
    starts = sorted(rows)
    return LineTable(starts=tuple(starts), sources=tuple(rows[start] for start in starts))


def _rows(dwarf: Any) -> Iterator[tuple[int, SourceLine | None]]:  # noqa: ANN401  # of pyelftools, untyped
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        first = 0 if program["version"] >= 5 else 1  # of the numbers of files and folders
        folders = program["include_directory"]
        files = []
        for each in program["file_entry"]:  # in older tables folder 0, the compiler's, has no name
            name, place = _text(each.name), each.dir_index - first
            inside = 0 <= place < len(folders)
            files.append(str(PurePosixPath(_text(folders[place]), name)) if inside else name)
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            place = state.file - first
            known = state.line > 0 and not state.end_sequence and 0 <= place < len(files)
            yield state.address, SourceLine(files[place], state.line) if known else None


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


_MAGIC, _PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
# Bundles. `hipcc --genco` and `clang -x hip --cuda-device-only` put code objects for several architectures, and an
# empty one for the host, after a header (Clang, "Clang Offload Bundler", section "Bundled Binary File Layout").

_MOST_ENTRIES = 1000
_MOST_NAME = 1000


def unbundle(contents: bytes, arch: str | None = None) -> bytes:
    """The code object itself; of a bundle, the one for `arch`, or the only one for a GPU."""
    if contents.startswith(_PACKED):
        fixes = ("compile with --no-offload-compress", "unpack it with clang-offload-bundler --unbundle")
        message = "the code object can't be read: it is in a compressed bundle"
        raise ToolchainError.of("T103", message, fixes=fixes)
    if not contents.startswith(_MAGIC):
        return contents
    entries = [(name, code) for name, code in _entries(contents) if code and "amdgcn" in name]
    fitting = [code for name, code in entries if arch is None or _arch(name) == arch]
    if len(fitting) == 1:
        return fitting[0]
    held = ", ".join(_arch(name) for name, _ in entries) or "none"
    wanted = "name the architecture of one" if arch is None else f"{len(fitting)} are for {arch}"
    raise ToolchainError.of(
        "T103", f"a bundle holds {len(entries)} code objects; {wanted}", evidence=(("code objects for", held[:200]),)
    )


def _entries(contents: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        (count,) = struct.unpack_from("<Q", contents, len(_MAGIC))
        if count > _MOST_ENTRIES:
            raise unreadable(f"a bundle of {count:,} code objects")
        at = len(_MAGIC) + 8
        for _ in range(count):
            offset, size, length = struct.unpack_from("<QQQ", contents, at)
            name = contents[at + 24 : at + 24 + min(length, _MOST_NAME)].decode("ascii", "replace")
            at += 24 + length
            if offset + size > len(contents) or length > _MOST_NAME:
                raise unreadable("a bundle is cut short or damaged")
            yield name, contents[offset : offset + size]
    except struct.error as error:
        raise unreadable("a bundle is cut short or damaged") from error


def _arch(name: str) -> str:
    """For example gfx942 from hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-."""
    return name.partition(":")[0].rpartition("-")[2]


# Loading. Code finds its constants and variables relative to itself, so all segments keep their distances.

CODE_BASE = 0x7E00_0001_0000
"""Where address 0 of a code object is loaded: the place of the first buffer in `rota.isa.memory.memories`."""
_MOST_BYTES = 2**28
_ABSOLUTE, _RELATIVE = 3, 13  # R_AMDGPU_ABS64, R_AMDGPU_RELATIVE64


def build_image(file: ElfFile) -> bytes:
    size = max((segment.address + segment.size for segment in file.segments), default=0)
    if size > _MOST_BYTES:
        raise unreadable(f"it takes {size:,} bytes of memory; at most {_MOST_BYTES:,} are loaded")
    image = bytearray(size)
    for segment in file.segments:
        image[segment.address : segment.address + len(segment.contents)] = segment.contents
    for each in file.relocations:
        if each.kind not in {_ABSOLUTE, _RELATIVE} or not 0 <= each.address <= size - 8:
            raise unreadable(f"it asks for relocation {each.kind} at {each.address:#x}, which rota doesn't support")
        if each.symbol is None:
            raise unreadable(f"the word at {each.address:#x} refers to a symbol of another code object")
        struct.pack_into("<Q", image, each.address, CODE_BASE + each.symbol + each.addend & 2**64 - 1)
    return bytes(image)
