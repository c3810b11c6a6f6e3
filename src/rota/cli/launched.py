"""`rota run FILE --launch`: takes a code object or HIP source and a function, gives what the launch showed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.cli.kernel_argument import named_object
from rota.cli.output import give
from rota.cli.progress import progress

if TYPE_CHECKING:
    from rota.isa.launch.loaded_kernel import LoadedKernel


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
    with progress(f"running {kernel.name}") as counted:
        result = launch_described(kernel, describe(), orders=orders, progress=counted)
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
    from rota.isa.load import SOURCES, load_kernel, load_source
    from rota.targets.registry import device_named

    if path.suffix not in SOURCES:
        return load_kernel(path, name)
    if device is None:
        raise click.UsageError(f"{path.name} is source: --device says what it is compiled for")
    return load_source(path, device_named(device).arch, name, compiler=compiler)
