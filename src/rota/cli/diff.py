"""`rota diff`: takes two kernels, or one and settings, gives what differs between their schedules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from rota.cli.kernel_argument import find_kernel, set_option
from rota.cli.output import give, json_option, write
from rota.cli.picture import predicted
from rota.cli.progress import progress
from rota.cli.set_values import changed, has_field, with_settings
from rota.kernels.kernel import Kernel


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

    Without B, A is compared with what the settings make of it.  With B, settings apply to both; one that A or B alone
    has applies to that one, and the title says so.
    """
    from rota.view.diff import diff as compare
    from rota.view.diff_page import diff_page

    one, other = (predicted(kernel, band=False) for kernel in _sides(before, after, settings))
    cycles = one.prediction.cycles, other.prediction.cycles
    with progress("comparing"):
        found = compare(one.compiled, other.compiled, cycles)
        page = diff_page(found) if html is not None else ""
    if html is not None:
        write(html, page)
    rows = [
        {"phase": phase, "change": row.change.name.lower(), "text": str(row)[2:]}
        for phase, some in found.phases
        for row in some
    ]
    data = {"before": found.before, "after": found.after, "same": found.same, "figures": found.figures, "rows": rows}
    give(str(html) if html is not None else str(found), data)


def _sides(before: str, after: str | None, settings: tuple[str, ...]) -> tuple[Kernel, Kernel]:
    """Both kernels with their settings, under names that say these; by file where the names are equal."""
    words = before, after or before
    plain = find_kernel(words[0]), find_kernel(words[1])
    given = [tuple(text for text in settings if has_field(kernel, text)) for kernel in plain]
    for text in settings:
        if not any(text in some for some in given):
            changed(plain[0], text)  # says what is wrong with it
    if after is None:
        given[0] = ()
    qualified = plain[0].name == plain[1].name and words[0] != words[1]
    one, other = (
        replace(with_settings(kernel, some), name=" ".join([word if qualified else kernel.name, *some]))
        for word, kernel, some in zip(words, plain, given, strict=True)
    )
    return one, other
