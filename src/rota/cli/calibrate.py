"""`rota calibrate`: takes measured runs of a kernel, gives a named profile that predictions use."""

from __future__ import annotations

from pathlib import Path

import click

from rota.cli.output import give, json_option
from rota.cli.predict import gemm_named

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    epilog="\b\nA CSV has the columns device, M, N, K, type, layout, kernel, tile, split_k, us, runs; AITER's tuned CSV"
    "\nand rocprofv3's kernel trace are read too."
)
@click.argument("runs", type=_FILE)
@click.option("--kernel", required=True, help="The kernel that was run, as other commands take it.")
@click.option("--name", required=True, help="The name under which the profile is kept.")
@click.option("--device", metavar="NAME", help="Device that it ran on, as mi355x; the kernel's own if left out.")
@click.option("--problem", "sides", metavar="MxNxK", help="What was computed, where the file is a kernel trace.")
@click.option("--kernel-name", metavar="TEXT", help="Part of the name by which the file knows the kernel.")
@json_option
def calibrate(
    runs: Path, *, kernel: str, name: str, device: str | None, sides: str | None, kernel_name: str | None
) -> None:
    """Fit the model to measured RUNS of a kernel, three or more, and keep the result as a profile."""
    from rota.predict.calibrate import calibrate as calibrated
    from rota.predict.gemm_problem import problem_named
    from rota.predict.measured_runs import read_runs
    from rota.predict.run_profile import keep

    gemm = gemm_named(kernel, (), device, None)
    problem = None if sides is None else problem_named(sides)
    found = read_runs(runs, gemm.device, problem=problem, kernel_name=kernel_name)
    result = calibrated(gemm, found.runs, name)
    keep(result, gemm, found.path)
    lines = [f"{gemm.name} · {gemm.device.name} · {gemm.element} · {found.form} {found.path}", str(result)]
    if found.left_out:
        lines.append(f"  left out: {found.left_out}")
    lines.append(f"  use it: rota predict {kernel} --problem MxNxK --profile {name}")
    give("\n".join(lines), {"calibration": result, "file": found.path, "form": found.form, "left_out": found.left_out})
