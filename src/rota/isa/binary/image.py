"""What a loader makes of a code object: takes the file, gives the bytes that lie in memory when a kernel starts.

Code finds its constants and variables by distance from itself, so all segments are loaded as far apart as the file has
them, at one place.
"""

from __future__ import annotations

import struct

from rota.isa.binary.elf import ElfFile, unreadable

CODE_BASE = 0x7E00_0001_0000
"""Where address 0 of a code object is loaded: the place of the first buffer in `rota.isa.memory.global_memory`."""
_MOST_BYTES = 2**28
_ABSOLUTE, _RELATIVE = 3, 13  # R_AMDGPU_ABS64, R_AMDGPU_RELATIVE64


def build_image(file: ElfFile) -> bytes:
    """All segments in place, with the addresses filled in that depend on where they are loaded."""
    size = max((segment.address + segment.size for segment in file.segments), default=0)
    if size > _MOST_BYTES:
        raise unreadable(f"it takes {size:,} bytes of memory; at most {_MOST_BYTES:,} are loaded")
    image = bytearray(size)
    for segment in file.segments:
        image[segment.address : segment.address + len(segment.contents)] = segment.contents
    for each in file.relocations:
        if each.kind not in {_ABSOLUTE, _RELATIVE} or not 0 <= each.address <= size - 8:
            raise unreadable(f"it asks for relocation {each.kind} at {each.address:#x}, which isn't known")
        if each.symbol is None:
            raise unreadable(f"the word at {each.address:#x} stands for a symbol of another code object")
        struct.pack_into("<Q", image, each.address, CODE_BASE + each.symbol + each.addend & 2**64 - 1)
    return bytes(image)
