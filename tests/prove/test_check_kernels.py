"""The table of shipped kernels: what counts as clean but for wait states, and a batch that goes on where it ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rota.errors import Finding, IsaError, Severity
from rota.prove.verdict import Statistics, Verdict, status_of
from tests.campaigns.machine_code import check_kernels
from tests.campaigns.machine_code.check_kernels import (
    EARLY,
    NOTES,
    OTHERS,
    PROVED,
    UNREAD,
    WAITS,
    kind_of,
    main,
    row_of,
    summary,
)

_WAIT = Finding("I104", "v_fma_f32 uses v30 1 wait state too early", severity=Severity.WARNING)
_RACE = Finding("I109", "a race", severity=Severity.WARNING)
_NOTE = Finding("I121", "fewer barriers", severity=Severity.NOTE)
_SPENT = Finding("I402", "the budget of seconds is used up")


def _verdict(*findings: Finding) -> Verdict:
    complete = _SPENT not in findings
    return Verdict(
        kernel="k", arch="gfx950", status=status_of(findings, complete=complete), findings=findings, assumptions=(),
        policies=(), statistics=Statistics(),
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
    assert told.endswith("\n".join(["", *summary(kept)]) + "\n")
    assert (
        "2 of    3 complete; 1 clean but for wait states, 1 with other alarms, 1 not read; I104 in 1, I109 in 1" in told
    )
    assert "wait states: uses: in 1" in told
