"""`rota show`: takes a kernel, gives its predicted timeline as text, SVG or HTML, or the listing of its entries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.check import expect
from rota.cli.code_file import names_machine_code
from rota.cli.kernel_argument import compiled_kernel, find_kernel, kernel_argument, set_option
from rota.cli.lifted import lifted_program, predicted_code
from rota.cli.machine_code import Block, block_option, device_option
from rota.cli.output import give, json_option, tell, text_columns, write
from rota.cli.picture import predicted
from rota.cli.progress import progress
from rota.cli.registered import registered
from rota.errors import several
from rota.kernels.kernel import Kernel
from rota.program.listing import listing as listing_of
from rota.program.lowered import LoweredProgram
from rota.program.phase import Phase
from rota.view.registry import VIEWS

if TYPE_CHECKING:
    from rota.compiled.compiled_schedule import CompiledSchedule
    from rota.predict.thread_trace import TraceComparison
    from rota.program.lowered import Lowerable
    from rota.view.pictured import Key

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    epilog="\b\nExamples:\n  rota show ping_pong\n  rota show four_wave --html four_wave.html --svg four_wave.svg"
    "\n  rota show gemm_small --listing\n  rota show four_wave --listing --why"
)
@kernel_argument
@set_option
@click.option("--html", type=_FILE, help="Write a page with the picture and the table of entries.")
@click.option("--svg", type=_FILE, help="Write the picture alone.")
@click.option("--form", metavar="NAME", help="Print the view of that name: text, svg, html, or an installed package's.")
@click.option("--att", type=_FILE, help="Compare with an instruction trace of rocprofv3: stats_*.csv or code.json.")
@click.option("--listing", is_flag=True, help="Print the entries, phase by phase, instead.")
@click.option("--why", is_flag=True, help="With --listing: what made each entry (op, hook, knob, rule, repair).")
@block_option
@device_option
@json_option
def show(
    kernel: str,
    settings: tuple[str, ...],
    *,
    html: Path | None,
    svg: Path | None,
    form: str | None,
    att: Path | None,
    listing: bool,
    why: bool,
    block: Block | None,
    device: str | None,
) -> None:
    """Show KERNEL's predicted steady state.

    It is what the cycle model predicts for the middle of the loop; nothing is measured.  KERNEL may be machine code of
    any origin (kernel.co, kernel.hsaco:name): then it is the loop with the most matrix instructions, lifted.
    """
    _check_options(listing=listing, why=why, drawn=bool(html or svg), traced=bool(att), form=form)
    machine_code = names_machine_code(kernel)
    if machine_code and why:
        raise click.UsageError("--why is for schedules; machine code doesn't say what made it")
    if machine_code and (settings or att):
        raise click.UsageError("--set and --att are for schedules; machine code takes --device and --block")
    chosen = None if machine_code else find_kernel(kernel, settings)
    if listing:
        if chosen is None:
            _list_program(lifted_program(kernel, block=block, device=device))
        else:
            _list(compiled_kernel(chosen), why=why)
        return
    view = registered(VIEWS, form or "text")
    from rota.view.show import show as shown_as

    found = predicted(chosen) if chosen is not None else predicted_code(kernel, block=block, device=device)
    traced = None if att is None or chosen is None else _traced(att, chosen, found.schedule)
    with progress(f"drawing {found.schedule.lowered.name}"):
        shown = shown_as(*found, measured=_told(traced))
        for path, render in ((html, shown.html), (svg, shown.svg)):
            if path is not None:
                write(path, render())
        written = [str(path) for path in (html, svg) if path is not None]
        parts = [f"{shown.scene.headline}\n  {path}" for path in written]
        if form or not written:
            drawn = expect(f"what view {form!r} gives", view(shown), str) if form else shown.text(text_columns())
        else:
            drawn = None
    text = "\n".join([*parts, *([] if drawn is None else [drawn]), *([] if traced is None else [traced.table()])])
    data = {"headline": shown.scene.headline, "prediction": found.prediction, "written": written, "view": form}
    give(text, data if traced is None else {**data, "trace": traced})


def _check_options(*, listing: bool, why: bool, drawn: bool, traced: bool, form: str | None) -> None:
    """Each option says something about what is printed; not all go together."""
    if listing and drawn:
        raise click.UsageError("--listing prints text; --html and --svg write the picture")
    if listing and traced:
        raise click.UsageError("--listing prints the entries; --att adds to the picture")
    if listing and form:
        raise click.UsageError("--listing and --form each say what to print")
    if why and not listing:
        raise click.UsageError("--why goes with --listing")


def _traced(path: Path, kernel: Kernel, compiled: Lowerable) -> TraceComparison:
    from rota.predict.thread_trace import compare_trace, read_trace

    return compare_trace(compiled, read_trace(path), kernel.shape())


def _told(traced: TraceComparison | None) -> dict[Key, str]:
    """What a picture says of each entry."""
    from rota.view.pictured import Key

    if traced is None:
        return {}
    return {
        Key(Phase.KERNEL, each.slot): f"measured {each.measured:,.0f} clk a trip, predicted {each.predicted:,.0f}"
        for each in traced.entries
    }


def _list(compiled: CompiledSchedule, *, why: bool) -> None:
    entries = _entries_of(compiled.lowered)
    if why:
        for phase in Phase:
            for told, entry in zip(entries[phase.value.lower()], compiled.phase(phase), strict=True):
                told["origin"] = compiled.origin(entry)
    repairs = [change.sentence for change in compiled.repairs]
    give(compiled.listing(why=why), {"name": compiled.name, **entries, "repairs": repairs})
    if compiled.findings:
        tell(f"{several(len(compiled.findings), 'note')}; `rota check --notes` prints them")


def _list_program(program: LoweredProgram) -> None:
    data = {"name": program.name, **_entries_of(program), "origin": program.origin}
    give(listing_of(program.name, program.kernel), data)


def _entries_of(program: LoweredProgram) -> dict[str, list[dict[str, object]]]:
    names = [role.name for role in program.roles]
    return {
        phase.value.lower(): [
            {"slot": entry.time_slot, "op": str(entry.op), "roles": [names[role] for role in entry.roles or ()] or None}
            for entry in program.phase(phase)
            if entry.listed
        ]
        for phase in Phase
    }
