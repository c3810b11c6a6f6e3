from __future__ import annotations

from pathlib import Path

import click
import pytest

from rota.cli.output import format_baseline, read_baseline
from rota.errors import Concern, Finding, Severity, SourceLine
from rota.fleet.known_finding import identify, new_findings, split_subject
from tests.wording.golden import mentions, worded


def race(first: str, second: str, index: int = 1, source: SourceLine | None = None, code: str = "I109") -> Finding:
    ends = (Concern(label=first, index=index, source=source), Concern(label=second, index=index + 1, source=source))
    return Finding(code, f"from byte {index}", concerns=ends)


def known(path: Path, *found: tuple[str, Finding]) -> Path:
    path.write_text(format_baseline(found))
    return path


READ_WRITE = race("ds_read_b32 v1, v2", "ds_write_b32 v2, v3")


def test_what_was_found_before_is_not_new_though_it_moved(tmp_path: Path) -> None:
    baseline = read_baseline(known(tmp_path / "known.json", ("k.co:mm", READ_WRITE)))
    moved = race("ds_read_b32 v1, v2", "ds_write_b32 v2, v3", index=40)
    assert new_findings([("k.co:mm", moved)], baseline) == ()


@pytest.mark.parametrize(
    ("subject", "finding"),
    [
        ("k.co:other", READ_WRITE),
        ("other/k.co:mm", READ_WRITE),
        ("k.co:mm", race("ds_read_b32 v1, v2", "ds_write_b64 v2, v[4:5]")),
        ("k.co:mm", race("ds_read_b32 v1, v2", "ds_write_b32 v2, v3", code="I106")),
        ("k.co:mm", race("ds_read_b32 v1, v2", "ds_write_b32 v2, v3", source=SourceLine("mm.hip", 7))),
    ],
    ids=["kernel", "file", "end", "code", "line"],
)
def test_another_kernel_end_or_code_is_new(tmp_path: Path, subject: str, finding: Finding) -> None:
    baseline = read_baseline(known(tmp_path / "known.json", ("k.co:mm", READ_WRITE)))
    assert new_findings([(subject, finding)], baseline) == ((subject, finding),)


@pytest.mark.parametrize(
    ("line", "same"),
    [
        (SourceLine("mm.hip", 7, "x = tile[t];"), True),
        (SourceLine("mm.hip", 12, "x  =  tile[t];"), True),  # a comment more above, and other blanks
        (SourceLine("elsewhere/mm.hip", 7, "x = tile[t];"), True),
        (SourceLine("mm.hip", 7, "x = tile[t + 1];"), False),
        (SourceLine("other.hip", 7, "x = tile[t];"), False),
    ],
)
def test_text_of_source_counts_more_than_its_line_and_registers(line: SourceLine, same: bool, tmp_path: Path) -> None:
    first = race("ds_read_b32 v1, v2", "ds_write_b32 v2, v3", source=SourceLine("mm.hip", 7, "x = tile[t];"))
    again = race("ds_read_b32 v9, v8", "ds_write_b32 v8, v7", source=line)
    found = new_findings([("k.co:mm", again)], read_baseline(known(tmp_path / "known.json", ("k.co:mm", first))))
    assert (found == ()) is same
    assert (identify("k.co:mm", first).fingerprint == identify("k.co:mm", again).fingerprint) is same


@pytest.mark.parametrize(
    ("subject", "parts"),
    [
        ("a/k.co:mm", ("a/k.co", "mm")),
        ("k.hip", ("k.hip", "")),
        ("k.co:_ZN2ns1kEv", ("k.co", "_ZN2ns1kEv")),
        ("", ("", "")),
    ],
)
def test_a_subject_is_a_file_and_a_kernel(subject: str, parts: tuple[str, str]) -> None:
    assert split_subject(subject) == parts


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
        '{"rota_baseline": 1, "known": []}',
        '{"rota_baseline": 2, "known": [{"kernel": "k"}]}',
        '{"rota_baseline": 2, "known": [{"file": "", "kernel": 1, "code": "I109", "ends": []}]}',
        '{"rota_baseline": 2, "known": 3}',
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
