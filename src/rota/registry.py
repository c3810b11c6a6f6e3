"""Lookup by name, among rota's own objects and those that installed packages register.

Nothing is loaded before it is asked for, and packages are asked only for names that rota doesn't know itself. A third
party's mistake becomes a finding that names its package.

The names of a package may be loaded when they are first asked for, too: the imports of its stub, `__init__.pyi`, say
where each is from; type checkers read the same lines.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from rota.errors import DeclarationError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry(Generic[T]):
    """The kind of object it holds, its entry-point group, and rota's own as "module:attribute" by name.

    `make` turns what was loaded into the object; `lacks` says what is wrong with one that can't be used; `expected`
    says what an entry point should name.
    """

    what: str
    group: str
    own: Mapping[str, str]
    expected: str
    lacks: Callable[[Any], str | None]
    make: Callable[[Any], Any] = lambda loaded: loaded  # what was registered is the thing itself

    def named(self, name: str) -> T:
        if not isinstance(name, str):
            raise self._unknown(repr(name))
        if name in self.own:
            return cast("T", self.make(object_at(self.own[name])))
        found = [entry for entry in self.registered() if entry.name == name]
        if not found:
            raise self._unknown(name)
        if len({entry.value for entry in found}) > 1:
            raise self._ambiguous(found)
        return self.made_by(found[0])

    def knows(self, name: str) -> bool:
        return name in self.own or any(entry.name == name for entry in self.registered())

    def names(self) -> dict[str, str | None]:
        """Every name with the package that registers it; None for rota's own."""
        others = {entry.name: _package(entry) for entry in self.registered()}
        return dict.fromkeys(self.own) | {name: package for name, package in others.items() if name not in self.own}

    def unknown(self, name: str) -> tuple[str, ...]:
        """The error for an unknown name, with the nearest names."""
        spelt = next((other for other in self._known() if other.casefold() == name.casefold()), name)
        return (f"no {self.what} is named {name!r}", *did_you_mean(spelt, self._known()))

    def registered(self) -> tuple[EntryPoint, ...]:
        """What installed packages register."""
        from importlib import metadata  # costs more to import than most of what is registered

        return tuple(metadata.entry_points(group=self.group))

    def _known(self) -> list[str]:
        return [f"{name}" for name in self.names()]

    def _unknown(self, name: str) -> DeclarationError:
        message, *guesses = self.unknown(name)
        install = f"install the package that registers it in the entry-point group {self.group!r}"
        known = ", ".join(sorted(self._known()))
        return DeclarationError.of(
            "D105", message, evidence=(("got", name), ("known", known)), fixes=(*guesses, install)
        )

    def made_by(self, entry: EntryPoint) -> T:
        """What the entry point gives; a third party's code may raise anything."""
        try:
            made = self.make(entry.load())
            lacks = self.lacks(made)
        except Exception as error:
            raise self.unusable(entry, f"it raised {type(error).__name__}: {error}") from error
        if lacks is not None:
            raise self.unusable(entry, f"it made {type(made).__name__}, which {lacks}")
        return cast("T", made)

    def unusable(self, entry: EntryPoint, why: str) -> DeclarationError:
        """The error for an entry point that names nothing usable."""
        return DeclarationError.of(
            "D105",
            f"{self.what} {entry.name!r} of {_package(entry)} can't be used: {why}",
            evidence=(("entry point", entry.value), ("expected", self.expected)),
        )

    def _ambiguous(self, entries: list[EntryPoint]) -> DeclarationError:
        return DeclarationError.of(
            "D105",
            f"{len(entries)} installed packages register {self.what} {entries[0].name!r}",
            evidence=tuple((_package(entry), entry.value) for entry in entries),
            fixes=("uninstall all but one of them",),
        )


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "an unknown package"


def object_at(where: str) -> object:
    """The object that "module:attribute" names."""
    module, _, attribute = where.partition(":")
    return reduce(getattr, attribute.split("."), importlib.import_module(module))


def read_stub(file: str) -> dict[str, str]:
    """The home module of each name that the stub beside a package's `__init__.py` imports."""
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}
