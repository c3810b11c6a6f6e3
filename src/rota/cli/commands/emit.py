"""`rota emit`: write a kernel as source, in the form of a named emitter."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType

import click

from rota.check import expect
from rota.cli.arguments import compile_kernel, find_kernel, find_registered, parse_with, set_option, with_option
from rota.cli.output import give, json_option, progress, write, write_files
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.forms import EMITTERS, project_of
from rota.emit.text import Emission
from rota.emit.whole.whole_options import parse_options
from rota.kernels.kernel import Kernel
from rota.program.machine import Machine


def emit_library(library: Path, output: Path) -> None:
    """Write the files; every schedule is proved again before."""
    from rota.tune.dispatch_table import library_files
    from rota.tune.tune_library import library_in

    found = library_in(library)
    with progress(f"writing the kernels of {library.name}"):
        written = write_files(output, library_files(found))
    give("\n".join(written), {"library": str(library), "written": written})


_LONGEST_WORD = 40
_WITH_SETTINGS = ("kernel", "launcher")


@click.command(
    epilog="\b\nExamples:\n  rota emit ping_pong -o ping_pong.hip"
    "\n  rota emit attention --set instructions=false --form skeleton"
    "\n  rota emit gemm_small --form json -o gemm_small.json"
    "\n  rota emit four_wave --form kernel --with output=bf16 --with epilogue=column_bias,relu"
)
@click.argument("kernel", required=False)
@set_option
@click.option(
    "--from",
    "library",
    type=click.Path(file_okay=False, path_type=Path),
    help="Instead of a KERNEL: the folder of a tuned library, whose kernels are written into the folder that -o names, "
    "one per distinct schedule, with launchers and the dispatch table's header.",
)
@click.option(
    "--form",
    metavar="NAME",
    default="hip",
    show_default=True,
    help="hip, a HIP GEMM that is the loop and what runs it; kernel, a whole one for any M, N and K; launcher, the "
    "host's side of that; gluon, flydsl or mojo, the loop's GEMM in that language; skeleton, a C++ header of the "
    "order, with calls for the ops; json, the schedule as a document; or an emitter that an installed package "
    "registers.",
)
@with_option
@click.option(
    "--project",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --form kernel: a folder for the kernel, its launcher, a CMake project with test and benchmark, and an "
    "extension of PyTorch.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="By default stdout.")
@json_option
def emit(
    *,
    kernel: str | None,
    settings: tuple[str, ...],
    library: Path | None,
    form: str,
    options: tuple[str, ...],
    project: Path | None,
    output: Path | None,
) -> None:
    """Write KERNEL as source."""
    if library is not None:
        if kernel is not None or output is None:
            raise click.UsageError("--from takes the folder to be written, -o, and no KERNEL")
        emit_library(library, output)
        return
    if kernel is None:
        raise click.UsageError("what is to be written? A KERNEL, or --from the folder of a tuned library")
    find_registered(EMITTERS, form)  # before anything is searched for
    told = parse_with(options)
    if form in _WITH_SETTINGS:
        parse_options(told)
    chosen = find_kernel(kernel, settings)
    compiled = compile_kernel(chosen)
    if project is not None:
        _write_project(chosen, compiled, form, told, project)
        return
    text = source_of(chosen, compiled, form, told)
    if output is None:
        give(text.rstrip("\n"), {"kernel": chosen.name, "form": form, "source": text})
        return
    write(output, text)
    give(str(output), {"kernel": chosen.name, "form": form, "written": str(output), "lines": text.count("\n")})


def _write_project(
    kernel: Kernel, compiled: CompiledSchedule, form: str, told: Mapping[str, str], folder: Path
) -> None:
    if form != "kernel":
        raise click.UsageError(f"--project: a project is written around --form kernel, not {form}")
    asked = Emission(compiled=compiled, kernel=kernel, variant=tuple(_variant(kernel)), options=told)
    found = project_of(asked)
    listed = write_files(folder, found.items())
    give("\n".join(listed), {"kernel": kernel.name, "form": form, "written": listed})


def source_of(
    kernel: Kernel, compiled: CompiledSchedule, form: str = "hip", options: Mapping[str, str] | None = None
) -> str:
    emitter = find_registered(EMITTERS, form)
    asked = Emission(compiled=compiled, kernel=kernel, variant=tuple(_variant(kernel)), options=options or {})
    return expect(f"what emitter {form!r} gives", emitter(asked), str)


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
        yield re.sub(r"[^A-Za-z0-9]+", "_", after.name.lower())
    elif is_dataclass(after) and type(before) is type(after):
        for field in fields(after):
            yield from _differences(field.name, getattr(before, field.name), getattr(after, field.name))
    elif before != after:
        text = re.sub(r"[^A-Za-z0-9]+", "_", f"{name}_{after}").strip("_")
        yield text if len(text) <= _LONGEST_WORD else f"{name.strip('_')}_{zlib.crc32(text.encode()):08x}"
