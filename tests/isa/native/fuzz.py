"""Records that nobody would write, for a core built with sanitizers: `python -m tests.isa.native.fuzz COUNT SEED`.

Takes the records of drawn instructions, changes some of their fields to anything, and runs what the core's own check
lets through.  What it computes doesn't matter; a sanitizer ends the process where it leaves its memory.
"""

from __future__ import annotations

import ctypes
import sys
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from rota.isa.native.records import OP, OTHER, Packed, library, pack
from tests.isa import matrix_checks, memory_oracles, single
from tests.isa.native import both
from tests.isa.plain.families import ARCHITECTURES, FAMILIES

LENGTH, WAVES, LDS, PRIVATE, MEMORY, MOST = 24, 2, 2048, 64, 4096, 400
BASE = 0x10000
EDGES = (
    -1,
    0,
    1,
    2,
    3,
    6,
    7,
    15,
    16,
    31,
    63,
    64,
    127,
    255,
    256,
    500,
    511,
    512,
    767,
    768,
    1 << 20,
    (1 << 31) - 1,
    -(1 << 31),
)


def collected(random: Random, share: int) -> np.ndarray:
    """Records of all kinds of instructions, each of which both engines have run."""
    found: list[Any] = []

    def kept(program: Any) -> Packed | None:
        packed = pack(program)
        if packed is not None:
            found.extend(packed.ops)
        return packed

    tally = both.Tally()
    with patch.object(both, "pack", kept), both.watching(tally):
        for family in FAMILIES:
            chosen = random.sample(family.opcodes, len(family.opcodes) // share)
            for _ in family.judge(random, random.choice(ARCHITECTURES), chosen, 1):
                pass
        for check in random.sample(list(memory_oracles.CHECKS.values()), len(memory_oracles.CHECKS) // share):
            check(random.randrange(99))
        for matrix in random.sample(list(matrix_checks.CHECKS.values()), len(matrix_checks.CHECKS) // share):
            matrix(random.randrange(99), places=0, most=1)
    assert tally.different == []
    return np.array(found, OP)


def mutated(records: np.ndarray, random: Random) -> np.ndarray:
    ops = records[[random.randrange(len(records)) for _ in range(LENGTH)]].copy()
    words = ops.view(np.int32).reshape(LENGTH, -1)
    for _ in range(random.choice((0, 1, 1, 2, 6))):
        place = random.randrange(words.shape[1])
        value = random.choice(EDGES) if random.random() < 0.8 else random.randrange(-(1 << 31), 1 << 31)
        words[random.randrange(LENGTH), place] = value
    if random.random() < 0.3:
        ops["target"][random.randrange(LENGTH)] = random.randrange(LENGTH)
    ops["touches_at"], ops["touches"] = 0, 0
    return ops


def run(ops: np.ndarray, random: Random, *, checked: bool = True) -> bool:
    """Runs a program of records, whatever they are; were they let through?"""
    core = library()
    assert core is not None
    pool = np.array([random.randrange(768) for _ in range(4)], np.int32)
    acts = (ctypes.c_void_p * LENGTH)()
    records = ops.ctypes.data, LENGTH
    if (checked and core.rota_check(*records, pool.ctypes.data, len(pool))) or core.rota_acts(*records, acts):
        return False
    group = core.rota_group_new(*records, pool.ctypes.data, WAVES, LDS, PRIVATE)
    assert group
    memory, users = np.zeros(MEMORY, np.uint8), np.zeros((3, MEMORY // 4 + 1), np.int32)
    bounds = np.array([[64, 2048], [1024, MEMORY]], np.int64)
    code_at = np.array([random.randrange(-1, LENGTH) for _ in range(16)], np.int32)
    rank = np.arange(16, dtype=np.int32)
    other = OTHER(lambda *_: -3)
    core.rota_group_memory(
        group, memory.ctypes.data, BASE, bounds[0].ctypes.data, bounds[1].ctypes.data, 2,
        *(each.ctypes.data for each in users), random.randrange(2),
    )  # fmt: skip
    core.rota_group_code(group, code_at.ctypes.data, len(code_at), BASE, other)
    core.rota_group_start(group, 0)
    core.rota_group_order(
        group, random.randrange(3), random.randrange(2), random.getrandbits(32), rank.ctypes.data, MOST, 63, 15
    )
    draw = np.random.default_rng(random.getrandbits(32))
    for wave in range(WAVES):
        vectors = draw.integers(0, 2 * LDS, (512, 64), dtype=np.uint32)
        vectors[1::2] = random.choice((0, 0xFFFF_FFFF))
        vectors[0::4] += np.uint32(random.choice((0, BASE)))
        ctypes.memmove(core.rota_vectors(group, wave), vectors.ctypes.data, vectors.nbytes)
        scalars = draw.integers(0, 2 * LDS, 128, dtype=np.uint32)
        scalars[1::2] = 0
        scalars[0::4] += np.uint32(BASE)
        ctypes.memmove(core.rota_scalars(group, wave), scalars.ctypes.data, scalars.nbytes)
        core.rota_set_exec(group, wave, random.choice((0, 1, (1 << 64) - 1, random.getrandbits(64))))
    core.rota_run(group, acts, 2 * MOST)
    core.rota_group_free(group)
    return True


def outside() -> None:
    """Runs a record that leads outside, and leaves out the check that refuses it."""
    program = pack(single.loaded("v_mov_b32_e32 v0, v1"))
    assert program is not None
    ops = np.repeat(program.ops[1:], LENGTH)
    ops[0] = program.ops[0]
    ops[0]["o"][0]["first"] = 1 << 20
    assert not run(ops, Random(0))
    run(ops, Random(0), checked=False)


def main(count: int, seed: int) -> None:
    random = Random(seed)
    if not count:
        return outside()
    records = collected(random, 8 if count < 1000 else 1)
    ran = sum(run(mutated(records, random), random) for _ in range(count))
    return print(f"{len(records)} records, {count} programs, {ran} of them let through and run")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
