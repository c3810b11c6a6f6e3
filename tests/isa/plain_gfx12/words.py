"""Words of every opcode field of gfx12's encodings, with registers that fit any instruction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

TARGET, ONE, TWO, THREE = 8, 16, 48, 96  # registers: even, and apart
VECTOR = 256  # in a source of nine bits, the first VGPR
NULL = 0x7C
Words = tuple[int, ...]


def _sources(*numbers: int) -> int:
    return sum(number << 9 * place for place, number in enumerate(numbers))


_VECTORS = _sources(VECTOR + ONE, VECTOR + TWO, VECTOR + THREE)
_MIXTURES = (
    _VECTORS, _sources(VECTOR + ONE, VECTOR + TWO, THREE), _sources(VECTOR + ONE, TWO, VECTOR + THREE),
    _sources(ONE, TWO), _sources(VECTOR + ONE, TWO), _sources(VECTOR + ONE), _sources(ONE),
    _sources(VECTOR + ONE, VECTOR + TWO), _sources(VECTOR + ONE, VECTOR + TWO, 128),
)  # fmt: skip


def _scalar() -> Iterator[Words]:
    for op in range(256):
        yield (0xBE80_0000 | TARGET << 16 | op << 8 | ONE,)  # SOP1
    for op in range(96):
        yield 0x8000_0000 | op << 23 | TARGET << 16 | TWO << 8 | ONE, 0x4120_0000  # SOP2
    for op in range(128):
        yield (0xBF00_0000 | op << 16 | TWO << 8 | ONE,)  # SOPC
        yield (0xBF80_0000 | op << 16,)  # SOPP
        yield (0xBF80_0000 | op << 16 | 1,)
        yield (0xBF80_0000 | op << 16 | 0xFFFF,)
    for op in range(32):
        yield 0xB000_0000 | op << 23 | TARGET << 16 | 1, 0x4120_0000  # SOPK
    for op, target in product(range(64), (0, TARGET)):
        yield 0xF400_0000 | op << 13 | target << 6 | ONE >> 1, 0xF800_0040  # SMEM


def _vector() -> Iterator[Words]:
    for op, source in product(range(256), (VECTOR + ONE, ONE)):
        yield (0x7E00_0000 | TARGET << 17 | op << 9 | source,)  # VOP1
        yield (0x7C00_0000 | op << 17 | TWO << 9 | source,)  # VOPC
    for op in range(62):
        yield op << 25 | TARGET << 17 | TWO << 9 | VECTOR + ONE, 0x4000_0000, 0x4000_0000  # VOP2
    for op, sources in product(range(1024), _MIXTURES):
        yield 0xD400_0000 | op << 16 | TARGET, sources  # VOP3
    for op, sources in product(range(1024), _MIXTURES[:2]):
        yield 0xD400_0000 | op << 16 | 20 << 8 | TARGET, sources  # with a second result
    yield (0x7E00_0000,)
    for op, sources, high in product(range(256), _MIXTURES[:2], (0, 0x4000)):
        yield 0xCC00_0000 | op << 16 | high | TARGET, 0x1800_0000 | sources  # VOP3P
        yield 0xCC00_0000 | op << 16 | high | TARGET, sources
    for op, kind in product((0x33, 0x88), (0x35, 0x3A)):  # a product with scales before it
        scales = 0xCC00_0000 | kind << 16, _sources(VECTOR + ONE, VECTOR + TWO, VECTOR)
        yield *scales, 0xCC00_0000 | op << 16 | TARGET, _VECTORS
        yield *scales, 0xCC00_4000 | op << 16 | TARGET, 0x1800_0000 | _VECTORS
    rest = (TWO + 5) << 9 | VECTOR + THREE
    for left, right in product(range(32), range(32)):
        yield 0xC800_0000 | left << 22 | right << 17 | TWO << 9 | VECTOR + ONE, TARGET << 24 | 7 << 17 | rest, 0  # VOPD


def _memory() -> Iterator[Words]:
    for op, target, data, other, address in product(range(256), (0, TARGET), (0, TWO), (0, ONE), (0, THREE)):
        yield 0xD800_0000 | op << 18, target << 24 | other << 16 | data << 8 | address  # DS
    kinds = (0xEC00_0000, 0xEE00_0000, 0xED00_0000)  # flat, global, private
    for op, kind, base, target, data in product(range(256), kinds, (NULL, TWO), (0, TARGET), (0, ONE)):
        yield kind | op << 14 | base, data << 23 | target, THREE
    for op in range(256):
        yield 0xC400_0000 | op << 14 | NULL, 1 << 30 | TWO << 9 | TARGET, THREE  # VBUFFER
    for op, first in product(range(4), (0xD071_0001, 0xD071_4001)):
        yield first | op << 15, 0x7C00_0000, 0x7C7C_0810  # tensor copies


def gfx12_words() -> Iterator[Words]:
    """One to four words of each try."""
    yield from _scalar()
    yield from _vector()
    yield from _memory()
