"""The parts of an ELF file that matter in a code object: takes its bytes, gives symbols, notes and contents.

Layout: System V ABI, "Object Files"; only 64-bit little-endian files, which is what AMDGPU code objects are.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

AMDGPU = 224  # EM_AMDGPU
_SYMTAB, _NOTE = 2, 7  # section types


class _Section(NamedTuple):
    kind: int
    address: int
    offset: int
    size: int
    link: int


class NotElfError(ValueError):
    """The bytes aren't a 64-bit little-endian ELF file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elf:
    """One ELF file: its machine and the flags for it, the address of each symbol, its notes by type."""

    machine: int
    flags: int
    symbols: dict[str, int]
    notes: dict[int, bytes]
    contents: bytes
    sections: tuple[_Section, ...]

    def at(self, address: int, size: int) -> bytes:
        """The bytes that are loaded at an address."""
        for section in self.sections:
            if section.address <= address and address + size <= section.address + section.size:
                start = section.offset + address - section.address
                return self.contents[start : start + size]
        raise NotElfError(f"no section holds address {address:#x}")


def read_elf(contents: bytes) -> Elf:
    """The file as a value."""
    if contents[:6] != b"\x7fELF\x02\x01":
        raise NotElfError(f"starts with {contents[:6]!r}")
    try:
        machine, flags, table, count = _header(contents)
        sections = tuple(_section(contents, table + 64 * number) for number in range(count))
        symbols: dict[str, int] = {}
        notes: dict[int, bytes] = {}
        for section in sections:
            if section.kind == _SYMTAB:
                symbols |= _symbols(contents, section, sections[section.link])
            elif section.kind == _NOTE:
                notes |= _notes(contents[section.offset : section.offset + section.size])
    except (struct.error, IndexError, OverflowError, ValueError) as broken:
        raise NotElfError(f"cut short or damaged: {broken}") from broken
    return Elf(machine=machine, flags=flags, symbols=symbols, notes=notes, contents=contents, sections=sections)


def _header(contents: bytes) -> tuple[int, int, int, int]:
    (machine,) = struct.unpack_from("<H", contents, 18)
    (table,) = struct.unpack_from("<Q", contents, 40)
    (flags,) = struct.unpack_from("<I", contents, 48)
    (count,) = struct.unpack_from("<H", contents, 60)
    return machine, flags, table, count


def _section(contents: bytes, at: int) -> _Section:
    _, kind, _, address, offset, size, link = struct.unpack_from("<IIQQQQI", contents, at)
    return _Section(kind, address, offset, size, link)


def _symbols(contents: bytes, section: _Section, names: _Section) -> dict[str, int]:
    found = {}
    for at in range(section.offset, section.offset + section.size, 24):
        name, _, value = struct.unpack_from("<IIQ", contents, at)
        start = names.offset + name
        found[contents[start : contents.index(b"\0", start)].decode()] = value
    return found


def _notes(table: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at < len(table):
        name, size, kind = struct.unpack_from("<III", table, at)
        start = at + 12 + _aligned(name)
        found[kind] = table[start : start + size]
        at = start + _aligned(size)
    return found


def _aligned(size: int) -> int:
    return (size + 3) // 4 * 4
