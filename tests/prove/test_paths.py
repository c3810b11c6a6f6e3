"""Paths, loops and decisions: what is followed for every argument, and what ends a proof."""

from __future__ import annotations

from rota.prove.verdict import Budget, Status
from tests.prove.written import codes, evidence, judged
from tests.wording.golden import worded

# Two buffers of a word per work item in turn, as often as an argument says.
PING_PONG = """
s_load_dword s4, s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
v_xor_b32_e32 v2, 0x100, v1
s_mov_b32 s5, 0
s_waitcnt lgkmcnt(0)
again:
s_and_b32 s6, s5, 1
s_lshl_b32 s6, s6, 9
v_add_u32_e32 v3, s6, v1
v_add_u32_e32 v4, s6, v2
ds_write_b32 v3, v0
s_waitcnt lgkmcnt(0)
{meet}
ds_read_b32 v5, v4
s_waitcnt lgkmcnt(0)
s_add_i32 s5, s5, 1
s_cmp_lt_i32 s5, s4
s_cbranch_scc1 again
"""


def test_a_loop_is_proved_for_every_trip_count() -> None:
    verdict = judged(PING_PONG.format(meet="s_barrier"))
    assert verdict.status is Status.PROVED
    assert verdict.statistics.concrete_sites == verdict.statistics.sites == 2
    assert verdict.statistics.states < 60


def test_one_buffer_is_not_enough_for_one_barrier() -> None:
    text = PING_PONG.format(meet="s_barrier").replace("s_and_b32 s6, s5, 1", "s_mov_b32 s6, 0")
    assert codes(judged(text)) == ["I109"]


def test_a_loop_without_a_barrier_races() -> None:
    assert codes(judged(PING_PONG.format(meet="s_nop 0"))) == ["I109"]


# Waves of two kinds run code of their own, as often as an argument says, one barrier apart.
ROLES = """
s_load_dword s4, s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
v_xor_b32_e32 v2, 0x100, v1
v_readfirstlane_b32 s6, v0
s_mov_b32 s5, 0
s_waitcnt lgkmcnt(0)
s_cmp_lt_u32 s6, 64
s_cbranch_scc0 second
first:
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
s_barrier
s_barrier
s_add_i32 s5, s5, 1
s_cmp_lt_i32 s5, s4
s_cbranch_scc1 first
s_branch out
second:
s_barrier
ds_read_b32 v3, v2
s_waitcnt lgkmcnt(0)
s_barrier
s_add_i32 s5, s5, {step}
s_cmp_lt_i32 s5, s4
s_cbranch_scc1 second
out:
s_nop 0
"""


def test_waves_of_two_kinds_decide_alike() -> None:
    assert judged(ROLES.format(step=1)).proved
    assert codes(judged(ROLES.format(step=1))) == []


def test_waves_that_count_differently_do_not() -> None:
    assert "I121" in codes(judged(ROLES.format(step=2)))


def test_lanes_that_are_left_out_keep_what_they_had() -> None:
    """A write under a part of EXEC doesn't end what a register held: here the other lanes' own words."""
    text = """
    v_lshlrev_b32_e32 v1, 2, v0
    v_cmp_gt_u32_e32 vcc, 64, v0
    s_and_saveexec_b64 s[4:5], vcc
    {write}
    s_or_b64 exec, exec, s[4:5]
    ds_write_b32 v1, v0
    s_waitcnt lgkmcnt(0)
    """
    assert judged(text.format(write="v_mov_b32_e32 v1, 0")).proved
    assert codes(judged(text.format(write="v_mov_b32_e32 v1, 0x100"))) == ["I109"]


def test_an_unknown_address_may_be_anywhere() -> None:
    text = """
    v_lshlrev_b32_e32 v1, 2, v0
    global_load_dword v2, v1, s[4:5]
    s_waitcnt vmcnt(0)
    {narrow}
    ds_write_b32 v2, v0
    v_add_u32_e32 v1, 0x800, v1
    ds_read_b32 v3, v1
    s_waitcnt lgkmcnt(0)
    """
    assert "I109" in codes(judged(text.format(narrow="s_nop 0")))
    shown = evidence(judged(text.format(narrow="s_nop 0")), "I109")
    worded(str(shown["bytes of LDS"]))


def test_an_unknown_instruction_ends_the_proof_with_its_name() -> None:
    verdict = judged("v_frobnicate_b32 v0, v1")
    assert verdict.status is Status.INCONCLUSIVE
    assert codes(verdict) == ["I401"]
    assert "v_frobnicate_b32" in verdict.findings[0].message


def test_a_budget_that_is_used_up_says_how_far_it_came() -> None:
    verdict = judged(PING_PONG.format(meet="s_barrier"), budget=Budget(states=2))
    assert verdict.status is Status.INCONCLUSIVE
    assert codes(verdict) == ["I402"]
    assert set(evidence(verdict, "I402")) == {"level", "ended by", "steps", "states", "paths begun"}


def test_the_block_is_an_assumption_unless_the_kernel_requires_it() -> None:
    assert len(judged("s_nop 0").assumptions) == 1
    (_, told) = judged("s_nop 0", required_workgroup=None, max_workgroup=256).assumptions
    assert told == "a workgroup has 256 work items in one dimension, the most that the kernel accepts"
