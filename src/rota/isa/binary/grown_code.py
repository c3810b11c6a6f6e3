"""More code in an object: linkers leave addresses free between a segment of code and the next one.

Segments keep their addresses.  In the file, what follows the code moves by whole pages, so that offsets and addresses
stay equal modulo a page.  Nothing else of the file changes but the tables that hold offsets and sizes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.isa.binary.elf import damaged

_EXECUTABLE, _LOAD, _WORD = 1, 1, 4
_PAGE = 0x1000
_LINE = 64  # bytes: new code begins with a line of the instruction cache
_SEGMENTS, _SECTIONS = (32, 54), (40, 58)  # in the file's header: where a table is, and its entries' size and number
_HEADER = struct.Struct("<IIQQQQQ")  # of a segment
_OFFSET, _SEGMENT_SIZES = 8, 32
_ADDRESS, _SECTION_OFFSET, _SECTION_SIZE = 16, 24, 32  # of a section


class _Header(NamedTuple):
    kind: int
    flags: int
    offset: int
    first: int
    physical: int
    size: int
    memory: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Free addresses after the code, and the segment that may grow into them: its address and bytes in the file."""

    address: int
    words: int
    segment: int
    offset: int
    size: int


def find_room(contents: bytes, near: int) -> Room | None:
    """The room after the segment that holds an address; None if there is none."""
    headers = (_Header(*_HEADER.unpack_from(contents, at)) for at in _list_places(contents, *_SEGMENTS))
    loaded = [each for each in headers if each.kind == _LOAD]
    for each in loaded:
        if not each.flags & _EXECUTABLE or not each.first <= near < each.first + each.size or each.size != each.memory:
            continue
        start = -(-(each.first + each.size) // _LINE) * _LINE
        end = min((other.first for other in loaded if other.first > each.first), default=start + _PAGE)
        if end > start:
            words = (end - start) // _WORD
            return Room(address=start, words=words, segment=each.first, offset=each.offset, size=each.size)
    return None


def _list_places(contents: bytes, table: int, sizes: int) -> range:
    """Where the headers of segments or of sections are in the file."""
    (first,) = struct.unpack_from("<Q", contents, table)
    size, count = struct.unpack_from("<2H", contents, sizes)
    return range(first, first + size * count, size or 1)


def append_words(contents: bytes, room: Room, words: Sequence[int]) -> bytes:
    """The file with words in the room; raises T103 if they don't fit."""
    if len(words) > room.words:
        raise damaged(f"{len(words)} words don't fit into {room.words}")
    made = bytearray(contents)
    end = room.offset + room.size
    grown = room.address - room.segment + _WORD * len(words)
    moved = -(-(grown - room.size) // _PAGE) * _PAGE
    for at in _list_places(contents, *_SEGMENTS):
        each = _Header(*_HEADER.unpack_from(contents, at))
        if (each.kind, each.first) == (_LOAD, room.segment):
            struct.pack_into("<QQ", made, at + _SEGMENT_SIZES, grown, grown)
        elif each.offset >= end:
            struct.pack_into("<Q", made, at + _OFFSET, each.offset + moved)
    sections = _list_places(contents, *_SECTIONS)
    for at in sections:
        address, offset, size = struct.unpack_from("<QQQ", made, at + _ADDRESS)
        if address and address + size == room.segment + room.size:
            struct.pack_into("<Q", made, at + _SECTION_SIZE, size + grown - room.size)
        elif offset >= end:
            struct.pack_into("<Q", made, at + _SECTION_OFFSET, offset + moved)
    if sections.start >= end:
        struct.pack_into("<Q", made, _SECTIONS[0], sections.start + moved)
    code = struct.pack(f"<{len(words)}I", *words).rjust(grown - room.size, b"\0")
    return bytes(made[:end]) + code.ljust(moved, b"\0") + bytes(made[end:])
