"""The shipped loops predicted: takes nothing or parts of names, prints cycles, busy shares, ceilings and stall causes.

    python -m benchmarks.predict [PART_OF_NAME ...]

Every figure is the prediction of one model with estimated latencies, not a measurement.  The anchors below the table
were measured by others, on whole kernels; a steady loop without launch, result stores and power limits is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import NamedTuple

from rota import GFX942, GFX950, CompiledSchedule, KernelGeometry, compile_schedule
from rota.cycles.instructions import nominal
from rota.cycles.predict import predict
from rota.errors import OrderError
from rota.kernels.attention import ATTENTION, MI300X_ATTENTION
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.gemm import BF16, GEMM_SHAPES, MI300X_GEMM_SHAPES
from rota.kernels.ping_pong import DeclarativeSchedule, mi355x_target
from rota.kernels.single_buffer import SingleBufferSchedule
from rota.pipeline.geometry import TileShape
from rota.targets.device import device_of
from rota.values.compile_loop import compile_loop

JITTER = 400
SEEDS = range(1, 9)  # one draw may lie most of a point off the mean
ANCHORS = """
Published for MI355X and 8192 x 8192 x 8192, measured by others on whole kernels (TFLOP/s):
  bf16  HipKittens 1610, the reference 1312        fp8  HipKittens 3327, the reference 2608
A prediction far below them would be a wrong model or a bad schedule.  One above them says nothing about beating them:
it leaves out launch, prologue, epilogue, stores, caches other than by their latency, and the clock that power allows.
"""


class Row(NamedTuple):
    """A loop, how to compile it, and the shape that a tile-granular one needs."""

    name: str
    compile: Callable[[], CompiledSchedule]
    shape: TileShape | None = None


def rows() -> Iterator[Row]:
    """Loops by values at both grains, eight waves also in turns, attention, and the bodies declared in tiles."""
    for shapes, machine in ((GEMM_SHAPES, GFX950), (MI300X_GEMM_SHAPES, GFX942)):
        for shape in shapes:
            fine, coarse = shape.loop(instructions=True), shape.loop(instructions=False)
            yield Row(shape.name, partial(compile_loop, fine, machine))
            if shape.waves == 8:
                yield Row(f"{shape.name}, staggered", partial(compile_loop, fine, machine, stagger=True))
            yield Row(f"{shape.name}, in tiles", partial(compile_loop, coarse, machine))
    for attention, machine in ((ATTENTION, GFX950), (MI300X_ATTENTION, GFX942)):
        yield Row(attention.name, partial(compile_loop, attention.loop(instructions=True), machine))
        yield Row(f"{attention.name}, in tiles", partial(compile_loop, attention.loop(instructions=False), machine))
    geometry = KernelGeometry()
    eight, four = (TileShape(geometry=geometry, waves=waves, instruction=BF16) for waves in (8, 4))
    yield Row("ping_pong", lambda: compile_schedule(DeclarativeSchedule(target=mi355x_target(2, 2))), eight)
    yield Row("four_wave", lambda: compile_schedule(Pipeline4Wave(geometry)), four)
    yield Row("single_buffer", lambda: compile_schedule(SingleBufferSchedule(2)), four)


def main(parts: Sequence[str]) -> None:
    """Print the table, as it stands in docs/cycles.md."""
    print("Predicted by one model with estimated latencies, not measured.\n")
    print("| loop | clocks | least | MMA | jitter | ceiling, TFLOP/s (band) | MMA idle | sensitive to |")
    print("|---|---:|---:|---:|---:|---:|---|---|")
    for row in rows():
        if not parts or any(part in row.name for part in parts):
            print(line(row), flush=True)
    print(ANCHORS)


def line(row: Row) -> str:
    """One loop: clocks per K-tile, busy shares, rates, why its matrix units were idle, what that is sensitive to."""
    try:
        compiled = row.compile()
    except OrderError as error:
        return f"| {row.name} | - | - | - | - | - | not compiled: {error.findings[0].code} | |"
    found = predict(compiled, row.shape)
    uneven = nominal(device_of(compiled.machine)).but(dma_jitter=JITTER)
    jitter = fmean(
        predict(compiled, row.shape, parameters=uneven.but(seed=seed), band=False).mma_share for seed in SEEDS
    )
    low, high = found.ceiling_tflops_band
    idle = ", ".join(f"{cause} {clocks:.0f}" for cause, clocks in found.idle_causes[:3] if clocks >= 1) or "nothing"
    hangs = ", ".join(dict.fromkeys(each.name for each in found.hangs_on[:4])) or "no estimate by more than 1 %"
    return (
        f"| {row.name} | {found.cycles:.0f} | {found.least_cycles:.0f} | {found.mma_share:.1%} | {jitter:.1%} | "
        f"{found.ceiling_tflops:.0f} ({low:.0f} to {high:.0f}) | {idle} | {hangs} |"
    )
