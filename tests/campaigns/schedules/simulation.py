"""Speed of the cycle model: takes nothing, prints issued instructions per second and how time grows with the run.

python -m benchmarks.simulation
"""

from __future__ import annotations

import time
from typing import NamedTuple

from rota import CompiledSchedule, KernelGeometry, compile_schedule
from rota.cycles.instructions import encode, nominal
from rota.cycles.model import run
from rota.kernels.gemm import BF16, GEMM_SHAPES
from rota.kernels.ping_pong import DeclarativeSchedule, mi355x_target
from rota.pipeline.geometry import TileShape
from rota.targets.device import device_of
from tests.campaigns.schedules.mca import one_after_another
from tests.campaigns.undisturbed import slowdown


class Speed(NamedTuple):
    """Instructions and schedule entries that all waves issued, and the processor's time for them."""

    waves: int
    trips: int
    issued: int
    entries: int
    seconds: float

    @property
    def rate(self) -> float:
        """Instructions a second."""
        return self.issued / self.seconds


def measure(waves: int, trips: int, *, tiles: bool = False, rounds: int = 3) -> Speed:
    """A GEMM whose entries are instructions, or ping-pong, whose entries are tiles; the least time of some rounds."""
    shape = TileShape(geometry=KernelGeometry(), waves=waves, instruction=BF16) if tiles else None
    compiled: CompiledSchedule
    if tiles:
        compiled = compile_schedule(DeclarativeSchedule(target=mi355x_target(16 // waves, 16 // waves)))
    else:
        gemm = next(each for each in GEMM_SHAPES if each.waves == waves)
        compiled = one_after_another(gemm.loop(instructions=True))
    parameters = nominal(device_of(compiled.machine))
    code = encode(compiled, parameters, shape)
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        issued = run(code, parameters, trips=trips).issued
        best = min(best, time.process_time() - start)
    entries = len(compiled.prologue) + trips * len(compiled.kernel) + len(compiled.epilogue)
    return Speed(waves, trips, issued, entries * waves, best)


def main() -> None:
    """Print the table."""
    print(f"the machine is {slowdown():.2f} times slower than when idle")
    print(
        f"{'entries are':12} {'waves':>5} {'trips':>6} {'issued':>8} {'seconds':>8}   instructions and entries a second"
    )
    for tiles in (False, True):
        for waves in (4, 8):
            for trips in (10, 20, 40, 80):
                speed = measure(waves, trips, tiles=tiles)
                print(
                    f"{'tiles' if tiles else 'instructions':12} {waves:5} {trips:6} {speed.issued:8} "
                    f"{speed.seconds:8.3f} {speed.rate:9,.0f} {speed.entries / speed.seconds:9,.0f}"
                )
    print("aim: 100,000 issued entries a second and core, where an entry is an instruction")
