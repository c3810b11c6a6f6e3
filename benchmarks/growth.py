"""Growth of the modulo scheduler: takes nothing, prints its time on GEMM loops of single instructions, 24 to 512 ops.

    python -m benchmarks.growth

Beside it the bare solver's time on the same core of the same problem at the same interval (60 s at most), and the ratio
of the two: below 1 where the heuristic meets the bound, so that no solver is asked.
"""

from __future__ import annotations

import time
from dataclasses import replace

from rota import GFX950
from rota.declare.values import Home
from rota.graph.loop_problem import modulo_problem
from rota.graph.timing import time_loop
from rota.kernels.gemm import GEMM_SHAPES, GemmShape
from rota.order.cpsat_modulo import decide
from rota.order.modulo import ModuloScheduler
from rota.order.modulo_model import derive_core, derive_structure
from rota.targets.timing import timing_of

SOLVER_SECONDS = 60.0
FOUR_WAVES = GEMM_SHAPES[1]
SIZES = ((64, 64, 64), (64, 128, 64), (128, 128, 64), (128, 256, 64), (256, 256, 64), (256, 256, 128), (256, 384, 128))


def main() -> None:
    """Print the table."""
    print("tile           ops     II   rota s  solver s   ratio  certificate")
    for rows, columns, depth in SIZES:
        _print_row(replace(FOUR_WAVES, rows=rows, columns=columns, depth=depth))


def _print_row(shape: GemmShape) -> None:
    loop = shape.loop(instructions=True)
    copies = {value.name: 4 for value in loop.values if value.home is Home.LDS}
    problem = modulo_problem(loop, time_loop(loop, timing_of(GFX950)), copies)
    start = time.perf_counter()
    found = ModuloScheduler().schedule(problem)
    ours = time.perf_counter() - start
    core = derive_core(derive_structure(problem), found.ii)
    start = time.perf_counter()
    decided = decide(core, SOLVER_SECONDS)
    bare = time.perf_counter() - start
    size = f"{shape.rows}x{shape.columns}x{shape.depth}"
    print(
        f"{size:12} {len(loop.ops):5} {found.ii:6} {ours:8.3f} {bare:9.3f} {ours / bare:7.2f}  "
        f"{found.certificate.proof.value} by {found.certificate.by}; the solver: {decided.outcome.value}",
        flush=True,
    )


if __name__ == "__main__":
    main()
