"""Time to compile a shipped schedule as written: takes nothing, prints median milliseconds.

    python -m benchmarks.compile

Processor time; the best of several medians is printed, as measured and as it would be on an idle machine.
"""

from __future__ import annotations

import statistics
import time

from rota import (
    DeclarativeSchedule,
    KernelGeometry,
    Pipeline4Wave,
    PipelineSchedule,
    SingleBufferSchedule,
    compile_schedule,
)
from tests.campaigns.undisturbed import slowdown

ROUNDS, CALLS = 7, 40


def median_milliseconds(schedule: PipelineSchedule) -> float:
    """Median of one round of compilations."""
    times = []
    for _ in range(CALLS):
        start = time.process_time()
        compile_schedule(schedule, sync="as_written")
        times.append(time.process_time() - start)
    return statistics.median(times) * 1e3


def main() -> None:
    """Print the table."""
    print("schedule              ms    on an idle machine")
    for schedule in (Pipeline4Wave(KernelGeometry()), DeclarativeSchedule(), SingleBufferSchedule(4)):
        rounds = [(median_milliseconds(schedule), slowdown()) for _ in range(ROUNDS)]
        best = min(milliseconds for milliseconds, _ in rounds)
        idle = min(milliseconds / slower for milliseconds, slower in rounds)
        print(f"{type(schedule).__name__:20}  {best:.2f}  {idle:.2f}")


if __name__ == "__main__":
    main()
