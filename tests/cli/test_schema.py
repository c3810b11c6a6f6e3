"""What `rota check --json` prints about machine code keeps to the schema that the site publishes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from tests.cli.command import data
from tests.shared import shared

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "_static" / "check.schema.json").read_text("utf-8"))
RACES = "kernels/compiled/races"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("raw_sync_ok", "raw_nosync"):
        (tmp_path / f"{name}.hsaco").write_bytes(shared(f"{RACES}/{name}.gfx950.hsaco").read_bytes())
    (tmp_path / "junk.co").write_text("junk")
    return tmp_path


def check(document: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("check raw_sync_ok.hsaco", 0),
        ("check raw_sync_ok.hsaco --needed", 0),
        ("check raw_nosync.hsaco --block 256 --suggest", 1),
        ("check . --store kept", 1),
    ],
)
def test_an_answer_keeps_to_the_schema(folder: Path, command: str, status: int) -> None:
    check(data(command, status=status))


def test_changes_do_too(folder: Path) -> None:
    data("check raw_sync_ok.hsaco --store kept", status=0)
    answer = data("check . --store kept --since kept", status=1)
    assert answer["changes"]
    check(answer)


@pytest.mark.parametrize("name", ["ok", "kernels", "unread"])
def test_a_missing_field_is_noticed(folder: Path, name: str) -> None:
    answer = data("check raw_nosync.hsaco --block 256", status=1)
    del answer[name]
    with pytest.raises(jsonschema.ValidationError):
        check(answer)


def test_a_finding_of_another_form_is_noticed(folder: Path) -> None:
    answer = data("check raw_nosync.hsaco --block 256", status=1)
    answer["kernels"][0]["verdict"]["findings"][0]["code"] = 109
    with pytest.raises(jsonschema.ValidationError):
        check(answer)
