"""`rota lint`: what makes a compiled kernel slow, by its machine code; and what a new build made worse."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import click

from rota.cli.code_file import Block, block_option, compiler_option, device_option, dynamic_lds_option, find_code
from rota.cli.commands.check import shorten_paths
from rota.cli.output import give, json_option, progress
from rota.errors import Finding, RotaError, Severity, several

if TYPE_CHECKING:
    from rota.isa.binary.code_object import CodeObject
    from rota.lint.kernel_report import BuildComparison, LintOptions, LintReport
    from rota.targets.device import Device

_MOST_FILLS = 4


class FailOn(enum.Enum):
    """The least findings that fail a run."""

    NEVER = "never"
    WARNING = "warning"
    NOTE = "note"

    def fails(self, finding: Finding) -> bool:
        if self is FailOn.NEVER:
            return False
        return self is FailOn.NOTE or finding.severity is not Severity.NOTE


@click.command(
    epilog="\b\nExamples:\n  rota lint kernel.hsaco\n  rota lint kernel.hip --device mi355x --block 256 --all"
    "\n  rota lint new.hsaco --against old.hsaco"
)
@click.argument("kernel")
@click.option("--against", metavar="OLD", help="An older build: what became worse fails the run.")
@click.option("--needed", is_flag=True, help="Which waits and barriers the proof doesn't need; takes many proofs.")
@click.option("--all", "everything", is_flag=True, help="Print notes in full, and each LDS instruction.")
@click.option(
    "--fail-on", type=click.Choice([each.value for each in FailOn]), default=FailOn.NEVER.value, show_default=True,
    help="The least findings that fail the run.",
)  # fmt: skip
@dynamic_lds_option
@block_option
@device_option
@compiler_option
@json_option
@click.pass_context
def lint(
    ctx: click.Context,
    *,
    kernel: str,
    against: str | None,
    needed: bool,
    everything: bool,
    fail_on: str,
    dynamic_lds: int | None,
    block: Block | None,
    device: str | None,
    compiler: str | None,
) -> None:
    """Print what makes KERNEL slow, as far as its machine code says it.

    KERNEL is a code object, assembly or HIP source, or FILE:name of one kernel in it.  Bank conflicts of each LDS
    instruction follow from the addresses that the proof knows and the rule of the device; those whose rule or address
    isn't known are counted by name.  The clocks of the main loop are predicted, not measured, with conflicts and
    without.  Spills, copies between register files, occupancy, priorities and narrow accesses are read from the code.
    Findings are warnings and notes: none says that a kernel is wrong.  With --against, the run fails if the new build
    spills more, conflicts more, holds fewer workgroups or is predicted to be slower.
    """
    code, name = find_code(kernel, device=device, compiler=compiler)
    options = _options(code, device, block, dynamic_lds, needed=needed)
    reports, refused = _lint_all(code, name, options)
    texts = [_describe(each, everything=everything) for each in reports]
    compared: list[BuildComparison] = []
    if against is not None:
        old_code, old_name = find_code(against, device=device, compiler=compiler)
        older, old_refused = _lint_all(old_code, old_name, options)
        compared, unpaired = _compare(older, reports)
        texts.append(_describe_comparison(compared, unpaired))
        refused = (*refused, *old_refused)
    failing = FailOn(fail_on)
    worse = any(each.is_worse for each in compared)
    failed = bool(refused) or worse or any(failing.fails(found) for each in reports for found in each.findings)
    give(
        "\n\n".join((*texts, *map(str, refused))),
        {
            "ok": not failed,
            "kernels": [_as_data(each) for each in reports],
            "compared": [
                {
                    "name": each.name,
                    "worse": each.is_worse,
                    "findings": each.findings,
                    "not_compared": each.not_compared,
                }
                for each in compared
            ],
            "unread": refused,
        },
    )
    if failed:
        ctx.exit(1)


def _options(
    code: CodeObject, device: str | None, block: Block | None, dynamic_lds: int | None, *, needed: bool
) -> LintOptions:
    from rota.lint.kernel_report import LintOptions

    return LintOptions(device=_find_device(code, device), block=block, dynamic_lds=dynamic_lds, needed=needed)


def _find_device(code: CodeObject, device: str | None) -> Device | None:
    """The one that is named, or one of the code's architecture, if there is any."""
    from rota.targets.registry import device_named

    if device is not None:
        return device_named(device)
    try:
        return device_named(code.arch)
    except RotaError:  # an architecture of which no device is known
        return None


def _lint_all(code: CodeObject, name: str | None, options: LintOptions) -> tuple[list[LintReport], tuple[Finding, ...]]:
    """The reports of all kernels, and why others have none."""
    from rota.lint.kernel_report import lint_kernel

    reports: list[LintReport] = []
    refused: list[Finding] = []
    for each in [code.kernel(name)] if name else list(code.kernels):
        with progress(f"reading {each.name}"):
            try:
                reports.append(lint_kernel(code, each.name, options))
            except RotaError as error:
                refused += error.findings
    return reports, tuple(refused)


def _compare(old: list[LintReport], new: list[LintReport]) -> tuple[list[BuildComparison], list[str]]:
    """Builds of kernels of one name, or the only ones; the names of those that have no other build."""
    from rota.lint.kernel_report import compare_reports

    if len(old) == len(new) == 1:
        return [compare_reports(old[0], new[0])], []
    before = {each.name: each for each in old}
    found = [compare_reports(before.pop(each.name), each) for each in new if each.name in before]
    compared = {each.name for each in found}
    return found, [*before, *(each.name for each in new if each.name not in compared)]


def _describe(report: LintReport, *, everything: bool) -> str:
    facts, verdict = report.facts, report.verdict
    lines = [f"{report.name} ({facts.arch}): {several(verdict.waves, 'wave')} in a workgroup"]
    if report.occupancy is not None:
        lines.append(f"  occupancy: {report.occupancy}")
    lines += _describe_sites(report, everything=everything)
    for loop in report.loops:
        counts = (
            (len(loop.operations), "instruction"), (loop.matrix, "matrix instruction"),
            (len(loop.sites), "LDS access"), (len(loop.private), "access of private memory"),
            (len(loop.copies), "AGPR copy"),
        )  # fmt: skip
        said = ", ".join(f"{count} {_plural(word, count)}" for count, word in counts if count)
        lines.append(f"  loop {loop.place}, depth {loop.depth}: {said}")
    lines += _describe_clocks(report)
    shown = [each for each in report.findings if everything or each.severity is not Severity.NOTE]
    lines += [str(shorten_paths(each)) for each in shown]
    if len(shown) < len(report.findings):
        rest = [each for each in report.findings if each not in shown]
        lines.append(f"{several(len(rest), 'note')} more ({_count_codes(rest)}): --all")
    return "\n".join(lines)


def _plural(word: str, count: int) -> str:
    if count == 1:
        return word
    head, _, tail = word.partition(" of ")
    ends = "es" if head.endswith("ss") else "s"
    return (f"{head[:-1]}ies" if head.endswith("py") else head + ends) + (f" of {tail}" if tail else "")


def _count_codes(findings: list[Finding]) -> str:
    codes = sorted({each.code for each in findings})
    return ", ".join(f"{code} {sum(each.code == code for each in findings)}" for code in codes)


def _describe_sites(report: LintReport, *, everything: bool) -> list[str]:
    if not report.sites:
        return []
    many = several(len(report.sites), "instruction")
    lines = [f"  LDS: {many}, conflicts of {report.exact} known exactly, {report.losing} lose clocks"]
    lines += [f"    {count}: {why}" for why, count in report.count_others()]
    if report.verdict.ended_early:
        lines.append("    the proof ended early: conflicts are those of the addresses that it saw")
    for each in report.sites if everything else ():
        ways = f"{each.worst.ways} ways, " if each.worst.extra else ""
        ruled = f"{ways}{each.free_clocks + each.worst.extra} clocks"
        banks = f"at least {each.bound.clocks} clocks" if each.bound.clocks else each.certainty.value
        lines.append(
            f"    {each.instruction.place} {each.instruction.text}: {ruled if each.certainty.is_counted else banks}"
        )
    return lines


def _describe_clocks(report: LintReport) -> list[str]:
    found = report.clocks
    if found is None:
        return [f"  main loop: no predicted clocks: {report.not_lifted}"]
    units = ", ".join(f"{each.unit} {each.clocks:.0f}" for each in found.bounds)
    fills = ", ".join(f"{each.unit} {each.clocks:.0f}" for each in found.fills[:_MOST_FILLS])
    head = f"main loop {found.place}, predicted for {found.device}, not measured: {found.clocks:.0f} clocks a trip"
    lines = [f"  {head}, bound by {found.bound_by}", f"    bounds: {units}"]
    if fills:
        lines.append(f"    what fills the rest: {fills}")
    if found.cost:
        least = "at least " if any(not each.certainty.is_counted for each in report.sites) else ""
        lines.append(f"    bank conflicts cost {least}{found.cost:.0f} of these clocks")
    return [*lines, f"    assumed: {found.assumed}"]


def _describe_comparison(compared: list[BuildComparison], unpaired: list[str]) -> str:
    lines = []
    for each in compared:
        verdict = "worse than the older build" if each.is_worse else "not worse than the older build"
        lines.append(f"{each.name}: {verdict}")
        lines += map(str, each.findings)
        lines += [f"  not compared: {why}" for why in each.not_compared]
    lines += [f"{name}: only one of the builds has it" for name in unpaired]
    return "\n".join(lines)


def _as_data(report: LintReport) -> dict[str, Any]:
    facts, found = report.facts, report.clocks
    return {
        "name": report.name,
        "arch": facts.arch,
        "verdict": report.verdict.status.value,
        "ended_early": report.verdict.ended_early,
        "waves": report.verdict.waves,
        "registers": facts.vgprs,
        "spilled": facts.spills,
        "private_bytes": facts.private_bytes,
        "occupancy": None if report.occupancy is None else report.occupancy.workgroups,
        "lds": [
            {
                "instruction": each.instruction.text, "place": each.instruction.place, "known": each.certainty.value,
                "ways": each.worst.ways if each.certainty.is_counted else None,
                "extra_clocks": each.worst.extra if each.certainty.is_counted else None,
                "least_clocks": each.bound.clocks or None,
            }
            for each in report.sites
        ],
        "loops": [
            {
                "place": each.place, "depth": each.depth, "instructions": len(each.operations),
                "private": len(each.private), "agpr_copies": len(each.copies), "extra_clocks": each.extra_clocks,
            }
            for each in report.loops
        ],
        "predicted": None if found is None else {
            "place": found.place, "device": found.device, "clocks": found.clocks, "without_conflicts": found.clean,
            "bound_by": found.bound_by, "bounds": dict(found.bounds), "fills": dict(found.fills),
            "assumed": found.assumed,
        },
        "not_predicted": report.not_lifted,
        "findings": report.findings,
    }  # fmt: skip
