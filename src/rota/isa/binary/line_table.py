"""Where machine code comes from: takes the bytes of a code object, gives a `LineTable` from addresses to source lines.

HIP compiled with -g has one, and so has everything that Triton compiles.  It is a help for readers: what can't be read
of it is left out, and instructions then have no source line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from rota.errors import SourceLine
from rota.isa.binary.elf import Metered

_MOST_ROWS = 1_000_000
_COMPRESSED = 0x800  # SHF_COMPRESSED


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTable:
    """From each of the `starts`, in ascending order, up to the next one, code comes from the line at the same place."""

    starts: tuple[int, ...] = ()
    sources: tuple[SourceLine | None, ...] = ()

    def at(self, address: int) -> SourceLine | None:
        """The line that the instruction at an address was made from, if that is known."""
        place = bisect_right(self.starts, address) - 1
        return self.sources[place] if place >= 0 else None


NO_LINES = LineTable()
"""That of a code object without debug information."""


def read_lines(hsaco: bytes) -> LineTable:
    """The line table of a code object; an empty one if it has none, or if it is damaged."""
    from elftools.elf.elffile import ELFFile

    rows: dict[int, SourceLine | None] = {}
    try:
        elf = ELFFile(Metered(hsaco))
        debug = [section for section in elf.iter_sections() if section.name.startswith((".debug", ".zdebug"))]
        if any(section.name == ".debug_line" for section in debug) and not any(_is_packed(each) for each in debug):
            for address, source in _rows(elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)):
                # A row without a line ends what stood before it, and gives way to one that begins there.
                if source is not None or rows.get(address) is None:
                    rows[address] = source
                if len(rows) > _MOST_ROWS:
                    return NO_LINES
    except Exception:  # noqa: BLE001  # pyelftools says nowhere all that it may raise
        return NO_LINES
    starts = sorted(rows)
    return LineTable(starts=tuple(starts), sources=tuple(rows[start] for start in starts))


def _is_packed(section: Any) -> bool:  # noqa: ANN401  # of pyelftools, untyped
    """Few packed bytes may hold any number of others."""
    return section.name.startswith(".zdebug") or bool(section["sh_flags"] & _COMPRESSED)


def _rows(dwarf: Any) -> Iterator[tuple[int, SourceLine | None]]:  # noqa: ANN401  # of pyelftools, untyped
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        first = 0 if program["version"] >= 5 else 1  # of the numbers of files and folders
        folders = program["include_directory"]
        files = [_path(each, folders, first) for each in program["file_entry"]]
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            place = state.file - first
            known = state.line > 0 and not state.end_sequence and 0 <= place < len(files)
            yield state.address, SourceLine(files[place], state.line) if known else None


def _path(entry: Any, folders: Any, first: int) -> str:  # noqa: ANN401  # of pyelftools, untyped
    """A file in its folder; folder 0 of older tables is where the compiler ran, which they don't say."""
    name, place = _text(entry.name), entry.dir_index - first
    return str(PurePosixPath(_text(folders[place]), name)) if 0 <= place < len(folders) else name


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name
