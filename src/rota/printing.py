"""How values print: settings as the call that makes them again, enum members by name, tuples over several lines.

A setting shows only what differs from its default, so that a reader sees what somebody chose, and what `repr` prints
can be pasted back.  No line is longer than `WIDTH`, as far as names and numbers allow.
"""

from __future__ import annotations

import enum
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from typing import Any, ClassVar, TypeVar

WIDTH = 120
_INDENT = 4
T = TypeVar("T")


class NamedMember(enum.Enum):
    """An enum whose members print as an author writes them: `Phase.KERNEL`."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return format(self.value if isinstance(self, str | int) else str(self), spec)  # a StrEnum's is its word


class Pasted:
    """A dataclass that prints as the call that makes it, without fields at their defaults.

    The dataclass is declared with `repr=False`. A field whose metadata says `bits` prints as a binary number.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __rich_repr__(self) -> Iterable[object]:
        """The arguments of that call, a name with its value or a value alone; rich asks for them, too."""
        for each in fields(self):
            value = getattr(self, each.name)
            if each.init and each.repr and value != each.default:
                yield each.name, _Literal(bin(value)) if each.metadata.get("bits") else value

    def __repr__(self) -> str:
        return show(self)


class WrappedTuple(tuple[T, ...]):
    """A tuple that prints over as many lines as it needs; in all else a tuple, and equal to one."""

    __slots__ = ()

    def __repr__(self) -> str:
        line = ", ".join(flat(each) for each in self) + ("," if len(self) == 1 else "")
        if len(line) + 2 <= WIDTH and "\n" not in line:
            return f"({line})"
        blanks = str.maketrans({" ": "\0"})  # a line ends between two elements, never inside one
        parts = " ".join(f"{flat(each)},".translate(blanks) for each in self)
        kept = textwrap.wrap(parts, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
        return "(" + "\n ".join(kept).replace("\0", " ")[:-1] + ")"


class _Literal(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def show(value: object, indent: int = 0, used: int = 0) -> str:
    """The value as an expression, on one line if it fits, else with its arguments on the next, or on one line each.

    `used` columns of the first line are taken; continuation lines are indented by `indent`.
    """
    parts, line = _split_expression(value), flat(value)
    if parts is None or used + len(line) <= WIDTH:
        return line
    start, arguments, end = parts
    inner = indent + _INDENT
    together = ", ".join(f"{name}{flat(each)}" for name, each in arguments)
    if inner + len(together) <= WIDTH and start != "{":  # the entries of a table stand below one another
        return f"{start}\n{' ' * inner}{together}\n{' ' * indent}{end}"
    lines = [f"{' ' * inner}{name}{show(each, inner, inner + len(name) + 1)}," for name, each in arguments]
    return "\n".join([start, *lines, f"{' ' * indent}{end}"])


def flat(value: object) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"  # of an author's own enum, too
    parts = _split_expression(value)
    if parts is None:
        return repr(value)
    start, arguments, end = parts
    comma = "," if start == "(" and len(arguments) == 1 else ""
    return start + ", ".join(f"{name}{flat(each)}" for name, each in arguments) + comma + end


def _split_expression(value: object) -> tuple[str, list[tuple[str, object]], str] | None:
    """How an expression begins, its arguments by name, and how it ends; None for a value without parts."""
    if isinstance(value, Pasted):
        named = [each if isinstance(each, tuple) else ("", each) for each in value.__rich_repr__()]
        return f"{type(value).__name__}(", [(f"{name}=" if name else "", each) for name, each in named], ")"
    if isinstance(value, Mapping):
        return "{", [(f"{flat(key)}: ", each) for key, each in value.items()], "}"
    if type(value) in (tuple, WrappedTuple):
        return "(", [("", each) for each in value], ")"  # type: ignore[attr-defined]  # a tuple
    return None
