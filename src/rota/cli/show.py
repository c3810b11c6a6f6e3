"""`rota show`: takes a kernel, gives its predicted timeline as text, SVG or HTML, or the listing of its entries."""

from __future__ import annotations

from pathlib import Path

import click

from rota.cli.kernel import compiled_kernel, find_kernel, kernel_argument, set_option
from rota.cli.output import give, json_option, tell, write
from rota.cli.picture import predicted
from rota.cli.progress import progress
from rota.errors import several
from rota.kernels.kernel import Kernel

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    epilog="\b\nExamples:\n  rota show ping_pong\n  rota show four_wave --html four_wave.html --svg four_wave.svg"
    "\n  rota show gemm_small --listing"
)
@kernel_argument
@set_option
@click.option("--html", type=_FILE, help="Write a page with the picture and the table of entries.")
@click.option("--svg", type=_FILE, help="Write the picture alone.")
@click.option("--listing", is_flag=True, help="Print the entries, phase by phase, instead.")
@json_option
def show(kernel: str, settings: tuple[str, ...], html: Path | None, svg: Path | None, listing: bool) -> None:
    """Show KERNEL's predicted steady state.

    It is what the cycle model predicts for the middle of the loop; nothing is measured.
    """
    if listing and (html or svg):
        raise click.UsageError("--listing prints text; --html and --svg write the picture")
    chosen = find_kernel(kernel, settings)
    if listing:
        _list(chosen)
        return
    from rota.view.show import show as shown_as

    found = predicted(chosen)
    with progress(f"drawing {chosen.name}"):
        shown = shown_as(*found)
        for path, render in ((html, shown.html), (svg, shown.svg)):
            if path is not None:
                write(path, render())
        written = [str(path) for path in (html, svg) if path is not None]
        text = "\n".join(f"{shown.scene.headline}\n  {path}" for path in written) if written else str(shown)
    give(text, {"headline": shown.scene.headline, "prediction": found.prediction, "written": written})


def _list(kernel: Kernel) -> None:
    compiled = compiled_kernel(kernel)
    phases = {"prologue": compiled.prologue, "kernel": compiled.kernel, "epilogue": compiled.epilogue}
    entries = {
        phase: [{"slot": entry.time_slot, "op": str(entry.op), "group": entry.group} for entry in some]
        for phase, some in phases.items()
    }
    give(str(compiled), {"name": compiled.name, **entries, "repairs": [str(change) for change in compiled.repairs]})
    if compiled.findings:
        tell(f"{several(len(compiled.findings), 'note')}; `rota check --notes` prints them")
