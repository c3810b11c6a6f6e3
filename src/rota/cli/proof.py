"""`rota check FILE` of machine code: takes files, folders and patterns, gives a verdict about each kernel."""

from __future__ import annotations

import glob
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.cli.advice import NO_ADVICE, Advice, Asked, advise
from rota.cli.code_file import OBJECTS, read_code, split_name
from rota.cli.output import give, in_full
from rota.cli.progress import progress
from rota.errors import RotaError

if TYPE_CHECKING:
    from rota.isa.binary.code_object import CodeObject
    from rota.prove.verdict import Verdict


def check_machine_code(
    text: str, *, block: int | None, device: str | None, compiler: str | None, asked: Asked = NO_ADVICE
) -> None:
    """Proves every kernel; the exit status is 0 only if all are proved."""
    place, name = split_name(text)
    files = _files(place)
    if not files:
        raise click.UsageError(f"there is no code object {place}")
    results: list[tuple[Path, Verdict]] = []
    advice: list[Advice] = []
    failed: list[tuple[Path, RotaError]] = []
    for number, file in enumerate(files, 1):
        with progress(f"proving {file.name} ({number} of {len(files)})"):
            try:
                code = read_code(file, device=device, compiler=compiler)
                verdicts = _verdicts(code, name, block)
                results += [(file, each) for each in verdicts]
            except RotaError as error:  # one damaged file doesn't hide the others
                failed.append((file, error))
                continue
        if any(asked):
            advice += [advise(code, each, asked, block) for each in verdicts]
    text = "\n".join(_table(results, failed)) if len(files) > 1 else _report(results, failed)
    give(
        "\n\n".join((text, *(each.text for each in advice))),
        {
            "ok": not failed and all(each.proved for _, each in results),
            "kernels": [{"file": str(file), "verdict": replace(verdict, remedies=())} for file, verdict in results],
            **({"advice": advice} if advice else {}),
            "unread": [{"file": str(file), "findings": error.findings} for file, error in failed],
        },
    )
    if failed or not all(each.proved for _, each in results):
        click.get_current_context().exit(1)


def _files(place: str) -> list[Path]:
    if Path(place).is_dir():
        return sorted(each for each in Path(place).rglob("*") if each.suffix in OBJECTS)
    return sorted(map(Path, glob.glob(place, recursive=True))) if glob.has_magic(place) else [Path(place)]  # noqa: PTH207  # patterns with a folder


def _verdicts(code: CodeObject, name: str | None, block: int | None) -> tuple[Verdict, ...]:
    from rota.prove.proved_object import prove_object

    return prove_object(code, name, block=block)


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
    count = sum(verdict.proved for _, verdict in results)
    return [*lines, f"{count} of {len(results)} kernels proved" + (f", {len(failed)} files not read" if failed else "")]
