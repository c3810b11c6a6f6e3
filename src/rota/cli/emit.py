"""`rota emit`: takes a kernel, gives it as source: a HIP GEMM, a skeleton to put one's own ops into, or a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import click

from rota.cli.kernel import compiled_kernel, find_kernel, kernel_argument, set_option
from rota.cli.output import give, json_option, write
from rota.compiler.compiled import CompiledSchedule
from rota.kernels.kernel import Kernel

if TYPE_CHECKING:
    from rota.emit.gemm_tile import Element


@click.command(
    epilog="\b\nExamples:\n  rota emit ping_pong -o ping_pong.hip"
    "\n  rota emit attention --set instructions=false --form skeleton"
    "\n  rota emit gemm_small --form json -o gemm_small.json"
)
@kernel_argument
@set_option
@click.option(
    "--form",
    type=click.Choice(("hip", "skeleton", "json")),
    default="hip",
    show_default=True,
    help="A whole HIP GEMM; a C++ header of the order, with calls for the ops; or the schedule as a document.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="By default stdout.")
@json_option
def emit(kernel: str, settings: tuple[str, ...], form: str, output: Path | None) -> None:
    """Write KERNEL as source."""
    chosen = find_kernel(kernel, settings)
    compiled = compiled_kernel(chosen)
    text = source_of(chosen, compiled, form)
    if output is None:
        give(text.rstrip("\n"), {"kernel": chosen.name, "form": form, "source": text})
        return
    write(output, text)
    give(str(output), {"kernel": chosen.name, "form": form, "written": str(output), "lines": text.count("\n")})


def source_of(kernel: Kernel, compiled: CompiledSchedule, form: str = "hip") -> str:
    """The kernel in that form."""
    if form == "json":
        from rota.emit.exchange import to_json

        return to_json(compiled) + "\n"
    if form == "skeleton":
        from rota.emit.skeleton import emit_skeleton

        return emit_skeleton(compiled)
    from rota.emit.hip_gemm import emit_gemm

    return emit_gemm(compiled, kernel.geometry(), **gemm_form(kernel))


class GemmForm(TypedDict, total=False):
    """What a body declared in tiles leaves to the kernel's settings."""

    element: Element
    waves: int


def gemm_form(kernel: Kernel) -> GemmForm:
    """The settings; nothing for a loop by values, which says it itself."""
    from rota.emit.gemm_tile import element_of

    shape = kernel.shape()
    if shape is None:
        return {}
    return {"element": element_of(shape.instruction, shape.geometry), "waves": shape.waves}
