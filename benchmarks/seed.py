"""The reference's hand-made schedules beside rota's own for the same tile: takes nothing, prints both.

    python -m benchmarks.seed

Both run in one model with the same costs: cycles per K-tile are predicted, not measured.  A schedule made by hand has
no initiation interval of its own; the one given is what the model needs for a K-tile, in slots of 4 clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from rota import CompiledSchedule, KernelGeometry, compile_schedule, count_sync
from rota.cycles.predict import predict
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.gemm import BF16, GEMM_SHAPES, LANES, REGISTER_BYTES, GemmShape
from rota.kernels.ping_pong import DeclarativeSchedule
from rota.kernels.target_profiles import mi355x_target
from rota.pipeline.geometry import TileShape
from rota.targets.device import rates_of
from rota.values.compile_loop import compile_loop
from rota.values.compiled_loop import CompiledLoop

EIGHT, FOUR = GEMM_SHAPES[0], GEMM_SHAPES[1]


class Row(NamedTuple):
    """A schedule of a GEMM shape, made by hand or by rota."""

    name: str
    shape: GemmShape
    compile: Callable[[], CompiledSchedule]
    by_hand: bool


ROWS = (
    Row(
        "ping_pong, the reference's",
        EIGHT,
        lambda: compile_schedule(DeclarativeSchedule(target=mi355x_target(2, 2))),
        by_hand=True,
    ),
    Row("rota's, staggered", EIGHT, partial(compile_loop, EIGHT.loop(instructions=True), stagger=True), by_hand=False),
    Row("rota's, in lockstep", EIGHT, partial(compile_loop, EIGHT.loop(instructions=True)), by_hand=False),
    Row(
        "rota's, staggered, in tiles",
        EIGHT,
        partial(compile_loop, EIGHT.loop(instructions=False), stagger=True),
        by_hand=False,
    ),
    Row("four_wave, the reference's", FOUR, lambda: compile_schedule(Pipeline4Wave(KernelGeometry())), by_hand=True),
    Row("rota's", FOUR, partial(compile_loop, FOUR.loop(instructions=True)), by_hand=False),
    Row("rota's, in tiles", FOUR, partial(compile_loop, FOUR.loop(instructions=False)), by_hand=False),
)


_STAGES = 2  # of LDS in the schedules by hand


def registers(row: Row, compiled: CompiledSchedule) -> int:
    """Accumulators, and the fragments that have registers of their own."""
    stated = compiled.lowered.registers
    if stated is not None:
        return stated
    rows, columns = row.shape.wave_tile
    fragments = (rows + columns) * row.shape.depth * row.shape.element_bytes // (REGISTER_BYTES * LANES)
    return rows * columns // LANES + fragments


def main() -> None:
    """Print the table."""
    print(
        f"{'schedule':30} {'waves':>5} {'II':>7} {'certified':>9} {'cycles':>7} {'MMA':>6} {'barriers':>8} "
        f"{'waits':>6} {'VGPRs':>5} {'LDS KiB':>7}   per K-tile of 256 x 256 x 64 bf16, predicted"
    )
    for row in ROWS:
        compiled = row.compile()
        shape = TileShape(geometry=KernelGeometry(), waves=row.shape.waves, instruction=BF16) if row.by_hand else None
        seen = predict(compiled, shape, band=False)
        tiles = compiled.lowered.tiles_per_trip
        sync = count_sync(compiled.kernel)
        lds = compiled.lds_bytes or _STAGES * (row.shape.rows + row.shape.columns) * row.shape.depth * 2
        slots = seen.cycles / rates_of(compiled.machine).clocks_per_slot.value
        modulo = compiled.modulo if isinstance(compiled, CompiledLoop) else None
        certified = f"{modulo.ii}" if modulo else "-"
        print(
            f"{row.name:30} {row.shape.waves:5} {slots:7.1f} {certified:>9} {seen.cycles:7.0f} "
            f"{seen.mma_share:6.1%} {sync.barriers / tiles:8.1f} {sync.waits / tiles:6.1f} "
            f"{registers(row, compiled):5} {lds // 1024:7}"
        )


if __name__ == "__main__":
    main()
