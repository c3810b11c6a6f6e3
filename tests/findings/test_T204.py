from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rota.emit.exchange import from_json, to_json
from tests.emit.kernels import SMALL_MI300X, by_values
from tests.findings.smallest import raised


def document() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(to_json(by_values(SMALL_MI300X)[0]))
    return read


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "[" * 100_000, "9" * 10_000, '{"format": "other", "version": 1, "schedule": {}}']
)
def test_what_is_no_document_is_refused(text: str) -> None:
    raised("T204", lambda: from_json(text))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 2),
        (("more",), 1),
        (("schedule",), []),
        (("schedule", "name"), 3),
        (("schedule", "nmae"), "x"),
        (("schedule", "kernel"), {}),
        (("schedule", "kernel", 0, "phase"), "MIDDLE"),
        (("schedule", "kernel", 0, "time_slot"), True),
        (("schedule", "kernel", 0, "time_slot"), "Nonsense.ONE"),
        (("schedule", "kernel", 0, "op", "tag"), -1),
        (("schedule", "trip_tiles"), [1]),
        (("schedule", "machine", "vmcnt_field"), [63]),
        (("schedule", "findings"), [{"code": "X999", "message": "unknown"}]),
    ],
)
def test_a_wrong_field_is_refused_by_its_path(path: tuple[str | int, ...], value: object) -> None:
    whole = document()
    at: Any = whole
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    finding = raised("T204", lambda: from_json(json.dumps(whole)))
    assert finding.evidence[0][0] == "at"


def test_a_missing_field_is_refused() -> None:
    whole = document()
    del whole["schedule"]["kernel"]
    assert "schedule.kernel" in raised("T204", lambda: from_json(json.dumps(whole))).message


def changed(change: Callable[[dict[str, Any]], None]) -> str:
    """What is found in the smallest document after a change to its schedule."""
    whole = document()
    change(whole["schedule"])
    return raised("T204", lambda: from_json(json.dumps(whole))).message


def without_its_first(phase: str, op: str) -> Callable[[dict[str, Any]], None]:
    def change(schedule: dict[str, Any]) -> None:
        entries = schedule[phase]
        entries.remove(next(entry for entry in entries if entry["op"]["tag"] == op))
        for slot, entry in enumerate(entries):
            entry["time_slot"] = slot
        schedule["repairs"] = []

    return change


@pytest.mark.parametrize("op", ["WAIT_VM", "WAIT_LGKM", "BARRIER"])
def test_a_certificate_is_proved_again(op: str) -> None:
    assert changed(without_its_first("kernel", f"FrameworkTag.{op}")).startswith(
        "schedule.certificate: the proof fails, R10"
    )


def test_a_certificate_with_other_terms_is_refused() -> None:
    message = changed(lambda schedule: schedule["certificate"].update(explicit_trip_counts=99))
    assert message == "schedule.certificate: the proof says something else"


def _set(*path: str | int, to: object) -> Callable[[dict[str, Any]], None]:
    def change(schedule: dict[str, Any]) -> None:
        at: Any = schedule
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (_set("kernel", 3, "time_slot", to=4), "schedule.kernel[3]"),
        (_set("kernel", 3, "phase", to="EPILOGUE"), "schedule.kernel[3]"),
        (_set("kernel", 0, "op", "tag", to=4000), "schedule.kernel[0].op.tag"),
        (_set("kernel", 0, "effect", to={"action": "NOTHING"}), "schedule.kernel[0].effect"),
        (_set("loop", to=None), "schedule.prologue[0].effect"),
        (_set("placement", to=None), "schedule.placement"),
        (_set("placement", "starts", to=[0]), "schedule.placement"),
        (_set("trip_tiles", to=[2, 10**9]), "schedule.placement"),
        (_set("repairs", 0, "slot", to=1000), "schedule.repairs[0]"),
        (_set("prologue", 0, "op", "label", to="load_B1"), "schedule.prologue"),
        (_set("prologue", 0, "effect", "writes", to=[]), "schedule.prologue"),
    ],
)
def test_parts_that_disagree_are_refused(change: Callable[[dict[str, Any]], None], path: str) -> None:
    assert changed(change).startswith(f"{path}: ")
