"""Findings as SARIF 2.1.0: takes findings of kernels, gives the log that code-scanning services read.

The first line of source that a finding is about is its location, the others are related ones; where there is no line,
it is the file that was checked.  Instructions are logical locations.
https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rota.cli.annotations import relative
from rota.cli.baseline import KnownFinding, identity
from rota.errors import CODES, Finding, Severity, SourceLine
from rota.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def as_sarif(found: Iterable[tuple[str, Finding]]) -> dict[str, Any]:
    """One run; each finding comes with what was checked, `file` or `file:kernel`."""
    results = list(found)
    codes = sorted({finding.code for _, finding in results})
    rules = [{"id": code, "shortDescription": {"text": CODES[code]}} for code in codes]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "rota", "semanticVersion": __version__, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(subject, finding, codes) for subject, finding in results],
            }
        ],
    }


def _result(subject: str, finding: Finding, codes: Sequence[str]) -> dict[str, Any]:
    located = [(concern.label, concern.source) for concern in finding.concerns if concern.source is not None]
    file, _, kernel = subject.partition(":")
    first = _location(*located[0]) if located else {"physicalLocation": {"artifactLocation": {"uri": _uri(file)}}}
    logical = [{"name": kernel, "kind": "function"}] if kernel else []
    logical += [{"name": str(concern).removeprefix("  --> "), "kind": "element"} for concern in finding.concerns]
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": str(finding)},
        "locations": [first | ({"logicalLocations": logical} if logical else {})],
        "relatedLocations": [_location(*each) for each in located[1:]],
        "partialFingerprints": {"rota/v1": fingerprint(identity(subject, finding))},
    }


def fingerprint(known: KnownFinding) -> str:
    """The same for a finding as long as code, kernel and both ends are."""
    return "|".join((known.kernel, known.code, *known.ends))


def _location(label: str, line: SourceLine) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": _uri(line.file)}, "region": {"startLine": max(1, line.line)}}
    return {"physicalLocation": place, "message": {"text": label}}


def _uri(file: str) -> str:
    """From the root of the checkout; elsewhere, as a file's URI."""
    told = relative(file)
    return Path(told).as_uri() if Path(told).is_absolute() else Path(told).as_posix()
