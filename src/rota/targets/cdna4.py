"""CDNA4, which compilers call gfx950, and its devices: MI355X, MI350X."""

from __future__ import annotations

from rota.program.kinds import OpKind
from rota.program.machine import Confidence, Fact
from rota.targets import cdna
from rota.targets.architecture import CDNA4_FORMS, Architecture, BankRule, Float8, WaitEncoding
from rota.targets.device import (
    Fitted,
    ProblemFacts,
    Rates,
    RegimeFacts,
    Spread,
    TypeFacts,
    device,
    estimate,
    like,
    of_sibling,
    problem_facts_of,
    with_types,
)
from rota.targets.memory_model import GFX942

# Instructions that came with CDNA4.
#
# Those that the architecture has a field for, such as reads that transpose and matrix forms, are not among them.

EXTENSIONS = tuple(
    """buffer_atomic_pk_add_bf16 v_ashr_pk_i8_i32 v_ashr_pk_u8_i32 v_bitop3_b16 v_bitop3_b32 v_cvt_f32_bf16
    v_cvt_pk_bf16_f32 v_cvt_pk_f16_f32 v_cvt_scalef32_2xpk16_bf6_f32 v_cvt_scalef32_2xpk16_fp6_f32
    v_cvt_scalef32_f16_bf8 v_cvt_scalef32_f16_fp8 v_cvt_scalef32_f32_bf8 v_cvt_scalef32_f32_fp8
    v_cvt_scalef32_pk32_bf16_bf6 v_cvt_scalef32_pk32_bf16_fp6 v_cvt_scalef32_pk32_bf6_bf16
    v_cvt_scalef32_pk32_bf6_f16 v_cvt_scalef32_pk32_f16_bf6 v_cvt_scalef32_pk32_f16_fp6
    v_cvt_scalef32_pk32_f32_bf6 v_cvt_scalef32_pk32_f32_fp6 v_cvt_scalef32_pk32_fp6_bf16
    v_cvt_scalef32_pk32_fp6_f16 v_cvt_scalef32_pk_bf16_bf8 v_cvt_scalef32_pk_bf16_fp4 v_cvt_scalef32_pk_bf16_fp8
    v_cvt_scalef32_pk_bf8_bf16 v_cvt_scalef32_pk_bf8_f16 v_cvt_scalef32_pk_bf8_f32 v_cvt_scalef32_pk_f16_bf8
    v_cvt_scalef32_pk_f16_fp4 v_cvt_scalef32_pk_f16_fp8 v_cvt_scalef32_pk_f32_bf8 v_cvt_scalef32_pk_f32_fp4
    v_cvt_scalef32_pk_f32_fp8 v_cvt_scalef32_pk_fp4_bf16 v_cvt_scalef32_pk_fp4_f16 v_cvt_scalef32_pk_fp4_f32
    v_cvt_scalef32_pk_fp8_bf16 v_cvt_scalef32_pk_fp8_f16 v_cvt_scalef32_pk_fp8_f32 v_cvt_scalef32_sr_bf8_bf16
    v_cvt_scalef32_sr_bf8_f16 v_cvt_scalef32_sr_bf8_f32 v_cvt_scalef32_sr_fp8_bf16 v_cvt_scalef32_sr_fp8_f16
    v_cvt_scalef32_sr_fp8_f32 v_cvt_scalef32_sr_pk32_bf6_bf16 v_cvt_scalef32_sr_pk32_bf6_f16
    v_cvt_scalef32_sr_pk32_bf6_f32 v_cvt_scalef32_sr_pk32_fp6_bf16 v_cvt_scalef32_sr_pk32_fp6_f16
    v_cvt_scalef32_sr_pk32_fp6_f32 v_cvt_scalef32_sr_pk_fp4_bf16 v_cvt_scalef32_sr_pk_fp4_f16
    v_cvt_scalef32_sr_pk_fp4_f32 v_cvt_sr_bf16_f32 v_cvt_sr_f16_f32 v_dot2_f32_bf16 v_dot2c_f32_bf16
    v_maximum3_f32 v_minimum3_f32 v_permlane16_swap_b32 v_permlane32_swap_b32 v_pk_maximum3_f16 v_pk_minimum3_f16
    v_prng_b32""".split()  # noqa: SIM905  # a tuple literal would take a line each
)


_HIPKITTENS = "HipKittens, LDS phase experiments on gfx950"
_FIRST_HALF = ((0, 12, 20, 24), (4, 8, 16, 28))  # where runs of four lanes start, for each phase of lanes 0 to 31
_RUN, _QUARTER, _HALF = 4, 16, 32
_OTHER_BANKS = Fact(32, "banks of 4 bytes", Confidence.MEASURED_BY_THIRD_PARTY, _HIPKITTENS)

CDNA4 = Architecture(
    name="gfx950",
    arch="gfx950",
    toolchain="gfx950",
    elf_machine=cdna.elf_machine(0x4F),
    counters=cdna.counters(OpKind.LDS_READ_TRANSPOSED),
    lds_bytes=Fact(160 * 1024, "bytes", Confidence.DOCUMENTED, cdna.SPECIFICATIONS),
    vgprs_per_lane=cdna.VGPRS,
    waves_per_workgroup=cdna.WORKGROUP,
    dma_width=Fact(16, "bytes per lane", Confidence.COMPILER_MODEL, f"{cdna.ASSEMBLER}: buffer_load_dwordx4 ... lds"),
    lanes=cdna.LANES,
    register_bytes=cdna.REGISTER_BYTES,
    waves_per_simd=cdna.WAVES_PER_SIMD,
    d16_kept=cdna.D16_KEPT,
    float8=Float8.OCP,
    wait_encoding=WaitEncoding.SPLIT_VMCNT,
    queues=cdna.QUEUES,
    memory_model=GFX942,  # the same code of LLVM; the document names no differences
    hazards=cdna.hazards("CDNA4", 38, result=4, overlap=2, double_large=19, double_large_sum=17, permlane=True),
    bank_rules=(
        BankRule(
            read_bytes=16,
            banks=Fact(64, "banks of 4 bytes", Confidence.MEASURED_BY_THIRD_PARTY, _HIPKITTENS),
            phases=tuple(
                tuple(half + lane for start in starts for lane in range(start, start + _RUN))
                for half in (0, _HALF)
                for starts in _FIRST_HALF
            ),
            phases_known=Confidence.MEASURED_BY_THIRD_PARTY,
            source=_HIPKITTENS,
        ),
        BankRule(
            read_bytes=8,
            banks=Fact(64, "banks of 4 bytes", Confidence.MEASURED_BY_THIRD_PARTY, _HIPKITTENS),
            phases=tuple(tuple(range(start, start + _HALF)) for start in range(0, cdna.LANES.value, _HALF)),
            phases_known=Confidence.MEASURED_BY_THIRD_PARTY,
            source=_HIPKITTENS,
        ),
        BankRule(
            read_bytes=12,
            banks=_OTHER_BANKS,
            phases=cdna.EIGHT_OF_FOUR,
            phases_known=Confidence.MEASURED_BY_THIRD_PARTY,
            source=_HIPKITTENS,
        ),
        BankRule(
            read_bytes=8,
            banks=_OTHER_BANKS,
            phases=tuple(tuple(range(start, start + _QUARTER)) for start in range(0, cdna.LANES.value, _QUARTER)),
            phases_known=Confidence.MEASURED_BY_THIRD_PARTY,
            source=_HIPKITTENS,
            writes=True,
        ),
    ),
    extensions=EXTENSIONS,
    transposed_reads=("ds_read_b64_tr_b16", "ds_read_b64_tr_b8", "ds_read_b64_tr_b4", "ds_read_b96_tr_b6"),
    matrix_forms=CDNA4_FORMS,
)

RATES = Rates(
    name=CDNA4.arch,
    matrix=(
        cdna.matrix("v_mfma_f32_4x4x4_16b_bf16", 2),
        cdna.matrix("v_mfma_f32_16x16x32_bf16", 4),
        cdna.matrix("v_mfma_f32_32x32x16_bf16", 8),
        cdna.matrix("v_mfma_f32_16x16x32_f16", 4),
        cdna.matrix("v_mfma_f32_32x32x16_f16", 8),
        cdna.matrix("v_mfma_i32_16x16x64_i8", 4),
        cdna.matrix("v_mfma_i32_32x32x32_i8", 8),
        cdna.matrix("v_mfma_f32_16x16x128_f8f6f4", 8, narrow=4),
        cdna.matrix("v_mfma_f32_32x32x64_f8f6f4", 16, narrow=8),
        cdna.matrix("v_mfma_scale_f32_16x16x128_f8f6f4", 8, narrow=4),
        cdna.matrix("v_mfma_scale_f32_32x32x64_f8f6f4", 16, narrow=8),
    ),
    lds_read=Fact(256, "bytes per clock", Confidence.DOCUMENTED, cdna.BLOG),
    lds_read_transposed=estimate(
        256, 128, 256, "bytes per clock", "as ds_read_b64, whose port it shares; nobody has published a measurement"
    ),
    lds_write=Fact(128, "bytes per clock", Confidence.MEASURED_BY_THIRD_PARTY, "HipKittens, LDS phase experiments"),
    dma=cdna.DMA,
    dma_latency=cdna.DMA_LATENCY,
    lds_latency=cdna.LDS_LATENCY,
    transcendental=cdna.TRANSCENDENTAL,
    simds=cdna.SIMDS,
    clocks_per_slot=cdna.CLOCKS_PER_SLOT,
)

LDS_WRITE_LEAST = RATES.lds_write.value
"""Bytes per clock: measured, so there is no range."""


# fitted by `python -m benchmarks.fit_measured --write`
_TABLE = "AITER's tuned GEMMs up to 2026-08, gfx950 with 256 units"
PROBLEMS = ProblemFacts(
    start=Fitted(4.222, 3.702, 4.627, "us", _TABLE),
    share=Fitted(0.8394, 0.7558, 0.8489, "of the loop's clocks", _TABLE),
    feed=Fitted(33.97, 32.74, 35.09, "bytes per clock and unit", _TABLE),
    trip=Fitted(732, 520.7, 829, "clocks", _TABLE),
    hbm=Fitted(7.047, 6.901, 7.26, "TB per second", _TABLE),
    store=Fitted(3.688, 3.422, 3.764, "TB per second", _TABLE),
    split_start=Fitted(0.8987, 0.8463, 1.547, "us", _TABLE),
    split_traffic=Fitted(2.752, 1.47, 3.324, "times", _TABLE),
    types=(
        TypeFacts(
            element="bf16",
            f_busy=Fitted(1.928, 1.898, 1.945, "GHz", _TABLE),
            best=Fitted(1597, 1597, 1597, "TFLOP/s", _TABLE),
        ),
        TypeFacts(
            element="fp4",
            f_busy=Fitted(2.016, 1.977, 2.022, "GHz", _TABLE),
            best=Fitted(5851, 5851, 5851, "TFLOP/s", _TABLE),
        ),
        TypeFacts(
            element="fp8",
            f_busy=Fitted(1.966, 1.943, 2.006, "GHz", _TABLE),
            best=Fitted(2997, 2997, 2997, "TFLOP/s", _TABLE),
        ),
        TypeFacts(
            element="int8",
            f_busy=Fitted(1.456, 1.415, 1.505, "GHz", _TABLE),
            best=Fitted(2518, 2518, 2518, "TFLOP/s", _TABLE),
        ),
    ),
    regimes=(
        RegimeFacts(1, 1, 0.135, Spread(0.699, 1.098), 0.077, 0.088),
        RegimeFacts(2, 16, 0.143, Spread(0.678, 1.088), 0.038, 0.110),
        RegimeFacts(17, 64, 0.087, Spread(0.759, 1.106), 0.000, 0.105),
        RegimeFacts(65, 256, 0.088, Spread(0.775, 1.171), 0.000, 0.110),
        RegimeFacts(257, 1024, 0.091, Spread(0.826, 1.173), 0.000, 0.109),
        RegimeFacts(1025, None, 0.089, Spread(0.878, 1.311), 0.136, 0.084),
    ),
    wide_band=Spread(0.873, 1.253),
    apart=0.1,
    measured=f"{_TABLE}, 10,763 rows",
    compared="3,246 problems with two kernels or more, shapes held out",
)
# end of what was fitted

MI355X = device(
    CDNA4,
    name="MI355X",
    timing=cdna.timing(
        CDNA4,
        RATES,
        clock=Fact(2400, "MHz", Confidence.REPORTED, "report from Hot Chips 2025"),
        compute_units=256,
        lds_write_least=LDS_WRITE_LEAST,
    ),
    dies=cdna.dies(8),
    memory=cdna.memory(288),
    memory_rate=Fact(8000, "GB per second", Confidence.REPORTED, "report of AMD's launch, 2025"),
    problems=with_types(
        PROBLEMS, like(PROBLEMS, "bf16", "fp16"), like(PROBLEMS, "fp8", "bf8"), like(PROBLEMS, "fp4", "fp6")
    ),
)


MI350X = device(
    CDNA4,
    name="MI350X",
    timing=cdna.timing(
        CDNA4,
        RATES,
        clock=Fact(2200, "MHz", Confidence.REPORTED, "report from Hot Chips 2025"),
        compute_units=256,
        lds_write_least=LDS_WRITE_LEAST,
    ),
    dies=cdna.dies(8),
    memory=cdna.memory(288),
    memory_rate=Fact(8000, "GB per second", Confidence.REPORTED, "report of AMD's launch, 2025"),
    problems=of_sibling(problem_facts_of(MI355X), MI355X.name, 8000 / MI355X.memory_rate.value),
)
