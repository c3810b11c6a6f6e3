"""Two parts of a document that don't agree: takes a field and both values, gives a T204 error that names both."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from contextlib import contextmanager

from rota.emit.document.codec import malformed
from rota.errors import EmissionError, RotaError


def disagreement(field: str, message: str) -> EmissionError:
    """What is wrong with a field of the schedule."""
    return malformed(f"schedule.{field}", message)


def demand(field: str, said: object, found: object, message: str = "") -> None:
    """What the document says of a field is what rota finds."""
    if said == found:
        return
    if not message and isinstance(said, int | str | None) and isinstance(found, int | str | None):
        message = f"is {said!r:.60}, but {found!r:.60} follows from the rest"
    both = {"in the document": reprlib.repr(said), "derived": reprlib.repr(found)}
    raise malformed(f"schedule.{field}", message or "is not what follows from the rest", **both)


@contextmanager
def derived_again(field: str) -> Iterator[None]:
    """What goes wrong while a part is derived again is wrong with what the document says there."""
    try:
        yield
    except EmissionError:
        raise
    except RotaError as error:
        finding = error.findings[0]
        raise disagreement(field, f"{finding.code}, {finding.message}") from error
