"""Values as JSON, and back: takes frozen values, gives what `json.dumps` takes; takes that and a type, gives the value.

The fields of the values are the fields of the document; one that has its default is left out.  What is read is bounded:
numbers, and with them everything that is later counted out, have a limit.
"""

from __future__ import annotations

import enum
import reprlib
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache, partial
from itertools import repeat
from typing import Any

from rota.errors import EmissionError, Finding, RotaError, SourceLine
from rota.pipeline.op import OpDesc
from rota.pipeline.vocabulary import DoubleBufferTag, FrameworkTag, SingleBufferTag
from rota.program.entry import Work
from rota.program.kinds import KIND_NAMED, OpKind
from rota.program.lowered import LoweredProgram
from rota.program.origin import Origin

Json = Any  # what json.dumps takes
Hint = Any  # a type as an annotation spells it
Decoded = Any  # a value of such a type
Reader = Callable[[object], Decoded]

LARGEST = 2**31 - 1
"""The largest number that a document may hold, a mask of blocks aside."""

_MASKS = frozenset({"sched_barrier_mask", "drain_lgkm_mask"})  # a bit for each block
_LONGEST_MASK = 4096  # bits
_MOST_ELEMENTS = 50_000  # ten times the entries of the largest programs we know
_MOST_OPS = dict.fromkeys(("body", "ops", "values", "copies", "blocks"), 4096)  # checks compare each with each
_NOT_TOLD = (SourceLine | None, Origin | None, LoweredProgram | None, Work | None, object)
"""Where an op was written, what made it, what a certificate is about, what a wave issues for it, what was declared."""

_TAGS: dict[str, type[enum.IntEnum]] = {
    tags.__name__: tags for tags in (DoubleBufferTag, FrameworkTag, SingleBufferTag)
}


def encoded(value: object) -> Json:
    """A value as JSON knows it."""
    if isinstance(value, OpKind):
        return value.word
    if isinstance(value, enum.Enum):
        known = _TAGS.get(type(value).__name__)
        if isinstance(value, enum.IntEnum):  # an author's own tags are plain numbers elsewhere
            return f"{known.__name__}.{value.name}" if known is type(value) else value.value
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: encoded(getattr(value, each.name)) for each in _told(type(value)) if _differs(value, each)}
    if isinstance(value, tuple):
        return [encoded(each) for each in value]
    return value


def decoded(value: object, hint: Hint, path: str) -> Decoded:
    """The value of a type that stands at a path of the document, or a T204 error that names the path."""
    return _read(_reader(hint), value, path)


def decoded_record(value: object, kind: type, path: str, **ready: object) -> Decoded:
    """The same for a value some fields of which are known already, and so can't be given."""
    return _read(partial(_fields(kind, frozenset(ready)), ready=ready), value, path)


def _read(reader: Reader, value: object, path: str) -> Decoded:
    try:
        return reader(value)
    except _WrongError as wrong:
        raise malformed(path + "".join(reversed(wrong.steps)), wrong.message, **wrong.both) from wrong


def malformed(path: str, message: str, **both: object) -> EmissionError:
    """The T204 error for a path; `both` are what stands there and what should."""
    told = tuple((name, str(value)) for name, value in both.items())
    return EmissionError(Finding(code="T204", message=f"{path}: {message}", evidence=(("at", path), *told)))


@cache
def _told(kind: type) -> tuple[Field[Any], ...]:
    hints = _hints(kind)
    return tuple(each for each in fields(kind) if each.compare or (each.init and hints[each.name] not in _NOT_TOLD))


def _differs(value: object, each: Field[Any]) -> bool:
    return each.default is MISSING or getattr(value, each.name) != each.default


@cache
def _hints(kind: type) -> dict[str, Any]:
    from rota.order.modulo.modulo_schedule import ModuloSchedule
    from rota.sync.repair import Repair

    late = {"ModuloSchedule": ModuloSchedule, "Repair": Repair}
    return typing.get_type_hints(kind, localns=late)


class _WrongError(Exception):
    """What is wrong, and the steps to it, the innermost first; each container adds its own on the way out."""

    def __init__(self, message: str, *steps: str, **both: object) -> None:
        super().__init__(message)
        self.message = message
        self.steps = [*steps]
        self.both = both


@cache
def _reader(hint: Hint) -> Reader:
    """Reads values of a type; made once for each type."""
    origin: object = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _one_of(typing.get_args(hint))
    if origin is tuple:
        return _tuple(typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _member(KIND_NAMED if hint is OpKind else hint.__members__)
    if is_dataclass(hint) and isinstance(hint, type):
        return partial(_fields(hint, frozenset()), ready={})
    if isinstance(hint, type) and issubclass(hint, tuple):  # a NamedTuple
        elements = _tuple(tuple(_hints(hint).values()))
        return lambda value: hint(*elements(value))
    return _plain(hint)


def _one_of(hints: tuple[Hint, ...]) -> Reader:
    readers = [_reader(hint) for hint in hints if hint is not type(None)]
    nothing = type(None) in hints

    def read(value: object) -> Decoded:
        if value is None and nothing:
            return None
        failures: list[_WrongError] = []
        for reader in readers:
            try:
                return reader(value)
            except _WrongError as wrong:
                failures.append(wrong)
        raise failures[0]

    return read


def _tuple(hints: tuple[Hint, ...]) -> Reader:
    any_length = len(hints) == 2 and hints[1] is Ellipsis
    readers = [_reader(hint) for hint in hints if hint is not Ellipsis]

    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _WrongError(f"expected a list, got {_shown(value)}")
        _check_length(value, _MOST_ELEMENTS)
        if not any_length and len(value) != len(readers):
            raise _WrongError(f"expected {len(readers)} elements, got {len(value)}")
        found: list[Any] = []
        try:
            for reader, each in zip(repeat(readers[0]) if any_length else readers, value, strict=False):
                found.append(reader(each))
        except _WrongError as wrong:
            wrong.steps.append(f"[{len(found)}]")
            raise
        return tuple(found)

    return read


def _check_length(value: object, most: int) -> None:
    if isinstance(value, list) and len(value) > most:
        raise _WrongError(f"{len(value)} elements are more than a schedule has", most=most)


def _member(members: Mapping[str, enum.Enum]) -> Reader:
    def read(value: object) -> enum.Enum:
        if not isinstance(value, str) or value not in members:
            raise _WrongError(f"expected one of {', '.join(members)}, got {_shown(value)}")
        return members[value]

    return read


@cache
def _fields(kind: type, known: frozenset[str]) -> Callable[..., Decoded]:
    """Reads a record, but for the fields that are known."""
    hints, told = _hints(kind), [each for each in _told(kind) if each.name not in known]
    readers = {each.name: _tag if (kind, each.name) == (OpDesc, "tag") else _reader(hints[each.name]) for each in told}
    readers |= {name: _mask for name in readers if name in _MASKS}
    needed = [each.name for each in told if each.default is MISSING]

    def read(value: object, ready: Mapping[str, object]) -> Decoded:
        if not isinstance(value, dict):
            raise _WrongError(f"expected the fields of {kind.__name__}, got {_shown(value)}")
        for name in value:
            if name not in readers:
                raise _WrongError(f"{kind.__name__} has no such field", f".{name:.60}")
        for name in needed:
            if name not in value:
                raise _WrongError(f"{kind.__name__} needs it", f".{name}")
        name, found = "", {}
        try:
            for name, each in value.items():
                _check_length(each, _MOST_OPS.get(name, _MOST_ELEMENTS))
                found[name] = readers[name](each)
        except _WrongError as wrong:
            wrong.steps.append(f".{name}")
            raise
        return _made(kind, {**found, **ready})

    return read


def _made(kind: type, found: dict[str, Any]) -> Decoded:
    try:
        return kind(**found)
    except RotaError as error:
        raise _WrongError(error.findings[0].message) from error
    except AssertionError as error:  # a finding with a code that this version doesn't know
        raise _WrongError(str(error)) from error


def _plain(kind: Hint) -> Reader:
    def read(value: object) -> Decoded:
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise _WrongError(f"expected {getattr(kind, '__name__', kind)}, got {_shown(value)}")
        if isinstance(value, str):
            _check_text(value)
        elif isinstance(value, int | float) and not -LARGEST <= value <= LARGEST:
            raise _WrongError(f"{_shown(value)} is more than any schedule has", most=LARGEST)
        return value

    return read


def _check_text(value: str) -> None:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise _WrongError(f"no text: {error}") from error


def _tag(value: object) -> int:
    """A tag of rota's own by its name, an author's by its number."""
    if isinstance(value, str):
        tags, _, name = value.partition(".")
        if tags in _TAGS and name in _TAGS[tags].__members__:
            return _TAGS[tags][name]
        raise _WrongError(f"expected a number or the name of a tag, got {_shown(value)}")
    number: int = _reader(int)(value)
    return number


def _mask(value: object) -> int:
    """A bit for each block."""
    if type(value) is not int or value.bit_length() > _LONGEST_MASK:
        raise _WrongError(f"expected a mask of at most {_LONGEST_MASK} bits, got {_shown(value)}")
    return value


def _shown(value: object) -> str:
    return f"{reprlib.repr(value):.60} ({type(value).__name__})"
