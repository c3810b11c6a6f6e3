"""How long operations take on a compute unit: takes facts, gives clocks and turns with sources; estimates have a range.

A turn is a slot: the scheduler visits the SIMDs in rotation, so a wave issues at most once a turn.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from rota.program.machine import Fact
from rota.targets.estimate import Estimate
from rota.targets.rates import Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What a cycle model of one compute unit rests on, and how many of them run at which clock.

    `result_turns` lie between an MFMA's last pass and a VALU, memory or A/B use of its result, `operand_turns` between
    a VALU op and an MFMA that uses its result; a sum into the same accumulator waits for nothing.
    """

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
