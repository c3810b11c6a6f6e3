"""CDNA3, which compilers call gfx942, and its devices: MI300X, MI300A, MI325X."""

from __future__ import annotations

from rota.program.machine import Confidence, Fact
from rota.targets import cdna
from rota.targets.architecture import CDNA3_FORMS, Architecture, BankRule, Float8, WaitEncoding
from rota.targets.device import (
    Fitted,
    ProblemFacts,
    Rates,
    RegimeFacts,
    Spread,
    TypeFacts,
    device,
    like,
    of_sibling,
    problem_facts_of,
    with_types,
)
from rota.targets.memory_model import GFX942

CDNA3 = Architecture(
    name="gfx942",
    arch="gfx942",
    toolchain="gfx942",
    elf_machine=cdna.elf_machine(0x4C),
    counters=cdna.counters(),
    lds_bytes=Fact(64 * 1024, "bytes", Confidence.DOCUMENTED, cdna.SPECIFICATIONS),
    vgprs_per_lane=cdna.VGPRS,
    waves_per_workgroup=cdna.WORKGROUP,
    dma_width=Fact(4, "bytes per lane", Confidence.COMPILER_MODEL, f"{cdna.ASSEMBLER}: buffer_load_dword ... lds"),
    lanes=cdna.LANES,
    register_bytes=cdna.REGISTER_BYTES,
    waves_per_simd=cdna.WAVES_PER_SIMD,
    d16_kept=cdna.D16_KEPT,
    float8=Float8.FNUZ,
    wait_encoding=WaitEncoding.SPLIT_VMCNT,
    queues=cdna.QUEUES,
    memory_model=GFX942,
    hazards=cdna.hazards("CDNA3", 37, result=3, overlap=1, double_large=11, double_large_sum=9, permlane=False),
    bank_rules=(
        BankRule(
            read_bytes=16,
            banks=Fact(32, "banks of 4 bytes", Confidence.DOCUMENTED, "AMD, CDNA3 ISA manual, LDS"),
            phases=cdna.EIGHT_OF_FOUR,
            phases_known=Confidence.MEASURED_BY_THIRD_PARTY,
            source="AMD's engineers in Triton's pull 11365, and the LDS padding notes of Snapkitty",
        ),
        BankRule(
            read_bytes=8,
            banks=Fact(32, "banks of 4 bytes", Confidence.DOCUMENTED, "AMD, CDNA3 ISA manual, LDS"),
            phases=tuple(tuple(range(start, start + 16)) for start in range(0, cdna.LANES.value, 16)),
            phases_known=Confidence.ESTIMATE,
            source="128 bytes a clock are 16 lanes of 8 bytes; taken as consecutive ones",
        ),
        BankRule(
            read_bytes=4,
            banks=Fact(32, "banks of 4 bytes", Confidence.DOCUMENTED, "AMD, CDNA3 ISA manual, LDS"),
            phases=tuple(tuple(range(start, start + 32)) for start in range(0, cdna.LANES.value, 32)),
            phases_known=Confidence.ESTIMATE,
            source="128 bytes a clock are 32 lanes of 4 bytes; taken as consecutive ones",
        ),
    ),
    matrix_forms=CDNA3_FORMS,
)

RATES = Rates(
    name=CDNA3.arch,
    matrix=(
        cdna.matrix("v_mfma_f32_16x16x16_bf16", 4),
        cdna.matrix("v_mfma_f32_32x32x8_bf16", 8),
        cdna.matrix("v_mfma_f32_16x16x16_f16", 4),
        cdna.matrix("v_mfma_f32_32x32x8_f16", 8),
        cdna.matrix("v_mfma_f32_16x16x32_fp8_fp8", 4),
        cdna.matrix("v_mfma_f32_32x32x16_fp8_fp8", 8),
        cdna.matrix("v_mfma_i32_16x16x32_i8", 4),
        cdna.matrix("v_mfma_i32_32x32x16_i8", 8),
    ),
    lds_read=Fact(128, "bytes per clock", Confidence.DOCUMENTED, cdna.BLOG),
    lds_write=Fact(128, "bytes per clock", Confidence.ESTIMATE, "as read"),
    dma=cdna.DMA,
    dma_latency=cdna.DMA_LATENCY,
    lds_latency=cdna.LDS_LATENCY,
    transcendental=cdna.TRANSCENDENTAL,
    simds=cdna.SIMDS,
    clocks_per_slot=cdna.CLOCKS_PER_SLOT,
)

LDS_WRITE_LEAST = 64
"""Bytes per clock: half of what is read, at the worst."""


# fitted by `python -m benchmarks.fit_measured --write`
_TABLE = "AITER's tuned GEMMs up to 2026-08, gfx942 with 304 units"
PROBLEMS = ProblemFacts(
    start=Fitted(3.643, 2.425, 3.863, "us", _TABLE),
    share=Fitted(0.7849, 0.6471, 0.9187, "of the loop's clocks", _TABLE),
    feed=Fitted(29.94, 18.3, 33.24, "bytes per clock and unit", _TABLE),
    trip=Fitted(598.6, 569.3, 724.7, "clocks", _TABLE),
    hbm=Fitted(4.087, 3.904, 4.193, "TB per second", _TABLE),
    store=Fitted(4.651, 3.853, 16.04, "TB per second", _TABLE),
    split_start=Fitted(4.143, 1.706, 5.29, "us", _TABLE),
    split_traffic=Fitted(0.5311, 0.018, 10.52, "times", _TABLE),
    types=(
        TypeFacts(
            element="fp8",
            f_busy=Fitted(0.9143, 0.8777, 1.25, "GHz", _TABLE),
            best=Fitted(1038, 1038, 1038, "TFLOP/s", _TABLE),
        ),
        TypeFacts(
            element="int8",
            f_busy=Fitted(1.51, 1.462, 1.713, "GHz", _TABLE),
            best=Fitted(1268, 1268, 1268, "TFLOP/s", _TABLE),
            uncalibrated="only 32 runs",
        ),
    ),
    regimes=(
        RegimeFacts(1, 1, 0.163, Spread(0.863, 1.389), 0.000, 0.093),
        RegimeFacts(2, 16, 0.163, Spread(0.863, 1.389), 0.000, 0.093),
        RegimeFacts(17, 64, 0.163, Spread(0.863, 1.389), 0.000, 0.093),
        RegimeFacts(65, 256, 0.163, Spread(0.863, 1.389), 0.000, 0.093),
        RegimeFacts(257, 1024, 0.163, Spread(0.863, 1.389), 0.000, 0.093),
        RegimeFacts(1025, None, 0.163, Spread(0.863, 1.389), 0.000, 0.093),
    ),
    wide_band=Spread(0.519, 1.928),
    apart=0.1,
    measured=f"{_TABLE}, 1,532 rows",
    compared="130 problems with two kernels or more, shapes held out",
)
# end of what was fitted

_SUSTAINED = "AMD, blog on the maximum achievable FLOPS, part 2: 708 TFLOP/s in bf16 at 1,207 MHz"
_SIXTEEN_BITS = tuple(
    TypeFacts(
        element=element,
        f_busy=Fitted(1.18, 1.1, 1.3, "GHz", _SUSTAINED),
        best=Fitted(708, 708, 708, "TFLOP/s", _SUSTAINED) if element == "bf16" else None,
        uncalibrated="the table has no run of it; its clock is a published one",
    )
    for element in ("bf16", "fp16")
)

MI300X = device(
    CDNA3,
    name="MI300X",
    timing=cdna.timing(
        CDNA3,
        RATES,
        clock=Fact(2100, "MHz", Confidence.DOCUMENTED, "AMD, MI300X: 1,307.4 TFLOP/s in bf16 are 304 units at it"),
        compute_units=304,
        lds_write_least=LDS_WRITE_LEAST,
    ),
    dies=cdna.dies(8),
    memory=cdna.memory(192),
    memory_rate=Fact(5300, "GB per second", Confidence.DOCUMENTED, "Chips and Cheese, on MI300X"),
    problems=with_types(PROBLEMS, *_SIXTEEN_BITS, like(PROBLEMS, "fp8", "bf8")),
)


MI300A = device(
    CDNA3,
    name="MI300A",
    timing=cdna.timing(
        CDNA3,
        RATES,
        clock=Fact(2100, "MHz", Confidence.REPORTED, "report of AMD's launch, 2023; 980.6 TFLOP/s in bf16"),
        compute_units=228,
        lds_write_least=LDS_WRITE_LEAST,
    ),
    dies=cdna.dies(6),
    memory=cdna.memory(128),
    memory_rate=Fact(5300, "GB per second", Confidence.REPORTED, "report of AMD's launch, 2023"),
    problems=of_sibling(problem_facts_of(MI300X), MI300X.name, 5300 / MI300X.memory_rate.value),
)


MI325X = device(
    CDNA3,
    name="MI325X",
    timing=cdna.timing(
        CDNA3,
        RATES,
        clock=Fact(2100, "MHz", Confidence.DOCUMENTED, "AMD, MI325X: 1,307.4 TFLOP/s in bf16 are 304 units at it"),
        compute_units=304,
        lds_write_least=LDS_WRITE_LEAST,
    ),
    dies=cdna.dies(8),
    memory=cdna.memory(256),
    memory_rate=Fact(6000, "GB per second", Confidence.REPORTED, "report of AMD's launch, 2024"),
    problems=of_sibling(problem_facts_of(MI300X), MI300X.name, 6000 / MI300X.memory_rate.value),
)
