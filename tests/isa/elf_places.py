"""Where the parts of a code object lie: takes a whole file, gives spans of bytes by what they hold."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

Places = dict[str, tuple[tuple[int, int], ...]]
"""By part, spans: where each starts, and how many bytes it has."""

_HEADER, _PROGRAM, _SECTION, _DESCRIPTOR = 64, 56, 64, 64
_SYMBOLS = (".dynsym", ".symtab", ".dynstr", ".strtab", ".shstrtab", ".hash", ".gnu.hash", ".dynamic")


@lru_cache(maxsize=1024)
def places_of(whole: bytes) -> Places:
    """The parts that a file has; of an executable part no more than its first 4 KiB, so that kernels are hit."""
    elf = ELFFile(io.BytesIO(whole))
    found: dict[str, list[tuple[int, int]]] = {
        "header": [(0, _HEADER)],
        "segments": [(elf["e_phoff"], _PROGRAM * elf["e_phnum"])],
        "sections": [(elf["e_shoff"], _SECTION * elf["e_shnum"])],
        "notes": [(each["p_offset"], each["p_filesz"]) for each in elf.iter_segments("PT_NOTE")],
        "code": [
            (each["p_offset"], min(each["p_filesz"], 4096))
            for each in elf.iter_segments("PT_LOAD")
            if each["p_flags"] & 1
        ],
    }
    for section in elf.iter_sections():
        part = "symbols" if section.name in _SYMBOLS else "lines" if section.name.startswith(".debug_") else None
        if part is not None:
            found.setdefault(part, []).append((section["sh_offset"], section["sh_size"]))
    found["descriptors"] = [place for symbol in _symbols(elf) if (place := _descriptor(elf, symbol)) is not None]
    spans = {part: tuple((start, size) for start, size in each if size) for part, each in found.items()}
    return {part: each for part, each in spans.items() if each}


def _symbols(elf: Any) -> list[Any]:
    tables = [section for section in elf.iter_sections() if isinstance(section, SymbolTableSection)]
    return [symbol for table in tables for symbol in table.iter_symbols() if symbol.name.endswith(".kd")]


def _descriptor(elf: Any, symbol: Any) -> tuple[int, int] | None:
    for each in elf.iter_segments("PT_LOAD"):
        offset = symbol["st_value"] - each["p_vaddr"]
        if offset >= 0 and offset + _DESCRIPTOR <= each["p_filesz"]:
            return each["p_offset"] + offset, _DESCRIPTOR
    return None
