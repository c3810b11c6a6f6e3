"""Kinds of op, in one table: what each does, where it may read and write, which unit it occupies.

Which counter tracks an op is a fact of the machine (`program.machine.Counter`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from rota.printing import NamedMember


class Phase(NamedMember):
    """The three parts of a pipelined loop."""

    __hash__ = object.__hash__  # members are single; an enum's own hash is Python code

    PROLOGUE = "PROLOGUE"
    KERNEL = "KERNEL"
    EPILOGUE = "EPILOGUE"

    def at(self, slot: int) -> str:
        """What the entry at `slot` of this phase is called: kernel[5]. `#5` is the op of that number in the body."""
        return f"{self.value.lower()}[{slot}]"


PATHS = (
    (Phase.PROLOGUE, Phase.KERNEL, Phase.KERNEL, Phase.EPILOGUE),
    (Phase.PROLOGUE, Phase.KERNEL, Phase.EPILOGUE),
    (Phase.PROLOGUE, Phase.EPILOGUE),
)
"""Every two parts that can follow one another, with what is before them."""


# Formats of matrix elements.
#
# A matrix instruction whose name ends in f8f6f4 takes any of them, each factor its own; other names say what they
# take.

BITS: Mapping[str, int] = MappingProxyType({"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4})
"""Bits of an element by format."""

WIDEST = max(BITS.values())
"""The most bits that an element has, where its format isn't stated."""


def takes_formats(instruction: str) -> bool:
    """True if the formats of the factors are chosen where the instruction is issued."""
    return instruction.endswith("f8f6f4")


def takes_scales(instruction: str) -> bool:
    """True if it multiplies each block of its factors by a scale."""
    return instruction.startswith("v_mfma_scale_")


class ResourceKind(NamedMember):
    """The unit an op of a pipeline body occupies, and with it the counter that tracks its completion."""

    GLOBAL_MEM = "GLOBAL_MEM"  # tracked by vmcnt
    LDS = "LDS"  # tracked by lgkmcnt
    MMA_UNIT = "MMA_UNIT"
    VALU = "VALU"  # runs beside the MMA unit
    SCALAR = "SCALAR"
    NONE = "NONE"


class OpRole(NamedMember):
    """What an op does in the pipeline. Edge rules and block building look at roles, never at a kernel's tags."""

    __hash__ = object.__hash__  # members are single; an enum's own hash is Python code

    GLOBAL_LOAD = "GLOBAL_LOAD"
    SHARED_STORE = "SHARED_STORE"
    FRAGMENT_LOAD = "FRAGMENT_LOAD"
    COMPUTE = "COMPUTE"
    VALU_COMPUTE = "VALU_COMPUTE"
    SYNC = "SYNC"
    FENCE = "FENCE"
    NONE = "NONE"


class Unit(enum.Enum):
    """What an op occupies; each unit takes one op at a time."""

    MMA = "MMA unit"
    VALU = "VALU"
    LDS = "LDS port"
    DMA = "DMA path"
    ISSUE = "issue turns of a wave"


class Home(enum.Enum):
    """Where a value lives."""

    LDS = "LDS"  # shared by the workgroup, sized in bytes; each wave writes its slice
    REGISTERS = "registers"  # private to a wave, sized in registers per lane
    ACCUMULATOR = "accumulator"  # private to a wave, added to in any order, kept over all iterations
    INPUT = "input"  # registers that are filled before the loop and only read in it
    MEMORY = "memory"  # global memory that the loop writes and never reads


class _Row(NamedTuple):
    word: str  # in a document and in messages
    does: str
    role: OpRole
    unit: Unit = Unit.ISSUE
    reads: tuple[Home, ...] = ()
    writes: tuple[Home, ...] = ()


_LDS, _REGISTERS, _MEMORY = (Home.LDS,), (Home.REGISTERS,), (Home.MEMORY,)
_RESULTS = (Home.REGISTERS, Home.ACCUMULATOR)


class OpKind(enum.Enum):
    """What an op is; registers that a memory op reads besides its data hold its addresses."""

    __hash__ = object.__hash__  # members are single; an enum's own hash is Python code

    # fmt: off
    DMA = _Row("load", "global memory to LDS", OpRole.GLOBAL_LOAD, Unit.DMA, _REGISTERS, _LDS)
    GLOBAL_LOAD = _Row("gload", "global memory to registers", OpRole.GLOBAL_LOAD, Unit.DMA, _REGISTERS, _REGISTERS)
    GLOBAL_STORE = _Row("gstore", "registers to global memory", OpRole.NONE, Unit.DMA, _REGISTERS, _MEMORY)
    ATOMIC = _Row("atomic", "registers added to memory", OpRole.NONE, Unit.DMA, _REGISTERS, _MEMORY)
    LDS_READ = _Row("fragment", "LDS to registers", OpRole.FRAGMENT_LOAD, Unit.LDS, _LDS + _REGISTERS, _REGISTERS)
    LDS_READ_TRANSPOSED = _Row("transposed", "LDS to registers, transposed", OpRole.FRAGMENT_LOAD, Unit.LDS,
                               _LDS + _REGISTERS, _REGISTERS)
    LDS_WRITE = _Row("lds_store", "registers to LDS", OpRole.SHARED_STORE, Unit.LDS, _REGISTERS, _LDS)
    MMA = _Row("mma", "registers to accumulator", OpRole.COMPUTE, Unit.MMA, _REGISTERS, _RESULTS)
    VALU = _Row("valu", "registers to registers", OpRole.VALU_COMPUTE, Unit.VALU, _REGISTERS, _RESULTS)
    TRANSCENDENTAL = _Row("transcendental", "registers to registers, slowly", OpRole.VALU_COMPUTE, Unit.VALU,
                          _REGISTERS, _RESULTS)
    SCALAR = _Row("scalar", "scalar registers to scalar registers", OpRole.NONE)
    WAIT = _Row("wait", "wait for a counter", OpRole.SYNC)
    BARRIER = _Row("barrier", "barrier", OpRole.SYNC)
    PRIORITY = _Row("priority", "a hint to the wave arbiter", OpRole.FENCE)
    FENCE = _Row("fence", "a fence for the compiler", OpRole.FENCE)
    HINT = _Row("hint", "a hint to the compiler's scheduler", OpRole.FENCE)
    NOTHING = _Row("nothing", "orders and moves nothing", OpRole.NONE)
    # fmt: on

    # Columns are attributes of the members, not properties: a proof asks for them at every step.
    word: str
    does: str
    role: OpRole
    unit: Unit
    reads: tuple[Home, ...]
    writes: tuple[Home, ...]
    asynchronous: bool
    computes: bool
    synchronises: bool

    def __init__(self, *row: object) -> None:
        for name, value in zip(_Row._fields, row, strict=True):
            setattr(self, name, value)
        self.asynchronous = self.unit in (Unit.DMA, Unit.LDS)
        self.computes = self.unit in (Unit.MMA, Unit.VALU)
        self.synchronises = self.role in (OpRole.SYNC, OpRole.FENCE)

    def __repr__(self) -> str:
        return f"OpKind.{self.name}"


KIND_NAMED = {kind.word: kind for kind in OpKind}
"""A kind by its word."""

LDS_READS = tuple(kind for kind in OpKind if kind.unit is Unit.LDS and Home.LDS in kind.reads)
"""What brings a tile into registers."""

GLOBAL_LOADS = tuple(kind for kind in OpKind if kind.unit is Unit.DMA and Home.MEMORY not in kind.writes)
"""What brings data from outside the loop."""

SYNC_INSTRUCTIONS = (OpKind.WAIT, OpKind.BARRIER, OpKind.PRIORITY)
"""Of those that synchronise, what is an instruction; fences and hints to a compiler are none."""
