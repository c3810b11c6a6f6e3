"""CDNA3, which compilers call gfx942: takes nothing, gives its architecture and the rates of one compute unit."""

from __future__ import annotations

from rota.program.machine import Confidence, Fact
from rota.targets import cdna
from rota.targets.architecture import Architecture, BankRule, Float8, WaitEncoding
from rota.targets.matrix_forms import CDNA3_FORMS
from rota.targets.rates import Rates

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
    d16_kept=cdna.D16_KEPT,
    float8=Float8.FNUZ,
    wait_encoding=WaitEncoding.SPLIT_VMCNT,
    hazards=cdna.hazards("CDNA3", 37, result=3, overlap=1, double_large=11, double_large_sum=9, permlane=False),
    bank_rules=(
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
