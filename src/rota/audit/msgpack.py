"""MessagePack, as far as code object notes use it: takes bytes, gives the value they encode (msgpack.org, spec.md)."""

from __future__ import annotations

import struct

Packed = None | bool | int | float | str | list["Packed"] | dict["Packed", "Packed"]

_NUMBERS = {
    0xCA: ">f", 0xCB: ">d",
    0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_STRINGS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def unpack(contents: bytes) -> Packed:
    """The first value in `contents`."""
    return _value(contents, 0)[0]


def _value(contents: bytes, at: int) -> tuple[Packed, int]:
    tag = contents[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 0x100, at
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at
    if tag in _NUMBERS:
        number, at = _number(_NUMBERS[tag], contents, at)
        return number, at
    return _group(tag, contents, at)


def _group(tag: int, contents: bytes, at: int) -> tuple[Packed, int]:
    for sizes, fixed, mask in ((_STRINGS, 0xA0, 0x1F), (_ARRAYS, 0x90, 0x0F), (_MAPS, 0x80, 0x0F)):
        if tag in sizes:
            size, at = _number(sizes[tag], contents, at)
        elif tag & ~mask == fixed:
            size = tag & mask
        else:
            continue
        if sizes is _STRINGS:
            return contents[at : at + size].decode(), at + size
        items, at = _items(contents, at, size if sizes is _ARRAYS else 2 * size)
        return (items if sizes is _ARRAYS else dict(zip(items[::2], items[1::2], strict=True))), at
    raise ValueError(f"tag {tag:#x} is not used by code object notes")


def _items(contents: bytes, at: int, count: int) -> tuple[list[Packed], int]:
    items = []
    for _ in range(count):
        item, at = _value(contents, at)
        items.append(item)
    return items, at


def _number(form: str, contents: bytes, at: int) -> tuple[int, int]:
    (number,) = struct.unpack_from(form, contents, at)
    return number, at + struct.calcsize(form)
