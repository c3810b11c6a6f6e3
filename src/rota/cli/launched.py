"""`rota run FILE --launch`: takes a code object or HIP source and a function, gives what the launch showed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.cli.kernel_argument import named_object
from rota.cli.output import give
from rota.cli.progress import progress

if TYPE_CHECKING:
    from rota.isa.launch.loaded_kernel import LoadedKernel

_SOURCES = frozenset({".hip", ".cpp", ".cu"})


def run_launched(
    file: str, launch: str, *, name: str | None, device: str | None, compiler: str | None, orders: int
) -> bool:
    """Launches as the function says; was nothing wrong?"""
    from rota.isa.launch.described import launch_described

    describe = named_object(launch)
    if not callable(describe):
        raise click.UsageError(f"{launch} is not a function")
    path = Path(file)
    if not path.is_file():
        raise click.UsageError(f"there is no file {file}")
    with progress(f"reading {file}"):
        kernel = _kernel(path, name, device, compiler)
    with progress(f"running {kernel.name}"):
        result = launch_described(kernel, describe(), orders=orders)
    head = f"{kernel.name} of {path.name}, {kernel.facts.arch}"
    notes = (str(note) for note in result.notes)
    data = {
        "ok": result.ok,
        "orders": result.orders,
        "instructions": result.instructions,
        "findings": result.findings,
        "notes": result.notes,
    }
    give("\n\n".join([f"{head}: {result}", *notes]), data)
    return result.ok


def _kernel(path: Path, name: str | None, device: str | None, compiler: str | None) -> LoadedKernel:
    from rota.isa.binary.toolchain import find_toolchain
    from rota.isa.load import load_kernel
    from rota.targets.registry import device_named

    if path.suffix not in _SOURCES:
        return load_kernel(path, name)
    if device is None:
        raise click.UsageError(f"{path.name} is source: --device says what it is compiled for")
    toolchain = find_toolchain(compiler)
    beside = replace(toolchain, compiler=(*toolchain.compiler, f"-I{path.parent.resolve()}"))
    return load_kernel(beside.compile(path.read_text(encoding="utf-8"), device_named(device).arch).hsaco, name)
