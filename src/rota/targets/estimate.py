"""An unpublished number: takes the value to plan with and its range, gives an `Estimate`."""

from __future__ import annotations

from typing import NamedTuple

from rota.program.machine import Confidence, Fact


class Estimate(NamedTuple):
    """The value to plan with, and its range; where the range is a point, the number is known after all."""

    fact: Fact
    low: int
    high: int


def estimate(value: int, low: int, high: int, unit: str, source: str) -> Estimate:
    """An estimate from scratch."""
    return Estimate(Fact(value, unit, Confidence.ESTIMATE, source), low, high)
