"""A setting from the command line: takes a kernel and `field=value`, gives the kernel with that field changed.

The fields of the kernel's dataclasses are the options.  A field is named by its path or by enough of the path's end.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import click

from rota.errors import did_you_mean
from rota.kernels.kernel import Kernel
from rota.kernels.setting import Setting, hints_of
from rota.pipeline.schedule_config import ScheduleConfig
from rota.pipeline.strategies import BarrierStrategy, LoadStrategy, WaitStrategy
from rota.program.machine import Machine
from rota.targets import registry

_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_TOO_LARGE = 2**63
_STRATEGIES = {"waits": WaitStrategy, "barriers": BarrierStrategy, "loads": LoadStrategy}
"""Groups of a schedule's knobs, by which they may be named too."""


class Leaf(NamedTuple):
    """A field that can be set: its path, its value, its declared type and other paths to it."""

    path: tuple[str, ...]
    value: object
    kind: Any
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The path as it is typed."""
        return ".".join(self.path)

    def answers_to(self, name: str) -> bool:
        """Is `name` this field's path, or the end of it?"""
        return any(path == name or path.endswith(f".{name}") for path in (self.name, *self.also))


def with_settings(kernel: Kernel, texts: Sequence[str]) -> Kernel:
    """The kernel with all of them set at once, as some are valid only together.

    Parameters come first: they make the rest.
    """
    own = [text for text in texts if _names_parameter(kernel, text)]
    for some in (own, [text for text in texts if text not in own]):
        kernel = _with_all(kernel, [_asked(kernel, text) for text in some])
    return kernel


def changed(kernel: Kernel, text: str) -> Kernel:
    """The kernel with `text`, as field=value, set."""
    return with_settings(kernel, [text])


def has_field(kernel: Kernel, text: str) -> bool:
    """Does field=value name a field of this kernel?"""
    return any(leaf.answers_to(_name(text)) for leaf in leaves(kernel))


def _names_parameter(kernel: Kernel, text: str) -> bool:
    return any(leaf.answers_to(_name(text)) for leaf in _leaves_of(kernel.parameters))


def _name(text: str) -> str:
    return text.partition("=")[0].strip()


class _Asked(NamedTuple):
    path: tuple[str, ...]
    value: object


def _asked(kernel: Kernel, text: str) -> _Asked:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--set {text[:80]}: expected field=value")
    leaf = _leaf(kernel, name.strip())
    try:
        return _Asked(leaf.path, _parsed(value.strip(), leaf.kind))
    except ValueError as error:
        raise click.UsageError(f"--set {text[:80]}: {error}") from error


def _with_all(kernel: Kernel, asked: Sequence[_Asked]) -> Kernel:
    whole = all(len(path) == 1 for path, _ in asked)  # then it doesn't matter what stood there, nor that it can be made
    settings = {} if whole else kernel.settings()
    for top in dict.fromkeys(path[0] for path, _ in asked):
        inner = [_Asked(path[1:], value) for path, value in asked if path[0] == top]
        kernel = kernel.but(top, _with(None if whole else settings[top].value, inner))
    return kernel


def leaves(kernel: Kernel) -> tuple[Leaf, ...]:
    """Every field that can be set."""
    return _leaves_of(kernel.settings())


def _leaves_of(settings: Mapping[str, Setting]) -> tuple[Leaf, ...]:
    return tuple(leaf for name, setting in settings.items() for leaf in _under((name,), setting.value, setting.kind))


def _leaf(kernel: Kernel, name: str) -> Leaf:
    own = [leaf for leaf in _leaves_of(kernel.parameters) if leaf.name == name]
    if own:  # the rest need not be made to find it
        return own[0]
    known = leaves(kernel)
    exact = [leaf for leaf in known if leaf.name == name]
    matching = exact or [leaf for leaf in known if leaf.answers_to(name)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        several = ", ".join(leaf.name for leaf in matching)
        raise click.UsageError(f"--set {name}: {kernel.name} has several fields of that name: {several}")
    guesses = did_you_mean(name, {end for leaf in known for end in (leaf.name, leaf.path[-1], *leaf.also)})[:-1]
    listed = "`rota kernels KERNEL` lists its fields"
    raise click.UsageError("; ".join([f"--set {name}: {kernel.name} has no such field", *guesses, listed]))


def _under(path: tuple[str, ...], value: object, kind: object) -> Iterator[Leaf]:
    if not is_dataclass(value) or isinstance(value, type | Machine):
        if _parsable(kind):
            yield Leaf(path, value, kind)
        return
    hints = hints_of(type(value))
    for field in fields(value):
        for leaf in _under((*path, field.name), getattr(value, field.name), hints.get(field.name)):
            groups = _STRATEGIES if isinstance(value, ScheduleConfig) else {}
            named = (name for name, group in groups.items() if field.name in {each.name for each in fields(group)})
            yield leaf._replace(also=tuple(f"{name}.{field.name}" for name in named))


def _with(value: Any, asked: Sequence[_Asked]) -> object:  # noqa: ANN401  # some dataclass
    """A value whose fields are changed all at once; what is asked for twice is what was asked for last."""
    whole = [each.value for each in asked if not each.path]
    if whole:
        return whole[-1]
    parts = {
        name: _with(getattr(value, name), [_Asked(path[1:], new) for path, new in asked if path[0] == name])
        for name in dict.fromkeys(path[0] for path, _ in asked)
    }
    return replace(value, **parts)


def _parsable(kind: Any) -> bool:  # noqa: ANN401  # a type hint
    if get_origin(kind) in (Union, UnionType):
        return any(_parsable(member) for member in get_args(kind) if member is not NoneType)
    if get_origin(kind) is tuple:
        return all(member is int for member in get_args(kind))
    return isinstance(kind, type) and (kind in (bool, int, float, str, Machine) or issubclass(kind, enum.Enum))


def _parsed(text: str, kind: Any) -> object:  # noqa: ANN401  # a type hint
    """The value that a text stands for; a ValueError says what was expected."""
    if get_origin(kind) in (Union, UnionType):
        return _first_parsed(text, get_args(kind))
    if get_origin(kind) is tuple:
        return _numbers(text, len(get_args(kind)))
    if kind is str:
        return text
    if kind in (int, float):
        return _number(text, kind)
    return _chosen(text.lower(), kind)


def _number(text: str, kind: type[int | float]) -> float:
    """Python has integers of any size; what a kernel counts fits into a register."""
    try:
        found: float | None = int(text, 0) if kind is int else float(text)
    except ValueError:
        found = None if kind is float or not text.lstrip("+-").isdecimal() else _TOO_LARGE
    if found is None:
        raise ValueError(f"expected {'an integer' if kind is int else 'a number'}, not {text[:40]!r}")
    if kind is int and abs(found) >= _TOO_LARGE:
        raise ValueError(f"expected an integer below 2**63, not {text[:40]!r}")
    return found


def _numbers(text: str, count: int) -> tuple[int, ...]:
    parts = text.replace("x", ",").split(",")
    if len(parts) != count or not all(part.strip().isdecimal() for part in parts):
        raise ValueError(f"expected {count} integers, as {'x'.join(['16'] * count)}, not {text[:40]!r}")
    return tuple(int(_number(part.strip(), int)) for part in parts)


def _first_parsed(text: str, kinds: tuple[Any, ...]) -> object:
    if NoneType in kinds and text.lower() == "none":
        return None
    errors = []
    for kind in kinds:
        if _parsable(kind):
            try:
                return _parsed(text, kind)
            except ValueError as error:
                errors.append(str(error))
    raise ValueError("; ".join(errors))


def _chosen(text: str, kind: Any) -> object:  # noqa: ANN401  # a truth value, a machine or an enum
    if kind is Machine:
        return _machine(text)
    known: Mapping[str, object] = {bool: _TRUTH}.get(kind, {}) or {
        str(name).lower(): member for member in kind for name in (member.name, member.value)
    }
    if text in known:
        return known[text]
    if kind is bool:
        raise ValueError(f"expected true or false, not {text!r}")
    raise ValueError(f"expected a {kind.__name__}, not {text!r}; " + "; ".join(did_you_mean(text, known)))


def _machine(text: str) -> Machine:
    """A registered device; that one can't be loaded is a finding of its own."""
    known = registry.names()
    if text not in known:
        raise ValueError(f"expected a Machine, not {text!r}; " + "; ".join(did_you_mean(text, known)))
    return registry.device_named(text)
