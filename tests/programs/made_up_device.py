"""A device that nobody builds: takes nothing, gives `MADE_UP`, unlike every shipped one wherever facts can differ.

Three counters under other names, one of them without order; barriers in two halves; two SIMDs with slots of two clocks;
another clock, register file, LDS and table of passes.  What runs on it runs on what the device states.
"""

from __future__ import annotations

from dataclasses import replace

from rota.program.kinds import OpKind
from rota.program.machine import Confidence, Counter, Fact
from rota.targets.architecture import Architecture, BankRule, Float8, Hazards
from rota.targets.cdna4 import CDNA4
from rota.targets.device import Device, Estimate, MatrixRate, Rates, Timing, device, estimate

_SOURCE = "made up for the tests"


def _fact(value: int, unit: str) -> Fact:
    return Fact(value, unit, Confidence.ESTIMATE, _SOURCE)


def _counter(name: str, holds: int, *counts: OpKind, in_order: bool = True) -> Counter:
    return Counter(name=name, holds=_fact(holds, "tokens"), counts=frozenset(counts), in_order=in_order)


def _matrix(instruction: str, passes: int) -> MatrixRate:
    return MatrixRate(instruction=instruction, passes=_fact(passes, "passes of 2 clocks"))


_STATES = _fact(3, "wait states")

ARCHITECTURE = Architecture(
    name="xyz1",
    arch="xyz1",
    toolchain="xyz1",
    elf_machine=_fact(0xEE, "EF_AMDGPU_MACH"),
    counters=(
        _counter("loadcnt", 31, OpKind.GLOBAL_LOAD, OpKind.GLOBAL_STORE, OpKind.ATOMIC),
        _counter("dmacnt", 15, OpKind.DMA, in_order=False),
        _counter("dscnt", 7, OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED, OpKind.LDS_WRITE),
    ),
    lds_bytes=_fact(96 * 1024, "bytes"),
    vgprs_per_lane=_fact(384, "registers per lane"),
    waves_per_workgroup=_fact(8, "waves"),
    dma_width=_fact(16, "bytes per lane"),
    split_barrier=True,
    lanes=_fact(64, "lanes per wave"),
    register_bytes=_fact(4, "bytes per lane"),
    d16_kept=_fact(1, "halves of a register"),
    float8=Float8.OCP,
    hazards=Hazards(rules=tuple(replace(rule, states=_STATES) for rule in CDNA4.hazards.rules)),
    bank_rules=(
        BankRule(
            read_bytes=16,
            banks=_fact(16, "banks of 4 bytes"),
            phases=tuple(tuple(range(start, start + 4)) for start in range(0, 64, 4)),
            phases_known=Confidence.ESTIMATE,
            source=_SOURCE,
        ),
    ),
)

RATES = Rates(
    name=ARCHITECTURE.arch,
    matrix=(_matrix("v_mfma_f32_16x16x32_bf16", 5), _matrix("v_mfma_f32_32x32x16_bf16", 11)),
    lds_read=_fact(192, "bytes per clock"),
    lds_write=_fact(96, "bytes per clock"),
    dma=_fact(48, "bytes per clock"),
    dma_latency=_fact(300, "clocks"),
    lds_latency=_fact(40, "clocks"),
    transcendental=_fact(3, "slots per instruction"),
    simds=_fact(2, "SIMDs per compute unit"),
    clocks_per_slot=_fact(2, "clocks"),
)

MADE_UP: Device = device(
    ARCHITECTURE,
    name="XYZ One",
    timing=Timing(
        rates=RATES,
        clock=_fact(1000, "MHz"),
        compute_units=_fact(10, "compute units"),
        result_turns=ARCHITECTURE.hazards["result"],
        operand_turns=ARCHITECTURE.hazards["operand"],
        issue_classes=estimate(4, 1, 4, "instructions per SIMD and turn", _SOURCE),
        lds_latency=Estimate(RATES.lds_latency, 30, 60),
        lds_write=Estimate(RATES.lds_write, 96, 96),
        dma_latency=Estimate(RATES.dma_latency, 200, 400),
        dma_jitter=estimate(0, 0, 100, "clocks", _SOURCE),
        dma_rate=Estimate(RATES.dma, 32, 48),
        dma_setup=estimate(1, 1, 2, "turns per DMA", _SOURCE),
        barrier=estimate(6, 2, 20, "clocks", _SOURCE),
        loop_edge=estimate(2, 2, 6, "turns per trip", _SOURCE),
    ),
    dies=_fact(1, "XCDs"),
    memory=_fact(16, "GiB"),
    memory_rate=_fact(500, "GB per second"),
)
