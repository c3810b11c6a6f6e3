"""What would mend a finding: takes what is known of the missing synchronisation, gives edits to try.

They are candidates: whether one is enough is for the proof to say.
"""

from __future__ import annotations

from dataclasses import dataclass

from rota.prove.edits import BARRIER, Edit

Fix = tuple[Edit, ...]
"""Edits that are made together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Two operations that a finding is about, by number, and what might keep them apart."""

    code: str
    number: int
    other: int
    fixes: tuple[Fix, ...]


def wait_before(number: int, counter: str, most: int) -> Fix:
    """A wait in front of an operation."""
    return (Edit(number=number, what=counter, most=most, inserted=True),)


def stronger(number: int, counter: str, most: int) -> tuple[Fix, ...]:
    """A wait that is there with another count; none if the count would be below 0."""
    return () if number < 0 or most < 0 else ((Edit(number=number, what=counter, most=most),),)


def kept_apart(first: int, then: int, counters: tuple[str, str]) -> tuple[Fix, ...]:
    """A barrier between two accesses of one stretch, with a wait for the one that comes before it or without.

    A loop comes to both in turn, so that either may be the one before.
    """
    found: list[Fix] = []
    for place, counter in ((then, counters[0]), (first + 1, counters[0]), (first, counters[1])):
        barrier = Edit(number=place, what=BARRIER, inserted=True)
        found += [(barrier,), (*wait_before(place, counter, 0), barrier)]
    return tuple(sorted(found, key=len))
