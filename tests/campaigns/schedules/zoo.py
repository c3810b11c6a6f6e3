"""The shipped loops by values: takes nothing, prints interval, certificate, buffers and synchronisation of each.

    python -m benchmarks.zoo [--tiles] [--execute] [PART_OF_NAME ...]

With `--tiles` only the loops at tile granularity; with `--execute` each is also run on numbers at the trip counts 0 to
8, with everything as late and as early as can be and by random seeds: a GEMM in tiles must equal A @ B, attention a
softmax over all keys at once, a GEMM in single instructions the same iterations one after the other.

Nothing is measured on a GPU; latencies are planning numbers.  The price of the barriers is their number times 8 clocks,
an estimate, over the interval.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import NamedTuple

from rota import GFX942, GFX950, CompiledSchedule, Machine, count_sync
from rota.errors import OrderError
from rota.execute.clock import Earliest, Latest, Random
from rota.execute.executor import execute
from rota.execute.semantics import Attention, AttentionInstructions, Gemm, Mixing, Semantics
from rota.kernels.attention import ATTENTION, MI300X_ATTENTION
from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES
from rota.program.loop_spec import LoopSpec
from rota.targets.device import timing_of
from rota.values.compile_loop import compile_loop
from rota.values.unroll import Placement

TRIPS = range(9)


class Row(NamedTuple):
    """A loop, its machine, and whether two groups of waves take turns."""

    loop: LoopSpec
    machine: Machine
    grain: str
    stagger: bool = False


def rows(*, only_tiles: bool = False) -> Iterator[Row]:
    """Every shipped loop at both grains; eight waves also staggered."""
    for shapes, machine in ((GEMM_SHAPES, GFX950), (MI300X_GEMM_SHAPES, GFX942)):
        for shape in shapes:
            for fine in (False,) if only_tiles else (False, True):
                grain = "instruction" if fine else "tile"
                yield Row(shape.loop(instructions=fine), machine, grain)
                if shape.waves == 8:
                    yield Row(shape.loop(instructions=fine), machine, grain, stagger=True)
    for attention, machine in ((ATTENTION, GFX950), (MI300X_ATTENTION, GFX942)):
        yield Row(attention.loop(instructions=False), machine, "tile")
        if not only_tiles:
            yield Row(attention.loop(instructions=True), machine, "instruction")


def semantics_of(row: Row) -> Semantics:
    """What the loop computes, where there is a formula for it; numbers that any wrong operand changes otherwise."""
    fine = row.grain == "instruction"
    if row.loop.name.startswith("attention"):
        return AttentionInstructions(spec=row.loop) if fine else Attention()
    return Mixing() if fine else Gemm(spec=row.loop)


def right(row: Row, compiled: CompiledSchedule) -> bool:
    """Does the loop compute what it should, at every trip count tried?"""
    policy = (Latest(), Earliest(), Random(seeds=5))
    semantics = semantics_of(row)
    return all(execute(compiled, trips, policy=policy, semantics=semantics).right for trips in TRIPS)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", action="store_true", help="tile granularity only")
    parser.add_argument("--execute", action="store_true", help="run each on numbers, too")
    parser.add_argument("parts", nargs="*", help="parts of names")
    asked = parser.parse_args()
    print(
        f"{'loop':35} {'grain':22} {'ops':>4} {'II':>5} {'MII':>5} {'certificate':11} {'stages':>6} {'unroll':>6} "
        f"{'LDS KiB':>7} {'VGPRs':>5} {'barriers':>8} {'price':>6} {'waits':>6} {'slack':>9} {'turns':>6} {'right':>5} "
        f"{'seconds':>7}  per K-tile, slots of 4 clocks; what binds"
    )
    for row in rows(only_tiles=asked.tiles):
        if not asked.parts or any(part in row.loop.name for part in asked.parts):
            _print_row(row, run=asked.execute)


def _print_row(row: Row, *, run: bool) -> None:
    grain = row.grain + (", staggered" if row.stagger else "")
    start = time.process_time()
    try:
        compiled = compile_loop(row.loop, row.machine, stagger=row.stagger)
    except OrderError as error:
        print(f"{row.loop.name:35} {grain:22} {error.findings[0].code}: {error.findings[0].message}")
        return
    took = time.process_time() - start
    found, placement = compiled.modulo, compiled.placement
    if found is None or compiled.lds_bytes is None or compiled.certificate is None:
        raise AssertionError("a loop by values has an interval, a placement, a size and a proof")
    sync, unroll = count_sync(compiled.kernel), placement.unroll
    timing = timing_of(row.machine)
    clocks = found.ii * timing.rates.clocks_per_slot.value
    price = timing.barrier.fact.value * sync.barriers / unroll / clocks
    print(
        f"{row.loop.name:35} {grain:22} {len(row.loop.ops):4} {found.ii:5} {found.certificate.mii.ii:5} "
        f"{found.certificate.proof.value[:11]:11} {placement.stages:6} {unroll:6} {compiled.lds_bytes // 1024:7} "
        f"{compiled.registers:5} {sync.barriers / unroll:8.1f} {price:6.1%} "
        f"{sync.waits / unroll:6.1f} {f'{placement.landing_slack}/{placement.read_slack}':>9} "
        f"{_turns(row, placement):>6} {('yes' if right(row, compiled) else 'NO') if run else '-':>5} "
        f"{took:7.2f}  {found.certificate.mii}",
        flush=True,
    )


def _turns(row: Row, placement: Placement) -> str:
    """Has every instruction a turn of its wave, or is that left to the order?"""
    if row.grain == "tile":
        return "-"
    return "left" if placement.turns_left else "placed"
