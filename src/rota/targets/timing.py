"""How long things take on a compute unit: takes a machine, gives clocks and turns with sources; estimates have a range.

A turn is 4 clocks: the scheduler visits the four SIMDs in rotation, so a wave issues at most once a turn.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from rota.declare.check import known
from rota.targets.machine import GFX942, GFX950, Confidence, Fact, Machine
from rota.targets.rates import Rates, rates_of


class Estimate(NamedTuple):
    """A number that nobody has published for the device: the value to plan with, and how far it may be off."""

    fact: Fact
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What a cycle model of one compute unit rests on.

    `result_turns` lie between an MFMA's last pass and a VALU, memory or A/B use of its result, `operand_turns` between
    a VALU op and an MFMA that uses its result; a sum into the same accumulator waits for nothing.
    """

    machine: Machine
    rates: Rates
    clock: Fact
    compute_units: Fact
    result_turns: Fact
    operand_turns: Fact
    issue_classes: Estimate
    lds_latency: Estimate
    lds_write: Estimate
    dma_latency: Estimate
    dma_jitter: Estimate
    dma_rate: Estimate
    dma_setup: Estimate
    barrier: Estimate
    loop_edge: Estimate

    @property
    def estimates(self) -> tuple[tuple[str, Estimate], ...]:
        """The numbers that have a range, by name."""
        named = ((field.name, getattr(self, field.name)) for field in fields(self))
        return tuple((name, value) for name, value in named if isinstance(value, Estimate) and value.low != value.high)


_HAZARDS = "LLVM 22, post-RA hazard recogniser"
_SPECIFICATIONS = "AMD, GPU specifications"


def _estimate(value: int, low: int, high: int, unit: str, source: str) -> Estimate:
    return Estimate(Fact(value, unit, Confidence.ESTIMATE, source), low, high)


def _timing(machine: Machine, clock: Fact, compute_units: int, result_turns: int) -> Timing:
    rates = rates_of(machine)
    known = rates.lds_write.confidence is not Confidence.ESTIMATE
    return Timing(
        machine=machine,
        rates=rates,
        clock=clock,
        compute_units=Fact(compute_units, "compute units", Confidence.DOCUMENTED, _SPECIFICATIONS),
        result_turns=Fact(result_turns, "wait states", Confidence.COMPILER_MODEL, _HAZARDS),
        operand_turns=Fact(2, "wait states", Confidence.COMPILER_MODEL, _HAZARDS),
        issue_classes=_estimate(
            4, 1, 4, "instructions per SIMD and turn", "GCN: one of each class, from different waves; at worst one"
        ),
        lds_latency=Estimate(rates.lds_latency, 48, 128),
        lds_write=Estimate(rates.lds_write, rates.lds_write.value if known else 64, rates.lds_write.value),
        dma_latency=Estimate(rates.dma_latency, 300, 1400),
        dma_jitter=_estimate(0, 0, 400, "clocks", "spread of DMA latencies; 0 is the even case"),
        dma_rate=Estimate(rates.dma, 48, 64),
        dma_setup=_estimate(2, 1, 3, "turns per DMA", "s_mov of m0 and the s_nop behind it, as emitted"),
        barrier=_estimate(8, 4, 40, "clocks", "from the last wave's arrival to the release"),
        loop_edge=_estimate(4, 3, 12, "turns per trip", "count, compare and a taken branch"),
    )


_TIMINGS = {
    GFX950.arch: _timing(GFX950, Fact(2400, "MHz", Confidence.DOCUMENTED, "report from Hot Chips 2025"), 256, 4),
    GFX942.arch: _timing(GFX942, Fact(2100, "MHz", Confidence.DOCUMENTED, _SPECIFICATIONS), 304, 3),
}


def timing_of(machine: Machine) -> Timing:
    """The timing of a machine's compute unit."""
    return known(machine.arch, _TIMINGS, f"no timing is known for {machine.arch!r}")
