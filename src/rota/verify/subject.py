"""Whether a certificate is about a program: takes what was proved and what is at hand, gives how they differ.

A certificate keeps the program that was proved, so that what the proof read and what it is about can't differ.
"""

from __future__ import annotations

from dataclasses import fields
from itertools import zip_longest

from rota.errors import Finding, Severity
from rota.program.lowered import LoweredProgram


def not_about(proved: LoweredProgram | None, given: LoweredProgram) -> Finding | None:
    """The finding of a certificate that was given to something other than what it is about."""
    if proved == given:
        return None
    return Finding(
        code="V108",
        severity=Severity.WARNING,
        message="the certificate is about another schedule and was removed; this one is not proved",
        evidence=_differences(proved, given) if proved else (("certificate", "doesn't say what it is about"),),
        fixes=("verify() says whether this schedule is right",),
    )


def _differences(proved: LoweredProgram, given: LoweredProgram) -> tuple[tuple[str, str], ...]:
    found = []
    for each in fields(LoweredProgram):
        if not each.compare:
            continue
        before, now = getattr(proved, each.name), getattr(given, each.name)
        if before != now:
            one, other = (before, now) if isinstance(now, int | None) else _told_apart(before, now)
            found.append((each.name, f"{one} in the proof, {other} here"))
    return tuple(found)


def _told_apart(before: object, now: object) -> tuple[str, str]:
    """Two values that differ, in few words; of two lists the first elements that differ."""
    if not isinstance(before, tuple) or not isinstance(now, tuple):
        return f"one {type(before).__name__}", "another"
    slot = next(number for number, (one, other) in enumerate(zip_longest(before, now)) if one != other)
    one, other = (
        f"{whole[slot]} among {len(whole)}" if slot < len(whole) else f"{len(whole)}" for whole in (before, now)
    )
    return one, other
