"""The settings of a kernel's source: takes a class, a function or a value, gives what can be set, and calls it.

The parameters of a class or function are settings, and so are the fields of every dataclass among them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from types import SimpleNamespace, UnionType
from typing import Any, NamedTuple, get_args, get_type_hints

from rota.errors import DeclarationError, Finding


class Setting(NamedTuple):
    """A value and its declared type."""

    value: object
    kind: Any


OBLIGATIONS = {
    "reentrant": Setting(value=False, kind=bool),
    "vmcnt_in_order": Setting(value=True, kind=bool),
}
"""What can be asked of a proof beyond its own: see docs/machine_model.md."""


def same_kind(parameter: Setting | None, setting: Setting) -> bool:
    """Does a parameter of the author's say already what a setting of that name would?"""
    return parameter is not None and isinstance(parameter.value, setting.kind)


def is_maker(source: object) -> bool:
    """Is it a class or function, which makes a kernel rather than being one?"""
    return inspect.isclass(source) or inspect.isroutine(source)


def parameters_of(source: object) -> dict[str, Setting]:
    """Parameters of a class or function; one that wants a dataclass with defaults has these as its default."""
    annotated: Any = source.__init__ if inspect.isclass(source) else source
    if not callable(source) or not is_maker(source):
        return {}
    hints = hints_of(annotated)
    found = {}
    for name, parameter in inspect.signature(source).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = parameter.default
        told = object if value is None or value is parameter.empty else type(value)
        kind = _without_none(hints.get(name, told))
        if value is parameter.empty and is_dataclass(kind) and isinstance(kind, type):
            value = _default_of(kind)
        found[name] = Setting(value, kind)
    return found


def called(source: Any, changes: Mapping[str, object], owner: str) -> Any:  # noqa: ANN401  # whatever it makes
    """What a class or function makes of the parameters that were changed or have no default."""
    if inspect.isabstract(source):
        missing = ", ".join(sorted(source.__abstractmethods__))
        raise DeclarationError(
            Finding(
                code="D104",
                message=f"{owner} is an abstract class; a kernel is a class that has {missing}",
                evidence=(("class", source.__name__), ("without", missing)),
            )
        )
    given = dict(_given(source, changes, owner))
    placed = []
    for name, parameter in inspect.signature(source).parameters.items():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            placed.append(given.pop(name, parameter.default))
    return source(*placed, **given)


def _given(source: object, changes: Mapping[str, object], owner: str) -> Mapping[str, object]:
    given = {}
    required = inspect.signature(source).parameters if callable(source) else {}
    for name, setting in parameters_of(source).items():
        if name in changes:
            given[name] = changes[name]
        elif required[name].default is inspect.Parameter.empty:
            if setting.value is inspect.Parameter.empty:
                raise DeclarationError(
                    Finding(
                        code="D102",
                        message=f"{owner} needs a value for its parameter {name}",
                        fixes=(
                            f"--set {name}=VALUE, if it is declared as a bool, int, float, str or enum",
                            f"give {name} a default",
                        ),
                    )
                )
            given[name] = setting.value
    return given


def hints_of(owner: Any) -> dict[str, Any]:  # noqa: ANN401  # a class or something that can be called
    """Declared types by name, but those that can't be resolved: a type checker's imports are not made at run time."""
    found: dict[str, Any] = {}
    for layer in reversed(owner.__mro__) if inspect.isclass(owner) else (inspect.unwrap(owner),):
        names = _names_around(layer)
        for name, annotation in getattr(layer, "__annotations__", {}).items():
            with suppress(NameError, AttributeError, TypeError, SyntaxError):
                found |= get_type_hints(SimpleNamespace(__annotations__={name: annotation}), names)
    return found


def _names_around(owner: Any) -> dict[str, Any]:  # noqa: ANN401  # a class or a function
    """The globals of its file; its functions keep them when another file of that name has been loaded since."""
    for each in (owner, *(vars(owner).values() if inspect.isclass(owner) else ())):
        if inspect.isfunction(each):
            return each.__globals__
    module = sys.modules.get(getattr(owner, "__module__", ""))
    return vars(module) if module else {}


def _default_of(kind: type) -> object:
    try:
        return kind()
    except TypeError:  # some field has no default
        return inspect.Parameter.empty


def _without_none(kind: Any) -> Any:  # noqa: ANN401  # a type hint has no type of its own
    members = tuple(member for member in get_args(kind) if member is not type(None))
    return members[0] if isinstance(kind, UnionType) and len(members) == 1 else kind
