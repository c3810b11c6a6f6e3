"""`rota check`: prove a schedule, or machine code that anybody compiled.

Of machine code: one file here, many files on all cores, with what a project says about its kernels.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from rota.cli.arguments import compile_kernel, find_kernel, run_search, set_option
from rota.cli.code_file import (
    OBJECTS,
    Block,
    Compilation,
    Project,
    block_option,
    code_files,
    compiler_option,
    device_option,
    find_project,
    names_machine_code,
    read_code,
    split_name,
)
from rota.cli.output import format_baseline, format_option, give, in_full, progress, read_baseline, tell, write
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import Finding, RotaError, Severity, SourceLine, ToolchainError, did_you_mean, several
from rota.kernels.kernel import Kernel
from rota.program.lowered import count_sync
from rota.prove.causes import EvidenceLevel, level_of
from rota.prove.verdict import STEPS_PER_SECOND, Budget, Edit

if TYPE_CHECKING:
    from rota.fleet.check_fleet import FleetTally, RunChange
    from rota.fleet.kernel_job import KernelRow, ProofOptions
    from rota.fleet.known_finding import KnownFinding
    from rota.fleet.verdict_store import FleetRow, FleetRun
    from rota.isa.binary.code_object import CodeObject
    from rota.isa.binary.hip_source import BuildEntry
    from rota.isa.disassembly import Instruction
    from rota.prove.advice import Needed, Suggestion
    from rota.workers.job import Pool

_MOST_CAUSES = 3  # that are printed in full
_NEWS_SECONDS = 10.0  # between two lines of progress where there is no terminal
_FOLDER = click.Path(file_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is asked for of machine code alone, as the command line says it."""

    block: Block | None = None
    device: str | None = None
    compiler: str | None = None
    include: tuple[str, ...] = ()
    define: tuple[str, ...] = ()
    std: str | None = None
    build_dir: Path | None = None
    lds_reads: str = "strict"
    vmcnt: str = "in-order"
    steps: int = Budget().steps
    seconds: float | None = None
    assume: tuple[str, ...] = ()
    fail_on: str = EvidenceLevel.REQUIRED.value
    all: bool = False
    listing: bool = False
    needed: bool = False
    suggest: bool = False
    baseline: Path | None = None
    write_baseline: Path | None = None
    jobs: int | None = None
    ray: str | None = None
    timeout: float = 300.0
    store: Path | None = None
    since: Path | None = None
    retry: bool = False


_SETTINGS = {
    "block": "block", "device": "device", "compiler": "compiler", "build_dir": "build-dir", "lds_reads": "lds-reads",
    "vmcnt": "vmcnt", "steps": "steps", "seconds": "seconds", "assume": "assume", "fail_on": "fail-on",
    "baseline": "baseline", "jobs": "jobs", "timeout": "timeout", "store": "store",
}  # fmt: skip
"""Options that a project may say, with the names that they have there."""

Command = TypeVar("Command", bound=Callable[..., object])


def proof_options(command: Command) -> Command:
    """Adds what concerns machine code alone; the command takes it as `wishes`, and those that were typed as `typed`."""

    @functools.wraps(command)
    def wished(**named: Any) -> object:  # whatever the command takes
        context = click.get_current_context()
        mine = {name: named.pop(name) for name in Wishes.__dataclass_fields__}
        sources = {name: context.get_parameter_source(name) for name in mine}
        typed = frozenset(name for name, source in sources.items() if source is not ParameterSource.DEFAULT)
        return command(**named, wishes=Wishes(**mine), typed=typed)

    options = (
        click.option("--needed", is_flag=True, help="Which waits and barriers the proof needs."),
        click.option("--suggest", is_flag=True, help="Waits and barriers with which it would be proved."),
        click.option("--all", is_flag=True, help="Print all findings, and not only the surest."),
        click.option("--listing", is_flag=True, help="Print the listing around every finding, not only the first."),
        click.option(
            "--fail-on",
            type=click.Choice([each.value.replace(" ", "-") for each in EvidenceLevel]),
            default=EvidenceLevel.REQUIRED.value,
            show_default=True,
            help="The least sure findings that fail the run.",
        ),
        click.option("--baseline", type=click.Path(path_type=Path), help="Known findings; only others fail the run."),
        click.option(
            "--write-baseline", type=click.Path(path_type=Path), help="Write what is found as known findings."
        ),
        click.option("-I", "include", multiple=True, metavar="FOLDER", help="Of HIP: where included files are."),
        click.option("-D", "define", multiple=True, metavar="NAME[=TEXT]", help="Of HIP: define a macro."),
        click.option("--std", metavar="STANDARD", help="Of HIP: the standard of C++, as c++20."),
        click.option(
            "--build-dir", type=_FOLDER, help="Check all HIP files of a compile_commands.json, with their flags."
        ),
        click.option(
            "--lds-reads",
            type=click.Choice(["strict", "lenient"]),
            default="strict",
            help="Is an LDS read over when its wave passes a barrier without a wait for it?",
        ),
        click.option(
            "--vmcnt",
            type=click.Choice(["in-order", "any-order"]),
            default="in-order",
            help="Do vector memory ops return in the order of their issue?",
        ),
        click.option(
            "--assume",
            type=click.Choice(["lds-in-bounds"]),
            multiple=True,
            help="LDS addresses that come from data lie inside; the verdict names it.",
        ),
        click.option(
            "--steps",
            type=click.IntRange(1, 10**12),
            default=Budget().steps,
            show_default=True,
            help=f"Steps for one kernel, the same on every machine; {STEPS_PER_SECOND:,} take about a second.",
        ),
        click.option(
            "--seconds",
            type=click.FloatRange(0.1, 86_400),
            help="End a proof after this many CPU seconds, too; the verdict then names that limit.",
        ),
        click.option("--jobs", type=click.IntRange(1, 1024), help="Of folders: processes; by default one per core."),
        click.option(
            "--ray",
            is_flag=False,
            flag_value="local",
            metavar="ADDRESS",
            help="Of folders: judge on a Ray cluster; by default a local one.",
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(min=1),
            default=300.0,
            show_default=True,
            help="Of folders: seconds by the clock for one kernel, after which it is a row without a verdict.",
        ),
        click.option("--store", type=_FOLDER, help="Keep verdicts in this folder; by default in the cache."),
        click.option("--since", type=_FOLDER, help="Print what changed since the last run of a store."),
        click.option("--retry", is_flag=True, help="Of folders: judge kernels again whose process failed."),
    )
    for option in reversed(options):
        wished = option(wished)
    return wished  # type: ignore[return-value]  # of the same kind as the command


class CheckPlan(NamedTuple):
    """What is asked for, with what the project says where nothing was typed."""

    wishes: Wishes
    typed: frozenset[str]
    project: Project
    flags: tuple[str, ...]

    def options_for(self, file: str, kernel: str) -> ProofOptions:
        from rota.fleet.kernel_job import ProofOptions

        own = self._for(file, kernel)
        return ProofOptions(
            block=own.block, lds_reads=own.lds_reads, vmcnt=own.vmcnt, assume=own.assume, steps=own.steps,
            seconds=own.seconds,
        )  # fmt: skip

    def least_for(self, file: str, kernel: str) -> int:
        """The rank of the least sure findings that fail the run."""
        return EvidenceLevel(self._for(file, kernel).fail_on.replace("-", " ")).rank

    def compilation_for(self, file: str, entry: BuildEntry | None = None) -> Compilation:
        """What was typed comes before and after what the build says: its folders are searched first, its flags win."""
        from rota.isa.binary.hip_source import HipFlags

        own, built = self._for(file, ""), HipFlags() if entry is None else entry.flags
        flags = replace(
            built,
            include=(*(os.path.abspath(each) for each in own.include), *built.include),  # noqa: PTH100  # keeps links
            define=(*built.define, *own.define),
            standard=own.std or built.standard,
            clang=(*self.project.settings.get("flags", ()), *built.clang, *self.flags),
        )
        processors = () if entry is None else entry.processors
        return Compilation(device=own.device, compiler=own.compiler, flags=flags, processors=processors)

    def _for(self, file: str, kernel: str) -> Wishes:
        return _merge(self.wishes, self.typed, self.project.settings_for(file, kernel))


def _merge(wishes: Wishes, typed: frozenset[str], said: dict[str, Any]) -> Wishes:
    """The wishes with what is said where nothing was typed."""
    own = {name: said[setting] for name, setting in _SETTINGS.items() if setting in said and name not in typed}
    if "assume" in own:
        own["assume"] = tuple(own["assume"])
    return replace(wishes, **own)


def check_machine_code(
    places: Sequence[str], wishes: Wishes, typed: frozenset[str] = frozenset(), flags: tuple[str, ...] = ()
) -> None:
    """Proves every kernel; the exit status is 1 if one has a finding that is sure enough, or can't be read."""
    project = find_project(Path.cwd())
    plan = CheckPlan(_merge(wishes, typed, dict(project.settings)), typed, project, flags)
    wishes = plan.wishes
    files = _find_files(places, plan)
    known = () if wishes.baseline is None else read_baseline(wishes.baseline)
    before = None if wishes.since is None else _last_run(wishes.since)
    asks_fleet = len(files) > 1 or not typed.isdisjoint({"store", "jobs", "ray"})
    if not asks_fleet or wishes.needed or wishes.suggest:
        run, advice = _check_here(files, plan)
    else:
        run, advice = _check_fleet(files, plan, " ".join(places) or str(wishes.build_dir)), []
    _answer(run, plan, known, before, advice, single=len(files) == 1)


class CodeFile(NamedTuple):
    """A file to be checked; `kernel` if only one of its kernels is asked for, and flags of its own."""

    file: Path
    kernel: str | None = None
    built: BuildEntry | None = None


def _find_files(places: Sequence[str], plan: CheckPlan) -> list[CodeFile]:
    found: list[CodeFile] = []
    for text in places:
        place, name = split_name(text)
        files = code_files(place)
        if not files:
            raise click.UsageError(f"there is no code object {place}")
        found += [CodeFile(file, name) for file in files]
    if (folder := plan.wishes.build_dir) is not None and (not places or "build_dir" in plan.typed or folder.is_dir()):
        from rota.isa.binary.hip_source import read_build

        build = read_build(folder)
        own = {each.file.resolve(): each for each in build}
        found = [each._replace(built=own.get(each.file.resolve())) for each in found]
        if not places:
            found = [CodeFile(each.file, None, each) for each in build]
        if not found:
            raise click.UsageError(f"{folder} compiles no HIP source")
    return found


def _read(each: CodeFile, plan: CheckPlan) -> CodeObject:
    return read_code(each.file, plan.compilation_for(str(each.file), each.built))


def _check_here(files: Sequence[CodeFile], plan: CheckPlan) -> tuple[FleetRun, list[Advice]]:
    """In this process: what a single file needs, and advice."""
    from rota.fleet.kernel_job import judge_kernel, row_without_kernels
    from rota.fleet.verdict_store import FleetRow, FleetRun

    rows, advice = [], []
    for each in files:
        name = str(each.file)
        with progress(f"proving {each.file.name}"):
            try:
                code = _read(each, plan)
                kernels = [code.kernel(each.kernel).name] if each.kernel else [facts.name for facts in code.kernels]
                found = [judge_kernel(code, kernel, plan.options_for(name, kernel)) for kernel in kernels]
            except (RotaError, click.UsageError) as error:  # one damaged file doesn't hide the others
                if len(files) == 1 and isinstance(error, click.UsageError):
                    raise
                found = [row_without_kernels(_as_findings(error))]
        rows += [FleetRow(name, row) for row in found]
        if plan.wishes.needed or plan.wishes.suggest:
            advice += [advise(code, row, plan, name) for row in found if row.verdict is not None]
    return FleetRun(tuple(rows)), advice


def _as_findings(error: RotaError | click.UsageError) -> tuple[Finding, ...]:
    return error.findings if isinstance(error, RotaError) else (Finding("T103", error.message),)


def _check_fleet(files: Sequence[CodeFile], plan: CheckPlan, place: str) -> FleetRun:
    from rota.fleet.check_fleet import FleetFile, check_fleet
    from rota.fleet.verdict_store import VerdictStore, default_store
    from rota.isa.binary.toolchain import read_file

    def read_contents(each: CodeFile) -> bytes:
        try:
            return read_file(each.file) if each.file.suffix in OBJECTS else _read(each, plan).hsaco
        except click.UsageError as error:
            raise ToolchainError(*_as_findings(error)) from error

    subjects = [FleetFile(str(each.file), functools.partial(read_contents, each), each.kernel) for each in files]
    with VerdictStore(plan.wishes.store or default_store(), write=True) as store:
        return check_fleet(
            subjects,
            plan.options_for,
            _pool(plan.wishes),
            store,
            place=place,
            retry=plan.wishes.retry,
            progress=_News(),
        )


def _pool(wishes: Wishes) -> Pool:
    from rota.fleet.check_fleet import LIMITS

    limits, workers = LIMITS._replace(seconds=wishes.timeout), wishes.jobs or len(os.sched_getaffinity(0))
    if wishes.ray is not None:
        from rota.workers.ray_pool import RayPool

        return RayPool(None if wishes.ray == "local" else wishes.ray, workers, limits)
    from rota.workers.local_pool import LocalPool

    return LocalPool(workers, limits)


class _News:
    """Progress on stderr: one line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, tally: FleetTally) -> None:
        done = tally.hits + tally.done >= tally.asked
        if sys.stderr.isatty():
            click.echo("\r\x1b[K" + ("" if done else str(tally)), nl=False, err=True)
        elif done or time.monotonic() - self._last >= _NEWS_SECONDS:
            self._last = time.monotonic()
            click.echo(str(tally), err=True)


def _last_run(folder: Path) -> FleetRun:
    from rota.fleet.verdict_store import VerdictStore

    with VerdictStore(folder) as store:
        run = store.last_run()
    if run is None:
        raise click.UsageError(f"{folder} holds no run to compare with")
    return run


def _answer(
    run: FleetRun,
    plan: CheckPlan,
    known: Sequence[KnownFinding],
    before: FleetRun | None,
    advice: list[Advice],
    *,
    single: bool,
) -> None:
    from rota.fleet.check_fleet import compare_runs
    from rota.fleet.known_finding import identify, new_findings

    wishes, rows = plan.wishes, run.rows
    found = [(each.subject, finding) for each in rows for finding in each.row.findings]
    if wishes.write_baseline is not None:
        write(wishes.write_baseline, format_baseline(found))
        known = tuple(identify(*each) for each in found)
    if before is not None:
        known = (*known, *(identify(each.subject, finding) for each in before.rows for finding in each.row.findings))
    sure = [
        (each.subject, finding)
        for each in rows
        for finding in each.row.findings
        if each.row.fails or (each.row.judged and _fails(finding, plan.least_for(each.file, each.row.kernel)))
    ]
    new = new_findings(sure, known)
    compares = wishes.baseline is not None or wishes.write_baseline is not None or before is not None
    unread = [each for each in rows if not each.row.judged]
    # A file without kernels fails nothing beside others, but a run that judged nothing hasn't passed.
    failed = [each for each in unread if each.row.fails] if len(unread) < len(rows) else unread
    passes = not failed and not new
    changes = None if before is None else compare_runs(before, run)
    lines = [_report(rows, wishes)] if single else (_table(rows) if changes is None else _list_changes(changes))
    if compares:
        what = "the baseline" if before is None else "the last run of the store"
        lines.append(f"{several(len(new), 'finding')} not in {what}" if new else "no finding that isn't known")
    give(
        "\n\n".join(("\n".join(lines), *(each.text for each in advice))),
        {
            "ok": passes,
            "proved": not failed and all(each.row.status == "proved" for each in rows if each.row.judged),
            "kernels": [_data(each) for each in rows if each.row.judged],
            "new": [{"about": subject, "code": finding.code, "message": finding.message} for subject, finding in new],
            **({"advice": advice} if advice else {}),
            **({"changes": changes} if changes is not None else {}),
            "unread": [{"file": each.subject, "findings": each.row.findings} for each in unread],
        },
        new if compares else found,
    )
    if not passes:
        click.get_current_context().exit(1)


def _fails(finding: Finding, least: int) -> bool:
    level = level_of(finding)
    return level is not None and level.rank <= least


def _data(each: FleetRow) -> dict[str, Any]:
    from rota.fleet.known_finding import identify
    from rota.isa.binary.code_object import demangle

    verdict = each.row.verdict
    return {
        "file": each.file,
        "name": demangle(each.row.kernel),
        "verdict": None if verdict is None else replace(verdict, remedies=()),
        "listings": each.row.listings,
        "fingerprints": [identify(each.subject, finding).fingerprint for finding in each.row.findings],
    }


def _report(rows: Sequence[FleetRow], wishes: Wishes) -> str:
    from rota.isa.binary.code_object import demangle

    parts = []
    for each in rows:
        row = each.row
        if row.verdict is None:
            parts.append(in_full(row.findings))
            continue
        shown = row.findings if wishes.all else choose_surest(row.findings)
        rest = _count_rest([finding for finding in row.findings if finding not in shown])
        texts = [str(replace(row.verdict, kernel=demangle(row.kernel)))]
        for number, finding in enumerate(row.findings):
            if finding in shown:
                listing = row.listings[number] if wishes.listing or finding is shown[0] else ""
                texts.append("\n".join(filter(None, (str(shorten_paths(finding)), listing))))
        parts.append("\n\n".join(filter(None, (*texts, rest))))
    return "\n\n".join(parts)


def shorten_paths(finding: Finding) -> Finding:
    """A finding whose files are named from here, as a reader would."""
    from rota.fleet.known_finding import relative

    ends = (
        each if each.source is None else replace(each, source=each.source._replace(file=relative(each.source.file)))
        for each in finding.concerns
    )
    return replace(finding, concerns=tuple(ends))


def choose_surest(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The first three, without notes and without what one source says."""
    chosen = (each for each in findings if level_of(each) not in {EvidenceLevel.ONE_SOURCE, None})
    return tuple(islice(chosen, _MOST_CAUSES))


def _count_rest(findings: list[Finding]) -> str:
    """The findings that aren't printed, by level."""
    parts = []
    for level in (*EvidenceLevel, None):
        codes = Counter(each.code for each in findings if level_of(each) is level)
        if codes:
            counts = ", ".join(f"{code} {count}" if count > 1 else code for code, count in sorted(codes.items()))
            name = ("note" if level is None else level.value) + ("s" if level is None and codes.total() > 1 else "")
            parts.append(f"{codes.total()} {name} ({counts})")
    return f"not printed: {'; '.join(parts)}; --all prints them" if parts else ""


def _table(rows: Sequence[FleetRow]) -> list[str]:
    from rota.fleet.kernel_job import FAILED, NO_KERNEL
    from rota.isa.binary.code_object import demangle

    lines = []
    for each in rows:
        row, name = each.row, Path(each.file).name
        if row.verdict is None:
            first = row.findings[0]
            place = f"{name}:{demangle(row.kernel)}" if row.kernel else name
            lines.append(f"{row.status:12} {place}  {first.code} {first.message}")
            continue
        took = row.verdict.statistics
        sites = f"{took.concrete_sites}/{took.sites}"
        codes = " ".join(row.codes)
        lines.append(
            f"{row.status:12} {took.seconds:6.1f} s {sites:>9} LDS  {name}:{demangle(row.kernel)}  {codes}".rstrip()
        )
    judged = [each.row for each in rows if each.row.judged]
    counts = Counter(row.status for row in judged)
    proved = counts.pop("proved", 0)
    parts = [f"{proved} of {several(len(judged), 'kernel')} proved"]
    parts += [f"{count} {status}" for status, count in sorted(counts.items())]
    unread = Counter(each.row.status for each in rows if not each.row.judged)
    for status, count in sorted(unread.items()):
        what = "without a kernel" if status == NO_KERNEL else status
        parts.append(f"{several(count, 'kernel' if status == FAILED else 'file')} {what}")
    return [*lines, ", ".join(parts)]


def _list_changes(changes: Sequence[RunChange]) -> list[str]:
    return [*map(str, changes), f"{several(len(changes), 'kernel')} changed"]


class PlacedEdit(NamedTuple):
    """An edit by its place: `texts` go before an instruction, or replace it; no texts remove it."""

    inserted: bool
    texts: tuple[str, ...]
    instruction: str
    address: int | None
    source: SourceLine | None


def place_edit(edit: Edit, instructions: Sequence[Instruction]) -> PlacedEdit:
    from rota.fleet.kernel_job import quote_line
    from rota.prove.verdict import apply_edits

    at = instructions[edit.number]
    source = None if at.source is None else quote_line(at.source)
    texts = edit.texts if edit.inserted else (apply_edits(instructions, [edit])[edit.number].text,)
    return PlacedEdit(edit.inserted, texts, at.text, at.address, source)


class Advice(NamedTuple):
    """`edits` are those of the suggestion; without one, those that mend the surest cause that can be mended."""

    file: str
    kernel: str
    needed: Needed | None
    suggestion: Suggestion | None
    edits: tuple[PlacedEdit, ...]
    text: str


def advise(code: CodeObject, row: KernelRow, plan: CheckPlan, file: str) -> Advice:
    """What is needed of a proved kernel, or what would mend one with a finding, as far as it is asked for."""
    from rota.prove.advice import find_needed, mend_cause, suggest

    verdict, options = row.verdict, plan.options_for(file, row.kernel)
    assert verdict is not None  # noqa: S101
    block, policies = options.block, options.policies()
    facts, instructions = code.kernel(row.kernel), code.instructions(row.kernel)
    needed, suggestion, text, edits = None, None, list[str](), tuple[Edit, ...]()
    if plan.wishes.needed:
        with progress(f"what {facts.name} needs", "proofs") as counted:
            needed = find_needed(facts, instructions, verdict, block=block, policies=policies, progress=counted)
        text.append(
            "which waits are needed is asked of a proved kernel" if needed is None else needed.describe(instructions)
        )
    if plan.wishes.suggest:
        with progress(f"mending {facts.name}", "proofs") as counted:
            suggestion = suggest(facts, instructions, verdict, block=block, policies=policies, progress=counted)
            if suggestion is not None and not suggestion.edits:  # one cause at a time, then
                for number, finding in enumerate(choose_surest(verdict.findings)):
                    mended = mend_cause(facts, instructions, verdict, number, block, policies, progress=counted)
                    text.append(f"{finding.code}, {finding.message}: {mended.describe(instructions)}")
                    edits = edits or mended.edits
            elif suggestion is not None:
                edits = suggestion.edits
        text += ["nothing to mend" if suggestion is None else suggestion.describe(instructions)]
    placed = tuple(place_edit(each, instructions) for each in edits)
    return Advice(file, row.kernel, needed, suggestion, placed, "\n".join(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What `rota check` says; None where the schedule doesn't state it.

    Barriers and waits are those of one trip; `added` counts what a repair added, in all phases.
    """

    kernel: str
    machine: str
    ops: int
    grain: str | None
    quality: str
    speed: str | None
    lds_bytes: int | None
    lds_limit: int
    registers: int | None
    register_limit: int
    barriers: int
    waits: int
    added: int
    warnings: int
    notes: int
    proved: bool

    def __str__(self) -> str:
        parts = [f"ok  {self.kernel}", " ".join(filter(None, [several(self.ops, "op"), self.grain])), self.quality]
        if self.speed is not None:
            parts.append(self.speed)
        if self.lds_bytes is not None:
            parts.append(f"LDS {_kib(self.lds_bytes)}/{_kib(self.lds_limit)} KiB")
        if self.registers is not None:
            parts.append(f"VGPR {self.registers}/{self.register_limit}")
        parts += [several(self.barriers, "barrier"), several(self.waits, "wait")]
        if self.added:
            parts.append(f"{self.added} added by repair")
        parts += [several(count, word) for count, word in ((self.warnings, "warning"), (self.notes, "note")) if count]
        return "  ".join([*parts, "proved for every trip count" if self.proved else "not proved, as written"])


def summarise(kernel: str, compiled: CompiledSchedule) -> Summary:
    sync = count_sync(compiled.kernel)
    return Summary(
        kernel=kernel,
        machine=compiled.machine.name,
        ops=compiled.op_count,
        grain=compiled.grain,
        quality=compiled.quality,
        speed=compiled.speed,
        lds_bytes=compiled.lds_bytes,
        lds_limit=compiled.machine.lds_bytes.value,
        registers=compiled.registers,
        register_limit=compiled.register_limit,
        barriers=sync.barriers,
        waits=sync.waits,
        added=compiled.added,
        warnings=sum(finding.severity is Severity.WARNING for finding in compiled.findings),
        notes=sum(finding.severity is Severity.NOTE for finding in compiled.findings),
        proved=compiled.certificate is not None,
    )


def _kib(size: int) -> str:
    return f"{size / 1024:g}"


@click.command(
    epilog="\b\nExamples:\n  rota check build/kernels\n  rota check kernel.hsaco --block 256"
    "\n  rota check kernel.hip --device mi355x -I include -- -ffast-math"
    "\n  rota check ping_pong\n  rota check four_wave --set waits.auto_drain=true --notes"
)
@click.argument("kernels", metavar="KERNEL...", nargs=-1)
@block_option
@device_option
@compiler_option
@proof_options
@set_option
@click.option("--notes", is_flag=True, help="Of a schedule: print notes, what a repair added, and the certificate.")
@click.option("--replay", "code", metavar="CODE", help="Of a schedule: execute the interleaving that shows a finding.")
@format_option
def check(
    *,
    kernels: tuple[str, ...],
    settings: tuple[str, ...],
    notes: bool,
    code: str | None,
    wishes: Wishes,
    typed: frozenset[str],
) -> None:
    """Prove a KERNEL race-free.

    Machine code of any origin: a code object (kernel.co, kernel.hsaco:name), assembly (kernel.s), a HIP source with
    --device, a folder or a pattern.  It is followed on all paths, without arguments: no two waves may race in LDS, and
    no register may be used before its wait.  Findings have a level (shown, required, one source, undecided); those
    that are required or shown fail the run, or those that --fail-on names.  Several files are judged on all cores, and
    verdicts are kept by their content.  A project says blocks, devices and policies once: [tool.rota] in
    pyproject.toml, or rota.toml.  Flags for the compiler follow after --.

    A schedule: a name that `rota kernels` lists, or file.py:Name.  It is proved right for every trip count and every
    interleaving of its waves.  By default `sync` is "repair", which adds the fewest barriers, then the fewest waits,
    that it finds to make the proof hold; with `--set sync=strict` what is missing is an error.

    Exit status: 0 proved, 1 findings, 2 usage, 3 internal error.
    """
    at = next((number for number, each in enumerate(kernels) if each.startswith("-")), len(kernels))
    named, flags = kernels[:at], kernels[at:]
    if wishes.build_dir is not None or all(map(names_machine_code, named)):
        if settings or notes or code:
            raise click.UsageError("--set, --notes and --replay are for schedules; this is machine code")
        if not named and wishes.build_dir is None and find_project(Path.cwd()).settings.get("build-dir") is None:
            raise click.UsageError("name a kernel: a code object, a source, a folder, or a schedule")
        check_machine_code(named, wishes, typed, flags)
        return
    if typed or flags:
        which = ", ".join(sorted(f"--{name.replace('_', '-')}" for name in typed)) or "flags of a compiler"
        raise click.UsageError(f"{which}: for machine code; schedules have `sync` and `--set`")
    if len(named) > 1:
        raise click.UsageError(f"one schedule at a time, not {len(named)}")
    (kernel,) = named
    chosen = find_kernel(kernel, settings)
    if code is not None:
        _replay(chosen, code.upper())
        return
    try:
        compiled = compile_kernel(chosen)
    except RotaError as error:  # here findings are the answer, not a failure to give one
        give(str(error), {"ok": False, "findings": error.findings})
        click.get_current_context().exit(1)
    summary = summarise(chosen.name, compiled)
    full = [in_full(compiled.findings), "\n".join(map(str, compiled.repairs)), str(compiled.certificate)]
    give(
        "\n\n".join([str(summary), *(part for part in full if part and notes)]),
        {
            "ok": True,
            "summary": summary,
            "findings": compiled.findings,
            "repairs": [change.sentence for change in compiled.repairs],
            "certificate": compiled.certificate,
        },
    )


def _replay(kernel: Kernel, code: str) -> None:
    """Run the witness of the first finding of that code on the executor."""
    from rota.execute.executor import replay
    from rota.verify.prove import verify

    written = run_search(f"compiling {kernel.name}", kernel.as_written)
    with progress(f"proving {kernel.name}"):
        findings = verify(written).findings
    finding = next((each for each in findings if each.code == code and each.witness is not None), None)
    if finding is None or finding.witness is None:
        raise _nothing_to_replay(kernel, code, findings)
    with progress(f"replaying {code}"):
        ended = replay(written, finding.witness)
    verdict = "every wave computes the right result" if ended.right else f"wrong: {ended.first_wrong}"
    tell(str(finding))
    give(f"replayed {code}: {verdict}", {"code": code, "right": ended.right, "wrong": ended.first_wrong})
    if not ended.right:
        click.get_current_context().exit(1)


def _nothing_to_replay(kernel: Kernel, code: str, findings: tuple[Finding, ...]) -> click.UsageError:
    shown = sorted({finding.code for finding in findings if finding.witness is not None})
    known = "; ".join(did_you_mean(code, shown)) if shown else "it has none that an interleaving shows"
    return click.UsageError(f"{kernel.name}, as written, has no finding {code} to replay; {known}")
