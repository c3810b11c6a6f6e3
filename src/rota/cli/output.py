"""What a command gives: takes values, gives text or JSON on stdout, files, and colour where it is wanted."""

from __future__ import annotations

import enum
import errno
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import click

from rota.cli.annotations import annotated
from rota.cli.sarif import as_sarif
from rota.errors import Finding

Command = TypeVar("Command", bound=Callable[..., object])

JSON = "rota.json"
"""Under this name the context remembers that JSON was asked for, so that errors come as JSON too."""

GITHUB = "rota.github"
"""The same for annotations of GitHub."""

SARIF = "rota.sarif"
"""The same for SARIF."""

PICTURE = "rota.picture"
"""The file that pictures of races go to, if any."""

_COLUMNS, _FEWEST_COLUMNS, _MOST_COLUMNS = 100, 60, 240

_COLOURS = {"ok": "green", "error": "red", "warning": "yellow", "note": "blue"}
_HEAD = re.compile(r"^(ok|error|warning|note)(?=  |\[)", re.MULTILINE)


def json_option(command: Command) -> Command:
    """Adds `--json`."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[JSON] = value or context.meta.get(JSON, False)  # which --format may have said

    return click.option("--json", is_flag=True, callback=remember, expose_value=False, help="Data instead of text.")(
        command
    )


def format_option(command: Command) -> Command:
    """Adds `--format`, and `--json` for short."""

    def remember(context: click.Context, _: click.Parameter, value: str) -> None:
        context.meta[GITHUB] = value == "github"
        context.meta[SARIF] = value == "sarif"
        if value == "json":
            context.meta[JSON] = True

    def keep(context: click.Context, _: click.Parameter, value: Path | None) -> None:
        context.meta[PICTURE] = value

    drawn = click.option(
        "--picture",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=keep,
        expose_value=False,
        help="Write a page with the findings, and a picture of each race between two waves.",
    )(command)
    return click.option(
        "--format",
        type=click.Choice(["text", "json", "github", "sarif"]),
        default="text",
        callback=remember,
        expose_value=False,
        help="github: annotations of the lines that findings are about; sarif: a log for code scanning.",
    )(json_option(drawn))


def give(
    text: str,
    data: object,
    found: Sequence[tuple[str, Finding]] | None = None,
    rendered: Callable[[], str] | None = None,
) -> None:
    """Data on stdout: as text, or as JSON, annotations or SARIF where that was asked for.

    `found` are the findings with what each is about, a file or `file:kernel`, where the data don't hold them as such.
    A terminal gets the text as it is `rendered`, if it can be.
    """
    meta = click.get_current_context().meta
    told = _found(data) if found is None else found
    picture = meta.get(PICTURE)
    if picture is not None and told is not None:
        from rota.view.draw_race import race_page

        write(picture, race_page(told))
    if meta.get(JSON, False):
        shown = json.dumps(plain(data), indent=2, ensure_ascii=False)
    elif meta.get(SARIF, False) and told is not None:
        shown = json.dumps(as_sarif(told), indent=2, ensure_ascii=False)
    elif meta.get(GITHUB, False) and told is not None and isinstance(data, Mapping):
        findings = annotated((finding for _, finding in told), [subject for subject, _ in told])
        shown = "\n".join([*([text] if data["ok"] or found is not None else []), *findings])
    elif rendered is not None and sys.stdout.isatty():
        shown = rendered()
    else:
        shown = coloured(text)
    try:
        click.echo(shown)
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        raise click.UsageError(f"stdout can't be written: {error.strerror or error}") from error


def _found(data: object) -> Sequence[tuple[str, Finding]] | None:
    if not isinstance(data, Mapping) or "findings" not in data:
        return None
    return [("", finding) for finding in data["findings"]]


def text_columns() -> int:
    """How wide a picture in the terminal may be: as wide as that is; 100 columns where there is none."""
    if not sys.stdout.isatty():
        return _COLUMNS
    return min(max(shutil.get_terminal_size().columns, _FEWEST_COLUMNS), _MOST_COLUMNS)


def tell(text: str) -> None:
    """What is not data, on stderr."""
    click.echo(coloured(text), err=True)


def coloured(text: str) -> str:
    """The first word of every finding in its colour; click drops it where no terminal or NO_COLOR says so."""
    return _HEAD.sub(lambda found: click.style(found[1], fg=_COLOURS[found[1]], bold=True), text)


def in_full(findings: tuple[Finding, ...]) -> str:
    """Findings as text, a blank line between two."""
    return "\n\n".join(str(finding) for finding in findings)


def write(path: Path, content: str | bytes) -> None:
    """A file; where it can't be written, a usage error."""
    try:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise click.UsageError(f"{path} can't be written: {error.strerror or error}") from error


def plain(value: Any) -> Any:  # noqa: ANN401  # any value becomes JSON
    """A value as JSON has it: dataclasses and named tuples as objects, by the fields they show, enums by value."""
    if isinstance(value, enum.Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value) if each.repr}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(part) for name, part in zip(value._fields, value, strict=True)}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    has_word = value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and isfinite(value))
    return value if has_word else str(value)
