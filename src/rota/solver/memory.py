"""What searches found before: takes a question, gives the answer that was kept for it, to be checked like a new one.

An answer is kept under the digest of its question, of rota's own code and of the solver's version: a file of JSON in
the user's cache folder (`$XDG_CACHE_HOME/rota`, else `~/.cache/rota`), which may be deleted at any time.  Nothing in it
is believed: whoever recalls an answer checks and proves it as if a search had just found it, and a file that can't be
read is no answer.  `ROTA_CACHE` names another folder; `ROTA_CACHE=off` keeps and recalls nothing.  Only the command
remembers; a library call does inside `remembering()`.
"""

from __future__ import annotations

import enum
import hashlib
import importlib.metadata
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

from rota.version import __version__

SETTING = "ROTA_CACHE"
_FORMAT = 1
_ON: ContextVar[bool] = ContextVar("remembering", default=False)
_READ_BY_SEARCHES = ("cycles", "order", "program", "solver", "sync", "targets", "values")


@contextmanager
def remembering() -> Iterator[None]:
    """Let searches in the block recall earlier answers, and keep new ones."""
    token = _ON.set(True)
    try:
        yield
    finally:
        _ON.reset(token)


def remembers() -> bool:
    return _folder() is not None


def recall(question: object) -> object | None:
    """What was kept for a question; None if nothing was, or if it can't be read."""
    file = _file(question)
    if file is None:
        return None
    with suppress(OSError, ValueError):
        answer: object = json.loads(file.read_text(encoding="utf-8"))
        return answer
    return None


def keep(question: object, answer: object) -> None:
    """Keep an answer, made of JSON's own types; does nothing where nothing can be written."""
    file = _file(question)
    if file is None:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as written:
            json.dump(answer, written)
        Path(written.name).replace(file)  # at once, so that nobody reads half of it


def _file(question: object) -> Path | None:
    folder = _folder()
    if folder is None:
        return None
    asked = json.dumps([_FORMAT, __version__, _code(), canonical(question)], sort_keys=True)
    return folder / f"{hashlib.sha256(asked.encode()).hexdigest()}.json"


def _folder() -> Path | None:
    setting = os.environ.get(SETTING, "")
    if not _ON.get() or setting == "off":
        return None
    if setting:
        return Path(setting)
    with suppress(RuntimeError):  # no home
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rota"
    return None


@cache
def _code() -> str:
    """The digest of everything an answer may depend on besides its question."""
    return hashlib.sha256(f"{code_digest(_READ_BY_SEARCHES)}{solver_version()}".encode()).hexdigest()


@cache
def code_digest(folders: tuple[str, ...], without: frozenset[str] = frozenset()) -> str:
    """The digest of rota's own code in some of its folders, except modules of certain names."""
    found = hashlib.sha256()
    root = Path(__file__).parent.parent
    for folder in folders:
        for file in sorted((root / folder).rglob("*.py")):
            if file.stem not in without:
                found.update(file.read_bytes())
    return found.hexdigest()


@cache
def solver_version() -> str:
    """The version of the installed solver; empty if there is none."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("ortools")
    return ""


def canonical(value: object) -> object:
    """A value as JSON that is the same in every process: sets are sorted, fields that don't count are dropped."""
    if value is None or type(value) in {str, int, float, bool}:
        return value
    if isinstance(value, enum.Enum | type):
        return value.name if isinstance(value, enum.Enum) else value.__qualname__
    if is_dataclass(value):
        own = {field.name: canonical(getattr(value, field.name)) for field in fields(value) if field.compare}
        return [type(value).__qualname__, own]
    if isinstance(value, Mapping):
        return sorted(([canonical(key), canonical(of)] for key, of in value.items()), key=json.dumps)
    if isinstance(value, set | frozenset):
        return sorted((canonical(each) for each in value), key=json.dumps)
    if isinstance(value, tuple | list | range):
        return [canonical(each) for each in value]
    raise TypeError(f"{type(value).__qualname__} can't be part of a question")
