"""`rota calibrate`: takes measured runs of a kernel, gives a named profile that predictions use."""

from __future__ import annotations

from pathlib import Path

import click

from rota.cli.output import give, json_option
from rota.cli.predict import gemm_named

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    epilog="\b\nExamples:\n  rota calibrate --columns"
    "\n\n\b\nBesides rota's own CSV, AITER's tuned CSV and rocprofv3's kernel trace are read."
)
@click.argument("runs", type=_FILE, required=False)
@click.option("--kernel", help="The kernel that was run, as other commands take it.")
@click.option("--name", help="The name under which the profile is kept.")
@click.option("--columns", is_flag=True, help="Print the first line of a file of runs, and a row that shows its form.")
@click.option("--device", metavar="NAME", help="Device that it ran on, as mi355x; the kernel's own if left out.")
@click.option("--problem", "sides", metavar="MxNxK", help="What was computed, where the file is a kernel trace.")
@click.option("--kernel-name", metavar="TEXT", help="Part of the name by which the file knows the kernel.")
@json_option
def calibrate(
    runs: Path | None,
    *,
    kernel: str | None,
    name: str | None,
    columns: bool,
    device: str | None,
    sides: str | None,
    kernel_name: str | None,
) -> None:
    """Fit the model to measured RUNS of a kernel, three or more, and keep the result as a profile."""
    if columns:
        _show_columns()
        return
    if runs is None or kernel is None or name is None:
        raise click.UsageError("a calibration takes a file of runs, --kernel and --name")
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


def _show_columns() -> None:
    from rota.predict.measured_runs import COLUMNS
    from rota.targets.registry import DEFAULT_NAME

    row = (DEFAULT_NAME, "8192", "8192", "8192", "bf16", "TN", "four_wave", "256x256x64", "1", "820.5", "100")
    text = f"{','.join(COLUMNS)}\n{','.join(row)}"
    give(text, {"columns": COLUMNS, "form": dict(zip(COLUMNS, row, strict=True))})
