"""LDS reads that transpose, against what AMD's own tests of rocRoller ask of an MI355X.

There a wave keeps 128 runs of elements in LDS, and lane `16 x + y` reads run `32 x + y`, then the run 16 further.  Both
results are written out, register by register, or lane by lane where elements have 6 bits; what comes out must be the
matrix turned.  This fixes each element's place for every width.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.isa.single import codes, execute, fresh, written_lds

RUNS = np.array([32 * x + y for x in range(4) for y in range(16)], np.uint32)
REGISTER = 32


def _packed(values: Any, bits: int) -> Any:
    return np.packbits((values[:, None] >> np.arange(bits) & 1).astype(np.uint8).reshape(-1), bitorder="little")


def _unpacked(octets: Any, bits: int) -> Any:
    each = np.unpackbits(octets, bitorder="little").reshape(-1, bits)
    return (each.astype(np.int64) << np.arange(bits)).sum(axis=1)


def _read(data: Any, bits: int, width: int) -> list[Any]:
    """Both reads of the whole: rows of registers by lanes."""
    size, stride = width // 8, 8 if width == 64 else 16
    wave = fresh({9: RUNS * np.uint32(stride)})
    wave.lds = written_lds(wave.faults)
    wave.lds.bytes[: 128 * stride].reshape(128, stride)[:, :size] = _packed(data, bits).reshape(128, size)
    last = size // 4 - 1
    first, second = f"v[0:{last}], v9", f"v[4:{4 + last}], v9 offset:{16 * stride}"
    execute(f"ds_read_b{width}_tr_b{bits} {first}\nds_read_b{width}_tr_b{bits} {second}\ns_waitcnt lgkmcnt(0)", wave)
    assert codes(wave) == []
    return [wave.v[start : start + last + 1].copy() for start in (0, 4)]


@pytest.mark.parametrize("bits", [16, 8, 4])
def test_runs_of_64_bits_come_out_turned(bits: int) -> None:
    data = np.random.default_rng(bits).integers(0, 1 << bits, 128 * 64 // bits)
    read = _unpacked(np.concatenate(_read(data, bits, 64)).view(np.uint8).reshape(-1), bits)
    inner, outer = REGISTER // bits, 16  # elements of a register, lanes that work together
    data, read = data.reshape(4, 4, inner, outer), read.reshape(4, 4, outer, inner)
    for z, w in product(range(4), repeat=2):
        assert np.array_equal(data[w, z], read[z, w].T), (z, w)


def test_runs_of_96_bits_are_turned_sixteen_by_sixteen() -> None:
    data = np.random.default_rng(6).integers(0, 64, 128 * 16)
    lanes = np.concatenate([np.ascontiguousarray(each.T) for each in _read(data, 6, 96)])
    read = _unpacked(lanes.view(np.uint8).reshape(-1), 6).reshape(8, 16, 16)
    for t, w, z in product(range(2), repeat=3):
        assert np.array_equal(data.reshape(8, 16, 16)[4 * t + 2 * z + w], read[4 * w + 2 * t + z].T), (t, w, z)
