"""The exchange format: takes a compiled schedule, gives versioned JSON, and back an equal schedule or a finding.

A document is somebody's word.  What rota derives is derived again and compared, a device is looked up, a certificate is
proved again; see `agreement`.  What took a search to find out is not taken over; see `claims`.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from rota.compiler.compiled import CompiledSchedule
from rota.declare.check import expect
from rota.emit.agreement import check_agreement
from rota.emit.by_stages_again import derived_kernel_deps
from rota.emit.claims import as_claimed
from rota.emit.codec import decoded, encoded, malformed
from rota.targets.machine import MACHINES, Machine
from rota.verify.report import Certificate

FORMAT = "rota.schedule"
VERSION = 1

_LONGEST = 2**26  # characters; a hundred times the largest schedule that we know


def to_json(compiled: CompiledSchedule) -> str:
    """The schedule as a document."""
    return json.dumps({"format": FORMAT, "version": VERSION, "schedule": encoded(compiled)}, indent=1)


def from_json(text: str, machines: Iterable[Machine] = MACHINES) -> CompiledSchedule:
    """The schedule that a document describes, every field checked, and proved again if it says that it is proved.

    The schedule's machine is one of `machines`, by name and architecture.  "Proven least" remains only where a bound of
    the loop itself shows it again; what a search has shown becomes an open claim.
    """
    given = _schedule_of(expect("the document", text, str))
    claimed = given.pop("certificate", None)
    deps_follow = "kernel_deps" not in given
    schedule: CompiledSchedule = decoded({"kernel_deps": [], **given}, CompiledSchedule, "schedule")
    terms: Certificate | None = decoded(claimed, Certificate | None, "schedule.certificate")
    if deps_follow:
        schedule = replace(schedule, kernel_deps=derived_kernel_deps(schedule))
    return as_claimed(check_agreement(schedule, terms, tuple(machines)))


def _schedule_of(text: str) -> dict[str, Any]:
    """What stands under "schedule"; all of the document around it is checked here."""
    if len(text) > _LONGEST:
        raise malformed("the document", f"{len(text)} characters are more than a schedule takes", most=_LONGEST)
    try:
        document = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise malformed("the document", f"not JSON: {error!s:.200}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise malformed("format", f"expected {FORMAT!r}")
    if type(document.get("version")) is not int or document["version"] != VERSION:
        raise malformed("version", f"expected {VERSION}, got {document.get('version')!r:.60}")
    if set(document) != {"format", "version", "schedule"}:
        raise malformed("the document", "expected format, version and schedule, and nothing else")
    schedule = document["schedule"]
    if not isinstance(schedule, dict):
        got = f"{reprlib.repr(schedule):.60} ({type(schedule).__name__})"
        raise malformed("schedule", f"expected the fields of CompiledSchedule, got {got}")
    return schedule


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Of a name that stands twice, one reader takes the first and another the last."""
    named: dict[str, Any] = {}
    for name, value in pairs:
        if name in named:
            raise ValueError(f"{name!r} stands twice in one object")
        named[name] = value
    return named


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
