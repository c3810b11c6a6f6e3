"""`rota emit`: takes a kernel, gives it as source: a HIP GEMM, a skeleton to put one's own ops into, or a document."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypedDict

import click

from rota.cli.kernel import compiled_kernel, find_kernel, kernel_argument, set_option
from rota.cli.output import give, json_option, write
from rota.compiler.compiled import CompiledSchedule
from rota.kernels.kernel import Kernel
from rota.targets.machine import Machine

if TYPE_CHECKING:
    from rota.emit.gemm_tile import Element

_LONGEST_WORD = 40


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
    compiled = replace(compiled, name="_".join([compiled.name, *_variant(kernel)]))
    if form == "skeleton":
        from rota.emit.skeleton import emit_skeleton

        return emit_skeleton(compiled)
    from rota.emit.hip_gemm import emit_gemm

    return emit_gemm(compiled, kernel.geometry(), **gemm_form(kernel))


def _variant(kernel: Kernel) -> Iterator[str]:
    """What was set, as words of a name: kernels of different settings can be linked into one program.

    A remainder is named by the source itself.
    """
    plain = replace(kernel, changes=MappingProxyType({})).settings()
    for name, value in kernel.changes.items():
        if name != "remainder":
            yield from _differences(name, plain[name].value if name in plain else None, value)


def _differences(name: str, before: object, after: object) -> Iterator[str]:
    if isinstance(after, Machine):
        yield after.arch
    elif is_dataclass(after) and type(before) is type(after):
        for field in fields(after):
            yield from _differences(field.name, getattr(before, field.name), getattr(after, field.name))
    elif before != after:
        text = re.sub(r"[^A-Za-z0-9]+", "_", f"{name}_{after}").strip("_")
        yield text if len(text) <= _LONGEST_WORD else f"{name.strip('_')}_{zlib.crc32(text.encode()):08x}"


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
