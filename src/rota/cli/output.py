"""Output of commands: text, JSON, SARIF, annotations for GitHub, files, progress and colour."""

from __future__ import annotations

import enum
import errno
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import chain, repeat
from math import isfinite
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Any, TypeVar

import click

from rota.errors import CODES, Finding, Severity, SourceLine
from rota.fleet.known_finding import FORMAT, KnownFinding, identify, relative, split_subject
from rota.version import __version__

# Annotations for GitHub.
#
# https://docs.github.com/actions/reference/workflow-commands-for-github-actions: a message's line ends and per
# cents are escaped, and in its properties commas and colons too.

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning"}  # notes are legal
_DATA = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_PROPERTY = (*_DATA, (":", "%3A"), (",", "%2C"))


def annotate(findings: Iterable[Finding], subjects: Iterable[str] = ()) -> Iterator[str]:
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
    told = ",".join(f"{name}={_escape(value, _PROPERTY)}" for name, value in properties.items())
    return f"::{command} {told}::{_escape(message, _DATA)}"


def _escape(text: str, table: Iterable[tuple[str, str]]) -> str:
    for plain, code in table:
        text = text.replace(plain, code)
    return text


# Findings that are known, in a file that is reviewed like code.


def format_baseline(found: Iterable[tuple[str, Finding]]) -> str:
    """A baseline's text: one line a finding, sorted, so that a difference can be reviewed."""
    known = sorted(identify(subject, each) for subject, each in found if each.severity is not Severity.NOTE)
    lines = ",\n".join("    " + json.dumps(each._asdict(), ensure_ascii=False) for each in known)
    return f'{{\n  "rota_baseline": {FORMAT},\n  "known": [\n{lines}\n  ]\n}}\n'


def read_baseline(path: Path) -> tuple[KnownFinding, ...]:
    """What a baseline says; a usage error that says where it is malformed."""
    try:
        document = json.loads(path.read_text())
        if document["rota_baseline"] != FORMAT:
            raise click.UsageError(
                f"{path} is a baseline of format {document['rota_baseline']}, not {FORMAT}: write it again, with "
                "--write-baseline"
            )
        known = tuple(map(_known, document["known"]))
    except OSError as error:
        raise click.UsageError(f"{path} can't be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise click.UsageError(f"{path} is no baseline: {error!r}") from error
    return known


def _known(entry: dict[str, Any]) -> KnownFinding:
    file, kernel, code, *ends = parts = (entry["file"], entry["kernel"], entry["code"], *entry["ends"])
    if not all(isinstance(part, str) for part in parts):
        raise TypeError("a file, a kernel, a code or an end is not a string")
    return KnownFinding(file, kernel, code, tuple(ends))


# Findings as SARIF 2.1.0.
#
# The first line of source that a finding is about is its location, the others are related ones; where there is no
# line, it is the file that was checked. Instructions are logical locations.
# https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html

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
                "tool": {
                    "driver": {"name": "rota", "version": __version__, "semanticVersion": __version__, "rules": rules}
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(subject, finding, codes) for subject, finding in results],
            }
        ],
    }


def _result(subject: str, finding: Finding, codes: Sequence[str]) -> dict[str, Any]:
    located = [(concern.label, concern.source) for concern in finding.concerns if concern.source is not None]
    file, kernel = split_subject(subject)
    first = _location(*located[0]) if located else _place_of_instruction(file, finding)
    logical = [{"name": kernel, "kind": "function"}] if kernel else []
    logical += [{"name": str(concern).removeprefix("  --> "), "kind": "element"} for concern in finding.concerns]
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": str(finding)},
        "locations": [first | ({"logicalLocations": logical} if logical else {})],
        "relatedLocations": [_location(*each) for each in located[1:]],
        "partialFingerprints": {"rota/v2": identify(subject, finding).fingerprint},
    }


def _place_of_instruction(file: str, finding: Finding) -> dict[str, Any]:
    """The file that was checked, and the address of the first instruction, where it is known."""
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    address = next((concern.place for concern in finding.concerns if concern.place), "")
    if address:
        place["address"] = {"absoluteAddress": int(address, 16), "kind": "instruction"}
    return {"physicalLocation": place}


def _location(label: str, line: SourceLine) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": _uri(line.file)}, "region": {"startLine": max(1, line.line)}}
    return {"physicalLocation": place, "message": {"text": label}}


def _uri(file: str) -> str:
    """From the root of the checkout; elsewhere, as a file's URI."""
    told = relative(file)
    return Path(told).as_uri() if Path(told).is_absolute() else Path(told).as_posix()


# Progress of long work.
#
# Work that counts what it has done gets a bar.

_PATIENCE = 1.0
_TICK = 0.25
_CLEAR = "\r\x1b[K"
_WIDTH = 30


class Counted:
    """How much is done, and of how much: called by the work, read by the line."""

    def __init__(self, what: str) -> None:
        self._done, self._whole, self._what = 0, 0, what

    def __call__(self, done: int, whole: int) -> None:
        """So much is done, of at most this much where that is known."""
        self._done, self._whole = done, whole

    def __str__(self) -> str:
        if not self._whole:
            return f"{self._done} {self._what}, " if self._done else ""
        filled = _WIDTH * self._done // self._whole
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {self._done} of {self._whole} {self._what}, "


@contextmanager
def progress(doing: str, what: str = "workgroups") -> Iterator[Counted]:
    """While the block runs, with a bar that counts `what`; nothing where stderr is no terminal."""
    counted = Counted(what)
    if not sys.stderr.isatty():
        yield counted
        return
    done = Event()
    ticker = Thread(target=_tick, args=(doing, counted, done), daemon=True)
    ticker.start()
    try:
        yield counted
    finally:
        done.set()
        ticker.join()


def _tick(doing: str, counted: Counted, done: Event) -> None:
    started = perf_counter()
    if done.wait(_PATIENCE):
        return
    while not done.wait(_TICK):
        click.echo(f"{_CLEAR}{doing}: {counted}{perf_counter() - started:.0f} s", nl=False, err=True)
    click.echo(_CLEAR, nl=False, err=True)


Command = TypeVar("Command", bound=Callable[..., object])

JSON = "rota.json"
"""Under this name the context remembers that JSON was asked for, so that errors come as JSON too."""

GITHUB = "rota.github"
"""The same for annotations of GitHub."""

SARIF = "rota.sarif"
"""The same for SARIF."""

SARIF_FILE = "rota.sarif_file"
"""The file that a SARIF log goes to, beside the answer, if any."""

PICTURE = "rota.picture"
"""The file that pictures of races go to, if any."""

_COLUMNS, _FEWEST_COLUMNS, _MOST_COLUMNS = 100, 60, 240

_COLOURS = {"ok": "green", "error": "red", "warning": "yellow", "note": "blue"}
_HEAD = re.compile(r"^(ok|error|warning|note)(?=  |\[)", re.MULTILINE)


def json_option(command: Command) -> Command:
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

    def keep(key: str, context: click.Context, _: click.Parameter, value: Path | None) -> None:
        context.meta[key] = value

    drawn = click.option(
        "--picture",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=partial(keep, PICTURE),
        expose_value=False,
        help="Write a page with the findings, and a picture of each race between two waves.",
    )(command)

    drawn = click.option(
        "--sarif",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=partial(keep, SARIF_FILE),
        expose_value=False,
        help="Write a SARIF log, whatever the format of the answer is.",
    )(drawn)
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
        from rota.view.race import race_page

        write(picture, race_page(told))
    if (log := meta.get(SARIF_FILE)) is not None:
        write(log, json.dumps(as_sarif(told or ()), indent=2, ensure_ascii=False) + "\n")
    if meta.get(JSON, False):
        shown = json.dumps(plain(data), indent=2, ensure_ascii=False)
    elif meta.get(SARIF, False) and told is not None:
        shown = json.dumps(as_sarif(told), indent=2, ensure_ascii=False)
    elif meta.get(GITHUB, False) and told is not None and isinstance(data, Mapping):
        findings = annotate((finding for _, finding in told), [subject for subject, _ in told])
        shown = "\n".join([*([text] if data["ok"] or found is not None else []), *findings])
    elif rendered is not None and sys.stdout.isatty():
        shown = rendered()
    else:
        shown = colour_severities(text)
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
    click.echo(colour_severities(text), err=True)


def colour_severities(text: str) -> str:
    """The first word of every finding in its colour; click drops it where no terminal or NO_COLOR says so."""
    return _HEAD.sub(lambda found: click.style(found[1], fg=_COLOURS[found[1]], bold=True), text)


def in_full(findings: tuple[Finding, ...]) -> str:
    return "\n\n".join(str(finding) for finding in findings)


def write(path: Path, content: str | bytes) -> None:
    """A file; where it can't be written, a usage error."""
    try:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise click.UsageError(f"{path} can't be written: {error.strerror or error}") from error


def write_files(folder: Path, files: Iterable[tuple[str, str | bytes]]) -> list[str]:
    """Files by their names within a folder, which is made if it isn't there; gives their paths."""
    _make_folder(folder)
    written = []
    for name, content in files:
        path = folder / name
        _make_folder(path.parent)
        write(path, content)
        written.append(str(path))
    return written


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"{folder} can't be made: {error.strerror or error}") from error


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
