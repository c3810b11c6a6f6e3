"""The words ops are described with: takes nothing, gives the enums and tags that every other step uses."""

from __future__ import annotations

import enum
from typing import Final

from rota.printing import NamedMember


class KOffsetKind(NamedMember):
    """Which K-tile a load fetches, relative to the iteration's k."""

    K0 = 0
    K1 = 1
    K_NEXT = 2
    K_PREV = -1
    NONE = None

    def signed_bk_multiple(self) -> int:
        """The offset in K-tiles; an op without an offset stands at k itself."""
        return self.value or 0

    @property
    def is_prefetch(self) -> bool:
        """A prefetch fetches a tile of this or a later iteration; K_PREV completes a tile of the one before."""
        return self is not KOffsetKind.K_PREV and self is not KOffsetKind.NONE


CHANNEL_A: Final = 0
CHANNEL_B: Final = 1
NO_CHANNEL: Final = -1
OPERAND_NAMES: Final = ("A", "B")
"""The channels that every pipeline has; further ones follow."""

MAX_KERNEL_TAG: Final = 127


class FrameworkTag(NamedMember, enum.IntEnum):
    """Tags of the ops that rota itself inserts."""

    BARRIER = 128
    WAIT_VM = 129
    WAIT_LGKM = 130
    SET_PRIO = 131
    SCHEDULE_BARRIER = 132
    SCHED_GROUP_BARRIER = 133


class DoubleBufferTag(NamedMember, enum.IntEnum):
    """Tag vocabulary of DMA-fed GEMM bodies; the MI355X target's cost model speaks it."""

    LOAD_A = 0
    LOAD_B = 1
    COMPUTE = 2
    MMA_LOAD_A = 3
    MMA_LOAD_B = 4
    MMA = 5


class SingleBufferTag(NamedMember, enum.IntEnum):
    """Tag vocabulary of register-staged GEMM bodies (load, store, fragment, compute)."""

    LOAD_DRAM = 0
    STORE_SMEM = 1
    LOAD_FRAG = 2
    COMPUTE = 3


class InstructionGroup(NamedMember, enum.IntEnum):
    """The instruction groups that a sched_group_barrier hint can name."""

    DS_READ = 0
    DS_WRITE = 1
    VMEM_READ = 2
    MFMA = 3
