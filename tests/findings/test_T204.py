from __future__ import annotations

import json
from typing import Any

import pytest

from rota.emit.exchange import from_json, to_json
from tests.emit.kernels import SMALL_MI300X, by_values
from tests.findings.smallest import raised


def document() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(to_json(by_values(SMALL_MI300X)[0]))
    return read


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "other", "version": 1, "schedule": {}}'])
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
