"""`rota trace`: takes a kernel, gives a trace of its predicted run for ui.perfetto.dev."""

from __future__ import annotations

from pathlib import Path

import click

from rota.cli.kernel_argument import find_kernel, kernel_argument, set_option
from rota.cli.output import give, json_option, write
from rota.cli.picture import predicted
from rota.cli.progress import progress


@click.command(epilog="\b\nExamples:\n  rota trace ping_pong -o ping_pong.perfetto-trace")
@kernel_argument
@set_option
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="By default KERNEL's name.")
@json_option
def trace(kernel: str, settings: tuple[str, ...], output: Path | None) -> None:
    """Write KERNEL's predicted run for Perfetto.

    Every wave, prologue to epilogue; 1 ns stands for 1 clock.
    """
    from rota.view.perfetto_trace import perfetto_trace

    chosen = find_kernel(kernel, settings)
    compiled, timeline, _ = predicted(chosen, band=False)
    path = output or Path(f"{chosen.name}.perfetto-trace")
    with progress(f"writing {path}"):
        content = perfetto_trace(compiled, timeline)
    write(path, content)
    give(
        f"{path}: {len(timeline.slices):,} slices of {timeline.waves} waves, {timeline.end:,} clk, predicted; "
        "open it in ui.perfetto.dev",
        {"written": str(path), "bytes": len(content), "slices": len(timeline.slices), "clocks": timeline.end},
    )
