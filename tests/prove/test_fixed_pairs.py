"""The measure of verdicts on public fixes: lines are aligned, and a cause counts only where something was repaired."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rota.errors import Concern, Finding, Severity
from rota.prove.causes import mark_level, pair_of
from rota.prove.verdict import Budget, Statistics, Verdict, status_of
from tests.campaigns.history import list_objects, read_version
from tests.campaigns.machine_code import fixed_pairs
from tests.campaigns.machine_code.fixed_pairs import (
    CONTROLS,
    NEAR,
    ONE_SOURCE,
    REQUIRED,
    SHOWN,
    UNDECIDED,
    Cause,
    Control,
    Judged,
    Pair,
    Proved,
    Prover,
    align,
    compare,
    judge_controls,
    list_changes,
    main,
    ranked,
    steps_of,
    sum_up,
    sum_up_controls,
)
from tests.shared import shared

# A read of LDS, a wait with a barrier, a load to LDS that overwrites what was read, twice.
_READ, _WAIT, _BARRIER, _LOAD = "ds_read_b32 v1, v0", "s_waitcnt lgkmcnt(1)", "s_barrier", "buffer_load_dword v2, lds"
_LISTING = (_READ, _WAIT, _BARRIER, _LOAD, "v_add_f32 v3, v1, v1", _READ, _WAIT, _BARRIER, _LOAD, "s_endpgm")


def _proved(texts: tuple[str, ...], *pairs: Pair, code: str = "I109", level: str = REQUIRED) -> Proved:
    causes = [Cause(rank=rank, level=level, code=code, pairs=(pair,)) for rank, pair in enumerate(pairs, 1)]
    found = frozenset((code, pair) for pair in pairs)
    return Proved(texts=texts, causes=tuple(causes), found=found, seconds=1, steps=1, states=1, early="")


def _compare(before: Proved, after: Proved) -> Judged:
    return compare(before, after, fix="1", step="1", path="a.co", counts=True)


def _but(texts: tuple[str, ...], at: int, *new: str, gone: int = 1) -> tuple[str, ...]:
    return (*texts[:at], *new, *texts[at + gone :])


def test_equal_listings_have_no_repaired_place() -> None:
    alignment = align(_LISTING, _LISTING)
    assert (alignment.hunks, alignment.places) == (0, ())
    assert all(alignment.carry((at, at)) == (at, at) for at in range(len(_LISTING)))
    assert not alignment.is_repaired((0, len(_LISTING) - 1))


@pytest.mark.parametrize(
    ("after", "carried"),
    [
        (_but(_LISTING, 1, "s_waitcnt lgkmcnt(0)"), (0, 3)),  # a count
        (_but(_LISTING, 2, gone=1), (0, 2)),  # one removed
        (_but(_LISTING, 3, "s_nop 4", gone=0), (0, 4)),  # one inserted before the second end
    ],
)
def test_a_pair_is_repaired_if_it_encloses_what_changed(after: tuple[str, ...], carried: Pair) -> None:
    alignment = align(_LISTING, after)
    assert alignment.is_repaired((0, 3))
    assert not alignment.is_repaired((5, 8))
    assert alignment.carry((0, 3)) == carried


def test_what_is_inserted_before_a_pair_is_not_inside_it() -> None:
    alignment = align(_LISTING, _but(_LISTING, 5, _BARRIER, gone=0))
    assert not alignment.is_repaired((5, 8))
    assert alignment.is_repaired((4, 8))
    assert alignment.carry((5, 8)) == (6, 9)


def test_a_pair_that_lies_far_apart_is_at_no_place() -> None:
    long = (_READ, _WAIT, *(f"v_mov_b32 v9, {number}" for number in range(NEAR)), _LOAD)
    alignment = align(long, _but(long, 1, "s_waitcnt lgkmcnt(0)"))
    assert alignment.is_repaired((0, NEAR))
    assert not alignment.is_repaired((0, NEAR + 1))


def test_a_moved_memory_op_is_a_repaired_place_and_is_followed() -> None:
    moved = (_READ, _LOAD, "v_mov_b32 v9, 0", "v_mov_b32 v8, 0", _WAIT, _BARRIER)
    after = (_READ, "v_mov_b32 v9, 0", "v_mov_b32 v8, 0", _WAIT, _BARRIER, _LOAD)
    alignment = align(moved, after)
    assert {each.text for each in alignment.places} == {_LOAD}
    assert alignment.is_repaired((0, 1))
    assert alignment.carry((0, 1)) == (0, 5)


def test_an_offset_is_a_repair_and_other_registers_are_none() -> None:
    texts = ("ds_write_b32 v1, v2 offset:16", _WAIT, "ds_read_b32 v3, v4 offset:16")
    shifted = align(texts, _but(texts, 2, "ds_read_b32 v3, v4 offset:1040"))
    assert shifted.is_repaired((0, 2))
    renamed = align(texts, ("ds_write_b32 v11, v2 offset:16", _WAIT, "ds_read_b32 v[3:4], v14 offset:16"))
    assert renamed.places == ()
    assert shifted.carry((0, 2)) == renamed.carry((0, 2)) == (0, 2)


def test_arithmetic_that_changes_repairs_nothing() -> None:
    assert align(_LISTING, _but(_LISTING, 4, "v_mul_f32 v3, v1, v1")).places == ()


def test_the_first_cause_at_the_place_that_is_gone_singles_a_fix_out() -> None:
    after = _but(_LISTING, 6, "s_waitcnt lgkmcnt(0)")
    before = _proved(_LISTING, (0, 3), (4, 8), (5, 8))
    found = _compare(before, _proved(after, (0, 3), (4, 8)))
    assert (found.first, found.at, found.rank, found.causes, found.pairs) == (2, 2, 3, (3, 2), (3, 2))
    assert (found.code, found.level, found.ends) == ("I109", REQUIRED, (_READ, _LOAD))


@pytest.mark.parametrize(
    ("left", "why"),
    [
        (((0, 3), (5, 8)), "it stays"),
        (((5, 8),), "it stays, and another one goes that is at no place"),
        (((0, 3), (1, 2)), "it goes, and another one of its code comes"),
    ],
)
def test_nothing_singles_a_fix_out_if(left: tuple[Pair, ...], why: str) -> None:
    after = _but(_LISTING, 6, "s_waitcnt lgkmcnt(0)")
    found = _compare(_proved(_LISTING, (0, 3), (5, 8)), _proved(after, *left))
    assert (found.first, found.rank) == (2, 0), why


def test_a_pair_whose_instruction_has_no_counterpart_is_not_called_gone() -> None:
    after = (*_LISTING[:6], "s_waitcnt lgkmcnt(0)", _BARRIER, "v_rewritten v0", "s_endpgm")
    found = _compare(_proved(_LISTING, (5, 8)), _proved(after))
    assert (found.first, found.rank) == (1, 0)


def test_where_a_proof_ended_early_only_pairs_at_the_place_are_counted() -> None:
    after = _but(_LISTING, 6, "s_waitcnt lgkmcnt(0)")
    before, later = _proved(_LISTING, (5, 8)), _proved(after, (0, 3))
    assert _compare(before, later).rank == 0
    early = _compare(before, replace(later, early="steps"))
    assert (early.rank, early.pairs, early.early) == (1, (1, 0), ("", "steps"))
    assert _compare(before, replace(_proved(after, (4, 8)), early="steps")).rank == 0


def test_another_code_at_the_same_place_is_no_stay() -> None:
    after = _but(_LISTING, 6, "s_waitcnt lgkmcnt(0)")
    assert _compare(_proved(_LISTING, (5, 8)), _proved(after, (5, 8), code="I103")).rank == 1


def test_controls_report_required_causes_that_went_and_not_those_that_moved() -> None:
    after = ("v_mov_b32 v9, 0", *_LISTING)
    before = _proved(_LISTING, (0, 3), (5, 8))
    assert list_changes(before, _proved(after, (1, 4), (6, 9))) == ()
    assert list_changes(before, _proved(after, (6, 9))) == (), "the same two texts are found elsewhere"
    assert list_changes(before, _proved(after, (2, 3))) == (
        f"I109 at rank 1: {_READ} and {_LOAD}",
        f"I109 at rank 2: {_READ} and {_LOAD}",
    )
    assert list_changes(_proved(_LISTING, (0, 3), level=ONE_SOURCE), _proved(after)) == ()


def test_findings_are_ranked_as_the_verdict_has_them() -> None:
    ends = (Concern(label="a", index=9), Concern(label="b", index=4))
    findings: tuple[Finding, ...] = (
        Finding("I104", "w", concerns=ends, severity=Severity.WARNING, evidence=(("source", "LLVM alone"),)),
        Finding("I104", "w", concerns=ends, severity=Severity.WARNING, evidence=(("source", "AMD's manual"),)),
        Finding("I109", "r", concerns=ends, evidence=(("level", SHOWN),)),
        Finding("I105", "b", concerns=ends[:1], severity=Severity.WARNING, evidence=(("undecided", "the block"),)),
        Finding("I304", "n", severity=Severity.NOTE),
        Finding("I402", "the budget of steps is used up"),
    )
    findings = tuple(map(mark_level, findings))
    verdict = Verdict(
        kernel="k", arch="gfx950", status=status_of(findings, complete=False), findings=findings, assumptions=(),
        policies=(), statistics=Statistics(), pairs=tuple((pair_of(each),) for each in findings),
    )  # fmt: skip
    assert [(each.rank, each.level, each.code, each.pairs) for each in ranked(verdict)] == [
        (1, ONE_SOURCE, "I104", ((9, 4),)),
        (2, REQUIRED, "I104", ((9, 4),)),
        (3, SHOWN, "I109", ((9, 4),)),
        (4, UNDECIDED, "I105", ((9,),)),
    ]


def test_fixes_count_once_and_with_their_best_object() -> None:
    states = [{"state": name, "file": f"{name}.co"} for name in ("before", "failed", "after")]
    chain = {
        "id": "2507",
        "kind": "sync",
        "arch": "gfx950",
        "path": "c.co",
        "before": "b",
        "after": "a",
        "states": states,
    }
    plain = chain | {"id": "2471first", "states": []}
    other = [chain | {"kind": "bounds"}, chain | {"arch": "gfx1250"}]
    steps = [*steps_of([chain, plain, *other])]
    assert [(step.fix, step.name, step.files, step.counts) for step in steps] == [
        ("2507", "2507", ("b", "a"), True),
        ("2507", "before->failed", ("before.co", "failed.co"), False),
        ("2507", "failed->after", ("failed.co", "after.co"), False),
        ("2471", "2471first", ("b", "a"), True),
    ]
    judged = [
        Judged(fix=step.fix, step=step.name, path=step.path, counts=step.counts, rank=rank, level=REQUIRED)
        for step, rank in zip(steps, (0, 1, 2, 5), strict=True)
    ]
    told, held, total = sum_up([*judged, Judged(fix="2471", step="2471", path="d.co", counts=True, rank=3)])
    assert re.findall(r"\d+", total)[:5] == ["2", "1", "1", "3", "1"]  # fixes; one at rank 1 to 3; one at any rank
    assert re.findall(r"\d+", held) == ["2507", "2587", "2", "0", "0"]  # the fixes, the rank, pairs of its code
    assert [line.split()[1:8:2] for line in told.splitlines() if line.startswith("| 2")] == [
        ["2507", "1", "0", "-"],
        ["2471", "2", "2", "3"],
    ]


def test_the_controls_are_whole_entries_and_no_fixes() -> None:
    entries = json.loads(CONTROLS.read_text())
    assert len(entries) >= 12
    assert len({(each["commit"], each["path"]) for each in entries}) == len(entries)
    for each in entries:
        assert all(len(each[name]) == 40 for name in ("commit", "parent"))
        assert all(len(each[f"{state}_sha256"]) == 64 for state in ("before", "after"))
        assert each["before_sha256"] != each["after_sha256"]
        assert each["path"].startswith(("hsa/gfx942/", "hsa/gfx950/"))
        assert each["differs"]
        assert each["title"]


def test_objects_come_out_of_a_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
        return subprocess.run(
            ["git", "-C", str(tmp_path), *who, *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    git("init", "-q")
    commits = []
    for contents in (b"one", b"two"):
        (tmp_path / "k.co").write_bytes(contents)
        (tmp_path / "note.txt").write_bytes(contents)
        git("add", "-A")
        git("commit", "-q", "-m", "a")
        commits.append(git("rev-parse", "HEAD"))
    assert list_objects(tmp_path, ".") == ["k.co"]
    assert read_version(tmp_path, commits[0], "k.co") == b"one"
    entry = {
        "commit": commits[1], "parent": commits[0], "path": "k.co", "differs": "nothing",
        "before_sha256": hashlib.sha256(b"one").hexdigest(), "after_sha256": hashlib.sha256(b"two").hexdigest(),
    }  # fmt: skip
    table = tmp_path / "controls.json"
    table.write_text(json.dumps([entry, entry | {"path": "absent.co"}]))
    monkeypatch.setattr(fixed_pairs, "CONTROLS", table)
    found = {b"one": _proved(_LISTING, (0, 3)), b"two": _proved(_LISTING, (1, 2))}
    prover = Prover(Budget())
    monkeypatch.setattr(prover, "prove", found.__getitem__)
    one, absent = judge_controls(tmp_path, prover)
    assert (len(one.came), len(one.went), one.causes) == (1, 1, (1, 1))
    assert absent == Control(commit=commits[1], path="absent.co", differs="nothing", error="not in the history")
    assert [*sum_up_controls([one, absent])][-1] == "1 of 2 controls proved: something came or went in 1"


def test_without_a_history_controls_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ROTA_HISTORY", raising=False)
    (tmp_path / "PAIRS.json").write_text("[]")
    assert main(["--folder", str(tmp_path)]) == 0
    assert "controls: not run" in capsys.readouterr().out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("names", "code", "most"),
    [
        (("751_before", "751_after", "gfx950__f4gemm__f4gemm_bf16_per1x32Fp4_BpreShuffle_192x256"), "I109", 3),
        (
            ("2507_failed", "2587_after", "gfx950__fmoe__silu__fmoe_bf16_blockscaleFp8_g1u1_vs_silu_1tg_ps_64x128"),
            "I109",
            3,
        ),
    ],
)
def test_a_public_fix_is_singled_out(names: tuple[str, str, str], code: str, most: int) -> None:
    prover = Prover(Budget())
    *states, name = names
    before, after = (prover.prove(shared(f"kernels/pairs/{state}__{name}.co").read_bytes()) for state in states)
    found = _compare(before, after)
    assert 0 < found.rank <= most
    assert (found.code, found.level, found.early) == (code, SHOWN, ("", ""))
    assert found.pairs[1] < found.pairs[0] / 2
    assert _compare(after, before).rank == 0, "the other way round nothing is repaired"
    assert _compare(before, before).at == 0
