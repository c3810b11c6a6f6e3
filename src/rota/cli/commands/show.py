"""`rota show`, `rota diff` and `rota trace`: look at a schedule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rota.check import expect
from rota.cli.arguments import (
    apply_settings,
    compile_kernel,
    find_kernel,
    find_registered,
    has_field,
    kernel_argument,
    set_option,
    with_settings,
)
from rota.cli.code_file import Block, block_option, device_option, find_code, names_machine_code
from rota.cli.output import give, json_option, progress, tell, text_columns, write
from rota.errors import RotaError, several
from rota.kernels.kernel import Kernel
from rota.program.kinds import Phase
from rota.program.lowered import LoweredProgram, listing as listing_of
from rota.view.page import VIEWS

if TYPE_CHECKING:
    from rota.compiled.compiled_schedule import CompiledSchedule
    from rota.cycles.predict import Prediction
    from rota.cycles.timeline import Timeline
    from rota.predict.thread_trace import TraceComparison
    from rota.program.lowered import Lowerable
    from rota.view.scene import Key


class Predicted(NamedTuple):
    """A schedule, what the model says it does clock by clock, and in figures."""

    schedule: Lowerable
    timeline: Timeline
    prediction: Prediction


def predict_kernel(kernel: Kernel, *, band: bool = True) -> Predicted:
    """Compile, run the cycle model; a body declared in tiles says what shape it was given.

    The band needs a run for both ends of every estimate.
    """
    from rota.cycles.predict import predict
    from rota.cycles.record import record

    compiled = compile_kernel(kernel)
    shape = kernel.shape()
    if shape is not None and kernel.waves is None:
        sides = f"{shape.geometry.BM}x{shape.geometry.BN}x{shape.geometry.BK}"
        tell(
            f"note: the body is declared in tiles; predicted for {sides}, {shape.waves} waves, {shape.instruction} "
            "(--set geometry.BM=..., waves=..., instruction=... say otherwise)"
        )
    with progress(f"predicting {kernel.name}"):
        return Predicted(compiled, record(compiled, shape), predict(compiled, shape, band=band))


def lift_program(text: str, *, block: Block | None, device: str | None) -> LoweredProgram:
    """The main loop of the kernel, with what is assumed about it."""
    from rota.lift.lifted_loop import lift_kernel
    from rota.targets.registry import device_named

    code, name = find_code(text, device=device)
    facts = code.kernel(name)
    chosen = device_named(device or facts.arch)
    with progress(f"lifting {facts.name}"):
        program = lift_kernel(facts, code.instructions(facts.name), chosen, block=block).program
    tell(f"note: {program.origin}")
    return program


def predict_code(text: str, *, block: Block | None, device: str | None, band: bool = True) -> Predicted:
    """The loop's program with its predicted run."""
    from rota.cycles.predict import predict
    from rota.cycles.record import record

    program = lift_program(text, block=block, device=device)
    with progress(f"predicting {program.name}"):
        return Predicted(program, record(program), predict(program, band=band))


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
            program = lift_program(kernel, block=block, device=device)
            listed = {"name": program.name, **_entries_of(program), "origin": program.origin}
            give(listing_of(program.name, program.kernel), listed)
        else:
            _list(compile_kernel(chosen), why=why)
        return
    view = find_registered(VIEWS, form or "text")
    from rota.view.page import show as shown_as

    found = predict_kernel(chosen) if chosen is not None else predict_code(kernel, block=block, device=device)
    traced = None
    if att is not None and chosen is not None:
        from rota.predict.thread_trace import compare_trace, read_trace

        traced = compare_trace(found.schedule, read_trace(att), chosen.shape())
    with progress(f"drawing {found.schedule.lowered.name}"):
        shown = shown_as(*found, measured=_describe_measured(traced))
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


def _describe_measured(traced: TraceComparison | None) -> dict[Key, str]:
    from rota.view.scene import Key

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
    has applies to that one, and the title says so.  Either may be machine code, whose main loop is compared.  If both
    are, the causes of their findings are compared, too: which went, which came, and which stayed.
    """
    from rota.view.diff import diff as compare
    from rota.view.page import diff_page

    causes: list[dict[str, object]] | None = None
    if after is not None and names_machine_code(before) and names_machine_code(after):
        causes = _compare_causes(before, after, block, device)
    told = [f"{each['change']:6}  {each['level']}  {each['code']}  {each['message']}" for each in causes or ()]
    told = told if causes is None or told else ["no findings, before or after"]
    try:
        one, other = _predict(before, after, settings, block, device)
    except RotaError as error:
        if causes is None:
            raise
        give("\n".join((*told, f"the loops were not compared: {error.findings[0].message}")), {"causes": causes})
        return
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
    data: dict[str, object] = {"before": found.before, "after": found.after, "same": found.same}
    data |= {"figures": found.figures, "rows": rows} | ({} if causes is None else {"causes": causes})
    give("\n".join((*told, str(html) if html is not None else str(found))), data)


def _compare_causes(before: str, after: str, block: Block | None, device: str | None) -> list[dict[str, object]]:
    """Which causes of findings went, stayed and came."""
    from rota.prove.causes import level_of
    from rota.prove.kernel_proof import prove_object
    from rota.prove.verdict import compare_causes

    sides: list[Any] = []
    for each in (before, after):
        code, name = find_code(each, device=device)
        facts = code.kernel(name)
        with progress(f"proving {facts.name}"):
            (verdict,) = prove_object(code, facts.name, block=block)
        sides += [verdict, {line.line: line.text for line in code.instructions(facts.name)}]
    return [
        {"change": change, "level": level.value, "code": finding.code, "message": finding.message, "finding": finding}
        for change, finding in compare_causes(*sides)
        if (level := level_of(finding)) is not None
    ]


def _predict(
    before: str, after: str | None, settings: tuple[str, ...], block: Block | None, device: str | None
) -> tuple[Predicted, Predicted]:
    """Both sides; settings don't apply to machine code."""
    lifted = [each is not None and names_machine_code(each) for each in (before, after)]
    if not any(lifted):
        one, other = (predict_kernel(kernel, band=False) for kernel in _sides(before, after, settings))
        return one, other
    if after is None or settings:
        raise click.UsageError("machine code has no settings: `rota diff old.co new.co`")
    one, other = (
        predict_code(each, block=block, device=device, band=False)
        if code
        else predict_kernel(find_kernel(each), band=False)
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
            apply_settings(plain[0], text)  # says what is wrong with it
    if after is None:
        given[0] = ()
    qualified = plain[0].name == plain[1].name and words[0] != words[1]
    one, other = (
        replace(with_settings(kernel, some), name=" ".join([word if qualified else kernel.name, *some]))
        for word, kernel, some in zip(words, plain, given, strict=True)
    )
    return one, other


@click.command(epilog="\b\nExamples:\n  rota trace ping_pong -o ping_pong.perfetto-trace")
@kernel_argument
@set_option
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="By default KERNEL's name.")
@json_option
def trace(kernel: str, settings: tuple[str, ...], output: Path | None) -> None:
    """Write KERNEL's predicted run for Perfetto.

    Every wave, prologue to epilogue; 1 ns represents 1 clock.
    """
    from rota.view.perfetto_trace import perfetto_trace

    chosen = find_kernel(kernel, settings)
    compiled, timeline, _ = predict_kernel(chosen, band=False)
    path = output or Path(f"{chosen.name}.perfetto-trace")
    with progress(f"writing {path}"):
        content = perfetto_trace(compiled, timeline)
    write(path, content)
    give(
        f"{path}: {len(timeline.slices):,} slices of {timeline.waves} waves, {timeline.end:,} clk, predicted; "
        "open it in ui.perfetto.dev",
        {"written": str(path), "bytes": len(content), "slices": len(timeline.slices), "clocks": timeline.end},
    )
