"""`rota check FILE` of machine code: takes files, folders and patterns, gives a verdict about each kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.cli.advice import NO_ADVICE, Advice, Asked, advise
from rota.cli.baseline import identity, new_findings, written
from rota.cli.code_file import code_files, read_code, split_name
from rota.cli.machine_code import Block
from rota.cli.output import give, in_full, write
from rota.cli.progress import progress
from rota.cli.proof_wishes import Wishes
from rota.errors import Finding, RotaError, ToolchainError, several

if TYPE_CHECKING:
    from rota.isa.binary.code_object import CodeObject
    from rota.prove.verdict import Verdict


Found = tuple[str, Finding]
_EARLY = frozenset({"I401", "I402"})


def check_machine_code(  # noqa: C901
    text: str,
    *,
    block: Block | None,
    device: str | None,
    compiler: str | None,
    asked: Asked = NO_ADVICE,
    wishes: Wishes | None = None,
) -> None:
    """Proves every kernel; the exit status is 0 only if all are proved, or what isn't may pass."""
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
    with progress("proving" if several_files else f"proving {files[0].name}") as counted:
        for number, file in enumerate(files):
            if several_files:
                counted.files(number, len(files))
            try:
                code = read_code(file, device=device, compiler=compiler)
                verdicts = _verdicts(code, name, block, wishes)
                results += [(file, each) for each in verdicts]
            except click.UsageError as error:
                if not several_files:
                    raise
                failed.append((file, ToolchainError(Finding(code="T103", message=error.message))))
                continue
            except RotaError as error:  # one damaged file doesn't hide the others
                failed.append((file, error))
                continue
            if any(asked):
                advice += [advise(code, each, asked, block, wishes.policies()) for each in verdicts]
    found = [(f"{file}:{verdict.kernel}", each) for file, verdict in results for each in verdict.findings]
    found += [(str(file), each) for file, error in failed for each in error.findings]
    if wishes.write_baseline is not None:
        write(wishes.write_baseline, written(found))
        known = tuple(identity(*each) for each in found)
    new = new_findings(_that_count(found, wishes), known)
    compares = wishes.baseline is not None or wishes.write_baseline is not None
    passes = not failed and not new and all(_may_pass(each, wishes, known=compares) for _, each in results)
    lines = _table(results, failed) if several_files else [_report(results, failed)]
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


def _that_count(found: Sequence[Found], wishes: Wishes) -> list[Found]:
    """Notes don't, nor does what ended a proof early where that is allowed."""
    allowed = _EARLY if "inconclusive" in wishes.allow else frozenset[str]()
    return [(subject, each) for subject, each in found if each.code not in allowed]


def _may_pass(verdict: Verdict, wishes: Wishes, *, known: bool) -> bool:
    """Is it proved, or allowed not to be; where findings are compared with known ones, has it any that could be?"""
    return verdict.proved or verdict.status.value in wishes.allow or (known and bool(verdict.findings))


def _verdicts(code: CodeObject, name: str | None, block: Block | None, wishes: Wishes) -> tuple[Verdict, ...]:
    from rota.prove.proved_object import prove_object

    return prove_object(code, name, block=block, policies=wishes.policies(), budget=wishes.budget())


def _report(results: list[tuple[Path, Verdict]], failed: list[tuple[Path, RotaError]]) -> str:
    parts = ["\n\n".join(filter(None, (str(verdict), in_full(verdict.findings)))) for _, verdict in results]
    return "\n\n".join((*parts, *(str(error) for _, error in failed)))


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
