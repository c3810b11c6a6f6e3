"""`rota check`: prove a schedule, or machine code that anybody compiled."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from rota.cli.arguments import compile_kernel, find_kernel, kernel_argument, run_search, set_option
from rota.cli.code_file import (
    Block,
    block_option,
    code_files,
    compiler_option,
    device_option,
    names_machine_code,
    read_code,
    split_name,
)
from rota.cli.output import (
    KnownFinding,
    format_baseline,
    format_option,
    give,
    identity,
    in_full,
    new_findings,
    progress,
    read_baseline,
    tell,
    write,
)
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import Finding, RotaError, Severity, ToolchainError, did_you_mean, several
from rota.kernels.kernel import Kernel
from rota.program.lowered import count_sync
from rota.prove.causes import EvidenceLevel, level_of
from rota.prove.verdict import STEPS_PER_SECOND, Budget

if TYPE_CHECKING:
    from rota.isa.binary.code_object import CodeObject
    from rota.prove.advice import Needed, Suggestion
    from rota.prove.kernel_proof import Policies
    from rota.prove.verdict import Verdict


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


class Asked(NamedTuple):
    """Which advice is wanted: what is needed of a proved kernel, what would mend one with an alarm."""

    needed: bool = False
    suggest: bool = False


NO_ADVICE = Asked()


class Advice(NamedTuple):
    needed: Needed | None
    suggestion: Suggestion | None
    text: str


def advise(code: CodeObject, verdict: Verdict, asked: Asked, block: Block | None, policies: Policies) -> Advice:
    from rota.prove.advice import find_needed, mend_cause, suggest

    facts, instructions = code.kernel(verdict.kernel), code.instructions(verdict.kernel)
    needed, suggestion, text = None, None, []
    if asked.needed:
        with progress(f"what {facts.name} needs", "proofs") as counted:
            needed = find_needed(facts, instructions, verdict, block=block, policies=policies, progress=counted)
        text.append(
            "which waits are needed is asked of a proved kernel" if needed is None else needed.describe(instructions)
        )
    if asked.suggest:
        with progress(f"mending {facts.name}", "proofs") as counted:
            suggestion = suggest(facts, instructions, verdict, block=block, policies=policies, progress=counted)
            if suggestion is not None and not suggestion.edits:  # one cause at a time, then
                for number, finding in enumerate(_choose_surest(verdict.findings)):
                    mended = mend_cause(facts, instructions, verdict, number, block, policies, progress=counted)
                    text.append(f"{finding.code}, {finding.message}: {mended.describe(instructions)}")
        text += ["nothing to mend" if suggestion is None else suggestion.describe(instructions)]
    return Advice(needed, suggestion, "\n".join(text))


Command = TypeVar("Command", bound=Callable[..., object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Policies and assumptions by their words, limits, the level that fails the run, known findings."""

    lds_reads: str = "strict"
    vmcnt: str = "in-order"
    steps: int = Budget().steps
    seconds: float | None = None
    assume: tuple[str, ...] = ()
    fail_on: str = EvidenceLevel.REQUIRED.value
    all: bool = False
    baseline: Path | None = None
    write_baseline: Path | None = None

    @property
    def usual(self) -> bool:
        """True if nothing is asked for that only machine code has."""
        return self == Wishes()

    def policies(self) -> Policies:
        from rota.prove.kernel_proof import Policies, ReadsAtBarrier, VmcntOrder

        return Policies(
            reads=ReadsAtBarrier.STRICT if self.lds_reads == "strict" else ReadsAtBarrier.LENIENT,
            order=VmcntOrder.IN_ORDER if self.vmcnt == "in-order" else VmcntOrder.ANY_ORDER,
            lds_in_bounds="lds-in-bounds" in self.assume,
        )

    def budget(self) -> Budget:
        return Budget(steps=self.steps, seconds=self.seconds)

    def known(self) -> tuple[KnownFinding, ...]:
        return () if self.baseline is None else read_baseline(self.baseline)


def proof_options(command: Command) -> Command:
    """Adds what concerns machine code alone; the command takes it as `wishes`."""

    @functools.wraps(command)
    def wished(**named: Any) -> object:  # whatever the command takes
        mine = {name: named.pop(name) for name in Wishes.__dataclass_fields__}
        return command(**named, wishes=Wishes(**mine))

    options = (
        click.option(
            "--lds-reads",
            type=click.Choice(["strict", "lenient"]),
            default="strict",
            help="Of machine code: is an LDS read over when its wave passes a barrier without a wait for it?",
        ),
        click.option(
            "--vmcnt",
            type=click.Choice(["in-order", "any-order"]),
            default="in-order",
            help="Of machine code: do vector memory ops return in the order of their issue?",
        ),
        click.option(
            "--steps",
            type=click.IntRange(1, 10**12),
            default=Budget().steps,
            show_default=True,
            help="Of machine code: steps for one kernel, the same on every machine; "
            f"{STEPS_PER_SECOND:,} take about a second.",
        ),
        click.option(
            "--seconds",
            type=click.FloatRange(0.1, 86_400),
            help="Of machine code: end a proof after this many CPU seconds, too; the verdict then names that limit.",
        ),
        click.option(
            "--assume",
            type=click.Choice(["lds-in-bounds"]),
            multiple=True,
            help="Of machine code: LDS addresses that come from data lie inside; the verdict names it.",
        ),
        click.option(
            "--fail-on",
            type=click.Choice([each.value.replace(" ", "-") for each in EvidenceLevel]),
            default=EvidenceLevel.REQUIRED.value,
            show_default=True,
            help="Of machine code: the least sure findings that fail the run.",
        ),
        click.option("--all", is_flag=True, help="Of machine code: print all findings, and not only the surest."),
        click.option(
            "--baseline",
            type=click.Path(path_type=Path),
            help="Of machine code: a file of known findings; only others fail the run.",
        ),
        click.option(
            "--write-baseline",
            type=click.Path(path_type=Path),
            help="Of machine code: write what is found to a file of known findings.",
        ),
    )
    for option in reversed(options):
        wished = option(wished)
    return wished  # type: ignore[return-value]  # of the same kind as the command


_MOST_CAUSES = 3  # that are printed in full


def check_machine_code(  # noqa: C901
    text: str,
    *,
    block: Block | None,
    device: str | None,
    compiler: str | None,
    asked: Asked = NO_ADVICE,
    wishes: Wishes | None = None,
) -> None:
    """Proves every kernel; the exit status is 1 if one has a finding that is sure enough, or can't be read."""
    place, name = split_name(text)
    files = code_files(place)
    if not files:
        raise click.UsageError(f"there is no code object {place}")
    wishes = wishes or Wishes()
    known = wishes.known()
    results: list[tuple[Path, Verdict]] = []
    advice: list[Advice] = []
    failed: list[tuple[Path, RotaError]] = []
    several_files = len(files) > 1
    with progress("proving" if several_files else f"proving {files[0].name}", "files") as counted:
        for number, file in enumerate(files):
            if several_files:
                counted(number, len(files))
            try:
                code = read_code(file, device=device, compiler=compiler)
                verdicts = _verdicts(code, name, block, wishes)
                results += [(file, each) for each in verdicts]
            except click.UsageError as error:
                if not several_files:
                    raise
                failed.append((file, ToolchainError.of("T103", error.message)))
                continue
            except RotaError as error:  # one damaged file doesn't hide the others
                failed.append((file, error))
                continue
            if any(asked):
                advice += [advise(code, each, asked, block, wishes.policies()) for each in verdicts]
    found = [(f"{file}:{verdict.kernel}", each) for file, verdict in results for each in verdict.findings]
    found += [(str(file), each) for file, error in failed for each in error.findings]
    if wishes.write_baseline is not None:
        write(wishes.write_baseline, format_baseline(found))
        known = tuple(identity(*each) for each in found)
    least = EvidenceLevel(wishes.fail_on.replace("-", " ")).rank
    sure = [(subject, each) for subject, each in found if (level := level_of(each)) is not None and level.rank <= least]
    new = new_findings(sure, known)
    compares = wishes.baseline is not None or wishes.write_baseline is not None
    passes = not failed and not new
    lines = _table(results, failed) if several_files else [_report(results, failed, everything=wishes.all)]
    if compares:
        lines.append(f"{several(len(new), 'finding')} not in the baseline" if new else "no finding that isn't known")
    give(
        "\n\n".join(("\n".join(lines), *(each.text for each in advice))),
        {
            "ok": passes,
            "proved": not failed and all(each.proved for _, each in results),
            "kernels": [{"file": str(file), "verdict": replace(verdict, remedies=())} for file, verdict in results],
            "new": [{"about": subject, "code": finding.code, "message": finding.message} for subject, finding in new],
            **({"advice": advice} if advice else {}),
            "unread": [{"file": str(file), "findings": error.findings} for file, error in failed],
        },
        new if compares else found,
    )
    if not passes:
        click.get_current_context().exit(1)


def _verdicts(code: CodeObject, name: str | None, block: Block | None, wishes: Wishes) -> tuple[Verdict, ...]:
    from rota.prove.kernel_proof import prove_object

    return prove_object(code, name, block=block, policies=wishes.policies(), budget=wishes.budget())


def _report(
    results: list[tuple[Path, Verdict]], failed: list[tuple[Path, RotaError]], *, everything: bool = False
) -> str:
    parts = []
    for _, verdict in results:
        shown = verdict.findings if everything else _choose_surest(verdict.findings)
        rest = _count_rest([each for each in verdict.findings if each not in shown])
        parts.append("\n\n".join(filter(None, (str(verdict), in_full(shown), rest))))
    return "\n\n".join((*parts, *(str(error) for _, error in failed)))


def _choose_surest(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The first three, without notes and without what one source says."""
    chosen = (each for each in findings if level_of(each) not in {EvidenceLevel.ONE_SOURCE, None})
    return tuple(islice(chosen, _MOST_CAUSES))


def _count_rest(findings: list[Finding]) -> str:
    """The findings that aren't printed, by level."""
    parts = []
    for level in (*EvidenceLevel, None):
        codes = Counter(each.code for each in findings if level_of(each) is level)
        if codes:
            told = ", ".join(f"{code} {count}" if count > 1 else code for code, count in sorted(codes.items()))
            name = ("note" if level is None else level.value) + ("s" if level is None and codes.total() > 1 else "")
            parts.append(f"{codes.total()} {name} ({told})")
    return f"not printed: {'; '.join(parts)}; --all prints them" if parts else ""


def _table(results: list[tuple[Path, Verdict]], failed: list[tuple[Path, RotaError]]) -> list[str]:
    lines = []
    for file, verdict in results:
        took = verdict.statistics
        sites = f"{took.concrete_sites}/{took.sites}"
        codes = " ".join(sorted({finding.code for finding in verdict.findings}))
        lines.append(
            f"{verdict.status.value:12} {took.seconds:6.1f} s {sites:>9} LDS  {file.name}:{verdict.kernel}  {codes}"
        )
    lines += [f"{'not read':12} {file.name}  {error.findings[0].message}" for file, error in failed]
    counts = Counter(verdict.status.value for _, verdict in results)
    proved = counts.pop("proved", 0)
    parts = [f"{proved} of {several(len(results), 'kernel')} proved"]
    parts += [f"{count} {status}" for status, count in sorted(counts.items())]
    parts += [f"{several(len(failed), 'file')} not read"] if failed else []
    return [*lines, ", ".join(parts)]


@click.command(
    epilog="\b\nExamples:\n  rota check ping_pong\n  rota check four_wave --set waits.auto_drain=true --notes"
    "\n  rota check gemm_small --set shape.depth=128 --json\n  rota check ping_pong --format github"
)
@kernel_argument
@set_option
@click.option("--notes", is_flag=True, help="Also print notes and warnings, what a repair added, and the certificate.")
@click.option("--replay", "code", metavar="CODE", help="Execute the interleaving that shows a finding, as written.")
@click.option("--needed", is_flag=True, help="Of machine code: which waits and barriers the proof needs.")
@click.option("--suggest", is_flag=True, help="Of machine code: waits and barriers with which it would be proved.")
@block_option
@device_option
@compiler_option
@proof_options
@format_option
def check(
    *,
    kernel: str,
    settings: tuple[str, ...],
    notes: bool,
    code: str | None,
    needed: bool,
    suggest: bool,
    block: Block | None,
    device: str | None,
    compiler: str | None,
    wishes: Wishes,
) -> None:
    """Prove KERNEL right for every trip count.

    And for every interleaving of its waves.  By default `sync` is "repair", which adds the fewest barriers, then the
    fewest waits, that it finds to make the proof hold; with `--set sync=strict` what is missing is an error.  Exit
    status: 0 proved, 1 findings, 2 usage, 3 internal error.

    KERNEL may be machine code of any origin: a code object (kernel.co, kernel.hsaco:name), assembly (kernel.s), a HIP
    source with --device, a folder or a pattern.  It is followed on all paths, without arguments: no two waves may race
    in LDS, and no register may be used before its wait.  Findings have a level (shown, required, one source,
    undecided); those that are required or shown fail the run, or those that --fail-on names.
    """
    if names_machine_code(kernel):
        check_machine_code(
            kernel, block=block, device=device, compiler=compiler, asked=Asked(needed, suggest), wishes=wishes
        )
        return
    if needed or suggest or not wishes.usual:
        raise click.UsageError("this option is for machine code; schedules have `sync` and `--set`")
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
