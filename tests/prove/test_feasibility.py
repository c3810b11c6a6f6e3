"""Alarms that no launch can come to, and their twins that one can."""

from __future__ import annotations

from typing import Any

import pytest

from rota.errors import Severity
from rota.isa.binary.kernel_facts import Argument
from rota.prove import confirmation, witness
from rota.prove.verdict import Budget, Status, Verdict
from tests.prove.written import codes, evidence, judged
from tests.wording.golden import worded

ARGUMENTS = (
    Argument(name="k", offset=0, size=4, kind="by_value"),
    Argument(name="n", offset=4, size=4, kind="by_value"),
    Argument(name="table", offset=8, size=8, kind="global_buffer"),
)


def executed(text: str, **changes: Any) -> Verdict:
    return judged(text, witness=True, **{"arguments": ARGUMENTS, "kernarg_bytes": 16, **changes})


# Each work item writes its word; another wave's word is read where the second test says so, after a barrier only
# where the first one does.
TWICE = """
s_load_dword s4, s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
v_xor_b32_e32 v2, 0x100, v1
s_waitcnt lgkmcnt(0)
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
s_bitcmp1_b32 s4, 0
s_cbranch_scc0 even
s_barrier
even:
s_and_b32 s5, s4, 3
s_cmp_eq_u32 s5, {rest}
s_cbranch_scc0 out
ds_read_b32 v3, v2
s_waitcnt lgkmcnt(0)
out:
s_nop 0
"""

# Two steps at a time: the counter ends at k, or one after it where k is odd.  Behind the loop the first test meets
# where it ended at k, the second reads where k is even.
LOOP = """
s_load_dword s4, s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
v_xor_b32_e32 v2, 0x100, v1
s_mov_b32 s5, 0
s_waitcnt lgkmcnt(0)
s_cmp_gt_i32 s4, 0
s_cbranch_scc0 out
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
again:
s_add_i32 s5, s5, {step}
s_cmp_lt_i32 s5, s4
s_cbranch_scc1 again
s_cmp_lg_u32 s5, s4
s_cbranch_scc1 past
s_barrier
past:
s_bitcmp1_b32 s4, 0
s_cbranch_scc1 out
ds_read_b32 v3, v2
s_waitcnt lgkmcnt(0)
out:
s_nop 0
"""


TWO_TESTS = {rest: any(k % 2 == 0 and k % 4 == rest for k in range(8)) for rest in range(4)}
LOOPS = {step: any(k % 2 == 0 and k % step for k in range(1, 13)) for step in (1, 2, 3, 4)}
ALL = [
    *((TWICE.format(rest=rest), feasible) for rest, feasible in TWO_TESTS.items()),
    *((LOOP.format(step=step), feasible) for step, feasible in LOOPS.items()),
]


@pytest.mark.parametrize(("text", "feasible"), ALL)
def test_an_alarm_is_dropped_where_no_launch_can_come_to_it(text: str, feasible: bool) -> None:
    """What can be is counted out: k decides alone."""
    without = judged(text)
    assert without.status is Status.ALARM
    worded(str(evidence(without, "I109")["not replayed"]))
    verdict = executed(text)
    assert verdict.status is (Status.REFUTED if feasible else Status.PROVED)
    assert verdict.dropped == (not feasible)
    worded(str(verdict))
    assert codes(verdict) == ["I109"] * feasible


@pytest.mark.parametrize(("text", "divisor", "rest"), [(TWICE.format(rest=2), 4, 2), (LOOP.format(step=3), 2, 0)])
def test_a_feasible_one_is_refuted_with_arguments(text: str, divisor: int, rest: int) -> None:
    verdict = executed(text)
    (finding,) = verdict.findings
    assert finding.severity is Severity.ERROR
    shown = evidence(verdict, "I109")
    (told,) = (each for each in str(shown["launch"]).split("; ") if each.startswith("k = "))
    assert int(told.removeprefix("k = ")) % divisor == rest
    assert str(shown["replayed"]).startswith("order ")


def test_nothing_is_dropped_where_paths_were_not_followed() -> None:
    whole = judged(LOOP.format(step=2))
    for steps in range(1, whole.statistics.steps):
        verdict = executed(LOOP.format(step=2), budget=Budget(steps=steps))
        assert verdict.dropped == 0
        assert verdict.status in {Status.UNDECIDED, Status.INCONCLUSIVE}
        if verdict.status is Status.UNDECIDED:
            told = evidence(verdict, "I109")["not replayed"]
            worded(str(told))
            break
    else:
        pytest.fail("no budget ended behind the alarm")


def test_one_way_that_is_ruled_out_does_not_speak_for_others() -> None:
    """Both ways lead to one state, and the proof follows the second no further: an alarm after it belongs to both."""
    text = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    v_xor_b32_e32 v2, 0x100, v1
    s_waitcnt lgkmcnt(0)
    ds_write_b32 v1, v0
    s_waitcnt lgkmcnt(0)
    s_bitcmp1_b32 s4, 0
    s_cbranch_scc{first} here
    s_and_b32 s6, s4, 3
    s_cmp_eq_u32 s6, {rest}
    s_cbranch_scc0 out
    here:
    s_mov_b32 s6, 0
    s_cmp_eq_u32 s5, 7
    s_cbranch_scc0 out
    ds_read_b32 v3, v2
    s_waitcnt lgkmcnt(0)
    out:
    s_nop 0
    """
    for first in (0, 1):
        for rest in (0, 1):
            verdict = executed(text.format(first=first, rest=rest))
            assert verdict.status is Status.REFUTED
            assert "n = 7" in str(evidence(verdict, "I109")["launch"])


def test_a_search_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "_MOST_QUESTIONS", 2)
    verdict = executed(LOOP.format(step=2))
    assert verdict.status is Status.UNDECIDED
    worded(str(evidence(verdict, "I109")["not replayed"]))


def test_so_has_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "_MOST_EVENTS", 1)
    verdict = executed(LOOP.format(step=2))
    assert verdict.status is Status.UNDECIDED
    worded(str(evidence(verdict, "I109")["not replayed"]))


def test_so_has_the_effort_of_z3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "EFFORT", 1)
    verdict = executed(LOOP.format(step=2))
    assert verdict.status is Status.UNDECIDED
    assert evidence(verdict, "I109")["not replayed"] == witness.NO_ANSWER


def test_so_has_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "_MOST_PATHS", 0)
    verdict = executed(LOOP.format(step=2))
    assert verdict.status is Status.UNDECIDED
    worded(str(evidence(verdict, "I109")["not replayed"]))
