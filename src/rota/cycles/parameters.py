"""One setting of the cycle model: takes a device, gives its numbers, nominal or with one estimate moved."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rota.targets.device import Device


class Arbitration(enum.Enum):
    """Which of two waves of one priority gets a turn that both want."""

    FAIR = "fair"  # the one that had the unit longest ago
    OLDEST = "oldest first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Clocks, turns and bytes per clock, as `targets.timing` names them.  The arbiter's rule is not published."""

    issue_classes: int
    lds_latency: int
    lds_read: int
    lds_read_transposed: int  # 0 where there is no such read
    lds_write: int
    dma_latency: int
    dma_jitter: int
    dma_rate: int
    dma_setup: int
    barrier: int
    loop_edge: int
    result_turns: int
    operand_turns: int
    simds: int
    turn: int
    arbitration: Arbitration = Arbitration.FAIR
    seed: int = 1

    def but(self, **changes: Any) -> Parameters:
        """These parameters with some changed."""
        return replace(self, **changes)


class Variant(NamedTuple):
    """One estimate at an end of its range; the others stay nominal."""

    name: str
    value: int | str
    parameters: Parameters


def nominal(device: Device) -> Parameters:
    """The numbers to plan with."""
    timing = device.timing
    transposed = timing.rates.lds_read_transposed
    return Parameters(
        issue_classes=timing.issue_classes.fact.value,
        lds_latency=timing.lds_latency.fact.value,
        lds_read=timing.rates.lds_read.value,
        lds_read_transposed=0 if transposed is None else transposed.fact.value,
        lds_write=timing.lds_write.fact.value,
        dma_latency=timing.dma_latency.fact.value,
        dma_jitter=timing.dma_jitter.fact.value,
        dma_rate=timing.dma_rate.fact.value,
        dma_setup=timing.dma_setup.fact.value,
        barrier=timing.barrier.fact.value,
        loop_edge=timing.loop_edge.fact.value,
        result_turns=timing.result_turns.value,
        operand_turns=timing.operand_turns.value,
        simds=timing.rates.simds.value,
        turn=timing.rates.clocks_per_slot.value,
    )


def unlucky(device: Device) -> Parameters:
    """Nominal but for loads and reads, which take as long as they are estimated to at most."""
    timing = device.timing
    return nominal(device).but(dma_latency=timing.dma_latency.high, lds_latency=timing.lds_latency.high)


def variants(device: Device, base: Parameters, *, transposed: bool = False) -> Iterator[Variant]:
    """Every estimate at both ends of its range, and the other arbiter.

    The rate of transposed reads is one of them where the program has such reads.
    """
    rate = device.rates.lds_read_transposed if transposed else None
    ranges = device.timing.estimates if rate is None else (*device.timing.estimates, ("lds_read_transposed", rate))
    for name, estimate in ranges:
        for value in (estimate.low, estimate.high):
            if value != getattr(base, name):
                yield Variant(name, value, base.but(**{name: value}))
    for rule in Arbitration:
        if rule is not base.arbitration:
            yield Variant("arbitration", rule.value, base.but(arbitration=rule))
