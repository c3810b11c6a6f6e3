"""The machine a proof is about: takes a device, gives counters, memories and limits, each with its source."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from rota.declare.check import check_types
from rota.declare.effects import Counter


class Confidence(enum.Enum):
    """How well a fact is known."""

    DOCUMENTED = "documented"
    COMPILER_MODEL = "compiler model"
    MEASURED_BY_THIRD_PARTY = "measured by third party"
    ESTIMATE = "estimate"


class Fact(NamedTuple):
    """A number about the hardware and where it comes from."""

    value: int
    unit: str
    confidence: Confidence
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Facts of one architecture that bound what a schedule may do.

    A wait whose count has all bits of its field set waits for nothing, so the largest real wait is one less.

    That vmcnt counts down in the order of issue is documented, but doubted in public for DMAs into LDS that run past
    the end of their buffer on gfx950.  Without `vmcnt_in_order` a counted wait says nothing about which op is over, and
    only a wait for 0 covers any.
    """

    name: str
    arch: str
    vmcnt_field: Fact
    lgkmcnt_field: Fact
    lds_bytes: Fact
    vgprs_per_lane: Fact
    waves_per_workgroup: Fact
    dma_width: Fact
    vmcnt_in_order: bool = True

    def __post_init__(self) -> None:
        check_types(self, {"name": str, "arch": str, "vmcnt_field": Fact, "lgkmcnt_field": Fact})
        check_types(self, {"vmcnt_in_order": bool})

    def no_wait(self, counter: Counter) -> int:
        """The count that is encoded as "do not wait"; also how many tokens the counter can hold."""
        return (self.vmcnt_field if counter is Counter.VM else self.lgkmcnt_field).value

    def largest_wait(self, counter: Counter) -> int:
        """The weakest wait that still waits."""
        return self.no_wait(counter) - 1

    def counts_in_order(self, counter: Counter) -> bool:
        """Is the oldest op on the counter always the next to be over?"""
        return counter is not Counter.VM or self.vmcnt_in_order


_GFX9_VMCNT = Fact(63, "tokens", Confidence.COMPILER_MODEL, "LLVM 22 assembler: 6-bit field, 63 means no wait")
_GFX9_LGKMCNT = Fact(15, "tokens", Confidence.COMPILER_MODEL, "LLVM 22 assembler: 4-bit field, 15 means no wait")
_CDNA_VGPRS = Fact(512, "registers per lane", Confidence.COMPILER_MODEL, "LLVM 22: VGPRs and AGPRs in one file")
_WORKGROUP = Fact(16, "waves", Confidence.DOCUMENTED, "LLVM AMDGPU usage: 1,024 threads of 64 lanes a wave")

GFX950 = Machine(
    name="MI355X",
    arch="gfx950",
    vmcnt_field=_GFX9_VMCNT,
    lgkmcnt_field=_GFX9_LGKMCNT,
    lds_bytes=Fact(160 * 1024, "bytes", Confidence.DOCUMENTED, "AMD, GPU specifications of MI355X"),
    vgprs_per_lane=_CDNA_VGPRS,
    waves_per_workgroup=_WORKGROUP,
    dma_width=Fact(16, "bytes per lane", Confidence.COMPILER_MODEL, "LLVM 22 assembler: buffer_load_dwordx4 ... lds"),
)
"""CDNA4."""

GFX942 = Machine(
    name="MI300X",
    arch="gfx942",
    vmcnt_field=_GFX9_VMCNT,
    lgkmcnt_field=_GFX9_LGKMCNT,
    lds_bytes=Fact(64 * 1024, "bytes", Confidence.DOCUMENTED, "AMD, GPU specifications of MI300X"),
    vgprs_per_lane=_CDNA_VGPRS,
    waves_per_workgroup=_WORKGROUP,
    dma_width=Fact(4, "bytes per lane", Confidence.COMPILER_MODEL, "LLVM 22 assembler: buffer_load_dword ... lds"),
)
"""CDNA3."""

MACHINES = (GFX950, GFX942)
"""All that rota knows; a document's machine is one of these."""

NAMED: Mapping[str, Machine] = MappingProxyType(
    {name.lower(): machine for machine in MACHINES for name in (machine.name, machine.arch)}
)
"""The same by name and by architecture, in lower case."""
