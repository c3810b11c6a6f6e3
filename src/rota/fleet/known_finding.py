"""By what a finding is known again: in a baseline, in code scanning, between two runs.

A finding is the same if its file, its kernel, its code and its ends are. An end is an opcode and the text of its line
of source; without source, the whole instruction. Line numbers, registers, waves and bytes may change, so that a comment
or a line that moves changes nothing. What was found twice is known twice.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from rota.errors import Concern, Finding, Severity

FORMAT = 2


class KnownFinding(NamedTuple):
    """What makes two findings the same."""

    file: str
    kernel: str
    code: str
    ends: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()[:32]


def identify(subject: str, finding: Finding) -> KnownFinding:
    """By which a finding about `subject`, a file or `file:kernel`, is known again."""
    file, kernel = split_subject(subject)
    return KnownFinding(relative(file), kernel, finding.code, tuple(map(_identify_end, finding.concerns)))


def split_subject(subject: str) -> tuple[str, str]:
    """A file and a kernel; names of kernels have no colon that follows a suffix of a file."""
    for at, letter in enumerate(subject):
        if letter == ":" and "." in Path(subject[:at]).name:
            return subject[:at], subject[at + 1 :]
    return subject, ""


def _identify_end(concern: Concern) -> str:
    source = concern.source
    if source is None:
        return concern.label
    opcode = concern.label.partition(" ")[0]
    text = " ".join(source.text.split()) or f"line {source.line}"  # nobody could read the file
    return f"{opcode} at {Path(source.file).name}: {text}"


def relative(file: str) -> str:
    """As GitHub knows the file: from the root of the checkout."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    path = Path(file).resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file


def new_findings(
    found: Iterable[tuple[str, Finding]], known: Iterable[KnownFinding]
) -> tuple[tuple[str, Finding], ...]:
    """Those that are not known; notes are never new."""
    left, new = Counter(known), []
    for subject, finding in found:
        if finding.severity is Severity.NOTE:
            continue
        who = identify(subject, finding)
        if left[who] > 0:
            left[who] -= 1
        else:
            new.append((subject, finding))
    return tuple(new)
