"""The words ops are described with: takes nothing, gives the enums and tags that every other step uses."""

from __future__ import annotations

import enum
from typing import Final


class ResourceKind(enum.Enum):
    """The unit an op occupies, and with it the counter that tracks its completion."""

    GLOBAL_MEM = "GLOBAL_MEM"  # tracked by vmcnt
    LDS = "LDS"  # tracked by lgkmcnt
    MMA_UNIT = "MMA_UNIT"
    VALU = "VALU"  # runs beside the MMA unit
    SCALAR = "SCALAR"
    NONE = "NONE"


class OpRole(enum.Enum):
    """What an op does in the pipeline. Edge rules and block building look at roles, never at a kernel's tags."""

    GLOBAL_LOAD = "GLOBAL_LOAD"
    SHARED_STORE = "SHARED_STORE"
    FRAGMENT_LOAD = "FRAGMENT_LOAD"
    COMPUTE = "COMPUTE"
    VALU_COMPUTE = "VALU_COMPUTE"
    SYNC = "SYNC"
    FENCE = "FENCE"
    NONE = "NONE"


class KOffsetKind(enum.Enum):
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


class Phase(enum.Enum):
    """The three parts of a pipelined loop."""

    PROLOGUE = "PROLOGUE"
    KERNEL = "KERNEL"
    EPILOGUE = "EPILOGUE"


class SchedulingStrategy(enum.StrEnum):
    """The orders that ship with rota. Each name is looked up in `order.registry`, as third-party names are."""

    IDENTITY = "IDENTITY"
    GREEDY = "GREEDY"
    CSP = "CSP"


CHANNEL_A: Final = 0
CHANNEL_B: Final = 1
NO_CHANNEL: Final = -1

MAX_KERNEL_TAG: Final = 127


class FrameworkTag(enum.IntEnum):
    """Tags of the ops that rota itself inserts."""

    BARRIER = 128
    WAIT_VM = 129
    WAIT_LGKM = 130
    SET_PRIO = 131
    SCHEDULE_BARRIER = 132
    SCHED_GROUP_BARRIER = 133


class DoubleBufferTag(enum.IntEnum):
    """Tag vocabulary of DMA-fed GEMM bodies; the MI355X target's cost model speaks it."""

    LOAD_A = 0
    LOAD_B = 1
    COMPUTE = 2
    MMA_LOAD_A = 3
    MMA_LOAD_B = 4
    MMA = 5


class SingleBufferTag(enum.IntEnum):
    """Tag vocabulary of register-staged GEMM bodies (load, store, fragment, compute)."""

    LOAD_DRAM = 0
    STORE_SMEM = 1
    LOAD_FRAG = 2
    COMPUTE = 3


class LoopTag(enum.IntEnum):
    """Tags of ops that come from a loop declared by values; the subtile numbers the op."""

    LOAD = 0
    FRAGMENT = 1
    MMA = 2
    VALU = 3
    STORE = 4


class InstructionGroup(enum.IntEnum):
    """The instruction groups that a sched_group_barrier hint can name."""

    DS_READ = 0
    DS_WRITE = 1
    VMEM_READ = 2
    MFMA = 3
