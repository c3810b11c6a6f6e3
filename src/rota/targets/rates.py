"""Rates of a compute unit: takes a machine, gives what instructions cost and how fast its memories move, with sources.

Times are in slots of 4 clocks: the turn in which a SIMD issues for one wave, and LLVM's unit for MFMA passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rota.declare.check import known
from rota.targets.machine import GFX942, GFX950, Confidence, Fact, Machine

CLOCKS_PER_SLOT = 4
SIMDS = 4
LANES = 64
REGISTER_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Passes per matrix instruction, bytes per clock and planning latencies of one compute unit."""

    machine: Machine
    mfma_passes: Mapping[str, Fact]
    lds_read: Fact
    lds_write: Fact
    dma: Fact
    dma_latency: Fact
    lds_latency: Fact

    def passes(self, instruction: str) -> int:
        """Slots that one matrix instruction holds its SIMD's MMA unit."""
        message = f"{self.machine.arch} has no matrix instruction {instruction!r} that rota knows"
        return known(instruction, self.mfma_passes, message).value


def _passes(count: int) -> Fact:
    return Fact(count, "passes of 4 clocks", Confidence.COMPILER_MODEL, "LLVM 22, post-RA hazard recogniser")


_DMA = Fact(64, "bytes per clock", Confidence.ESTIMATE, "one cache line of 64 bytes a clock from L2")
_DMA_LATENCY = Fact(800, "clocks", Confidence.ESTIMATE, "planning number for HBM; L2 takes 200 to 300")
_LDS_LATENCY = Fact(64, "clocks", Confidence.ESTIMATE, "planning number for a read without conflicts")
_BLOG = "ROCm blog, FP8 GEMM on CDNA4, table 1"

_RATES = {
    GFX950.arch: Rates(
        machine=GFX950,
        mfma_passes=MappingProxyType(
            {
                "v_mfma_f32_16x16x32_bf16": _passes(4),
                "v_mfma_f32_32x32x16_bf16": _passes(8),
                "v_mfma_f32_16x16x32_f16": _passes(4),
                "v_mfma_f32_32x32x16_f16": _passes(8),
                "v_mfma_i32_16x16x64_i8": _passes(4),
                "v_mfma_i32_32x32x32_i8": _passes(8),
                "v_mfma_f32_16x16x128_f8f6f4": _passes(8),
                "v_mfma_f32_32x32x64_f8f6f4": _passes(16),
            }
        ),
        lds_read=Fact(256, "bytes per clock", Confidence.DOCUMENTED, _BLOG),
        lds_write=Fact(128, "bytes per clock", Confidence.MEASURED_BY_THIRD_PARTY, "HipKittens, LDS phase experiments"),
        dma=_DMA,
        dma_latency=_DMA_LATENCY,
        lds_latency=_LDS_LATENCY,
    ),
    GFX942.arch: Rates(
        machine=GFX942,
        mfma_passes=MappingProxyType(
            {
                "v_mfma_f32_16x16x16_bf16": _passes(4),
                "v_mfma_f32_32x32x8_bf16": _passes(8),
                "v_mfma_f32_16x16x16_f16": _passes(4),
                "v_mfma_f32_32x32x8_f16": _passes(8),
                "v_mfma_f32_16x16x32_fp8_fp8": _passes(4),
                "v_mfma_f32_32x32x16_fp8_fp8": _passes(8),
                "v_mfma_i32_16x16x32_i8": _passes(4),
                "v_mfma_i32_32x32x16_i8": _passes(8),
            }
        ),
        lds_read=Fact(128, "bytes per clock", Confidence.DOCUMENTED, _BLOG),
        lds_write=Fact(128, "bytes per clock", Confidence.ESTIMATE, "as read"),
        dma=_DMA,
        dma_latency=_DMA_LATENCY,
        lds_latency=_LDS_LATENCY,
    ),
}


def rates_of(machine: Machine) -> Rates:
    """The rates of a machine's compute unit."""
    return known(machine.arch, _RATES, f"no rates are known for {machine.arch!r}")


def registers_per_lane(machine: Machine, waves: int) -> int:
    """What a lane has of its SIMD's registers, which so many waves of a workgroup share."""
    return machine.vgprs_per_lane.value // -(-waves // SIMDS)


def slots(clocks: int) -> int:
    """Clocks in whole slots, rounded up."""
    return -(-clocks // CLOCKS_PER_SLOT)
