"""CDNA5 as far as its machine code is read: gfx1250, and gfx1201 of RDNA4, which has most of its instructions.

Waves have 32 lanes, each class of memory instruction has a counter and a wait of its own, and barriers are split. No
device is here: nobody has published rates. What the proof would need beside this is listed as `unmodelled`, and what it
takes for granted as `assumed`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from rota.program.kinds import OpKind
from rota.program.machine import Confidence, Counter, Fact
from rota.targets.architecture import (
    VECTOR_SLOTS,
    Architecture,
    DescriptorLayout,
    Float8,
    Hazards,
    ListingRules,
    MatrixForm,
    Queue,
    ResourceLayout,
    Respelling,
    Traffic,
    WaitRule,
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

# The matrix unit works beside the vector unit, and so does the one for transcendentals; nothing holds back a vector
# instruction that touches what they still read or write. Products are told apart by how long they take.


_RECOGNISER = "LLVM, GCNHazardRecognizer of gfx1250"
_CLOCKS = "LLVM, SISchedule.td of gfx1250, by a public compiler reference of 2026-08-14"


def _clocks(count: int) -> Fact:
    return Fact(count, "clocks", Confidence.COMPILER_MODEL, _CLOCKS)


def _wmma(shape: str, left: str, right: str, clocks: int, *totals: str, sparse: bool = False) -> tuple[MatrixForm, ...]:
    """Products by their shape and formats, one for each format of the sum."""
    rows, columns, depth = (int(part) for part in shape.split("x"))
    kinds = left if left == right and not left.endswith("f8") and not left.endswith("p8") else f"{left}_{right}"
    return tuple(
        MatrixForm(
            name=f"v_{'swmmac' if sparse else 'wmma'}_{total}_{shape}_{kinds}", rows=rows, columns=columns, depth=depth,
            blocks=1, left=left, right=right, total=total, passes=_clocks(clocks), sparse=sparse,
        )
        for total in totals
    )  # fmt: skip


def _any_format(prefix: str, shape: str, kind: str, narrow: int | None) -> MatrixForm:
    rows, columns, depth = (int(part) for part in shape.split("x"))
    return MatrixForm(
        name=f"v_wmma_{prefix}f32_{shape}_{kind}", rows=rows, columns=columns, depth=depth, blocks=1, left=kind,
        right=kind, total="f32", passes=_clocks(8), narrow_passes=None if narrow is None else _clocks(narrow),
        scaled=bool(prefix),
    )  # fmt: skip


_HALVES = (("f16", ("f32", "f16")), ("bf16", ("f32", "bf16", "bf16f32")))
_EIGHTHS = tuple(product(("fp8", "bf8"), repeat=2))
WMMA_FORMS = (
    *(form for kind, totals in _HALVES for form in _wmma("16x16x32", kind, kind, 8, *totals)),
    *(form for left, right in _EIGHTHS for form in _wmma("16x16x64", left, right, 4, "f32", "f16")),
    *(form for left, right in _EIGHTHS for form in _wmma("16x16x128", left, right, 8, "f32", "f16")),
    *_wmma("16x16x64", "iu8", "iu8", 16, "i32"),
    *(form for kind, totals in _HALVES for form in _wmma("16x16x64", kind, kind, 8, *totals, sparse=True)),
    *(form for left, right in _EIGHTHS for form in _wmma("16x16x128", left, right, 8, "f32", "f16", sparse=True)),
    *_wmma("16x16x128", "iu8", "iu8", 16, "i32", sparse=True),
    *(_any_format(prefix, "16x16x128", "f8f6f4", 4) for prefix in ("", "scale_", "scale16_")),
    *(_any_format(prefix, "32x16x128", "f4", None) for prefix in ("", "scale_", "scale16_")),
)


# Of those that not every CDNA has.
_EXTENSIONS = tuple(
    """v_ashr_pk_i8_i32 v_ashr_pk_u8_i32 v_bitop3_b16 v_bitop3_b32 v_cvt_f32_bf16 v_cvt_pk_bf16_f32 v_cvt_pk_f16_f32
    v_cvt_sr_bf16_f32 v_dot2_f32_bf16 v_maximum3_f32 v_minimum3_f32 v_permlane16_swap_b32 v_permlane32_swap_b32
    v_pk_maximum3_f16 v_pk_minimum3_f16 v_prng_b32 v_maximum3_f16 v_minimum3_f16""".split()  # noqa: SIM905
)


def _after_product(form: str, to_vector: int, to_factor: int, remark: str = "") -> tuple[WaitRule, ...]:
    """What must lie between a product and what touches its factors or its result, the sum of the next one excepted."""

    def slots(count: int) -> Fact:
        source = f"{_RECOGNISER}: WMMA co-execution, {form}{remark}"
        return Fact(count, VECTOR_SLOTS, Confidence.COMPILER_MODEL, source)

    name, after = f"wmma_{form.replace(' ', '_')}", ("mfma", form)
    return (
        WaitRule(name=f"{name}_result", states=slots(to_vector), after=after, then=("valu",), gives="vector writes",
                 takes="named", why="uses or overwrites"),
        WaitRule(name=f"{name}_factor", states=slots(to_vector), after=after, then=("valu",), gives="reads",
                 takes="vector writes", why="overwrites the factor"),
        WaitRule(name=f"{name}_next", states=slots(to_factor), after=after, then=("mfma",), gives="vector writes",
                 takes="reads", why="multiplies by"),
    )  # fmt: skip


def _after_transcendental(name: str, gives: str, takes: str, why: str) -> WaitRule:
    slot = Fact(1, VECTOR_SLOTS, Confidence.COMPILER_MODEL, f"{_RECOGNISER}: transcendentals beside the vector unit")
    return WaitRule(
        name=name, states=slot, after=("valu", "transcendental"), then=("valu or mfma", "not transcendental"),
        gives=gives, takes=takes, why=why,
    )  # fmt: skip


# Compilers don't keep this one; AITER's kernels do since pull 4337, after two s_nop hadn't been enough (pull 4155).
_MODE_WRITE = WaitRule(
    name="mode_write",
    states=Fact(
        2, VECTOR_SLOTS, Confidence.COMPILER_MODEL,
        "rocm-systems pull 10208: two v_nop right before s_setreg of MODE order it after what precedes it (on A0)",
    ),
    after=("vector", "not nop"), then=("sets mode", "HW_REG_WAVE_MODE"), why="writes MODE",
)  # fmt: skip

HAZARDS = Hazards(
    by_vectors=True,
    rules=(
        *_after_product("8 clocks", 4, 5),
        *_after_product("16 clocks", 8, 9),
        *_after_product("4 clocks", 1, 2, "; LLVM 22 keeps as many as after 8"),
        *_after_product("sparse 8 clocks", 2, 3),
        *_after_product("sparse 16 clocks", 4, 5),
        _after_transcendental("transcendental_result", "vector writes", "named", "uses or overwrites"),
        _after_transcendental("transcendental_source", "reads", "vector writes", "overwrites the source"),
        _MODE_WRITE,
    ),
)

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
    hazards=HAZARDS,
    bank_rules=(),
    extensions=_EXTENSIONS,
    matrix_forms=WMMA_FORMS,
    transposed_reads=("ds_load_tr16_b128", "ds_load_tr8_b64", "ds_load_tr4_b64", "ds_load_tr6_b96"),
    descriptor=DescriptorLayout(
        vector_granule=16, scalar_registers=128, user_bits=6, accumulators=False, workgroup_ids=False,
        preload_prologue=0, float_modes=False, named_barriers=True,
    ),
    listing=ListingRules(options=("--mattr=+real-true16",), respellings=RESPELLINGS),
    # LLVM, SIISelLowering of 45-bit num_records, and FeatureSignedGVSOffset; both for gfx1250 alone.
    resource=ResourceLayout(base_bits=57, records_at=57, records_bits=45, stride_at=108),
    signed_lane_offsets=True,
    pairs_repeat_scalars=True,  # LLVM, hasPKF32InstsReplicatingLower32BitsOfScalarInput
    lds_nowhere=Fact(
        0x7FFF_FFFF, "byte", Confidence.COMPILER_MODEL,
        "Triton 3.9 for lanes without an element; AMD, CDNA3 ISA manual: accesses out of range are dropped, and read 0",
    ),
    assumed=(
        "hardware keeps instructions apart, but for WMMA and transcendentals, whose distances are LLVM's",
        "no memory access is replayed after a page fault (xnack), so that no wait for xcnt is needed",
        "a kernel starts in scheduling mode 0, where hardware waits for results of the vector units",
        "tensorcnt counts a tensor copy that its descriptor switches off, too",
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
    extensions=(),
    resource=ResourceLayout(),
    signed_lane_offsets=False,
    pairs_repeat_scalars=False,
    descriptor=replace(CDNA5.descriptor, vector_granule=8, user_bits=5, named_barriers=False),
    listing=ListingRules(options=("--mattr=+real-true16",)),
    hazards=Hazards(rules=()),
    matrix_forms=(),
    unmodelled=("which instructions have to stand apart",),
    assumed=(),
)
"""RX 9070."""
