"""The table of shipped kernels: what counts as clean but for wait states, and a batch that goes on where it ended."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rota.errors import Finding, IsaError, Severity
from rota.prove.causes import mark_level
from rota.prove.verdict import Budget, Statistics, Verdict, status_of
from tests.campaigns.machine_code import check_kernels
from tests.campaigns.machine_code.check_kernels import (
    EARLY,
    NOTES,
    OTHERS,
    PROVED,
    UNREAD,
    WAITS,
    kind_of,
    level_table,
    main,
    row_of,
    summary,
)

_WAIT = Finding("I104", "v_fma_f32 uses v30 1 wait state too early", severity=Severity.WARNING)
_RACE = Finding("I109", "a race", severity=Severity.WARNING)
_NOTE = Finding("I121", "fewer barriers", severity=Severity.NOTE)
_SPENT = Finding("I402", "the budget of seconds is used up")
_LLVM = replace(_WAIT, evidence=(("source", "LLVM alone"),))
_UNKNOWN = Finding("I401", "the proof doesn't know v_new")


def _verdict(*findings: Finding) -> Verdict:
    complete = _SPENT not in findings
    findings = tuple(map(mark_level, findings))
    return Verdict(
        kernel="k", arch="gfx950", status=status_of(findings, complete=complete), findings=findings, assumptions=(),
        policies=(), statistics=Statistics(), pairs=((),) * len(findings),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("findings", "kind"),
    [
        ((), PROVED),
        ((_NOTE,), PROVED),
        ((_WAIT, _WAIT), WAITS),
        ((_WAIT, _NOTE), NOTES),
        ((_WAIT, _NOTE, _RACE), OTHERS),
        ((_RACE,), OTHERS),
        ((_WAIT, _SPENT), EARLY),
        ((_SPENT,), EARLY),
    ],
)
def test_wait_states_count_apart_only_in_complete_proofs(findings: tuple[Finding, ...], kind: str) -> None:
    assert kind_of(row_of(_verdict(*findings))) == kind


def test_a_batch_goes_on_where_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []
    found = {"one": (_WAIT,), "two": (_RACE,)}

    def proved(file: Path, **_: object) -> tuple[Verdict, ...]:
        asked.append(file.stem)
        if file.stem not in found:
            raise IsaError(_SPENT)
        return (_verdict(*found[file.stem]),)

    monkeypatch.setattr(check_kernels, "prove_object", proved)
    (tmp_path / "gfx950" / "gemm").mkdir(parents=True)
    for name in ("bad", "one", "two"):
        (tmp_path / "gfx950" / "gemm" / f"{name}.co").touch()
    rows = tmp_path / "rows"
    for patterns in (["two"], ["two", ""]):
        with pytest.raises(SystemExit):
            main(["--folder", str(tmp_path / "gfx950"), "--rows", str(rows), *patterns])
    assert asked == ["two", "bad", "one"]
    kept = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [(row["file"], kind_of(row)) for row in kept] == [
        ("gemm/two.co", OTHERS), ("gemm/bad.co", UNREAD), ("gemm/one.co", WAITS)
    ]  # fmt: skip
    told = capsys.readouterr().out
    assert told.endswith("\n".join(["", *summary(kept), "", level_table(kept)]) + "\n")
    assert (
        "2 of    3 complete; 1 clean but for wait states, 1 with other alarms, 1 not read; I104 in 1, I109 in 1" in told
    )
    assert "wait states: uses: in 1" in told


def test_the_table_of_levels_counts_objects_by_the_worst_of_their_kernels() -> None:
    objects: dict[str, list[tuple[Finding, ...]]] = {
        "clean": [(_LLVM, _NOTE)],
        "spent": [(_LLVM, _SPENT)],
        "unknown": [(_UNKNOWN,)],
        "race": [(), (_RACE, _SPENT)],
        "wait": [(_WAIT,)],
    }
    rows = [
        {"file": name, "family": "gemm"} | row_of(_verdict(*findings)) | {"seconds": 2.0}
        for name, kernels in objects.items()
        for findings in kernels
    ]
    head, _, gemm, every = level_table(json.loads(json.dumps(rows))).splitlines()
    columns = [[cell.strip() for cell in line.strip("|").split("|")] for line in (head, gemm, every)]
    assert columns[1][1:] == columns[2][1:]
    assert dict(zip(columns[0], columns[1], strict=True)) == {
        "family": "gemm", "objects": "5", "nothing at required": "1", "undecided by budget": "1", "not modelled": "1",
        "required": "2", "not read": "0", "budget used up": "2", "median CPU s": "2.0", "most CPU s": "4.0",
    }  # fmt: skip


def test_every_so_many_objects_of_a_history_are_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"hsa/gfx950/gemm/{number}.co" for number in range(5)]
    monkeypatch.setattr(check_kernels, "list_objects", lambda folder, under: names)
    monkeypatch.setattr(check_kernels, "read_version", lambda folder, commit, path: path.encode())
    asked: list[tuple[object, Budget]] = []

    def proved(source: bytes, budget: Budget, **_: object) -> tuple[Verdict, ...]:
        asked.append((source, budget))
        return (_verdict(),)

    monkeypatch.setattr(check_kernels, "prove_object", proved)
    with pytest.raises(SystemExit):
        main(["--history", str(tmp_path), "--every", "2", "--steps", "7", "--seconds", "3"])
    assert asked == [(names[at].encode(), Budget(steps=7, seconds=3)) for at in (0, 2, 4)]
    assert "gemm " in capsys.readouterr().out
