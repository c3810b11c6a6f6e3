"""How much slower the machine is just now: takes nothing, gives the time of a fixed loop relative to an idle machine's.

Machines are shared.  Limits in milliseconds are meant for an idle one, so tests divide what they measure by this.
"""

from __future__ import annotations

import statistics
import time

IDLE_MILLISECONDS = 2.7
"""The loop's time on an idle machine of the size that CI has (2 cores), the least of 800 runs."""


def slowdown(rounds: int = 5) -> float:
    """At least 1; about 2 where another process shares the core."""
    return max(statistics.median(_once() for _ in range(rounds)) / IDLE_MILLISECONDS, 1.0)


def _once() -> float:
    start = time.process_time()
    table: dict[int, tuple[int, str]] = {}
    for number in range(20_000):
        table[number & 255] = (number, str(number))
    return (time.process_time() - start) * 1e3
