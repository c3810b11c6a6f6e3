"""CDNA4, which compilers call gfx950: takes nothing, gives its architecture and the rates of one compute unit."""

from __future__ import annotations

from rota.program.kinds import OpKind
from rota.program.machine import Confidence, Fact
from rota.targets import cdna
from rota.targets.architecture import Architecture, BankRule, Float8, WaitEncoding
from rota.targets.cdna4_extensions import EXTENSIONS
from rota.targets.estimate import estimate
from rota.targets.matrix_forms import CDNA4_FORMS
from rota.targets.rates import Rates

_HIPKITTENS = "HipKittens, LDS phase experiments on gfx950"
_FIRST_HALF = ((0, 12, 20, 24), (4, 8, 16, 28))  # where runs of four lanes start, for each phase of lanes 0 to 31
_RUN, _HALF = 4, 32

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
    d16_kept=cdna.D16_KEPT,
    float8=Float8.OCP,
    wait_encoding=WaitEncoding.SPLIT_VMCNT,
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
