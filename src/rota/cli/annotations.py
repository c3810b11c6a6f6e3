"""Annotations for GitHub: takes findings, gives workflow commands that mark the lines of a pull request.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions: a message's line ends and per cents are
escaped, and in its properties commas and colons too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path

from rota.errors import Finding, Severity

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning"}  # notes are legal
_DATA = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_PROPERTY = (*_DATA, (":", "%3A"), (",", "%2C"))


def annotated(findings: Iterable[Finding], subjects: Iterable[str] = ()) -> Iterator[str]:
    """One command for a finding, at the first line that it concerns, and a notice at each other line.

    One that concerns no line names its subject instead, where there is any.
    """
    for finding, subject in zip(findings, chain(subjects, repeat("")), strict=False):
        command = _COMMANDS.get(finding.severity)
        if command is None:
            continue
        lines = list(dict.fromkeys(concern.source for concern in finding.concerns if concern.source is not None))
        title = f"rota {finding.code}"
        if not lines:
            named = f"{title}: {subject}" if subject else title
            yield _command(command, {"title": named}, str(finding))
        for number, line in enumerate(lines):
            where = {"file": relative(line.file), "line": str(line.line), "title": title}
            also = f"the other end of {finding.code} at {relative(lines[0].file)}:{lines[0].line}: {finding.message}"
            yield _command("notice", where, also) if number else _command(command, where, str(finding))


def _command(command: str, properties: dict[str, str], message: str) -> str:
    told = ",".join(f"{name}={_escaped(value, _PROPERTY)}" for name, value in properties.items())
    return f"::{command} {told}::{_escaped(message, _DATA)}"


def _escaped(text: str, table: Iterable[tuple[str, str]]) -> str:
    for plain, code in table:
        text = text.replace(plain, code)
    return text


def relative(file: str) -> str:
    """As GitHub knows the file: from the root of the checkout."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    path = Path(file).resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file
