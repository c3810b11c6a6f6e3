"""`rota kernels`: takes nothing or a kernel, gives the known kernels or the settings of one."""

from __future__ import annotations

import enum

import click

from rota.cli.kernel_argument import find_kernel, set_option
from rota.cli.output import give, json_option
from rota.cli.set_values import leaves
from rota.kernels.catalogue import KERNELS, full_names, shipped_kernels
from rota.program.machine import Machine


@click.command(epilog="\b\nExamples:\n  rota kernels\n  rota kernels four_wave")
@click.argument("kernel", required=False)
@set_option
@json_option
def kernels(kernel: str | None, settings: tuple[str, ...]) -> None:
    """List the kernels that are known by name, or KERNEL's settings."""
    if kernel is None:
        _list()
        return
    found = leaves(find_kernel(kernel, settings))
    if not found:
        raise click.UsageError(f"{kernel} has no field that --set could change")
    wide = max(len(leaf.name) for leaf in found)
    text = "\n".join(f"{leaf.name:{wide}}  {_shown(leaf.value)}" for leaf in found)
    give(text, {leaf.name: _shown(leaf.value) for leaf in found})


def _list() -> None:
    """Those of other packages are named, not loaded: one that is broken hides no other."""
    rows = [(name, one.machine.name, one.about) for name, one in shipped_kernels().items()]
    rows += [(name, "", f"registered by {package}") for name, package in KERNELS.names().items() if package is not None]
    full = {short: name for name, short in full_names().items()}
    data = [dict(zip(("name", "machine", "about"), row, strict=True), also=full.get(row[0])) for row in rows]
    wide, across = (max(len(row[column]) for row in rows) for column in (0, 1))
    give("\n".join(f"{name:{wide}}  {machine:{across}}  {about}" for name, machine, about in rows), data)


def _shown(value: object) -> object:
    """A value as it would be typed behind `--set`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return value.name.lower() if isinstance(value, Machine) else value
