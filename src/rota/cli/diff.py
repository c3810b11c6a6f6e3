"""`rota diff`: takes two kernels, or one and settings, gives what differs between their schedules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from rota.cli.kernel import find_kernel, set_option
from rota.cli.output import give, json_option, write
from rota.cli.picture import predicted


@click.command(
    epilog="\b\nExamples:\n  rota diff ping_pong four_wave\n  rota diff ping_pong --set waits.auto_drain=true"
    "\n  rota diff gemm_8wave --set stagger=true --html stagger.html"
)
@click.argument("before", metavar="A")
@click.argument("after", metavar="[B]", required=False)
@set_option
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write both listings side by side.")
@json_option
def diff(before: str, after: str | None, settings: tuple[str, ...], html: Path | None) -> None:
    """Compare two schedules entry by entry.

    Without B, A is compared with what the settings make of it; with B, settings apply to B.
    """
    from rota.view.diff import diff as compare
    from rota.view.diff_page import diff_page

    kernels = find_kernel(before), find_kernel(after or before, settings)
    one, other = (predicted(kernel, band=False) for kernel in kernels)
    after_name = " ".join([kernels[1].name, *settings])
    cycles = one.prediction.cycles, other.prediction.cycles
    found = compare(one.compiled, replace(other.compiled, name=after_name), cycles)
    if html is not None:
        write(html, diff_page(found))
    rows = [
        {"phase": phase, "change": row.change.name.lower(), "text": str(row)[2:]}
        for phase, some in found.phases
        for row in some
    ]
    data = {"before": found.before, "after": found.after, "same": found.same, "figures": found.figures, "rows": rows}
    give(str(html) if html is not None else str(found), data)
