"""From the interval to the speed: takes a compiled loop, gives its predicted clocks and what they have beyond it.

The interval is a bound that the search proved; the clocks are those of the cycle model, in which waits, barriers and
the loop's edge take turns, and latencies may show.
"""

from __future__ import annotations

from rota.cycles.predict import Prediction, predict
from rota.cycles.timeline import Cause
from rota.errors import RotaError
from rota.program.lowered import Lowerable

_MOST_NAMED = 3
_AT_WORK = (Cause.MMA_BUSY, Cause.VALU_BUSY)


def gap_in_words(schedule: Lowerable, interval: int) -> str | None:
    """The predicted clocks of a K-tile, and why they are more than `interval` clocks; None without a model."""
    try:
        found = predict(schedule, band=False)
    except RotaError:
        return None
    more = found.cycles - interval
    said = f"predicted {found.cycles:,.0f} clk"
    if more < 0.5:
        return said
    causes = [f"{cause} {clocks:,.0f}" for cause, clocks in _causes(found) if clocks >= 0.5]
    return f"{said} ({more:,.0f} more: {', '.join(causes[:_MOST_NAMED])})" if causes else f"{said} ({more:,.0f} more)"


def _causes(found: Prediction) -> tuple[tuple[str, float], ...]:
    """Why matrix units stood idle, where they are what binds; else what the waves stood for."""
    if found.bound_by_mma:
        return found.idle_causes
    return tuple(each for each in found.causes if each[0] not in _AT_WORK)
