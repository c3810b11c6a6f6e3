"""`rota kernels`: takes nothing or a kernel, gives the shipped kernels or the settings of one."""

from __future__ import annotations

import enum

import click

from rota.cli.kernel import find_kernel, set_option
from rota.cli.output import give, json_option
from rota.cli.setting import leaves
from rota.kernels.catalogue import full_names, shipped_kernels


@click.command(epilog="\b\nExamples:\n  rota kernels\n  rota kernels four_wave")
@click.argument("kernel", required=False)
@set_option
@json_option
def kernels(kernel: str | None, settings: tuple[str, ...]) -> None:
    """List the shipped kernels, or KERNEL's settings."""
    if kernel is None:
        known = shipped_kernels()
        full = {short: name for name, short in full_names().items()}
        rows = [(name, one.machine.name, one.about) for name, one in known.items()]
        data = [dict(zip(("name", "machine", "about"), row, strict=True), also=full.get(row[0])) for row in rows]
        wide = max(map(len, known))
        give("\n".join(f"{name:{wide}}  {machine}  {about}" for name, machine, about in rows), data)
        return
    found = leaves(find_kernel(kernel, settings))
    if not found:
        raise click.UsageError(f"{kernel} has no field that --set could change")
    wide = max(len(leaf.name) for leaf in found)
    text = "\n".join(f"{leaf.name:{wide}}  {_shown(leaf.value)}" for leaf in found)
    give(text, {leaf.name: _shown(leaf.value) for leaf in found})


def _shown(value: object) -> object:
    """A value as it would be typed behind `--set`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return getattr(value, "arch", value)
