"""The exchange format: takes a compiled schedule, gives versioned JSON, and back an equal schedule or a finding.

The fields of the values are the fields of the document; one that has its default is left out.  Where the author wrote
an op is not said, except in findings.
"""

from __future__ import annotations

import enum
import json
import types
import typing
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any

from rota.compiler.compiled import CompiledSchedule
from rota.declare.vocabulary import DoubleBufferTag, FrameworkTag, LoopTag, SingleBufferTag
from rota.emit.agreement import disagreement
from rota.errors import EmissionError, Finding, RotaError, SourceLine

FORMAT = "rota.schedule"
VERSION = 1

Json = Any  # what json.dumps takes
Hint = Any  # a type as an annotation spells it
Decoded = Any  # a value of such a type

_TAGS: dict[str, type[enum.IntEnum]] = {
    tags.__name__: tags for tags in (DoubleBufferTag, FrameworkTag, LoopTag, SingleBufferTag)
}


def to_json(compiled: CompiledSchedule) -> str:
    """The schedule as a document."""
    return json.dumps({"format": FORMAT, "version": VERSION, "schedule": _encoded(compiled)}, indent=1)


def from_json(text: str) -> CompiledSchedule:
    """The schedule that a document describes, every field checked, and proved again if it says that it is proved."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _malformed("the document", f"not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _malformed("format", f"expected {FORMAT!r}")
    if document.get("version") != VERSION:
        raise _malformed("version", f"expected {VERSION}, got {document.get('version')!r}")
    if set(document) != {"format", "version", "schedule"}:
        raise _malformed("the document", "expected format, version and schedule, and nothing else")
    schedule: CompiledSchedule = _decoded(document["schedule"], CompiledSchedule, "schedule")
    wrong = disagreement(schedule)
    if wrong is not None:
        raise _malformed(f"schedule.{wrong.field}", wrong.message)
    return schedule


def _encoded(value: object) -> Json:
    if isinstance(value, enum.Enum):
        known = _TAGS.get(type(value).__name__)
        if isinstance(value, enum.IntEnum):  # an author's own tags are numbers to everybody else
            return f"{known.__name__}.{value.name}" if known is type(value) else value.value
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _encoded(getattr(value, each.name)) for each in _told(type(value)) if _differs(value, each)}
    if isinstance(value, tuple):
        return [_encoded(each) for each in value]
    return value


def _told(kind: type) -> list[Field[Any]]:
    return [each for each in fields(kind) if each.compare or _hints(kind)[each.name] != SourceLine | None]


def _differs(value: object, each: Field[Any]) -> bool:
    return each.default is MISSING or getattr(value, each.name) != each.default


@cache
def _hints(kind: type) -> dict[str, Any]:
    from rota.order.modulo_schedule import ModuloSchedule
    from rota.program.unroll import Placement
    from rota.sync.repair import Repair

    late = {"ModuloSchedule": ModuloSchedule, "Placement": Placement, "Repair": Repair}
    return typing.get_type_hints(kind, localns=late)


def _decoded(value: object, hint: Hint, path: str) -> Decoded:
    origin: object = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _one_of(value, typing.get_args(hint), path)
    if origin is tuple:
        return _tuple(value, typing.get_args(hint), path)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _member(value, hint, path)
    if is_dataclass(hint) and isinstance(hint, type):
        return _record(value, hint, path)
    if isinstance(hint, type) and issubclass(hint, tuple):  # a NamedTuple
        kinds = tuple(_hints(hint).values())
        return hint(*_tuple(value, kinds, path))
    return _plain(value, hint, path)


def _one_of(value: object, hints: tuple[Any, ...], path: str) -> Decoded:
    if value is None and type(None) in hints:
        return None
    failures: list[EmissionError] = []
    for hint in hints:
        if hint is not type(None):
            try:
                return _decoded(value, hint, path)
            except EmissionError as error:
                failures.append(error)
    raise failures[0]


def _tuple(value: object, hints: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _malformed(path, f"expected a list, got {_shown(value)}")
    if len(hints) == 2 and hints[1] is Ellipsis:
        hints = (hints[0],) * len(value)
    if len(value) != len(hints):
        raise _malformed(path, f"expected {len(hints)} elements, got {len(value)}")
    return tuple(
        _decoded(each, hint, f"{path}[{index}]") for index, (each, hint) in enumerate(zip(value, hints, strict=True))
    )


def _member(value: object, kind: type[enum.Enum], path: str) -> enum.Enum:
    if not isinstance(value, str) or value not in kind.__members__:
        raise _malformed(path, f"expected one of {', '.join(kind.__members__)}, got {_shown(value)}")
    return kind[value]


def _record(value: object, kind: type, path: str) -> Decoded:
    if not isinstance(value, dict):
        raise _malformed(path, f"expected the fields of {kind.__name__}, got {_shown(value)}")
    known = {each.name: each for each in _told(kind)}
    for name in value:
        if name not in known:
            raise _malformed(f"{path}.{name}", f"{kind.__name__} has no such field")
    for name, each in known.items():
        if name not in value and each.default is MISSING:
            raise _malformed(f"{path}.{name}", f"{kind.__name__} needs it")
    hints = _hints(kind)
    arguments = {name: _decoded(each, hints[name], f"{path}.{name}") for name, each in value.items()}
    try:
        return kind(**arguments)
    except RotaError as error:
        raise _malformed(path, error.findings[0].message) from error
    except AssertionError as error:  # a finding with a code that this version doesn't know
        raise _malformed(path, str(error)) from error


def _plain(value: object, kind: Hint, path: str) -> Decoded:
    if kind is int and isinstance(value, str):
        tags, _, name = value.partition(".")
        if tags in _TAGS and name in _TAGS[tags].__members__:
            return _TAGS[tags][name]
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise _malformed(path, f"expected {getattr(kind, '__name__', kind)}, got {_shown(value)}")
    return value


def _shown(value: object) -> str:
    return f"{value!r:.60} ({type(value).__name__})"


def _malformed(path: str, message: str) -> EmissionError:
    return EmissionError(Finding(code="T204", message=f"{path}: {message}", evidence=(("at", path),)))
