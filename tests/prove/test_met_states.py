"""States that meet: what becomes one, what stays apart, and that neither hides a race."""

from __future__ import annotations

import pytest

from rota.prove.decisions import Decisions, join_decisions
from rota.prove.kernel_proof import prove_object
from rota.prove.seen_states import SeenStates
from rota.prove.symbol import GROUP, M32, Linear, Symbols
from tests.prove.written import codes, judged
from tests.shared import shared

# Each wave writes its own words and reads those of the other one.
START = """
v_lshlrev_b32_e32 v1, 2, v0
v_xor_b32_e32 v2, 0x100, v1
s_load_dwordx8 s[8:15], s[0:1], 0x0
s_load_dwordx8 s[16:23], s[0:1], 0x20
s_waitcnt lgkmcnt(0)
"""
HANDOVER = """
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
{meet}
ds_read_b32 v3, v2
s_waitcnt lgkmcnt(0)
"""


def _diamonds(body: str) -> str:
    return "".join(
        f"s_cmp_lt_u32 s{8 + number}, {number + 3}\ns_cbranch_scc0 past{number}\n{body.format(number=number)}\n"
        f"past{number}:\ns_nop 0\n"
        for number in range(16)
    )


def test_decisions_that_leave_no_trace_do_not_multiply() -> None:
    """Sixteen branches around stores are 65,536 paths, and one state after each."""
    text = START + _diamonds("global_store_dword v1, v0, s[4:5]") + HANDOVER
    verdict = judged(text.format(meet="s_barrier"))
    assert verdict.proved
    assert verdict.statistics.states < 60
    assert codes(judged(text.format(meet="s_nop 0"))) == ["I109"]


def test_a_decision_that_skips_a_barrier_stays_one() -> None:
    text = START + _diamonds("global_store_dword v1, v0, s[4:5]") + HANDOVER
    skipped = "s_cmp_eq_u32 s9, 0\ns_cbranch_scc1 on\ns_barrier\non:\ns_nop 0"
    assert codes(judged(text.format(meet=skipped))) == ["I109"]


def test_flags_in_a_register_become_unknown_at_last() -> None:
    """A mask of what is still to come has 256 values, of which no address depends on any."""
    cleared = "".join(
        f"s_load_dword s24, s[4:5], {4 * bit} glc\ns_waitcnt lgkmcnt(0)\ns_cmp_eq_u32 s24, 4\ns_cbranch_scc0 not{bit}\n"
        f"s_and_b32 s25, s25, {~(1 << bit) & 0xFF}\nnot{bit}:\ns_nop 0\n"
        for bit in range(8)
    )
    spin = f"s_movk_i32 s25, 0xff\nspin:\n{cleared}s_cmp_eq_u32 s25, 0\ns_cbranch_scc0 spin\n"
    verdict = judged(START + spin + HANDOVER.format(meet="s_barrier"))
    assert verdict.proved
    assert verdict.statistics.states < 1000
    assert codes(judged(START + spin + HANDOVER.format(meet="s_nop 0"))) == ["I109"]


def test_waves_that_have_ended_are_alike() -> None:
    """Whatever a wave has stored in the end, only what it does to LDS can matter to others."""
    ways = "".join(
        f"v_cmp_gt_u32_e32 vcc, s{8 + number}, v0\ns_and_b64 exec, exec, vcc\ns_cbranch_execz out\n"
        f"global_store_dword v1, v0, s[4:5] offset:{4 * number}\n"
        for number in range(12)
    )
    load = "s_mov_b32 m0, 0x800\ns_nop 0\nbuffer_load_dword v1, s[28:31], 0 offen lds\n"
    for early, found in (("", []), (load, ["I403"])):
        verdict = judged(START + early + ways + "out:\ns_nop 0\n", waves=4)
        assert [code for code in codes(verdict) if code != "I109"] == found
        assert verdict.statistics.states < 200


# What is written and read if an argument says so, with a barrier between if one does.
GUARDED = (
    START
    + """
s_cmp_eq_u32 {first}, 0
s_cbranch_scc1 one
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
one:
s_cmp_eq_u32 {second}, 0
s_cbranch_scc1 two
s_barrier
two:
s_cmp_eq_u32 {first}, 0
s_cbranch_scc1 three
ds_read_b32 v3, v2
s_waitcnt lgkmcnt(0)
three:
s_nop 0
"""
)


def test_a_decision_whose_trace_is_left_stays_known() -> None:
    assert judged(GUARDED.format(first="s8", second="s8")).proved
    assert codes(judged(GUARDED.format(first="s8", second="s9"))) == ["I109"]


@pytest.mark.parametrize(("cached", "found"), [("", []), (" glc", ["I109"])])
def test_memory_that_is_read_past_the_cache_may_change(cached: str, found: list[str]) -> None:
    loads = f"s_load_dword s8, s[4:5], 0x0{cached}\ns_load_dword s9, s[4:5], 0x0{cached}\ns_waitcnt lgkmcnt(0)\n"
    text = GUARDED.format(first="s8", second="s9").replace(START, START + loads)
    assert ("I109" in codes(judged(text))) == bool(found)


# A word that all waves write if an argument and something else are 0.
ONLY_FIRST = (
    START
    + """
v_lshrrev_b32_e32 v4, 6, v0
s_nop 1
v_readfirstlane_b32 s24, v4
s_or_b32 s25, s8, {other}
s_cmp_eq_u32 s25, 0
s_cbranch_scc0 past
v_mov_b32_e32 v5, 0
ds_write_b32 v5, v0
past:
s_waitcnt lgkmcnt(0)
"""
)


def test_what_the_number_of_a_wave_says_is_known() -> None:
    assert judged(ONLY_FIRST.format(other="s24")).proved
    assert codes(judged(ONLY_FIRST.format(other="s9"))) == ["I109"]
    assert codes(
        judged(ONLY_FIRST.format(other="s24").replace("v_lshrrev_b32_e32 v4, 6", "v_lshrrev_b32_e32 v4, 7"))
    ) == ["I109"]


# Two kinds of waves, one barrier apart, that count down what each has computed for itself, in many steps.
COMPUTED = "".join(f"s_mul_i32 s26, s26, {step}\ns_lshr_b32 s26, s26, 1\n" for step in (3, 5, 7, 11, 13))
APART = (
    START
    + """
v_readfirstlane_b32 s24, v0
s_mov_b32 s26, s8
s_cmp_lt_u32 s24, 64
s_cbranch_scc0 second
{mine}
first:
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
s_barrier
s_barrier
s_add_i32 s26, s26, -1
s_cmp_gt_i32 s26, 0
s_cbranch_scc1 first
s_branch out
second:
s_barrier
{theirs}
again:
ds_read_b32 v3, v2
s_waitcnt lgkmcnt(0)
s_barrier
s_add_i32 s26, s26, -1
s_cmp_gt_i32 s26, 0
s_cbranch_scc0 out
s_barrier
s_branch again
out:
s_nop 0
"""
)


def test_waves_compute_one_bound_at_different_times() -> None:
    assert judged(APART.format(mine=COMPUTED, theirs=COMPUTED)).proved
    assert "I121" in codes(judged(APART.format(mine=COMPUTED, theirs=COMPUTED.replace("13", "15"))))


def test_what_two_paths_decided_alike_is_kept() -> None:
    symbols = Symbols()
    argument = symbols.argument("argument", 0).base
    small = symbols.opaque("lt_u", (Linear(argument, 1, 0), 8), bits=1, spread=GROUP).base
    tiny = symbols.opaque("lt_u", (Linear(argument, 1, 0), 4), bits=1, spread=GROUP).base
    one, other = Decisions(), Decisions()
    one.decide(tiny, holds=True, epoch=1)
    other.decide(tiny, holds=False, epoch=2)
    other.decide(small, holds=True, epoch=2)
    both = join_decisions(one, other, 1)
    assert both.lookup(tiny) is None
    assert both.lookup(small) is True  # one way by what was decided, the other by what follows
    assert both.is_implied_by(one)
    assert both.is_implied_by(other)
    assert not one.is_implied_by(other)
    assert both.arcs[argument, None] == (0, 7)
    far = Decisions()
    far.decide(small, holds=False, epoch=0)
    assert join_decisions(far, other, 0).arcs.get((argument, None), (0, M32)) == (4, M32 - 4)
    assert join_decisions(one, other, 1, drop_changed=True).arcs == {}  # what differs is given up, what doesn't is kept
    assert join_decisions(one, one, 1, drop_changed=True).arcs == one.arcs


# Each wave for itself stores as many rounds as an argument says, and waits for a flag in each; then they meet.
ROUNDS = (
    START
    + """
s_mov_b32 s26, 0
round:
s_load_dword s27, s[4:5], 0x0 glc
s_waitcnt lgkmcnt(0)
s_cmp_eq_u32 s27, 0
s_cbranch_scc1 round
s_add_u32 s26, s26, 1
s_cmp_lt_u32 s26, s8
s_cbranch_scc1 round
{late}
"""
    + HANDOVER
)


def test_bounds_that_grow_with_every_way_are_given_up() -> None:
    """Each number of rounds is a way of its own to the barrier, for each wave: they are few states in the end."""
    verdict = judged(ROUNDS.format(late="s_nop 0", meet="s_barrier"), waves=2)
    assert verdict.proved
    assert verdict.statistics.states < 300
    assert codes(judged(ROUNDS.format(late="s_nop 0", meet="s_nop 0"), waves=2)) == ["I109"]


def test_a_race_after_many_rounds_is_found() -> None:
    """Only who has made more than 40 rounds goes past the barrier."""
    skips = "s_cmp_gt_u32 s26, 40\ns_cbranch_scc1 past\ns_barrier\npast:\ns_nop 0"
    assert "I109" in codes(judged(ROUNDS.format(late="s_nop 0", meet=skips), waves=2))


# A read before the barrier, or after it: the same instruction, in flight where the two ways meet.
BEFORE_OR_AFTER = """
s_load_dword s8, s[16:17], 0x0
s_waitcnt lgkmcnt(0)
s_cmp_eq_u32 s8, 1
s_cbranch_scc1 far
read:
ds_read_b32 v3, v2
s_cmp_eq_u32 s8, 1
s_cbranch_scc1 past
s_barrier
past:
s_bitcmp1_b32 s8, 7
s_cbranch_scc0 meet
s_nop 0
meet:
s_mov_b32 s8, 0
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
s_endpgm
far:
{barrier}
s_branch read
"""


def test_states_whose_accesses_barriers_order_differently_stay_apart() -> None:
    """One that was issued before a barrier says nothing of one that was issued after it."""
    verdict = judged(START + BEFORE_OR_AFTER.format(barrier="s_barrier"))
    assert {dict(each.evidence)["rule"] for each in verdict.findings} == {"no synchronisation", "policy"}
    right = judged(START + BEFORE_OR_AFTER.format(barrier="s_endpgm"))
    assert {dict(each.evidence)["rule"] for each in right.findings} == {"policy"}


def test_states_without_a_list_that_is_filled_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop whose lists of states were all emptied by joins ended in an exception."""
    monkeypatch.setattr(SeenStates, "max_places", 0)
    (verdict,) = prove_object(shared("kernels/compiled/races/raw_sync_ok.gfx950.hsaco"), block=256)
    assert verdict.proved
