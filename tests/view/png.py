"""Reads the PNG files that Chromium writes: 8 bits a channel, RGB or RGBA, not interlaced (W3C, PNG third edition)."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

Pixel = tuple[int, int, int]
_CHANNELS = {2: 3, 6: 4}


def read_png(path: Path) -> list[list[Pixel]]:
    """Rows of pixels, without their transparency."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    packed, at = b"", 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, _, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0)
            channels = _CHANNELS[colour]
        packed += body if kind == b"IDAT" else b""
        at += length + 12
    lines = zlib.decompress(packed)
    size = width * channels
    above = bytearray(size)
    rows = []
    for start in range(0, len(lines), size + 1):
        above = _unfiltered(lines[start], bytearray(lines[start + 1 : start + 1 + size]), above, channels)
        rows.append([(above[x], above[x + 1], above[x + 2]) for x in range(0, size, channels)])
    return rows


def _unfiltered(kind: int, line: bytearray, above: bytearray, step: int) -> bytearray:
    if kind == 2:
        return bytearray((one + other) & 255 for one, other in zip(line, above, strict=True))
    for x in range(len(line) if kind else 0):
        left = line[x - step] if x >= step else 0
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + above[x]) // 2
        else:
            guess = _paeth(left, above[x], above[x - step] if x >= step else 0)
        line[x] = (line[x] + guess) & 255
    return line


def _paeth(left: int, up: int, corner: int) -> int:
    near_left, near_up, near_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if near_left <= near_up and near_left <= near_corner:
        return left
    return up if near_up <= near_corner else corner
