"""Each rule of the judgement, both ways: the smallest kernel that breaks it, and the one that keeps it."""

from __future__ import annotations

import pytest

from rota.prove.kernel_proof import Policies, ReadsAtBarrier, VmcntOrder
from rota.prove.verdict import Budget, Status
from tests.prove.written import codes, evidence, judged
from tests.wording.golden import worded

OWN = "v_lshlrev_b32_e32 v1, 2, v0"  # each work item its own word
OTHERS = "v_xor_b32_e32 v2, 0x100, v1"  # the word of a work item of the other wave
WAIT = "s_waitcnt lgkmcnt(0)"
MEET = f"{WAIT}\ns_barrier"
WRITE, READ = "ds_write_b32 v1, v0", "ds_read_b32 v3, v2"


def kernel(*lines: str) -> str:
    return "\n".join((OWN, OTHERS, *lines))


def test_a_wait_and_a_barrier_prove_a_handover() -> None:
    verdict = judged(kernel(WRITE, MEET, READ, WAIT))
    assert verdict.status is Status.PROVED
    assert verdict.findings == ()
    assert (verdict.statistics.sites, verdict.statistics.concrete_sites) == (2, 2)


def test_without_a_barrier_it_is_a_race_without_synchronisation() -> None:
    verdict = judged(kernel(WRITE, WAIT, READ, WAIT))
    assert verdict.status is Status.ALARM
    assert codes(verdict) == ["I109"]
    shown = evidence(verdict, "I109")
    assert shown["rule"] == "no synchronisation"
    assert shown["waves"] == "0 and 1"
    assert shown["bytes of LDS"] == "256 of 0x0 to 0xff"
    assert [concern.label for concern in verdict.findings[0].concerns] == [READ, WRITE]


def test_a_wait_behind_the_barrier_orders_by_latency_alone() -> None:
    verdict = judged(kernel(WRITE, "s_barrier", READ, WAIT))
    shown = evidence(verdict, "I109")
    worded(str(shown["rule"]))
    assert shown["missing wait"] == "lgkmcnt(0) before the barrier"


def test_a_wave_uses_its_own_words_as_it_likes() -> None:
    assert judged(kernel(WRITE, "ds_read_b32 v3, v1", WAIT, WRITE)).proved


def test_two_waves_that_write_one_word_race() -> None:
    assert codes(judged(kernel("v_mov_b32_e32 v4, 0", "ds_write_b32 v4, v0"))) == ["I109"]


def test_atomics_race_with_reads_and_not_with_each_other() -> None:
    text = kernel("v_mov_b32_e32 v4, 0", "ds_add_u32 v4, v0")
    assert judged(text).proved
    assert codes(judged(f"{text}\nds_read_b32 v5, v4\n{WAIT}")) == ["I109"]


def test_a_read_under_way_at_a_barrier_is_a_matter_of_policy() -> None:
    text = kernel(WRITE, MEET, READ, "s_barrier", WRITE, WAIT)
    strict = judged(text)
    assert evidence(strict, "I109")["rule"] == "policy"
    assert strict.policies[0] == ReadsAtBarrier.STRICT.value
    lenient = judged(text, policies=Policies(reads=ReadsAtBarrier.LENIENT))
    assert lenient.proved
    assert lenient.policies[0] == ReadsAtBarrier.LENIENT.value
    assert judged(kernel(WRITE, MEET, READ, MEET, WRITE, WAIT)).proved


LOADS = "global_load_dword v4, v1, s[4:5]\nglobal_load_dword v5, v1, s[4:5]"


@pytest.mark.thorough  # runs for seconds
def test_the_search_for_pairs_that_race_keeps_to_the_budget() -> None:
    """Reads of unknown words in flight at a barrier, and writes after it: pairs that are no races by the policy."""
    many = "\n".join(f"ds_write_b32 v1, v0 offset:{4096 * (at % 8)}\n{WAIT}" for at in range(1000))
    reads = "ds_read_b32 v3, v4\n" * 14
    text = kernel("global_load_dword v4, v1, s[4:5]", "s_waitcnt vmcnt(0)", reads, "s_barrier", many)
    lenient = Policies(reads=ReadsAtBarrier.LENIENT, lds_in_bounds=True)
    whole = judged(text, waves=16, policies=lenient)
    assert codes(whole) == ["I105"]  # writes after the end of LDS
    took = whole.statistics
    assert took.effort > 3 * took.steps  # pairs count
    verdict = judged(text, waves=16, policies=lenient, budget=Budget(steps=took.effort // 2))
    assert evidence(verdict, "I402")["ended by"] == "steps"
    assert "I109" not in codes(verdict)
    assert verdict.statistics.effort < took.effort // 2 + 200


@pytest.mark.parametrize(("count", "found"), [(0, []), (1, []), (2, ["I103"])])
def test_a_register_is_used_behind_the_wait_that_covers_its_load(count: int, found: list[str]) -> None:
    verdict = judged(kernel(LOADS, f"s_waitcnt vmcnt({count})", "v_add_u32_e32 v6, 1, v4", "s_waitcnt vmcnt(0)"))
    assert codes(verdict) == found
    if found:
        shown = evidence(verdict, "I103")
        assert shown["rule"] == "off by one"
        assert "vmcnt(2)" in worded(str(shown["missing wait"]))


def test_loads_that_return_in_any_order_need_a_wait_for_all() -> None:
    text = kernel(LOADS, "s_waitcnt vmcnt(1)", "v_add_u32_e32 v6, 1, v4", "s_waitcnt vmcnt(0)")
    assert judged(text).proved
    doubted = judged(text, policies=Policies(order=VmcntOrder.ANY_ORDER))
    assert codes(doubted) == ["I103"]
    assert doubted.policies[1] == VmcntOrder.ANY_ORDER.value


def test_a_register_is_overwritten_behind_the_wait() -> None:
    assert codes(judged(kernel(READ, "v_mov_b32_e32 v3, 0", WAIT))) == ["I103"]
    assert judged(kernel(READ, WAIT, "v_mov_b32_e32 v3, 0")).proved


def test_a_later_load_may_fill_the_registers_of_an_earlier_one() -> None:
    """Both come back in the order of their issue, unless that is doubt, or they are counted apart."""
    load = "global_load_dword v4, v1, s[4:5]"
    again = kernel(load, load, "s_waitcnt vmcnt(0)", "v_add_u32_e32 v6, 1, v4")
    assert judged(again).proved
    assert codes(judged(again, policies=Policies(order=VmcntOrder.ANY_ORDER))) == ["I103"]
    assert codes(judged(kernel(load, load, "s_waitcnt vmcnt(1)", "v_add_u32_e32 v6, 1, v4"))) == ["I103"]
    assert codes(judged(kernel(load, "ds_read_b32 v4, v1", "s_waitcnt vmcnt(0) lgkmcnt(0)"))) == ["I103"]


def test_scalar_loads_return_in_any_order() -> None:
    loads = "s_load_dword s4, s[0:1], 0x0\ns_load_dword s5, s[0:1], 0x4"
    assert codes(judged(f"{loads}\ns_waitcnt lgkmcnt(1)\ns_add_u32 s6, s4, 1\ns_waitcnt lgkmcnt(0)")) == ["I103"]
    assert judged(f"{loads}\ns_waitcnt lgkmcnt(0)\ns_add_u32 s6, s4, 1").proved


DMA = "s_mov_b32 m0, 0x400\ns_nop 0\nglobal_load_lds_dword v1, s[4:5]"


def test_a_waves_own_load_to_lds_is_waited_for() -> None:
    text = f"{OWN}\nv_add_u32_e32 v2, 0x400, v1\n{DMA}\n%s\nds_read_b32 v3, v2\n{WAIT}\ns_waitcnt vmcnt(0)"
    verdict = judged(text % "", waves=1)
    assert codes(verdict) == ["I106"]
    assert evidence(verdict, "I106")["missing wait"] == "vmcnt(0) before it"
    assert judged(text % "s_waitcnt vmcnt(0)", waves=1).proved


def test_instructions_keep_their_wait_states() -> None:
    text = f"{OWN}\n{DMA}\ns_waitcnt vmcnt(0)"
    assert judged(text, waves=1).proved
    assert codes(judged(text.replace("s_nop 0\n", ""), waves=1)) == ["I104"]


def test_lds_has_an_end() -> None:
    assert judged(kernel("ds_write_b32 v1, v0 offset:3584")).proved
    assert codes(judged(kernel("ds_write_b32 v1, v0 offset:3588"))) == ["I105"]


def test_a_wave_that_ends_is_not_waited_for() -> None:
    leave = "v_readfirstlane_b32 s4, v0\ns_cmp_lt_u32 s4, 64\ns_cbranch_scc1 out\ns_barrier\nout:\ns_nop 0"
    verdict = judged(leave)
    assert verdict.proved
    assert codes(verdict) == ["I121"]


STORE = "s_store_dword s8, s[4:5], 0x0"


@pytest.mark.parametrize("glc", ["", " glc"])
def test_a_scalar_store_reads_its_data_until_it_is_waited_for(glc: str) -> None:
    over, use = "s_mov_b32 s8, 0", "s_add_u32 s9, s8, 1"
    early = judged(kernel(STORE + glc, over, WAIT))
    assert codes(early) == ["I103"]
    assert evidence(early, "I103")["missing wait"] == "lgkmcnt(0) before it"
    assert judged(kernel(STORE + glc, WAIT, over)).proved
    assert judged(kernel(STORE + glc, use, WAIT)).proved  # it is no load: who reads the register reads what it holds
    assert codes(judged(kernel(STORE + glc, use, over, WAIT))) == ["I103"]


def test_what_a_scalar_store_stores_is_known_behind_it() -> None:
    known = kernel("s_mov_b32 s8, 4", STORE + " glc", "v_mov_b32_e32 v4, s8", "ds_read_b32 v3, v4", WAIT)
    assert judged(known).statistics.concrete_sites == 1


def test_a_scalar_atomic_returns_with_glc_alone() -> None:
    use = "s_add_u32 s9, s8, 1"
    assert codes(judged(kernel("s_atomic_add s8, s[4:5], 0x0 glc", use, WAIT))) == ["I103"]
    assert judged(kernel("s_atomic_add s8, s[4:5], 0x0", use, WAIT)).proved


def test_what_a_flat_op_does_to_lds_is_ordered_by_lgkmcnt_alone() -> None:
    """As compilers release LDS; a register that it fills needs both counters, for nobody knows whence it comes."""

    def found(*lines: str) -> list[str]:
        return codes(judged(kernel(*lines), policies=Policies(lds_in_bounds=True)))

    load = "s_mov_b64 s[8:9], src_shared_base\nflat_load_dword v3, v[4:5]"
    assert found(load, "s_waitcnt lgkmcnt(0)", "s_barrier", WRITE, WAIT) == []
    assert found(load, "s_waitcnt vmcnt(0)", "s_barrier", WRITE, WAIT) == ["I109"]
    use, both = "v_add_u32_e32 v6, 1, v3", "s_waitcnt vmcnt(0) lgkmcnt(0)"
    assert found(load, "s_waitcnt lgkmcnt(0)", use, both) == ["I103"]
    assert found(load, "s_waitcnt vmcnt(0)", use, both) == ["I103"]
    assert found(load, both, use) == []
    for waited, missing in (("lgkmcnt", "vmcnt"), ("vmcnt", "lgkmcnt")):
        verdict = judged(kernel(load, f"s_waitcnt {waited}(0)", use, both), policies=Policies(lds_in_bounds=True))
        assert evidence(verdict, "I103")["missing wait"] == f"{missing}(0) before it"


def test_where_a_flat_op_goes_in_lds_is_not_known() -> None:
    text = kernel("s_mov_b64 s[8:9], src_shared_base\nflat_load_dword v3, v[4:5]\ns_waitcnt vmcnt(0) lgkmcnt(0)")
    assert codes(judged(text)) == ["I105"]
    assert judged(text, policies=Policies(lds_in_bounds=True)).proved
    assert judged(text.partition("src_shared_base")[0] + "0\nflat_load_dword v3, v[4:5]").proved


@pytest.mark.parametrize("width", ["dword", "dwordx4"])
def test_a_flat_op_that_is_known_to_go_to_lds_is_followed_there(width: str) -> None:
    """What a compiler makes of a volatile pointer; the words of one wave don't race with those of another."""
    base = "s_mov_b64 s[8:9], src_shared_base\nv_mov_b32_e32 v5, s9"
    data = {"dword": "v0", "dwordx4": "v[0:3]"}[width]
    store, end = f"flat_store_{width} v[4:5], {data}", "s_waitcnt vmcnt(0) lgkmcnt(0)"
    step = {"dword": 2, "dwordx4": 4}[width]
    own, beside = (f"v_lshlrev_b32_e32 v4, {by}, v0" for by in (step, step - 1))
    assert judged(kernel(base, own, store, end)).proved
    assert codes(judged(kernel(base, beside, store, end))) == ["I109"]
    assert codes(judged(kernel(base, own, f"{store} offset:{4096 - 64}", end))) == ["I105"]
    assert judged(kernel("s_mov_b64 s[8:9], src_shared_base\nv_mov_b32_e32 v5, 7", beside, store, end)).proved


def test_flat_ops_in_flight_keep_their_bytes_however_many_there_are() -> None:
    """More than a counter can count are stored as one, but not what they do to LDS; the other wave reads the second."""
    base = "s_mov_b64 s[8:9], src_shared_base\nv_mov_b32_e32 v5, s9\nv_mov_b32_e32 v4, v1"
    second = "flat_store_dword v[4:5], v0 offset:1024"
    stores = ["flat_store_dword v[4:5], v0", second, *["flat_store_dword v[4:5], v0"] * 80]
    end, read = "s_waitcnt vmcnt(0) lgkmcnt(0)", "ds_read_b32 v3, v2 offset:1024"
    verdict = judged(kernel(base, *stores, "s_barrier", read, end))
    assert codes(verdict) == ["I109"]
    assert [concern.label for concern in verdict.findings[0].concerns] == [read, second]
    assert judged(kernel(base, *stores, end, "s_barrier", read, end)).proved


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 0", Status.PROVED),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 1", Status.INCONCLUSIVE),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 8), 0x10", Status.INCONCLUSIVE),
        ("s_setreg_b32 hwreg(HW_REG_MODE), s2", Status.INCONCLUSIVE),
        ("s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), s2", Status.PROVED),
        ("s_setvskip 0, 0\ns_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 0", Status.INCONCLUSIVE),
    ],
)
def test_vector_instructions_that_s_setreg_may_skip_are_not_followed(text: str, status: Status) -> None:
    assert judged(f"{text}\ns_nop 1\n{kernel(WRITE, MEET, READ, WAIT)}").status is status


ATOMIC = "buffer_atomic_add v8, v1, s[4:7], 0 offen sc0"  # v8 is what it adds, and gets what was there


def test_an_atomic_that_returns_reads_its_data() -> None:
    load, wait = "buffer_load_dword v8, v1, s[4:7], 0 offen", "s_waitcnt vmcnt(0)"
    verdict = judged(kernel(load, ATOMIC, wait))
    assert codes(verdict) == ["I103"]
    assert [concern.label for concern in verdict.findings[0].concerns] == [ATOMIC, load]
    assert judged(kernel(load, wait, ATOMIC, wait)).proved
