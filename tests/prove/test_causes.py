"""Causes and levels: what hangs together is one finding, and each says how sure it is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rota.errors import Finding
from rota.isa.disassembly import read_listing
from rota.prove.advice import mend_cause
from rota.prove.causes import EvidenceLevel, RankedFinding, level_of, rank_causes
from rota.prove.kernel_proof import prove
from rota.prove.verdict import Status, Verdict, compare_causes
from tests.isa.single import facts, listing
from tests.prove.test_company import START
from tests.prove.test_feasibility import executed
from tests.prove.written import codes, evidence, judged

DONE = "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_endpgm\n"
HANDOVER = "s_waitcnt lgkmcnt(0)\ns_barrier\n"


def levels(verdict: Verdict) -> list[tuple[str, str]]:
    return [(each.code, level.value) for each in verdict.findings if (level := level_of(each)) is not None]


def swap(first: str, between: str, then: str) -> str:
    """Each wave writes its own words, and then reads the other's."""
    return f"{START}{first}\n{between}\n{then}\n{DONE}"


WRITES = "ds_write_b32 v1, v0\nds_write_b32 v1, v0 offset:512"
READS = "ds_read_b32 v3, v2\nds_read_b32 v5, v2 offset:512"


def test_pairs_that_one_barrier_orders_are_one_cause() -> None:
    verdict = judged(swap(WRITES, "s_waitcnt lgkmcnt(0)", READS))
    assert codes(verdict) == ["I109"]
    assert [len(each) for each in verdict.pairs] == [2]
    assert judged(swap(WRITES, HANDOVER, READS)).proved


def test_pairs_that_take_two_barriers_are_two_causes() -> None:
    """The second tile is written after the first was read: no place orders both."""
    first = swap("ds_write_b32 v1, v0", "s_waitcnt lgkmcnt(0)", "ds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)")
    second = "ds_write_b32 v1, v0 offset:1024\ns_waitcnt lgkmcnt(0)\nds_read_u16 v6, v2 offset:1024\n"
    verdict = judged(first.removesuffix(DONE) + second + DONE)
    assert codes(verdict) == ["I109", "I109"]
    assert [len(each) for each in verdict.pairs] == [1, 1]


def test_copies_of_a_cause_are_one_with_several_places() -> None:
    copy = "ds_write_b32 v1, v0 offset:{0}\ns_waitcnt lgkmcnt(0)\nds_read_b32 v3, v2 offset:{0}\ns_waitcnt lgkmcnt(0)\n"
    verdict = judged(START + "".join(copy.format(1024 * each) for each in range(4)) + DONE)
    assert codes(verdict) == ["I109"]
    assert len(str(evidence(verdict, "I109")["places"]).split(", ")) == 4
    assert [len(each) for each in verdict.pairs] == [4]


def test_a_wait_whose_count_is_too_large_is_the_place() -> None:
    loads = "global_load_dword v6, v1, s[8:9]\nglobal_load_dword v7, v1, s[8:9] offset:4\n"
    verdict = judged(f"{START}{loads}s_waitcnt vmcnt(1)\nv_mov_b32_e32 v8, v6\nv_mov_b32_e32 v9, v7\n{DONE}")
    assert codes(verdict) == ["I103"]
    assert evidence(verdict, "I103")["rule"] == "off by one"


# Levels.

TWO_STATES = "v_readfirstlane_b32 s30, v0\nv_mov_b32_e32 v9, s30\n"
LLVM_ALONE = "v_cmp_eq_u32_e32 vcc, 0, v0\nv_cndmask_b32_e32 v9, v0, v1, vcc\n"


@pytest.mark.parametrize(
    ("text", "level"),
    [(TWO_STATES, EvidenceLevel.REQUIRED), (LLVM_ALONE, EvidenceLevel.ONE_SOURCE)],
    ids=["the manual", "LLVM alone"],
)
def test_a_wait_state_is_as_sure_as_its_source(text: str, level: EvidenceLevel) -> None:
    verdict = judged(f"v_mov_b32_e32 v1, 0\n{text}{DONE}")
    assert levels(verdict) == [("I104", level.value)]
    assert verdict.status is (Status.BROKEN if level is EvidenceLevel.REQUIRED else Status.ONE_SOURCE)
    assert not verdict.proved


def test_the_surest_comes_first() -> None:
    race = swap(WRITES, "s_waitcnt lgkmcnt(0)", READS).removesuffix(DONE)
    verdict = executed(f"{race}{LLVM_ALONE}{TWO_STATES}{DONE}")
    assert levels(verdict) == [("I109", "shown"), ("I104", "required"), ("I104", "one source")]
    assert (verdict.status, verdict.level) == (Status.REFUTED, EvidenceLevel.SHOWN)


def test_the_largest_cause_of_each_code_comes_before_the_second_of_any() -> None:
    sizes = [("I109", 9), ("I103", 2), ("I109", 7), ("I104", 50), ("I103", 1), ("I106", 1)]
    causes = [
        RankedFinding(
            finding=Finding(code, "", evidence=(("number", number),)), pairs=tuple((at, at) for at in range(size))
        )
        for number, (code, size) in enumerate(sizes)
    ]
    ranked = [(each.finding.code, len(each.pairs)) for each in rank_causes(causes)]
    assert ranked == [("I109", 9), ("I103", 2), ("I106", 1), ("I109", 7), ("I103", 1), ("I104", 50)]


def test_a_load_that_lands_after_its_wave_is_left_to_the_hardware() -> None:
    """AMD's manual: s_endpgm waits for all counters."""
    verdict = judged("s_mov_b32 m0, 0\ns_nop 4\nbuffer_load_dword v0, s[4:7], 0 offen lds\ns_endpgm\n", waves=1)
    assert levels(verdict) == [("I403", "one source")]


# What an edit changed, and what would mend a cause.


def texts(text: str) -> dict[int, str]:
    return {each.line: each.text for each in read_listing(listing(text), "k")}


def changes(before: str, after: str) -> Sequence[tuple[str, str]]:
    found = compare_causes(judged(before), texts(before), judged(after), texts(after))
    return [(change, finding.code) for change, finding in found]


def test_causes_go_come_and_stay() -> None:
    wrong, right = (swap(WRITES, wait, READS) for wait in ("s_waitcnt lgkmcnt(0)", HANDOVER))
    early = right.removesuffix(DONE) + TWO_STATES + DONE
    assert changes(wrong, right) == [("went", "I109")]
    assert changes(right, wrong) == [("came", "I109")]
    assert changes(wrong, wrong) == [("stayed", "I109")]
    assert changes(wrong, early) == [("went", "I109"), ("came", "I104")]


def test_a_cause_is_mended_alone() -> None:
    """Nothing that a wait does mends the missing wait states; the race has a fix of its own."""
    text = swap(WRITES, "s_waitcnt lgkmcnt(0)", READS).removesuffix(DONE) + TWO_STATES + DONE
    instructions = read_listing(listing(text), "k")
    kernel = facts(required_workgroup=(128, 1, 1))
    verdict = prove(kernel, instructions)
    assert codes(verdict) == ["I109", "I104"]
    race, states = (mend_cause(kernel, instructions, verdict, number) for number in range(2))
    assert [each.what for each in race.edits] == ["barrier"]
    assert states.edits == ()
    assert "I104" in states.why
