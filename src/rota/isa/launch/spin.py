"""Loops that get nowhere: takes a wave at a backward branch, gives whether it has been there in the very same state.

A wave that comes back with all its registers as they were will do the same again, unless somebody else changes memory.
States are compared as Brent's cycle finding does: with one that is kept, replaced at the 1st, 2nd, 4th, 8th ... branch.
A loop that counts in a scalar register costs one comparison of two lists.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rota.isa.memory.global_memory import Memory
    from rota.isa.wave.wave import Wave


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A wave's state at one of its backward branches."""

    branches: int  # how many there were before
    pc: int
    scalars: list[int]
    scc: int
    under_way: int
    vectors: NDArray[np.uint32]


def revisited(wave: Wave, pc: int) -> bool:
    """Notes that a wave goes back to `pc`; was it there with the same registers?"""
    kept = wave.visit
    wave.branches += 1
    under_way = len(wave.vm) + len(wave.ds) + len(wave.sm) + len(wave.flat)
    if (
        kept is not None
        and (kept.pc, kept.scc, kept.under_way) == (pc, wave.scc, under_way)
        and kept.scalars == wave.s
        and np.array_equal(kept.vectors, wave.v)
    ):
        return True
    if kept is None or wave.branches == 2 * kept.branches:
        wave.visit = Visit(
            branches=wave.branches, pc=pc, scalars=[*wave.s], scc=wave.scc, under_way=under_way, vectors=wave.v.copy()
        )
    return False


def state_of(waves: Sequence[Wave], memory: Memory) -> bytes:
    """A digest of all that waves can see and of where they stand: equal if nothing has changed."""
    digest = hashlib.blake2b(digest_size=16)
    for wave in waves:
        digest.update(repr((wave.pc, wave.waiting, wave.ended, wave.scc, wave.mode, wave.s)).encode())
        digest.update(wave.v.tobytes())
        digest.update(wave.private.bytes.tobytes())
    digest.update(waves[0].lds.bytes.tobytes())
    for buffer in memory.contents():
        digest.update(np.ascontiguousarray(buffer).view(np.uint8).data if buffer.size else b"")
    return digest.digest()
