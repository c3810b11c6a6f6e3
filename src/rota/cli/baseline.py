"""Findings that are known: takes those of an earlier run, gives which of today's are new.

A finding is known if its code, its kernel and its ends are: lines of source where there are any, instructions
elsewhere.  Numbers, waves and bytes may change, and so may the place of an instruction in its listing.  What was found
twice is known twice.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import click

from rota.cli.annotations import relative
from rota.errors import Finding, Severity

FORMAT = 1


class KnownFinding(NamedTuple):
    """What makes two findings the same."""

    kernel: str
    code: str
    ends: tuple[str, ...]


def identity(subject: str, finding: Finding) -> KnownFinding:
    """By which a finding about `subject`, a file or `file:kernel`, is known again."""
    kernel = subject.rpartition(":")[2] if ":" in subject else Path(subject).name
    ends = (
        f"{relative(concern.source.file)}:{concern.source.line}" if concern.source else concern.label
        for concern in finding.concerns
    )
    return KnownFinding(kernel, finding.code, tuple(ends))


def new_findings(
    found: Iterable[tuple[str, Finding]], known: Iterable[KnownFinding]
) -> tuple[tuple[str, Finding], ...]:
    """Those that are not known; notes are never new."""
    left, new = Counter(known), []
    for subject, finding in found:
        if finding.severity is Severity.NOTE:
            continue
        who = identity(subject, finding)
        if left[who] > 0:
            left[who] -= 1
        else:
            new.append((subject, finding))
    return tuple(new)


def written(found: Iterable[tuple[str, Finding]]) -> str:
    """A baseline's text: one line a finding, sorted, so that a difference can be reviewed."""
    known = sorted(identity(subject, each) for subject, each in found if each.severity is not Severity.NOTE)
    lines = ",\n".join(
        "    " + json.dumps({"kernel": each.kernel, "code": each.code, "ends": each.ends}, ensure_ascii=False)
        for each in known
    )
    return f'{{\n  "rota_baseline": {FORMAT},\n  "known": [\n{lines}\n  ]\n}}\n'


def read_baseline(path: Path) -> tuple[KnownFinding, ...]:
    """What a baseline says; a usage error that says where it is malformed."""
    try:
        document = json.loads(path.read_text())
        if document["rota_baseline"] != FORMAT:
            raise click.UsageError(f"{path} is a baseline of format {document['rota_baseline']}, not {FORMAT}")
        known = tuple(map(_known, document["known"]))
    except OSError as error:
        raise click.UsageError(f"{path} can't be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise click.UsageError(f"{path} is no baseline: {error!r}") from error
    return known


def _known(entry: dict[str, Any]) -> KnownFinding:
    parts = (entry["kernel"], entry["code"], *entry["ends"])
    if not all(isinstance(part, str) for part in parts):
        raise TypeError("a kernel, a code or an end is not a string")
    return KnownFinding(parts[0], parts[1], parts[2:])
