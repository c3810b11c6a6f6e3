"""Predicted clocks over their bound: takes nothing or parts of names, prints a row for each loop by instruction.

    python -m benchmarks.clocks_over_bound [--drawn COUNT [--seed N]] [--execute] [--plain] [PART_OF_NAME ...]

The shipped GEMMs of both devices, attention, and further tiles; or tiles drawn over devices, types, rows, columns,
depths, waves and matrix instructions, of which each that can't be a kernel is listed with its finding and drawn anew.
The bound is the larger of what the busiest unit needs
and the interval's proven lower bound; `plain` are the clocks without polish, if asked for.  With --execute each is also
run on numbers, and GEMMs that `rota emit` takes are emitted.  Nothing is measured on a GPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from math import exp, fsum, log
from random import Random
from typing import NamedTuple

from rota import GFX942, GFX950
from rota.cycles.predict import clocks_per_tile, list_bounds, predict
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.errors import RotaError
from rota.kernels.attention import ATTENTION, MI300X_ATTENTION
from rota.kernels.gemm import BF16, GEMM_SHAPES, MI300X_GEMM_SHAPES, GemmShape
from rota.pipeline.geometry import WAVE_GRIDS
from rota.program.kinds import Home
from rota.program.machine import Machine
from rota.targets.device import rates_of, timing_of
from rota.tune.point import LoopPoint
from rota.tune.space import check_point
from rota.values.compile_loop import compile_loop
from rota.values.compiled_loop import CompiledLoop
from rota.values.op_times import time_loop
from tests.campaigns.schedules.zoo import Row, right

FP8 = "v_mfma_f32_16x16x128_f8f6f4"
CDNA3 = "v_mfma_f32_16x16x16_bf16"
BF16_TILES = (
    (192, 256, 4),
    (320, 128, 4),
    (256, 128, 4),
    (128, 256, 4),
    (192, 192, 4),
    (160, 256, 4),
    (224, 256, 4),
    (128, 192, 4),
    (96, 256, 4),
    (320, 192, 4),
    (256, 320, 4),
    (160, 160, 4),
    (256, 192, 8),
    (256, 128, 8),
)
FP8_TILES = ((256, 256, 4), (128, 256, 4), (256, 128, 8))
MI300X_TILES = ((256, 128, 4), (192, 128, 4), (192, 256, 4))  # 32 deep: of tiles 64 deep, LDS holds one copy


class Case(NamedTuple):
    """A loop by instruction, its shape if it is a GEMM, and what a mean is taken over."""

    group: str
    shape: GemmShape | None
    row: Row


def cases() -> Iterator[Case]:
    """The shipped GEMMs, 20 further tiles, attention."""
    for shapes, machine in ((GEMM_SHAPES, GFX950), (MI300X_GEMM_SHAPES, GFX942)):
        for shape in shapes:
            yield _gemm("shipped", shape, machine)
    for rows, columns, waves in BF16_TILES:
        yield _gemm("further", _shape("bf16", rows, columns, waves), GFX950)
    for rows, columns, waves in FP8_TILES:
        yield _gemm("further", _shape("fp8", rows, columns, waves), GFX950)
    for rows, columns, waves in MI300X_TILES:
        yield _gemm("further", _shape("mi300x", rows, columns, waves), GFX942)
    for attention, machine in ((ATTENTION, GFX950), (MI300X_ATTENTION, GFX942)):
        yield Case(attention.name, None, Row(attention.loop(instructions=True), machine, "instruction"))


DEPTHS = {"bf16": (32, 64, 128), "fp16": (32, 64, 128), "fp8": (64, 128, 256)}
LARGEST = (64, 128, 256, 320)
EXPLAINED = 1.05  # ratios above it come with a reason


def draw_cases(seed: int) -> Iterator[Case]:
    """Tiles whose rows and columns divide by the waves."""
    random, seen = Random(seed), set[str]()
    while True:
        device, element = random.choice(("MI355X", "MI355X", "MI300X")), random.choice((*DEPTHS, "bf16"))
        waves, side = random.choice((4, 8)), random.choice((16, 16, 16, 32))
        down, across = (part * side for part in WAVE_GRIDS[waves])
        rows, columns = (part * random.randint(1, max(random.choice(LARGEST) // part, 1)) for part in (down, across))
        tile = rows, columns, random.choice(DEPTHS[element])
        point = LoopPoint(device=device, element=element, tile=tile, waves=waves, mma=side)
        if point.name in seen:
            continue
        try:
            check_point(point)
        except RotaError as error:
            print(f"{point.name:36} {error.findings[0]}")
            continue
        seen.add(point.name)
        yield Case("drawn", None, Row(point.loop(), point.target, "instruction"))


def _gemm(group: str, shape: GemmShape, machine: Machine) -> Case:
    return Case(group, shape, Row(shape.loop(instructions=True), machine, "instruction"))


def _shape(kind: str, rows: int, columns: int, waves: int) -> GemmShape:
    name = f"{kind}_{rows}x{columns}_{waves}wave"
    if kind == "fp8":
        return GemmShape(
            name=name,
            instruction=FP8,
            mma=(16, 128),
            rows=rows,
            columns=columns,
            depth=128,
            waves=waves,
            element_bytes=1,
        )
    if kind == "mi300x":
        return GemmShape(
            name=name,
            instruction=CDNA3,
            mma=(16, 16),
            rows=rows,
            columns=columns,
            waves=waves,
            dma_bytes=4,
            read_bytes=8,
            depth=32,
        )
    return GemmShape(name=name, instruction=BF16, mma=(16, 32), rows=rows, columns=columns, waves=waves)


def bound_of(compiled: CompiledLoop) -> float:
    """Clocks a K-tile that no order of the loop stays below."""
    proved = 0 if compiled.modulo is None else compiled.modulo.certificate.lower
    slot = rates_of(compiled.machine).clocks_per_slot.value
    return max(predict(compiled, band=False).least_cycles, proved * slot)


def reason_of(compiled: CompiledLoop) -> str:
    """What keeps a loop above its bound: single copies, no slack, or units that have little time left."""
    placement, machine = compiled.placement, compiled.machine
    tiles = {value.name: value.size for value in compiled.loop.values if value.home is Home.LDS}
    copies = {name: count for name, count in placement.copies if name in tiles}
    found = [f"one copy of {name}" for name, count in copies.items() if count == 1]
    left = machine.lds_bytes.value - sum(tiles[name] * count for name, count in copies.items())
    if not found and left < min(tiles.values()):
        found.append(f"LDS is full with {' and '.join(f'{count} {name}' for name, count in copies.items())}")
    if not placement.landing_slack:
        found.append("loads 0 slots late")
    bound = bound_of(compiled)
    turns = time_loop(compiled.loop, timing_of(machine)).turns * rates_of(machine).clocks_per_slot.value
    units = {**list_bounds(compiled), "issue": turns}
    found += [f"{name} {clocks / bound:.0%}" for name, clocks in units.items() if clocks > 0.85 * bound]
    return ", ".join(found)


def emitted(case: Case, compiled: CompiledLoop) -> str:
    """Is source written for it?"""
    if case.shape is None:
        return "-"
    try:
        return "yes" if emit_gemm(compiled, case.shape.geometry) else "no"
    except RotaError as error:
        return error.findings[0].code


def main(arguments: Sequence[str]) -> int:
    """Print a row for each loop, then the means; 1 if one is not proved, or computes something else."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clocks_over_bound")
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--drawn", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--execute", action="store_true")
    parser.add_argument("--plain", action="store_true")
    asked = parser.parse_args(arguments)
    print(f"{'loop':36} {'bound':>6} {'clocks':>8} {'ratio':>6} {'plain':>8} proved right emitted seconds  interval")
    ratios: dict[str, list[float]] = {}
    wrong = False
    left = asked.drawn
    for case in draw_cases(asked.seed) if asked.drawn else cases():
        if asked.parts and not any(part in case.row.loop.name for part in asked.parts):
            continue
        started = time.process_time()
        try:
            compiled = compile_loop(case.row.loop, case.row.machine)
        except RotaError as error:  # arithmetic didn't see that its registers don't fit
            print(f"{case.row.loop.name:36} {error.findings[0]}")
            continue
        took = time.process_time() - started
        clocks, bound = clocks_per_tile(compiled), bound_of(compiled)
        ratios.setdefault(case.group if case.shape is None else "GEMM", []).append(clocks / bound)
        proved = compiled.certificate is not None
        fine = right(case.row, compiled) if asked.execute else None
        wrong = wrong or not proved or fine is False
        plain = clocks_per_tile(compile_loop(case.row.loop, case.row.machine, polish=False)) if asked.plain else None
        print(
            f"{case.row.loop.name:36} {bound:6.0f} {clocks:8.1f} {clocks / bound:6.4f} "
            f"{'-' if plain is None else f'{plain:.1f}':>8} {'yes' if proved else 'NO':>6} "
            f"{'-' if fine is None else 'yes' if fine else 'NO':>5} "
            f"{emitted(case, compiled) if asked.execute else '-':>7} {took:7.2f}  {compiled.quality}"
            f"{f'; {reason_of(compiled)}' if clocks > EXPLAINED * bound else ''}",
            flush=True,
        )
        left -= 1
        if not left:
            break
    for group, found in ratios.items():
        mean = exp(fsum(map(log, found)) / len(found))
        print(f"{group}: {len(found)} loops, geometric mean {mean:.4f}, worst {max(found):.4f}")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
