"""`--format github`: one line a finding, at the author's line, escaped as GitHub asks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rota.cli.output import annotate
from rota.errors import Concern, Finding, Severity, SourceLine
from tests.cli.command import rota

ENDS = (
    Concern(label="ds_read_b32", source=SourceLine("a,b:c.hip", 7)),
    Concern(label="ds_write_b32", source=SourceLine("other.h", 4)),
    Concern(label="ds_read_b32", source=SourceLine("a,b:c.hip", 7)),
)


def test_both_lines_are_marked_and_everything_is_escaped() -> None:
    error, notice = annotate([Finding("I109", "50% : a,b\r", concerns=ENDS)])
    assert error.startswith("::error file=a%2Cb%3Ac.hip,line=7,title=rota I109::error[I109]: 50%25 : a,b%0D%0A")
    assert "\n" not in error
    assert notice.startswith("::notice file=other.h,line=4,title=rota I109::the other end of I109 at a,b:c.hip:7")


def test_the_severity_is_githubs_and_notes_are_left_out() -> None:
    told = [Finding("I109", "m", severity=each) for each in Severity]
    assert [line.partition("::m")[0].partition("I109]")[0] for line in annotate(told)] == [
        "::error title=rota I109::error[",
        "::warning title=rota I109::warning[",
    ]


@pytest.mark.parametrize("workspace", ["", "one"])
def test_files_are_told_from_the_root_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workspace: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / workspace) if workspace else "")
    file = tmp_path / workspace / "src" / "k.hip"
    found = Finding("I109", "m", concerns=(Concern(label="x", source=SourceLine(str(file), 3)),))
    assert "file=src/k.hip,line=3," in next(annotate([found]))
    outside = SourceLine("/usr/include/k.h", 1)
    found = Finding("I109", "m", concerns=(Concern(label="x", source=outside),))
    assert "file=/usr/include/k.h,line=1," in next(annotate([found]))


def test_check_marks_the_lines_of_a_schedule() -> None:
    result = rota("check four_wave --set sync=strict --format github")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert all(
        re.match(r"::(error|notice) file=src/rota/kernels/four_wave.py,line=\d+,title=rota R10[23]::", line)
        for line in lines
    )
    assert {line.partition(" ")[0] for line in lines} == {"::error", "::notice"}


def test_check_says_ok_as_ever() -> None:
    result = rota("check ping_pong --format github")
    assert (result.exit_code, result.stdout.startswith("ok  ping_pong")) == (0, True)


def test_json_is_a_format() -> None:
    assert rota("check ping_pong --format json").stdout == rota("check ping_pong --json").stdout
