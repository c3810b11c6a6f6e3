"""Field checks that all declared values share; each returns its value or raises an error that names the field."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any, ClassVar, Protocol, TypeVar

from rota.errors import Concern, DeclarationError, SourceLine, did_you_mean
from rota.printing import WrappedTuple

T = TypeVar("T")

_FRONT_ENDS = ("rota.check", "rota.pipeline.", "rota.values.", "rota.program.")


class _DataclassInstance(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


def author_line() -> SourceLine | None:
    """The nearest caller outside the front ends: the line on which the author declared an op."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_FRONT_ENDS):
        frame = frame.f_back
    return SourceLine(frame.f_code.co_filename, frame.f_lineno) if frame else None


def bad_field(
    owner: object, name: str, value: object, expected: str, source: SourceLine | None = None
) -> DeclarationError:
    """The D102 error for one field."""
    return DeclarationError.of(
        "D102",
        f"{type(owner).__name__}.{name} is {value!r}; expected {expected}",
        concerns=(Concern(label=f"{type(owner).__name__}.{name}", source=source),),
        evidence=(("got", f"{value!r} ({type(value).__name__})"), ("expected", expected)),
    )


def is_int(value: object) -> bool:
    """An integer that is not a bool."""
    return isinstance(value, int) and value is not True and value is not False


def check_ints(owner: object, names: Iterable[str], *, least: int = 0, most: int | None = None) -> None:
    """Check that every named field is an integer within [least, most]."""
    for name in names:
        value = getattr(owner, name)
        if not is_int(value) or value < least or (most is not None and value > most):
            span = f"at least {least}" if most is None else f"from {least} to {most}"
            raise bad_field(owner, name, value, f"an integer, {span}")


def check_seconds(owner: object, name: str, *, zero: bool) -> None:
    """Check that the named field is a time; 0 only if `zero` is allowed."""
    value = getattr(owner, name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not (value > 0 or (zero and value == 0)):
        raise bad_field(owner, name, value, f"a number of seconds, {'at least' if zero else 'more than'} 0")


def look_up(name: str, table: Mapping[str, T], message: str) -> T:
    """The table's value for a name, or a D105 error with the nearest name."""
    if name not in table:
        raise DeclarationError.of("D105", message, fixes=did_you_mean(name, table))
    return table[name]


def check_types(owner: _DataclassInstance, kinds: Mapping[str, type | tuple[type, ...]]) -> None:
    """Check that every named field is an instance of its kind; an unknown field name is the caller's mistake."""
    for name, kind in kinds.items():
        value = getattr(owner, name)
        if not isinstance(value, kind):
            wanted = kind if isinstance(kind, tuple) else (kind,)
            raise bad_field(owner, name, value, " or ".join(k.__name__ for k in wanted))


def expect(what: str, value: object, kind: type[T]) -> T:
    """`value`, or a D104 error that says what it should be."""
    if not isinstance(value, kind):
        raise DeclarationError.of(
            "D104",
            f"{what} is {type(value).__name__}; expected {kind.__name__}",
            evidence=(("got", repr(value)[:80]), ("expected", kind.__name__)),
        )
    return value


def check_elements(what: str, values: object, kind: type[T]) -> tuple[T, ...]:
    """`values` as a tuple of `kind`, or a D104 error that names the first element that isn't one."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DeclarationError.of(
            "D104",
            f"{what} must be a sequence of {kind.__name__}, got {type(values).__name__}",
            evidence=(("got", repr(values)[:80]), ("expected", f"a sequence of {kind.__name__}")),
        )
    elements = WrappedTuple(values)
    for index, element in enumerate(elements):
        if not isinstance(element, kind):
            raise DeclarationError.of(
                "D104",
                f"{what} holds {type(element).__name__} at index {index}; expected {kind.__name__}",
                concerns=(Concern(label=repr(element)[:80], index=index),),
                evidence=(("got", type(element).__name__), ("expected", kind.__name__)),
            )
    return elements
