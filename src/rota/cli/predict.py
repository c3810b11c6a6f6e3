"""`rota predict`: takes a kernel and a problem's sides, gives the time of the whole GEMM, its parts and its band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.cli.kernel_argument import compiled_kernel, find_kernel, set_option
from rota.cli.output import give, json_option, write
from rota.cli.progress import progress
from rota.errors import Finding, MeasureError

if TYPE_CHECKING:
    from rota.predict.predict_problem import ProblemPrediction
    from rota.predict.sweep import Sweep
    from rota.predict.tiled_gemm import TiledGemm

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
    from rota.predict.gemm_problem import problem_named
    from rota.predict.predict_problem import predict_problem
    from rota.predict.problem_picture import problem_svg, problem_text
    from rota.predict.ranking import rank_problem, ranking_text
    from rota.predict.run_profile import correction_named
    from rota.predict.sweep import sweep_m, sweep_mn, sweep_svg, sweep_text

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
    from rota.predict.tiled_gemm import tiled_gemm
    from rota.targets.device import problem_facts_of
    from rota.targets.registry import device_named

    chosen = find_kernel(name, settings)
    if device is not None and device_named(device).name != chosen.machine.name:
        chosen = find_kernel(name, (*settings, f"machine={device}"))
    compiled = compiled_kernel(chosen)
    problem_facts_of(compiled.machine)
    geometry = chosen.geometry()
    with progress(f"predicting {chosen.name}"):
        found = tiled_gemm(compiled, (geometry.BM, geometry.BN, geometry.BK), chosen.shape())
    if element is not None and element != found.element:
        raise MeasureError(
            Finding(
                code="M102",
                message=f"{name} multiplies {found.element}, not {element}",
                evidence=(("kernel", name), ("asked for", element)),
                fixes=(f"leave --type out, or take a kernel of {element}; `rota kernels` lists them",),
            )
        )
    return replace(found, name=chosen.name)
