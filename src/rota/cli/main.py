"""The command's entry point: takes arguments, gives the version, the shipped kernels or a kernel's listing."""

from __future__ import annotations

from collections.abc import Callable

import click

from rota.compiler.compile import compile_schedule
from rota.compiler.schedule import PipelineSchedule
from rota.declare.geometry import KernelGeometry
from rota.errors import CODES, did_you_mean
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.ping_pong import DeclarativeSchedule
from rota.kernels.single_buffer import SingleBufferSchedule
from rota.version import __version__

_KERNELS: dict[str, Callable[[], PipelineSchedule]] = {
    "four_wave": lambda: Pipeline4Wave(KernelGeometry()),
    "ping_pong": DeclarativeSchedule,
    "single_buffer": lambda: SingleBufferSchedule(num_k_tiles=2),
}


@click.group()
@click.version_option(__version__, prog_name="rota")
def main() -> None:
    """Software-pipeline GPU kernel loops."""


@main.command()
def kernels() -> None:
    """List the shipped kernels."""
    click.echo("\n".join(_KERNELS))


@main.command()
@click.argument("kernel")
def show(kernel: str) -> None:
    """Print the entries of KERNEL, phase by phase."""
    if kernel not in _KERNELS:
        raise click.UsageError(f"no kernel named {kernel!r}; " + "; ".join(did_you_mean(kernel, _KERNELS)))
    compiled = compile_schedule(_KERNELS[kernel]())
    click.echo(str(compiled))
    for finding in compiled.findings:
        click.echo(f"\n{finding}", err=True)


@main.command()
@click.argument("code")
def explain(code: str) -> None:
    """Say what a finding's CODE means."""
    if code not in CODES:
        raise click.UsageError(f"no finding has the code {code!r}; " + "; ".join(did_you_mean(code, CODES)))
    click.echo(f"{code}: {CODES[code]}")
