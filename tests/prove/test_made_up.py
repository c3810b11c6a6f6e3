"""Kernels of an architecture that nobody builds: proved as they are, and not with a wait or barrier less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from rota.isa.disassembly import Instruction, read_listing
from rota.prove.advice import find_needed, suggest
from rota.prove.kernel_proof import Policies, ReadsAtBarrier, VmcntOrder, prove
from rota.prove.verdict import Status, Verdict
from tests.isa.single import facts, listing
from tests.made_up.architecture import MADE_UP, registered
from tests.prove.written import codes, evidence
from tests.wording.golden import mentions, worded

LANES = MADE_UP.lanes.value
PLAIN = {
    "required_workgroup": (2 * LANES, 1, 1),
    "user_sgprs": (("kernarg_segment_ptr", 2),),
    "workgroup_ids": (True, False, False),
}


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with registered():
        yield


def judged(*lines: str, policies: Policies | None = None) -> Verdict:
    return prove(facts(MADE_UP.arch, **PLAIN), instructions(*lines), policies=policies)


def instructions(*lines: str) -> tuple[Instruction, ...]:
    return read_listing(listing("\n".join((OWN, OTHERS, *lines))), "k")


def ends(verdict: Verdict) -> list[str]:
    return [concern.label for concern in verdict.findings[0].concerns]


OWN = "v_lshlrev_b32_e32 v1, 2, v0"  # each work item its own word
OTHERS = f"v_xor_b32_e32 v2, {4 * LANES:#x}, v1"  # the word of a work item of the other wave
LOAD, STORE = "global_load_dword v3, v1, s[4:5]", "global_store_dword v1, v4, s[6:7]"
WRITE, READ = "ds_write_b32 v1, v3", "ds_read_b32 v4, v2"
LOADED, DONE = "s_wait_loadcnt 0", "s_wait_dscnt 0"
SIGNAL, WAIT = "s_barrier_signal -1", "s_barrier_wait -1"
HANDOVER = (LOAD, LOADED, WRITE, DONE, SIGNAL, WAIT, READ, DONE, STORE)


def without(*places: int) -> tuple[str, ...]:
    return tuple(line for place, line in enumerate(HANDOVER) if place not in places)


# Counters.


def test_a_handover_is_proved() -> None:
    verdict = judged(*HANDOVER)
    assert (verdict.status, verdict.findings, verdict.waves) == (Status.PROVED, (), 2)
    assert (verdict.statistics.sites, verdict.statistics.concrete_sites) == (2, 2)


@pytest.mark.parametrize(
    ("gone", "code", "both", "missing"),
    [
        ((1,), "I103", [WRITE, LOAD], "loadcnt(0)"),
        ((3,), "I109", [READ, WRITE], "dscnt(0)"),
        ((4, 5), "I109", [READ, WRITE], ""),
        ((5,), "I109", [READ, WRITE], ""),
        ((7,), "I103", [STORE, READ], "dscnt(0)"),
    ],
    ids=["load", "write", "barrier", "barrier wait", "read"],
)
def test_each_wait_and_barrier_is_needed(gone: tuple[int, ...], code: str, both: list[str], missing: str) -> None:
    verdict = judged(*without(*gone))
    assert (verdict.status, codes(verdict), ends(verdict)) == (Status.ALARM, [code], both)
    assert str(evidence(verdict, code).get("missing wait", "")).partition(" ")[0] == missing
    worded(verdict.findings[0])


@pytest.mark.parametrize("counter", ["storecnt", "dscnt", "kmcnt"])
def test_a_wait_for_another_counter_covers_nothing(counter: str) -> None:
    assert codes(judged(LOAD, f"s_wait_{counter} 0", WRITE)) == ["I103"]


def test_a_store_isnt_counted_with_loads() -> None:
    store = "global_store_dword v1, v1, s[6:7]"
    assert codes(judged(LOAD, store, "s_wait_loadcnt 1", WRITE)) == ["I103"]
    assert judged(LOAD, store, LOADED, WRITE).proved


def test_loads_return_in_order() -> None:
    second = "global_load_dword v5, v1, s[4:5]"
    assert judged(LOAD, second, "s_wait_loadcnt 1", WRITE, LOADED).proved
    late = judged(LOAD, "s_wait_loadcnt 1", WRITE)
    assert (codes(late), ends(late)) == (["I103"], [WRITE, LOAD])
    assert mentions(evidence(late, "I103")["missing wait"], "loadcnt(1)", 0)
    worded(late.findings[0])
    doubting = Policies(order=VmcntOrder.ANY_ORDER)
    verdict = judged(LOAD, second, "s_wait_loadcnt 1", WRITE, LOADED, policies=doubting)
    assert codes(verdict) == ["I103"]
    assert "loadcnt(0) and storecnt(0)" in verdict.policies[1]


def test_scalar_loads_return_in_any_order() -> None:
    loads, use = ("s_load_dword s8, s[0:1], 0x0", "s_load_dword s9, s[0:1], 0x4"), "s_add_u32 s10, s8, s8"
    verdict = judged(*loads, "s_wait_kmcnt 1", use)
    assert (codes(verdict), ends(verdict)) == (["I103"], [use, loads[0]])
    assert evidence(verdict, "I103")["missing wait"] == "kmcnt(0) before it"
    assert judged(*loads, "s_wait_kmcnt 0", use).proved


@pytest.mark.parametrize("waits", [("loadcnt",), ("dscnt",), ("loadcnt", "dscnt")])
def test_a_flat_load_counts_twice(waits: tuple[str, ...]) -> None:
    verdict = judged("flat_load_dword v3, v[6:7]", *(f"s_wait_{each} 0" for each in waits), WRITE)
    assert codes(verdict) == ([] if len(waits) == 2 else ["I103"])


def test_a_load_to_lds_is_counted_with_loads() -> None:
    load = ("s_mov_b32 m0, 0", "s_nop 4", "buffer_load_dword v1, s[4:7], 0 offen lds")
    verdict = judged(*load, DONE)
    assert codes(verdict) == ["I109", "I403"]
    assert evidence(verdict, "I403")["missing wait"] == "loadcnt(0) before it"
    assert evidence(verdict, "I109")["bytes of LDS"] == "128 of 0x0 to 0x7f"
    assert codes(judged(*load, LOADED)) == ["I109"]


def test_a_wait_that_the_architecture_lacks_is_refused() -> None:
    for line in ("s_waitcnt vmcnt(0)", "s_wait_expcnt 0", "s_barrier_signal 1"):
        assert codes(judged(line)) == ["I401"]


# Split barriers.

MEET = (DONE, SIGNAL, WAIT)


@pytest.mark.parametrize(
    "lines",
    [
        (WRITE, DONE, SIGNAL, "ds_read_b32 v4, v1", DONE, WAIT),  # its own word
        (WRITE, DONE, SIGNAL, LOAD, LOADED, WAIT, READ, DONE),  # other memory
        (SIGNAL, WRITE, WAIT, *MEET, READ, DONE),  # the barrier after the next orders it
        (SIGNAL, WRITE, DONE, WAIT, SIGNAL, WAIT, READ, DONE),
        (READ, DONE, SIGNAL, WAIT, WRITE, DONE),
        (WRITE, DONE, LOAD, SIGNAL, WAIT, READ, DONE, LOADED),  # a load to registers is nobody else's concern
    ],
)
def test_what_is_ordered_by_a_split_barrier(lines: tuple[str, ...]) -> None:
    verdict = judged(*lines)
    assert (verdict.status, verdict.findings) == (Status.PROVED, ())


@pytest.mark.parametrize(
    ("lines", "both", "unordered"),
    [
        ((WRITE, DONE, SIGNAL, READ, DONE, WAIT), [READ, WRITE], True),  # before the other's signal
        ((SIGNAL, WRITE, DONE, WAIT, READ, DONE), [READ, WRITE], True),  # after the other's wait
        ((SIGNAL, WRITE, WAIT, READ, DONE), [READ, WRITE], True),
        ((SIGNAL, WRITE, DONE, WAIT, SIGNAL, READ, DONE, WAIT), [READ, WRITE], True),
        ((SIGNAL, READ, DONE, WAIT, WRITE, DONE), [WRITE, READ], True),
        ((WRITE, SIGNAL, DONE, WAIT, READ, DONE), [READ, WRITE], False),
        ((WRITE, SIGNAL, WAIT, DONE, READ, DONE), [READ, WRITE], False),
    ],
)
def test_what_isnt(lines: tuple[str, ...], both: list[str], unordered: bool) -> None:
    verdict = judged(*lines)
    assert (verdict.status, codes(verdict), ends(verdict)) == (Status.ALARM, ["I109"], both)
    assert (evidence(verdict, "I109")["rule"] == "no synchronisation") is unordered


def test_a_wait_after_the_signal_comes_too_late() -> None:
    shown = evidence(judged(WRITE, SIGNAL, DONE, WAIT, READ, DONE), "I109")
    assert mentions(shown["missing wait"], "dscnt(0)")


def test_a_read_that_is_complete_at_the_barrier_is_complete_at_the_signal() -> None:
    lenient = Policies(reads=ReadsAtBarrier.LENIENT)
    early, late = (READ, SIGNAL, WAIT, WRITE, DONE), (SIGNAL, READ, WAIT, WRITE, DONE)
    assert codes(judged(*early)) == ["I109"]
    assert judged(*early, policies=lenient).proved
    assert codes(judged(*late, policies=lenient)) == ["I109"]


ROLES = (
    f"v_cmp_gt_u32_e32 vcc_lo, {LANES}, v0", "s_nop 4", "s_cbranch_vccz second",
    "{first}", "s_endpgm", "second:", "{second}",
)  # fmt: skip


def roles(first: tuple[str, ...], second: tuple[str, ...]) -> Verdict:
    text = "\n".join(ROLES).format(first="\n".join(first), second="\n".join(second))
    return judged(*text.splitlines())


def test_an_ended_wave_is_not_waited_for_and_its_accesses_count() -> None:
    ended = (SIGNAL, "ds_write_b32 v2, v0", DONE)
    assert codes(roles(ended, (SIGNAL, WAIT, "ds_read_b32 v4, v1", DONE))) == ["I109", "I121"]
    assert codes(roles(ended, (SIGNAL, WAIT, *MEET, "ds_read_b32 v4, v1", DONE))) == ["I121"]
    assert codes(roles(("ds_write_b32 v2, v0", *MEET[:2]), (SIGNAL, WAIT, "ds_read_b32 v4, v1", DONE))) == ["I121"]


def test_what_a_wave_did_after_its_signal_stays_known_where_waves_separate() -> None:
    apart = (f"v_cmp_gt_u32_e32 vcc_lo, {LANES}, v0", "s_nop 4", "s_cbranch_vccz over", "s_nop 0", "over:")
    assert codes(judged(SIGNAL, WRITE, DONE, *apart, WAIT, READ, DONE)) == ["I109"]
    assert judged(WRITE, DONE, SIGNAL, *apart, WAIT, READ, DONE).proved


def test_paths_that_differ_after_the_signal_stay_apart() -> None:
    choice = ("s_load_dword s8, s[0:1], 0x0", "s_wait_kmcnt 0", "s_cmp_eq_u32 s8, 0", "s_cbranch_scc{} over")
    first, second = ("\n".join(choice).format(each).splitlines() for each in (0, 1))
    over = ("over:", "v_mov_b32_e32 v9, 0")
    for branch in (first, second):
        assert codes(judged(SIGNAL, *branch, WRITE, DONE, *over, WAIT, READ, DONE)) == ["I109"]
        assert judged(*branch, SIGNAL, *over, WAIT).status is Status.INCONCLUSIVE


@pytest.mark.parametrize("lines", [(WAIT,), (SIGNAL, SIGNAL), (SIGNAL, "s_barrier"), (SIGNAL, WAIT, WAIT)])
def test_a_wave_signals_once_and_waits_then(lines: tuple[str, ...]) -> None:
    verdict = judged(*lines)
    assert (verdict.status, codes(verdict)) == (Status.INCONCLUSIVE, ["I401"])


def draw(seed: int) -> tuple[str, ...]:
    """A write, a read and perhaps one more somewhere among waits and barriers, each signal before its wait."""
    random, lines, signalled = Random(seed), list[str](), False
    for _ in range(random.randint(4, 12)):
        line = random.choice((DONE, WAIT if signalled else SIGNAL))
        signalled = signalled != (line != DONE)
        lines.append(line)
    for each in (WRITE, READ, *random.choice(((), (WRITE,), (READ,)))):
        lines.insert(random.randint(0, len(lines)), each)
    return tuple(lines)


def races(lines: tuple[str, ...]) -> bool:
    """Whether nothing orders a write of one wave and a read of the other, by happens-before alone."""

    def is_before(first: int, then: int) -> bool:
        done = next((at for at in range(first, len(lines)) if lines[at] == DONE), len(lines))
        return lines[:done].count(SIGNAL) < lines[:then].count(
            WAIT
        )  # a signal after it, whose wait is before the other

    writes, reads = ([at for at, line in enumerate(lines) if line == each] for each in (WRITE, READ))
    return any(not is_before(one, other) and not is_before(other, one) for one in writes for other in reads)


def test_drawn_kernels_race_where_nothing_orders_them() -> None:
    found = Counter[bool]()
    for seed in range(300):
        lines = draw(seed)
        assert set(codes(judged(*lines))) == ({"I109"} if races(lines) else set()), lines
        found[races(lines)] += 1
    assert min(found[False], found[True]) > 20


LOOP = """
s_load_dword s8, s[0:1], 0x0
s_wait_kmcnt 0
again:
ds_write_b32 v1, v3
s_wait_dscnt 0
s_barrier_signal -1
{between}
s_barrier_wait -1
ds_read_b32 v4, v2
s_wait_dscnt 0
s_barrier_signal -1
s_barrier_wait -1
s_sub_u32 s8, s8, 1
s_cmp_lg_u32 s8, 0
s_cbranch_scc1 again
"""


def test_a_loop_with_a_load_between_signal_and_wait() -> None:
    assert judged(*LOOP.format(between="global_load_dword v3, v1, s[4:5]\ns_wait_loadcnt 0").splitlines()).proved
    verdict = judged(*LOOP.format(between="ds_read_b32 v4, v2\ns_wait_dscnt 0").splitlines())
    assert codes(verdict) == ["I109"]


# Waves of 32 lanes.

LOW = "v_cmp_gt_u32_e32 vcc_lo, 32, v0"  # the lanes of the first wave
SHARED = ("v_and_b32_e32 v5, 31, v0", "v_lshlrev_b32_e32 v5, 2, v5")  # one word for a lane of each wave
BOTH = "ds_write_b32 v5, v0"


def test_a_block_of_64_is_two_waves() -> None:
    verdict = judged(*SHARED, BOTH)
    assert (codes(verdict), evidence(verdict, "I109")["bytes of LDS"]) == (["I109"], "128 of 0x0 to 0x7f")


@pytest.mark.parametrize(
    "mask",
    [
        (LOW, "s_nop 4", "s_and_saveexec_b32 s8, vcc_lo"),
        (LOW, "s_nop 4", "s_mov_b32 s8, vcc_lo", "s_and_b32 exec_lo, exec_lo, s8"),
        (LOW, "s_nop 4", "s_not_b32 s9, vcc_lo", "s_andn2_b32 exec_lo, exec_lo, s9"),
        ("v_cmpx_gt_u32_e64 vcc_lo, 32, v0",),
    ],
)
def test_a_mask_is_one_register(mask: tuple[str, ...]) -> None:
    assert judged(*SHARED, *mask, BOTH).proved
    assert codes(judged(*SHARED, *mask, "s_mov_b32 exec_lo, -1", BOTH)) == ["I109"]


def test_a_choice_by_a_mask() -> None:
    choose = (LOW, "s_nop 4", "v_cndmask_b32_e32 v6, v1, v2, vcc_lo", "ds_write_b32 v6, v0")
    verdict = judged(*choose)  # the first wave writes the words of the second, and so does the second
    assert (codes(verdict), evidence(verdict, "I109")["bytes of LDS"]) == (["I109"], "128 of 0x80 to 0xff")


def test_numbers_of_64_bits_are_no_masks() -> None:
    wide = ("s_mov_b64 s[8:9], -1", "v_mov_b32_e32 v6, s9", "v_and_b32_e32 v6, v6, v1", "ds_write_b32 v6, v0")
    assert judged(*wide).proved  # all ones in the second word, too
    assert codes(judged("s_and_b64 s[8:9], s[8:9], s[10:11]", *wide[1:])) == ["I109"]


def test_lanes_are_counted_to_32() -> None:
    count = ("v_mbcnt_lo_u32_b32 v6, -1, 0", "v_mbcnt_hi_u32_b32 v6, -1, v6", "v_lshlrev_b32_e32 v6, 2, v6")
    verdict = judged(*count, "ds_write_b32 v6, v0")
    assert (codes(verdict), evidence(verdict, "I109")["bytes of LDS"]) == (["I109"], "128 of 0x0 to 0x7f")
    lane = ("v_readlane_b32 s8, v1, 33", "s_nop 4", "v_mov_b32_e32 v6, s8", "ds_write_b32 v6, v0")
    verdict = judged(*lane)  # lane 1 of each wave
    assert (verdict.status, verdict.statistics.concrete_sites) == (Status.PROVED, 1)


# Advice.


def test_what_is_missing_is_suggested_as_the_machine_spells_it() -> None:
    lines = without(1, 4, 5)
    program = instructions(*lines)
    found = suggest(facts(MADE_UP.arch, **PLAIN), program, judged(*lines))
    assert found is not None
    described = found.describe(program)
    assert f"insert `{LOADED}` before `{WRITE}`" in described
    assert f"insert `{SIGNAL}; {WAIT}` before" in described


def test_which_waits_and_barriers_are_needed() -> None:
    lines = (*HANDOVER, SIGNAL, LOAD, WAIT, LOADED, "s_wait_storecnt 0")
    program = instructions(*lines)
    found = find_needed(facts(MADE_UP.arch, **PLAIN), program, judged(*lines))
    assert found is not None
    assert [each.what for each in found.waits] == ["loadcnt", "dscnt", "dscnt", "loadcnt", "storecnt"]
    alone = [(each.what, each.number) for each in found.alone]
    assert alone == [("loadcnt", 14), ("storecnt", 15), ("split barrier", 11)]
    assert [each.number for each in found.barriers] == [6, 11]
