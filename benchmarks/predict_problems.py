"""How well whole problems are predicted: takes the measured table, prints every figure that the project promises.

    python -m benchmarks.predict_problems

On the rows that the first fit selected (at most 1,500 of a kind) and on all rows that name their tile: errors with
shapes (N, K) held out; regret of the model's pick among measured kernels, once with nothing known about single kernels
and once with each calibrated by its runs on other shapes; tuned families left out and predicted as the product would;
and bf16 kernels of 256 x 256 with rota's own loop clocks.  Behind a figure stands whether its limit holds.
"""

from __future__ import annotations

import numpy as np

from rota import GFX950, compile_loop
from rota.cycles.predict import predict
from rota.kernels.gemm import GEMM_SHAPES
from tests.campaigns.measured.measured_rows import Floats, Rows, read_rows
from tests.campaigns.measured.problem_fit import held_out
from tests.campaigns.measured.problem_judging import coverage, errors, interval, left_out, middle_error, regret

MEDIAN, MEAN, P90 = 0.075, 0.115, 0.25
FAMILIES, COVERED, BIAS, REGRET, OWN = 0.11, (0.72, 0.85), (0.82, 1.22), 0.035, 0.10


def main() -> None:
    """Both selections of rows."""
    clocks = own_clocks()
    print(f"rota's own loop, bf16 256 x 256 x 64, eight waves: {clocks:.0f} clocks a K-tile\n")
    for cap in (1500, None):
        rows = read_rows("MI355X", cap)
        print(f"{len(rows):,} rows" + (f", at most {cap:,} of a kind" if cap else ", all that name their tile"))
        judge(rows, clocks)
        print(flush=True)


def own_clocks() -> float:
    """Of rota's bf16 GEMM with eight waves."""
    return predict(compile_loop(GEMM_SHAPES[0].loop(), GFX950), band=False).cycles


def judge(rows: Rows, clocks: float) -> None:
    """Print all figures for some rows."""
    plain, known = held_out(rows)
    found = errors(rows.us, plain)
    print(f"  shapes held out      {found}   {_holds(found.median <= MEDIAN, found.mean <= MEAN, found.p90 <= P90)}")
    for words, predicted in (("kernels unknown", plain), ("kernels calibrated", known)):
        count, lost = regret(rows, predicted)
        print(f"  regret of its pick   {count:6d} problems  mean {lost:6.1%}   {_holds(lost <= REGRET)} ({words})")
    left = left_out(rows, clocks)
    residuals = {name: each.residuals for name, each in left.items()}
    middle = middle_error(residuals)
    covered = float(np.mean(list(coverage(residuals).values())))
    low, high = interval(residuals)
    print(f"  families left out    median {middle:6.1%}   {_holds(middle <= FAMILIES)}")
    print(
        f"  80 % band            x{low:.2f} to x{high:.2f}, covers {covered:.1%} of a family it wasn't made from   ",
        end="",
    )
    print(_holds(COVERED[0] <= covered <= COVERED[1]))
    for name, each in left.items():
        off = errors(np.exp(each.residuals), np.ones(len(each.residuals)))
        print(f"    {name:22} {off}  measured / predicted x{each.bias:.3f}   {_holds(BIAS[0] <= each.bias <= BIAS[1])}")
    mine = np.concatenate([_own(rows, name, residuals[name]) for name in residuals if name.startswith("bf16")])
    middle = float(np.median(np.abs(np.expm1(-mine))))
    print(f"  bf16 256 x 256, rota's clocks  {len(mine)} rows  median {middle:.1%}   {_holds(middle <= OWN)}")


def _own(rows: Rows, name: str, residuals: Floats) -> Floats:
    """Those of a left-out family's residuals that have rota's tile."""
    large = (rows.tile_m * rows.tile_n >= 128 * 128) & (rows.split_k == 1)
    own = rows.at((rows.family == name) & large)
    chosen: Floats = residuals[(own.tile_m == 256) & (own.tile_n == 256)]
    return chosen


def _holds(*each: bool) -> str:
    return "holds" if all(each) else "DOES NOT HOLD"


if __name__ == "__main__":
    main()
