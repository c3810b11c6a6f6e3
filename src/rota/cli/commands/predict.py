"""`rota predict`: the time of a whole GEMM. `rota calibrate`: a profile from measured runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.cli.arguments import compile_kernel, find_kernel, set_option
from rota.cli.output import give, json_option, progress, write
from rota.errors import MeasureError

if TYPE_CHECKING:
    from rota.predict.predict_problem import ProblemPrediction, TiledGemm
    from rota.predict.sweep import Sweep

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    epilog="\b\nExamples:\n  rota predict four_wave --problem 8192x8192x8192"
    "\n  rota predict four_wave --problem 4096x4096x4096 --sweep m --svg sweep.svg"
    "\n  rota predict four_wave ping_pong --problem 4096x4096x4096"
)
@click.argument("kernels", metavar="KERNEL...", nargs=-1, required=True)
@set_option
@click.option("--problem", "sides", metavar="MxNxK", required=True, help="Sides of the GEMM, as 8192x8192x8192.")
@click.option("--type", "element", metavar="TYPE", help="Element type that the kernel has to multiply, as bf16.")
@click.option("--device", metavar="NAME", help="Device that the kernel is compiled for, as mi355x.")
@click.option("--split-k", type=click.IntRange(min=1), default=1, help="Workgroups among which K is split.")
@click.option("--sweep", type=click.Choice(["m", "mn"]), help="Over M, or over M and N, instead of one problem.")
@click.option("--svg", type=_FILE, help="Write the picture.")
@click.option("--profile", metavar="NAME", envvar="ROTA_PROFILE", help="Use a profile that `rota calibrate` made.")
@json_option
def predict(
    kernels: tuple[str, ...],
    settings: tuple[str, ...],
    *,
    sides: str,
    element: str | None,
    device: str | None,
    split_k: int,
    sweep: str | None,
    svg: Path | None,
    profile: str | None,
) -> None:
    """Predict a whole GEMM by KERNEL: time, rate, band, and what the time consists of.

    The model was fitted to runs that others measured; nothing is run. Several kernels are compared.
    """
    from rota.predict.calibrate import correction_named
    from rota.predict.predict_problem import predict_problem, problem_named
    from rota.predict.sweep import (
        problem_svg,
        problem_text,
        rank_problem,
        ranking_text,
        sweep_m,
        sweep_mn,
        sweep_svg,
        sweep_text,
    )

    if len(kernels) > 1 and (sweep or svg):
        raise click.UsageError("--sweep and --svg show one kernel")
    problem = problem_named(sides, split_k=split_k)
    found = [gemm_named(name, settings, device, element) for name in kernels]
    kernel = found[0]
    correction = None if profile is None else correction_named(profile, kernel)
    if len(found) > 1:
        placed = rank_problem(found, problem, correction)
        give(ranking_text(placed), [{"words": each.words, **each._asdict()} for each in placed])
        return
    data: Sweep | ProblemPrediction
    if sweep is not None:
        swept = (sweep_m if sweep == "m" else sweep_mn)(kernel, problem, correction)
        text, picture, data = sweep_text(swept), sweep_svg(swept), swept
    else:
        predicted = predict_problem(kernel, problem, correction)
        text, picture, data = problem_text(predicted), problem_svg(predicted), predicted
    if svg is not None:
        write(svg, picture)
    give(text, data)


def gemm_named(name: str, settings: Sequence[str], device: str | None, element: str | None) -> TiledGemm:
    """The kernel, compiled; for another device where one is named."""
    from rota.predict.predict_problem import tiled_gemm
    from rota.targets.device import problem_facts_of
    from rota.targets.registry import device_named

    chosen = find_kernel(name, settings)
    if device is not None and device_named(device).name != chosen.machine.name:
        chosen = find_kernel(name, (*settings, f"machine={device}"))
    compiled = compile_kernel(chosen)
    problem_facts_of(compiled.machine)
    geometry = chosen.geometry()
    with progress(f"predicting {chosen.name}"):
        found = tiled_gemm(compiled, (geometry.BM, geometry.BN, geometry.BK), chosen.shape())
    if element is not None and element != found.element:
        raise MeasureError.of(
            "M102",
            f"{name} multiplies {found.element}, not {element}",
            evidence=(("kernel", name), ("asked for", element)),
            fixes=(f"leave --type out, or take a kernel of {element}; `rota kernels` lists them",),
        )
    return replace(found, name=chosen.name)


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
    from rota.predict.calibrate import calibrate as calibrated, keep, read_runs
    from rota.predict.predict_problem import problem_named

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
    from rota.predict.calibrate import COLUMNS
    from rota.targets.registry import DEFAULT_NAME

    row = (DEFAULT_NAME, "8192", "8192", "8192", "bf16", "TN", "four_wave", "256x256x64", "1", "820.5", "100")
    text = f"{','.join(COLUMNS)}\n{','.join(row)}"
    give(text, {"columns": COLUMNS, "form": dict(zip(COLUMNS, row, strict=True))})
