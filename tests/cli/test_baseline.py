from __future__ import annotations

from pathlib import Path

import click
import pytest

from rota.cli.output import format_baseline, new_findings, read_baseline
from rota.errors import Concern, Finding, Severity, SourceLine
from tests.wording.golden import mentions, worded


def race(first: str, second: str, index: int = 1, source: SourceLine | None = None, code: str = "I109") -> Finding:
    ends = (Concern(label=first, index=index, source=source), Concern(label=second, index=index + 1, source=source))
    return Finding(code, f"from byte {index}", concerns=ends)


def known(path: Path, *found: tuple[str, Finding]) -> Path:
    path.write_text(format_baseline(found))
    return path


READ_WRITE = race("ds_read_b32 v1, v2", "ds_write_b32 v2, v3")


def test_what_was_found_before_is_not_new_though_it_moved(tmp_path: Path) -> None:
    baseline = read_baseline(known(tmp_path / "known.json", ("old/k.co:mm", READ_WRITE)))
    moved = race("ds_read_b32 v1, v2", "ds_write_b32 v2, v3", index=40)
    assert new_findings([("new/k.co:mm", moved)], baseline) == ()


@pytest.mark.parametrize(
    ("subject", "finding"),
    [
        ("k.co:other", READ_WRITE),
        ("k.co:mm", race("ds_read_b32 v1, v2", "ds_write_b64 v2, v[4:5]")),
        ("k.co:mm", race("ds_read_b32 v1, v2", "ds_write_b32 v2, v3", code="I106")),
        ("k.co:mm", race("ds_read_b32 v1, v2", "ds_write_b32 v2, v3", source=SourceLine("mm.hip", 7))),
    ],
    ids=["kernel", "end", "code", "line"],
)
def test_another_kernel_end_or_code_is_new(tmp_path: Path, subject: str, finding: Finding) -> None:
    baseline = read_baseline(known(tmp_path / "known.json", ("k.co:mm", READ_WRITE)))
    assert new_findings([(subject, finding)], baseline) == ((subject, finding),)


def test_lines_of_source_count_more_than_registers(tmp_path: Path) -> None:
    line = SourceLine("mm.hip", 7)
    path = known(tmp_path / "known.json", ("k.co:mm", race("ds_read_b32 v1, v2", "ds_write_b32 v2, v3", source=line)))
    again = race("ds_read_b32 v9, v8", "ds_write_b32 v8, v7", source=line)
    assert new_findings([("k.co:mm", again)], read_baseline(path)) == ()


def test_found_once_more_than_known_is_new_once(tmp_path: Path) -> None:
    baseline = read_baseline(known(tmp_path / "known.json", ("k.co:mm", READ_WRITE)))
    assert len(new_findings([("k.co:mm", READ_WRITE)] * 3, baseline)) == 2


def test_notes_are_neither_kept_nor_new(tmp_path: Path) -> None:
    note = Finding("I121", "m", severity=Severity.NOTE)
    path = known(tmp_path / "known.json", ("k", note))
    assert read_baseline(path) == ()
    assert new_findings([("k", note)], ()) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"rota_baseline": 2, "known": []}',
        '{"rota_baseline": 1, "known": [{"kernel": "k"}]}',
        '{"rota_baseline": 1, "known": [{"kernel": 1, "code": "I109", "ends": []}]}',
        '{"rota_baseline": 1, "known": 3}',
    ],
)
def test_a_malformed_baseline_is_a_usage_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(click.UsageError) as caught:
        read_baseline(path)
    worded(str(caught.value))
    assert mentions(caught.value, "known.json")


def test_a_missing_one_too(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError) as caught:
        read_baseline(tmp_path / "none.json")
    worded(str(caught.value))
