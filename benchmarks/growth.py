"""Growth with the number of ops: takes nothing, prints the time to a proved GEMM loop of 20 to 504 instructions.

    python -m benchmarks.growth

rota's time is that of `compile_loop`: least interval, buffers, barriers, slack, phases, waits, polish, proof.  Beside
it the bare solver's on the same problem at the same interval, without barriers and slack, and 60 s at most; and the
ratio of the two.  Seconds are the processor's, without the import of the solver.  The machine holds several copies of
the largest loop, so that registers and LDS don't end the growth.
"""

from __future__ import annotations

import time
from dataclasses import replace

from rota import GFX950
from rota.kernels.gemm import GEMM_SHAPES, GemmShape
from rota.order.modulo.cpsat_modulo import decide, derive_core, derive_structure
from rota.solver.cp_sat import make_ready
from rota.targets.device import timing_of
from rota.values.buffer_depth import modulo_problem
from rota.values.compile_loop import compile_loop
from rota.values.op_times import time_loop

SOLVER_SECONDS = 60.0
ROOMY = replace(
    GFX950,
    vgprs_per_lane=GFX950.vgprs_per_lane._replace(value=1024),
    lds_bytes=GFX950.lds_bytes._replace(value=640 * 1024),
)
FOUR_WAVES = GEMM_SHAPES[1]
SIZES = ((64, 64, 64), (64, 128, 64), (128, 128, 64), (128, 256, 64), (256, 256, 64), (256, 256, 128), (256, 384, 128))


def main() -> None:
    """Print the table."""
    make_ready()
    print("tile           ops     II   rota s  solver s   ratio  certificate")
    for rows, columns, depth in SIZES:
        _print_row(replace(FOUR_WAVES, rows=rows, columns=columns, depth=depth))


def _print_row(shape: GemmShape) -> None:
    loop = shape.loop(instructions=True)
    start = time.process_time()
    compiled = compile_loop(loop, ROOMY)
    ours = time.process_time() - start
    found, placement = compiled.modulo, compiled.placement
    if found is None or compiled.certificate is None:
        raise AssertionError("a loop by values has an interval, a placement and a proof")
    problem = modulo_problem(loop, time_loop(loop, timing_of(ROOMY)), dict(placement.copies))
    start = time.process_time()
    decided = decide(derive_core(derive_structure(problem), found.ii), SOLVER_SECONDS)
    bare = time.process_time() - start
    size = f"{shape.rows}x{shape.columns}x{shape.depth}"
    print(
        f"{size:12} {len(loop.ops):5} {found.ii:6} {ours:8.3f} {bare:9.3f} {ours / bare:7.2f}  "
        f"{found.certificate.proof.value}, {placement}; the solver: {decided.outcome.value}",
        flush=True,
    )


if __name__ == "__main__":
    main()
