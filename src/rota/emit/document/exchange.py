"""The exchange format: takes a compiled schedule, gives versioned JSON, and back an equal schedule or a finding.

A document is not trusted.  What rota derives is derived again and compared, a device is looked up, a certificate is
proved again; see `agreement`.  What took a search to find out is not taken over; see `FrontEnd.as_claimed`.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from rota.check import expect
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.document.agreement import check_agreement
from rota.emit.document.by_stages_again import StagesAgain
from rota.emit.document.by_values_again import ValuesAgain
from rota.emit.document.codec import decoded, decoded_record, encoded, malformed
from rota.emit.document.derived_again import DerivedAgain
from rota.emit.document.machine_said import MachineSaid, machine_meant, machine_said
from rota.errors import EmissionError, Finding
from rota.program.machine import Machine
from rota.verify.report import Certificate

FORMAT = "rota.schedule"
VERSION = 2
_KEYS = ("format", "version", "kind", "schedule")

_LONGEST = 2**26  # characters; a hundred times the largest schedule that we know

FRONT_ENDS: Mapping[str, DerivedAgain[Any]] = MappingProxyType({"pipeline": StagesAgain(), "values": ValuesAgain()})
"""Whose schedules a document can hold, by the kind that it says."""


class _Document(NamedTuple):
    kind: str
    schedule: dict[str, Any]


def to_json(compiled: CompiledSchedule) -> str:
    """The schedule as a document."""
    kind = next((name for name, each in FRONT_ENDS.items() if type(compiled) is each.result), None)
    if kind is None:
        raise EmissionError(
            Finding(
                code="T208",
                message=f"{compiled.name} is a {type(compiled).__name__}, which can't be derived again from a document",
                evidence=(("known", ", ".join(each.result.__name__ for each in FRONT_ENDS.values())),),
                fixes=("declare the loop by stages (PipelineSchedule) or by values (Loop)",),
            )
        )
    schedule = encoded(compiled) | {"machine": encoded(machine_said(compiled.machine))}
    return json.dumps(dict(zip(_KEYS, (FORMAT, VERSION, kind, schedule), strict=True)), indent=1)


def from_json(text: str, machines: Iterable[Machine] | None = None) -> CompiledSchedule:
    """The schedule that a document describes, every field checked, and proved again if it says that it is proved.

    The schedule's machine is one of `machines`, by default of all that are registered.  "Proven least" remains
    only where a bound of the loop itself shows it again; what a search has shown becomes an open claim.
    """
    kind, given = _document(expect("the document", text, str))
    front_end, claimed = FRONT_ENDS[kind], given.pop("certificate", None)
    if "machine" not in given:
        raise malformed("schedule.machine", f"{front_end.result.__name__} needs it")
    machine = machine_meant(decoded(given.pop("machine"), MachineSaid, "schedule.machine"), machines)
    complete = {name: [] for name in front_end.optional} | given
    schedule: CompiledSchedule = decoded_record(complete, front_end.result, "schedule", machine=machine)
    terms: Certificate | None = decoded(claimed, Certificate | None, "schedule.certificate")
    read: CompiledSchedule = check_agreement(front_end, schedule, terms, given)
    return read


def _document(text: str) -> _Document:
    """The kind, and what stands under "schedule"; all of the document around it is checked here."""
    if len(text) > _LONGEST:
        raise malformed("the document", f"{len(text)} characters are more than a schedule takes", most=_LONGEST)
    try:
        document = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise malformed("the document", f"not JSON: {error!s:.200}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise malformed("format", f"expected {FORMAT!r}")
    _check_version(document.get("version"))
    if set(document) != set(_KEYS):
        raise malformed("the document", f"expected {', '.join(_KEYS[:-1])} and {_KEYS[-1]}, and nothing else")
    kind, schedule = document["kind"], document["schedule"]
    if not isinstance(kind, str) or kind not in FRONT_ENDS:
        raise malformed("kind", f"expected one of {', '.join(FRONT_ENDS)}, got {_shown(kind)}")
    if not isinstance(schedule, dict):
        fields = FRONT_ENDS[kind].result.__name__
        raise malformed("schedule", f"expected the fields of {fields}, got {_shown(schedule)}")
    return _Document(kind, schedule)


def _check_version(version: object) -> None:
    if type(version) is int and 0 < version < VERSION:
        raise malformed(
            "version",
            f"{FORMAT} version {version} was written by an earlier rota, whose schedules had other fields; this one "
            f"reads version {VERSION}: write the document again, with to_json or `rota emit KERNEL --form json`",
        )
    if type(version) is not int or version != VERSION:
        raise malformed("version", f"expected {VERSION}, got {version!r:.60}")


def _shown(value: object) -> str:
    return f"{reprlib.repr(value):.60} ({type(value).__name__})"


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
