"""All memory instructions, and moves of accumulation registers: gives a check per opcode, which takes a seed.

It fails where the interpreter and plain Python differ; `benchmarks.instructions` counts them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np

from tests.isa import lds_oracle, scalar_memory_oracle, vector_memory_oracle
from tests.isa.single import codes, execute, fresh

_ROWS = 16


def _moved(text: str, taken: int, put: int, seed: int) -> None:
    """A register goes to another one, of whichever file, and nothing else changes; rows from 256 on are AGPRs."""
    chooser = random.Random(seed)
    rows = {first + at: [chooser.getrandbits(32) for _ in range(64)] for first in (0, 256) for at in range(_ROWS)}
    wave = fresh({row: np.array(lanes, np.uint32) for row, lanes in rows.items()})
    wave.s[126], wave.s[127] = (chooser.getrandbits(32) for _ in range(2))
    wave.update_mask()
    active = wave.s[126] | wave.s[127] << 32
    rows[put] = [rows[taken if active >> lane & 1 else put][lane] for lane in range(64)]
    execute(text, wave)
    assert codes(wave) == []
    assert {row: wave.v[row].tolist() for row in rows} == rows, text


ACCUMULATION = {
    "v_accvgpr_read_b32": partial(_moved, "v_accvgpr_read_b32 v3, a5", 256 + 5, 3),
    "v_accvgpr_write_b32": partial(_moved, "v_accvgpr_write_b32 a5, v3", 3, 256 + 5),
    "v_accvgpr_mov_b32": partial(_moved, "v_accvgpr_mov_b32 a7, a5", 256 + 5, 256 + 7),
}
"""Moves from and to the registers that matrix instructions sum in."""

CHECKS: dict[str, Callable[[int], None]] = {
    **lds_oracle.CHECKS,
    **vector_memory_oracle.CHECKS,
    **scalar_memory_oracle.CHECKS,
    **ACCUMULATION,
}
"""By opcode, without suffixes of the encoding, a check that takes a seed and fails where the two differ."""
