"""One instruction on both engines: takes its text, gives the registers that NumPy and the native core leave behind."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from rota.isa.launch.interleaving import LATEST
from rota.isa.launch.run import _run_wave
from rota.isa.launch.wave_group import WaveGroup
from rota.isa.native import workgroups
from rota.isa.native.library import library
from rota.isa.native.records import pack
from tests.isa.single import LDS_BYTES, fresh, loaded

ROWS, SCALARS, DRAWN = 512, 128, 40
MOST = 1000


class Left(NamedTuple):
    vectors: np.ndarray
    scalars: np.ndarray
    clean: bool


def drawn(seed: int, floats: bool) -> dict[int, np.ndarray]:
    random = np.random.default_rng(seed)
    rows = [*range(DRAWN), *range(256, 256 + DRAWN)]
    if floats:
        return {row: random.integers(-8, 9, 64).astype(np.float32).view(np.uint32) for row in rows}
    return {row: random.integers(0, 2**32, 64, dtype=np.uint32) for row in rows}


def both(text: str, arch: str, seed: int, *, floats: bool = False) -> tuple[Left, Left] | None:
    """None if the core doesn't know the instruction."""
    program = loaded(text, arch)
    packed = pack(program)
    if packed is None:
        return None
    vectors = drawn(seed, floats)
    random = np.random.default_rng(seed + 1)
    scalars = {number: int(value) for number, value in enumerate(random.integers(0, 2**32, DRAWN))}
    one, two = fresh(vectors, scalars), fresh(vectors, scalars)
    with np.errstate(all="ignore"):
        _run_wave(program.steps, one, None)
    core = library()
    assert core is not None
    waves = WaveGroup(number=0, waves=[two], driver=LATEST.driver(0), steps=program.steps, faults=two.faults)
    with workgroups._Core(program, packed, two.memory, 1, LDS_BYTES) as running:
        workgroups._STARTING_ROWS = ROWS
        clean = running.run(waves, LATEST, MOST)
        at = core.rota_vectors(running._group, 0), core.rota_scalars(running._group, 0)
        left = np.frombuffer(ctypes.string_at(at[0], ROWS * 64 * 4), np.uint32).reshape(ROWS, 64)
        words = np.frombuffer(ctypes.string_at(at[1], SCALARS * 4), np.uint32)
        workgroups._STARTING_ROWS = 3
    return Left(one.v, np.array(one.s, np.uint32), not one.faults.findings()), Left(left, words, clean)


def same(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Any NaN equals any NaN: which bits it has nobody relies on."""
    nan = np.isnan(one.view(np.float32)) & np.isnan(two.view(np.float32))
    return np.asarray((one == two) | nan)
