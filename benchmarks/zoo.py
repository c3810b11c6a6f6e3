"""The shipped loops by values: takes nothing, prints interval, certificate, buffers and synchronisation of each.

    python -m benchmarks.zoo [--tiles]

With `--tiles` only the loops at tile granularity.  Nothing is measured on a GPU; latencies are planning numbers.
"""

from __future__ import annotations

import argparse
import time

from rota import GFX942, GFX950, Machine, count_sync
from rota.compiler.loop import compile_loop
from rota.declare.values import LoopSpec
from rota.kernels.attention import ATTENTION, MI300X_ATTENTION
from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES, GemmShape


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", action="store_true", help="tile granularity only")
    only_tiles = parser.parse_args().tiles
    print(
        f"{'loop':36} {'grain':11} {'ops':>4} {'II':>5} {'MII':>5}  {'certificate':12} {'stages':>6} {'copies':>6} "
        f"{'LDS KiB':>8} {'barriers':>8} {'waits':>6} {'seconds':>8}   per K-tile; what binds"
    )
    shapes: list[tuple[GemmShape, Machine]] = [(shape, GFX950) for shape in GEMM_SHAPES]
    shapes += [(shape, GFX942) for shape in MI300X_GEMM_SHAPES]
    for shape, machine in shapes:
        for fine in (False,) if only_tiles else (False, True):
            _print_row(shape.loop(instructions=fine), machine, "instruction" if fine else "tile")
    for attention, machine in ((ATTENTION, GFX950), (MI300X_ATTENTION, GFX942)):
        _print_row(attention.loop(), machine, "tile")


def _print_row(loop: LoopSpec, machine: Machine, grain: str) -> None:
    start = time.perf_counter()
    compiled = compile_loop(loop, machine)
    took = time.perf_counter() - start
    found = compiled.modulo
    if found is None or compiled.trip_tiles is None or compiled.lds_bytes is None:
        raise AssertionError("a loop by values has an interval, trips and a size")
    tiles = compiled.trip_tiles[0]
    sync = count_sync(compiled.kernel)
    print(
        f"{loop.name:36} {grain:11} {len(loop.ops):4} {found.ii:5} "
        f"{found.certificate.mii.ii:5}  {found.certificate.proof.value[:12]:12} {found.stage_count:6} {tiles:6} "
        f"{compiled.lds_bytes // 1024:8} {sync.barriers / tiles:8.1f} {sync.waits / tiles:6.1f} {took:8.2f}   "
        f"{found.certificate.mii}"
    )


if __name__ == "__main__":
    main()
