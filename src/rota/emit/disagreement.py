"""Two parts of a document that don't agree: takes a field and both values, gives a `Disagreement`."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rota.emit.codec import malformed
from rota.errors import EmissionError, RotaError


class Disagreement(NamedTuple):
    """A field of the schedule and what is wrong with it, with what the document says and what rota finds."""

    field: str
    message: str
    said: object = None
    found: object = None

    def error(self) -> EmissionError:
        """The same, to be raised."""
        if self.said is None and self.found is None:
            return malformed(f"schedule.{self.field}", self.message)
        both = {"in the document": reprlib.repr(self.said), "derived": reprlib.repr(self.found)}
        return malformed(f"schedule.{self.field}", self.message, **both)


def differing(field: str, said: object, found: object, message: str = "") -> Iterator[Disagreement]:
    """One if a field is not what it should be."""
    if said != found:
        whole = isinstance(said, int | str | None) and isinstance(found, int | str | None)
        values = (
            f"is {said!r:.60}, but {found!r:.60} follows from the rest"
            if whole
            else "is not what follows from the rest"
        )
        yield Disagreement(field, message or values, said, found)


@contextmanager
def derived_again(field: str) -> Iterator[None]:
    """What goes wrong while a part is derived again is wrong with what the document says there."""
    try:
        yield
    except EmissionError:
        raise
    except RotaError as error:
        finding = error.findings[0]
        raise malformed(f"schedule.{field}", f"{finding.code}, {finding.message}") from error
