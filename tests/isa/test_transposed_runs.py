"""Transposing LDS reads of gfx1250: where each element of each lane's run goes, and that they make a factor of WMMA.

The places are those of Triton (TargetFeatures.cpp) and, for 6 bits, of AMD's emulator rocJITsu, seen from the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rota.errors import IsaError
from rota.isa.decoded import decode
from rota.isa.wave.wave import Wave
from rota.targets.cdna5 import CDNA5, RDNA4
from tests.isa.single import codes
from tests.isa.test_wmma import LANES, instruction, wave_of_32

ADDRESS, ACTIVE = 100, 0x0000_F00F
# From the lane of a run and the number of its element to the lane of the result and the number of its element.
PLACES: dict[int, Callable[[int, int], tuple[int, int]]] = {
    16: lambda run, item: ((run & 24) + item, run & 7),
    8: lambda run, item: (item + 8 * (run >> 2 & 1) + 16 * (run >> 4), (run & 3) + 4 * (run >> 3 & 1)),
    6: lambda run, item: (item + 16 * (run >> 2 & 1), (run & 3) + 4 * (run >> 3)),
    4: lambda run, item: (item + 16 * (run >> 3 & 1), (run & 7) + 8 * (run >> 4)),
}
NAMES = {16: "ds_load_tr16_b128", 8: "ds_load_tr8_b64", 6: "ds_load_tr6_b96", 4: "ds_load_tr4_b64"}
BYTES = {16: 16, 8: 8, 6: 12, 4: 8}


def packed(values: Any, bits: int) -> Any:
    return np.packbits((values[:, None] >> np.arange(bits) & 1).astype(np.uint8).reshape(-1), bitorder="little")


def unpacked(octets: Any, bits: int) -> Any:
    each = np.unpackbits(octets, bitorder="little").reshape(-1, bits)
    return (each.astype(np.int64) << np.arange(bits)).sum(axis=1)


def text_of(bits: int, first: int = 0, offset: int = 0) -> str:
    return f"{NAMES[bits]} v[{first}:{first + BYTES[bits] // 4 - 1}], v{ADDRESS}" + (
        f" offset:{offset}" if offset else ""
    )


def read(wave: Wave, text: str) -> None:
    decode(instruction(text), CDNA5).act(wave)


def elements(wave: Wave, bits: int, first: int = 0) -> Any:
    """Lanes by elements."""
    held = np.ascontiguousarray(wave.v[first : first + BYTES[bits] // 4].T).view(np.uint8)
    return unpacked(held.reshape(-1), bits).reshape(LANES, -1)


@pytest.mark.parametrize("bits", PLACES)
@pytest.mark.parametrize("mask", [0xFFFF_FFFF, ACTIVE])  # which means nothing
def test_elements_go_where_triton_expects_them(bits: int, mask: int) -> None:
    rng, size = np.random.default_rng(bits), BYTES[bits]
    count = 8 * size // bits
    wave, places = wave_of_32(), rng.permutation(LANES)  # runs may lie anywhere
    data = rng.integers(0, 1 << bits, (LANES, count))
    for lane, place in enumerate(places.tolist()):
        wave.lds.bytes[32 + place * size :][:size] = packed(data[lane], bits)
    wave.v[ADDRESS] = (places * size).astype(np.uint32)
    wave.s[126] = mask
    wave.update_mask()
    read(wave, text_of(bits, offset=32))
    if mask != ACTIVE:
        assert (wave.v[:2] == 0xFFFF_FFFF).all()  # in flight
    wave.wait("dscnt", 0)
    assert codes(wave) == []
    found = elements(wave, bits)
    for lane in range(LANES):
        for item in range(count):
            assert found[PLACES[bits](lane, item)] == data[lane, item], (lane, item)


@pytest.mark.parametrize(
    ("bits", "depth", "row_of"),
    [
        (16, 32, lambda lane: (lane & 7) + 8 * (lane >> 4)),
        (8, 64, lambda lane: (lane & 3) + 4 * (lane >> 3 & 1) + 8 * (lane >> 4)),
    ],
)
def test_rows_of_a_tile_become_columns_of_a_factor(bits: int, depth: int, row_of: Callable[[int], int]) -> None:
    """B lies row by row, and each read fetches sixteen rows of it."""
    data = np.random.default_rng(7).integers(0, 1 << bits, (depth, 16))
    wave, row_bytes = wave_of_32(), 2 * bits
    wave.lds.bytes[: depth * row_bytes] = packed(data.reshape(-1), bits)
    half_at = {16: 3, 8: 2}[bits]  # the lane's bit that says which half of a row it reads
    wave.v[ADDRESS] = [row_bytes * row_of(lane) + row_bytes // 2 * (lane >> half_at & 1) for lane in range(LANES)]
    registers = bits // 4
    for step in range(depth // 16):
        read(wave, text_of(bits, registers * step, 16 * row_bytes * step))
    wave.wait("dscnt", 0)
    assert codes(wave) == []
    for step in range(depth // 16):
        found = elements(wave, bits, registers * step)
        for lane in range(LANES):
            for item in range(8):
                assert found[lane, item] == data[item + 8 * (lane >> 4) + 16 * step, lane & 15]


@pytest.mark.parametrize(("bits", "aligned"), [(16, 16), (8, 8), (6, 4), (4, 8)])
def test_addresses_are_aligned(bits: int, aligned: int) -> None:
    for address, found in ((aligned, []), (aligned // 2, ["I105"])):
        wave = wave_of_32()
        wave.v[ADDRESS] = address
        read(wave, text_of(bits))
        assert codes(wave) == found


def test_gfx1201_has_none() -> None:
    with pytest.raises(IsaError) as caught:
        decode(instruction(text_of(16)), RDNA4)
    assert [each.code for each in caught.value.findings] == ["I102"]
