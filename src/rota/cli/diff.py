"""`rota diff`: takes two kernels, or one and settings, gives what differs between their schedules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from rota.cli.code_file import names_machine_code
from rota.cli.kernel_argument import find_kernel, set_option
from rota.cli.lifted import predicted_code
from rota.cli.machine_code import Block, block_option, device_option
from rota.cli.output import give, json_option, write
from rota.cli.picture import Predicted, predicted
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
@block_option
@device_option
@json_option
def diff(
    *,
    before: str,
    after: str | None,
    settings: tuple[str, ...],
    html: Path | None,
    block: Block | None,
    device: str | None,
) -> None:
    """Compare two schedules entry by entry.

    Without B, A is compared with what the settings make of it.  With B, settings apply to both; one that A or B alone
    has applies to that one, and the title says so.  Either may be machine code, whose main loop is compared.
    """
    from rota.view.diff import diff as compare
    from rota.view.diff_page import diff_page

    one, other = _predicted(before, after, settings, block, device)
    cycles = one.prediction.cycles, other.prediction.cycles
    with progress("comparing"):
        found = compare(one.schedule, other.schedule, cycles)
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


def _predicted(
    before: str, after: str | None, settings: tuple[str, ...], block: Block | None, device: str | None
) -> tuple[Predicted, Predicted]:
    """Both sides; settings don't apply to machine code."""
    lifted = [each is not None and names_machine_code(each) for each in (before, after)]
    if not any(lifted):
        one, other = (predicted(kernel, band=False) for kernel in _sides(before, after, settings))
        return one, other
    if after is None or settings:
        raise click.UsageError("machine code has no settings: `rota diff old.co new.co`")
    one, other = (
        predicted_code(each, block=block, device=device, band=False)
        if code
        else predicted(find_kernel(each), band=False)
        for each, code in zip((before, after), lifted, strict=True)
    )
    return one, other


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
