"""What a hand-over of data between workgroups is made of, on machines whose workgroups don't share all caches.

Each cluster of compute units (XCD) has an L2 of its own, and each compute unit an L1. A store reaches its own L2 and
stays there until it is written back; a load may find an old line in L1 or L2 until that is invalidated.
"""

from __future__ import annotations

import enum

GFX942 = "LLVM, AMDGPUUsage, Memory Model GFX942; SIMemoryLegalizer.cpp, SIGfx940CacheControl"


class HandOverPiece(enum.Enum):
    """A piece of the protocol by which a flag hands data from one workgroup to another."""

    __hash__ = object.__hash__  # members are single, and this one is fast

    DATA_WAIT = "a wait for the data's accesses before the flag"
    BARRIER_BEFORE = "a barrier between the data's accesses and the flag"
    WRITE_BACK = "a write-back between the data's stores and the flag"
    WRITE_BACK_SCOPE = "the scope bits of the write-back"
    WRITE_BACK_WAIT = "a wait for the write-back before the flag"
    STORE_SCOPE = "the scope bits of the flag's store"
    LOAD_SCOPE = "the scope bits of the flag's load"
    LOAD_WAIT = "a wait for the flag's load before the data's accesses"
    INVALIDATE = "an invalidate between the flag and the data's loads"
    INVALIDATE_SCOPE = "the scope bits of the invalidate"
    WAIT_BEFORE_INVALIDATE = "a wait for the flag's load before the invalidate"
    BARRIER_AFTER = "a barrier between the flag and the data's accesses"

    @property
    def is_of_release(self) -> bool:
        """True if the side that sets the flag has to have it."""
        return self in _OF_RELEASE


_OF_RELEASE = frozenset({
    HandOverPiece.DATA_WAIT, HandOverPiece.BARRIER_BEFORE, HandOverPiece.WRITE_BACK, HandOverPiece.WRITE_BACK_SCOPE,
    HandOverPiece.WRITE_BACK_WAIT, HandOverPiece.STORE_SCOPE,
})  # fmt: skip
