"""What ends a proof: steps, the same on every machine; seconds only where somebody asks for them, and by name."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

from rota.prove import verdict as verdicts
from rota.prove.kernel_proof import prove_object
from rota.prove.verdict import Budget, Meter, Status, Verdict
from rota.prove.witness import Feasibility
from tests.campaigns.shared_folder import shared_folder
from tests.cli.command import rota
from tests.prove.written import codes, evidence, judged
from tests.shared import shared
from tests.wording.golden import worded

LOADED = "s_load_dword s4, s[0:1], 0x0\ns_waitcnt lgkmcnt(0)"
FOREVER = f"{LOADED}\nL1:\ns_add_u32 s4, s4, 1\ns_cmp_eq_u32 s4, 7\ns_cbranch_scc0 L1"
COMPILED = "kernels/compiled"
SHARE = 9  # every ninth object; python -m benchmarks.same_verdicts judges all


def slow(monkeypatch: pytest.MonkeyPatch, by: float) -> None:
    """A clock by which every look at it takes as long as on a machine that is so many times slower."""
    ticks = itertools.count()
    monkeypatch.setattr("rota.prove.verdict.time", SimpleNamespace(process_time=lambda: by * next(ticks)))


def told(verdict: Verdict) -> tuple[object, ...]:
    """All that a verdict says but how long it took."""
    took = verdict.statistics
    return verdict.status, verdict.findings, verdict.assumptions, verdict.dropped, took.steps, took.states, took.effort


def test_steps_end_a_proof_and_say_so() -> None:
    verdict = judged(FOREVER, budget=Budget(steps=5))
    assert verdict.status is Status.INCONCLUSIVE
    assert evidence(verdict, "I402")["ended by"] == "steps"
    assert verdict.statistics.effort < 100


def test_seconds_end_one_only_if_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = judged(FOREVER)
    slow(monkeypatch, 1e6)
    assert told(judged(FOREVER)) == told(plain)
    verdict = judged(FOREVER, budget=Budget(seconds=60))
    assert evidence(verdict, "I402")["ended by"] == "seconds"


def test_reading_a_kernel_counts() -> None:
    long = "s_nop 0\n" * 1200
    assert evidence(judged(long, budget=Budget(steps=300)), "I402")["ended by"] == "steps"
    assert evidence(judged(long, budget=Budget(seconds=0.05)), "I402")["ended by"] == "seconds"
    assert judged(long).proved


def test_the_search_for_a_launch_ends_by_the_same_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "LEAST_SEARCH", 0)
    race = "v_mov_b32_e32 v1, 0\nds_write_b32 v1, v0"
    assert judged(race, witness=True).status is Status.REFUTED
    verdict = judged(race, witness=True, budget=Budget(steps=6))
    assert verdict.status is Status.ALARM
    assert "steps" in str(evidence(verdict, "I109")["not replayed"])


def test_no_launch_is_looked_for_where_paths_are_not_in_question(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> None:
        pytest.fail("z3 was asked")

    monkeypatch.setattr(Feasibility, "find", asked)
    waits = "v_readfirstlane_b32 s4, v0\nv_mov_b32_e32 v1, s4"  # too few states between
    assert "I104" in codes(judged(waits, witness=True))


def test_a_search_may_take_a_quarter_of_what_a_proof_may() -> None:
    counted = Meter(Budget(steps=100_000))
    counted.spend(120_000)
    ended = [counted.exceeded]
    counted.allow_search()
    ended.append(counted.exceeded)
    assert counted.units_left == 3_500_000
    counted.spend(units=3_600_000)
    assert [*ended, counted.exceeded] == ["steps", "", "steps"]


def files() -> list[Path]:
    return sorted(shared_folder(COMPILED).rglob("*.hsaco"))[::SHARE]


@pytest.mark.parametrize("name", [str(each.relative_to(shared_folder(COMPILED))) for each in files()])
def test_a_slower_machine_gives_the_same_verdict(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = shared(f"{COMPILED}/{name}")
    before = [*map(told, prove_object(file))]
    slow(monkeypatch, 10.0)
    assert [*map(told, prove_object(file))] == before


def test_the_command_names_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "k.hsaco"
    file.write_bytes(shared(f"{COMPILED}/h_warpreduce.gfx950.hsaco").read_bytes())
    result = rota(f"check {file} --steps 400 --fail-on undecided")
    assert result.exit_code == 1
    worded(result.stdout)
