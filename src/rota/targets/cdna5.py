"""CDNA5 as far as its machine code is read: gfx1250, and gfx1201 of RDNA4, which has most of its instructions.

Waves have 32 lanes, each class of memory instruction has a counter and a wait of its own, and barriers are split. No
device is here: nobody has published rates. What the proof would need beside this is listed as `unmodelled`, and what it
takes for granted as `assumed`.
"""

from __future__ import annotations

from dataclasses import replace

from rota.program.kinds import OpKind
from rota.program.machine import Confidence, Counter, Fact
from rota.targets.architecture import (
    Architecture,
    DescriptorLayout,
    Float8,
    Hazards,
    ListingRules,
    Queue,
    Respelling,
    Traffic,
)

GUIDE = "LLVM, User Guide for AMDGPU Backend"
ASSEMBLER = "LLVM 22 assembler"
_TABLES = "LLVM, AMDGPU.td of gfx1250, by a public compiler reference of 2026-08-14"
_EVENTS = "LLVM, AMDGPUHWEvents.cpp"
_TALK = "slides on a grouped GEMM for gfx1250, of the CDNA5 ISA manual, section 5.7"
_ASYNC = "LLVM pull 185810"


def _counter(name: str, bits: int, source: str, *counts: OpKind, in_order: bool = True) -> Counter:
    """The largest number of a field of so many bits waits for nothing."""
    known = Confidence.DOCUMENTED if source == _ASYNC else Confidence.COMPILER_MODEL
    holds = Fact((1 << bits) - 1, "tokens", known, f"{source}: {bits} bits")
    return Counter(name=name, holds=holds, counts=frozenset(counts), in_order=in_order)


# Loads and stores are counted apart, and so are the copies between memory and LDS that need no registers. Scalar loads
# return in any order and count twice if they are longer than a word. Address translation (xcnt) counts everything once
# more; a wait for another counter's n waits for xcnt <= n, too, so nothing that is judged here depends on it.
_SHARED_COUNTERS = (
    _counter("loadcnt", 6, _EVENTS, OpKind.GLOBAL_LOAD),
    _counter("storecnt", 6, _EVENTS, OpKind.GLOBAL_STORE, OpKind.ATOMIC),
    _counter("dscnt", 6, _EVENTS, OpKind.LDS_READ, OpKind.LDS_WRITE, OpKind.LDS_READ_TRANSPOSED),
    _counter("kmcnt", 5, _EVENTS, in_order=False),
)
_SHARED_QUEUES = (
    Queue(counter="loadcnt", in_order=frozenset({Traffic.LOAD})),
    Queue(counter="storecnt", in_order=frozenset({Traffic.STORE})),
    Queue(counter="dscnt", in_order=frozenset({Traffic.LDS})),
    Queue(counter="kmcnt", in_order=frozenset(), in_any_order=frozenset({Traffic.SCALAR}), most_tokens=2),
)

# Three encodings that other assemblers write and LLVM 22 doesn't take, each with the bits that were seen in shipped
# objects and no others. Which field a copy's null operand is, and the third source of a WMMA's scales, mean nothing.
_THIRD = 0x1FF << 18
_SEEN = "AMD's assembler in shipped objects; what LLVM 22 writes for the same"
_ALL = 0xFFFF_FFFF
RESPELLINGS = (
    *(
        Respelling(
            what=what, masks=(_ALL, 0xFF00_0000), values=(first, 0), keeps=(0, 0x00FF_FFFF),
            sets=(first + 0x0040_0001, 0x7C00_0000), source=_SEEN,
        )
        for what, first in (("tensor load", 0xD031_0000), ("tensor store", 0xD031_4000))
    ),
    *(
        Respelling(
            what="third source of the scales", masks=(0xFFFF_0000, _THIRD), values=(first, third << 18),
            keeps=(_ALL, _ALL & ~_THIRD), sets=(0, 0x100 << 18), source=f"{_SEEN}; rocm-systems 9438",
        )
        for first in (0xCC35_0000, 0xCC3A_0000)
        for third in (0x000, 0x080)
    ),
    Respelling(
        what="op_sel_hi of v_wmma_f32_32x16x128_f4", masks=(0xFFFF_4000, 0), values=(0xCC88_0000, 0),
        keeps=(_ALL, _ALL), sets=(0x4000, 0), source=_SEEN,
    ),
)  # fmt: skip

CDNA5 = Architecture(
    name="gfx1250",
    arch="gfx1250",
    toolchain="gfx1250",
    elf_machine=Fact(0x49, "EF_AMDGPU_MACH", Confidence.DOCUMENTED, GUIDE),
    counters=(
        *_SHARED_COUNTERS,
        _counter("asynccnt", 6, _ASYNC, OpKind.DMA, in_order=False),
        _counter("tensorcnt", 6, f"{_EVENTS}; {_TALK}"),
        _counter("xcnt", 6, "LLVM pulls 145566, 168852", in_order=False),
    ),
    queues=(
        *_SHARED_QUEUES,
        Queue(counter="asynccnt", in_order=frozenset({Traffic.ASYNC_LOAD, Traffic.ASYNC_STORE}), by_kind=True),
        Queue(counter="tensorcnt", in_order=frozenset({Traffic.TENSOR})),
        Queue(counter="xcnt", in_order=frozenset()),
    ),
    split_barrier=True,
    lds_bytes=Fact(320 * 1024, "bytes", Confidence.DOCUMENTED, f"{_TABLES}; the CDNA5 ISA manual, section 3.3.4"),
    vgprs_per_lane=Fact(1024, "registers per lane", Confidence.DOCUMENTED, f"{_TABLES}: one file, no AGPRs"),
    waves_per_workgroup=Fact(32, "waves", Confidence.COMPILER_MODEL, "LLVM 22: a wave's number has 5 bits of ttmp8"),
    dma_width=Fact(16, "bytes per lane", Confidence.COMPILER_MODEL, f"{ASSEMBLER}: global_load_async_to_lds_b128"),
    lanes=Fact(32, "lanes per wave", Confidence.DOCUMENTED, f"{GUIDE}: wavefront size of gfx1250"),
    register_bytes=Fact(4, "bytes per lane", Confidence.DOCUMENTED, f"{GUIDE}: VGPRs of 32 bits"),
    d16_kept=Fact(
        0, "halves of a register", Confidence.COMPILER_MODEL,
        "LLVM, GCNSubtarget: d16PreservesUnusedBits is false where SRAM-ECC may be on, as code objects of gfx1250 ask",
    ),
    float8=Float8.OCP,
    hazards=Hazards(rules=()),
    bank_rules=(),
    transposed_reads=("ds_load_tr16_b128", "ds_load_tr8_b64", "ds_load_tr4_b64", "ds_load_tr6_b96"),
    descriptor=DescriptorLayout(
        vector_granule=16, scalar_registers=128, user_bits=6, accumulators=False, workgroup_ids=False,
        preload_prologue=0, float_modes=False, named_barriers=True,
    ),
    listing=ListingRules(options=("--mattr=+real-true16",), respellings=RESPELLINGS),
    assumed=(
        "hardware keeps instructions apart that have to stand apart, WMMA and transcendentals excepted",
        "no memory access is replayed after a page fault (xnack), so that no wait for xcnt is needed",
        "a kernel starts in scheduling mode 0, where hardware waits for results of the vector units",
    ),
)  # fmt: skip
"""MI400 series."""

RDNA4 = replace(
    CDNA5,
    name="gfx1201",
    arch="gfx1201",
    toolchain="gfx1201",
    elf_machine=Fact(0x4E, "EF_AMDGPU_MACH", Confidence.DOCUMENTED, GUIDE),
    counters=_SHARED_COUNTERS,
    queues=_SHARED_QUEUES,
    lds_bytes=Fact(64 * 1024, "bytes", Confidence.DOCUMENTED, f"{GUIDE}: LDS of a workgroup"),
    vgprs_per_lane=Fact(256, "registers per lane", Confidence.COMPILER_MODEL, f"{ASSEMBLER}: what operands can name"),
    dma_width=Fact(4, "bytes per lane", Confidence.ESTIMATE, "none: RDNA4 has no copies to LDS"),
    d16_kept=Fact(1, "halves of a register", Confidence.COMPILER_MODEL, "LLVM, GCNSubtarget: no SRAM-ECC on gfx12.0"),
    transposed_reads=(),
    descriptor=replace(CDNA5.descriptor, vector_granule=8, user_bits=5, named_barriers=False),
    listing=ListingRules(options=("--mattr=+real-true16",)),
    unmodelled=("which instructions have to stand apart",),
    assumed=(),
)
"""RX 9070."""
