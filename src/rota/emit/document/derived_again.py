"""How a document of one front end is read: takes nothing, gives `FrontEnd`, which derives a schedule again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import Finding

CLAIMED = "the document"
"""Who says that nothing better was found, where rota hasn't shown it."""

S = TypeVar("S", bound=CompiledSchedule)


class Waits(NamedTuple):
    """The counter that a wait is for, and how many of its tokens it leaves."""

    counter: str
    tokens: int


class DerivedAgain(ABC, Generic[S]):
    """What is derived again of the schedules that one front end makes.

    `optional` are fields that a document may leave out, since they follow from the rest; `structure_codes` those of
    the findings that `structure` finds again.
    """

    result: ClassVar[type[CompiledSchedule]]
    optional: ClassVar[tuple[str, ...]] = ()
    structure_codes: ClassVar[frozenset[str]] = frozenset()

    def completed(self, schedule: S, said: Container[str]) -> S:
        """The schedule with the fields that the document doesn't say."""
        return schedule

    @abstractmethod
    def with_own_entries(self, schedule: S) -> S:
        """The schedule with entries that follow from what it declares."""

    @abstractmethod
    def waits(self, schedule: S, entry: Any) -> Waits | None:  # noqa: ANN401  # the front end's own entry
        """What an entry waits for, if it is a wait."""

    @abstractmethod
    def check_parts(self, schedule: S) -> None:
        """Hold everything else against what it follows from."""

    def structure(self, schedule: S) -> Iterable[Finding]:
        """The findings that the structure alone shows."""
        return ()

    @abstractmethod
    def as_claimed(self, schedule: S) -> S:
        """Of what is said about its quality, what can be shown again; the rest is left open."""
