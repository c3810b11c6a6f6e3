"""Waves may load to the same bytes of LDS if they load the same words; proof and execution agree on when they do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rota.errors import Severity
from rota.isa.decoded import load_program
from rota.isa.disassembly import read_listing
from rota.isa.launch.run import run_kernel
from rota.prove import agreement
from rota.prove.agreement import Agreement
from rota.prove.kernel_proof import prove
from rota.prove.operation import OperationKind
from rota.prove.verdict import Status, Verdict
from tests.campaigns.machine_code.drawn_kernels import facts
from tests.wording.golden import worded

OPENING = """
s_load_dwordx2 s[4:5], s[0:1], 0x18
s_load_dword s9, s[0:1], 0x0
s_mov_b32 s6, 0x800
s_mov_b32 s7, 0x27000
s_mov_b32 m0, 0
s_mov_b32 s10, 0
v_lshrrev_b32_e32 v1, 6, v0
v_and_b32_e32 v2, 63, v0
v_readfirstlane_b32 s8, v1
v_lshlrev_b32_e32 v2, 2, v2
v_lshlrev_b32_e32 v4, 2, v0
s_waitcnt lgkmcnt(0)
"""
LOAD, WAIT, MEET = "buffer_load_dword v2, s[4:7], s10 offen lds", "s_waitcnt vmcnt(0)", "s_barrier"
USE = "ds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)"
SAME = f"{LOAD}\n{WAIT}\n{MEET}\n{USE}"
ASSUMED = "words that several waves load to the same bytes of LDS, and pointers to them in memory, do not change"
AGREED = {
    "one load": SAME,
    "of a loop": f"""
        again:
        {SAME}
        {MEET}
        s_addk_i32 s10, 0x40
        s_sub_u32 s9, s9, 1
        s_cmp_gt_i32 s9, 0
        s_cbranch_scc1 again""",
    "by lanes that are known": f"v_cmp_gt_u32_e64 s[12:13], 8, v2\ns_mov_b64 exec, s[12:13]\n{LOAD}\n{WAIT}",
    "from an address that memory holds": f"""
        s_load_dword s10, s[4:5], 0x4
        s_waitcnt lgkmcnt(0)
        s_and_b32 s10, s10, 60
        {SAME}""",
    "EXEC restored by halves": f"""
        v_cmp_gt_u32_e64 s[12:13], s9, v2
        s_mov_b64 exec, s[12:13]
        s_mov_b32 exec_lo, -1
        s_mov_b32 exec_hi, -1
        v_mov_b32_e32 v2, v2
        {SAME}""",
    "after waves went different ways": f"""
        s_cmp_eq_u32 s8, 0
        s_cbranch_scc1 over
        s_mov_b32 s11, 64
        over:
        {SAME}""",
    "after some waves went a loop more often": f"""
        s_mov_b32 s11, 0
        more:
        s_add_u32 s11, s11, 1
        s_cmp_lt_u32 s11, s8
        s_cbranch_scc1 more
        {SAME}""",
}
APART = {
    "other words": SAME.replace("v2, s[4:7]", "v4, s[4:7]"),
    "a descriptor by wave": f"s_cmp_eq_u32 s8, 0\ns_cselect_b32 s10, 64, 0\n{SAME}",
    "from an address that each wave finds": f"""
        s_lshl_b32 s11, s8, 4
        s_load_dword s10, s[4:5], s11
        s_waitcnt lgkmcnt(0)
        {SAME}""",
    "from a register that was loaded": f"""
        global_load_dword v2, v4, s[4:5]
        s_waitcnt vmcnt(0)
        v_and_b32_e32 v2, 0x7fc, v2
        {LOAD}
        {WAIT}""",
    "one wave goes another way": f"""
        s_cmp_eq_u32 s8, 0
        s_cbranch_scc1 over
        s_mov_b32 s10, 64
        over:
        {SAME}""",
    "a load on the ways": f"""
        s_cmp_eq_u32 s8, 0
        s_cbranch_scc1 zero
        s_mov_b32 s10, 64
        s_cmp_eq_u32 s9, 77
        s_cbranch_scc1 over
        zero:
        {LOAD}
        {WAIT}
        over:
        {MEET}
        {USE}""",
    "as many rounds as the wave's number": f"""
        s_mov_b32 s11, 0
        more:
        s_addk_i32 s10, 0x40
        s_add_u32 s11, s11, 1
        s_cmp_lt_u32 s11, s8
        s_cbranch_scc1 more
        s_cmp_eq_u32 s8, 0
        s_cselect_b32 s10, s10, 0
        {SAME}""",
    "in another round": f"""
        s_mov_b32 s11, 0
        round:
        s_cmp_eq_u32 s8, 0
        s_cbranch_scc1 over
        s_barrier
        over:
        {LOAD}
        {WAIT}
        s_addk_i32 s10, 0x40
        s_barrier
        s_add_u32 s11, s11, 1
        s_cmp_lt_u32 s11, 4
        s_cbranch_scc1 round""",
    "twice between barriers, of other words": f"""
        again:
        {LOAD}
        {WAIT}
        s_addk_i32 s10, 0x40
        s_cmp_lt_i32 s10, 0x80
        s_cbranch_scc1 again
        {MEET}""",
    "other lanes in each wave": f"v_cmp_gt_u32_e64 s[12:13], 72, v0\ns_mov_b64 exec, s[12:13]\n{LOAD}\n{WAIT}",
}


def _listing(text: str) -> str:
    lines = [line.strip() for line in (OPENING + text).splitlines() if line.strip()]
    return "\n".join(("k:", *(each if each.endswith(":") else f"\t{each}" for each in lines), "\ts_endpgm\n"))


def _proved(text: str) -> Verdict:
    return prove(facts(2), read_listing(_listing(text), "k"))


def _executed(text: str) -> set[str]:
    """Words differ from each other, so that other words are other data."""
    args: list[Any] = [np.uint32(3), *(np.uint32(0) for _ in range(5)), np.arange(512, dtype=np.uint32)]
    ended = run_kernel(load_program(facts(2), _listing(text)), args=args, block=(128, 1, 1))
    return {each.code for each in ended.findings} - {"I104", "I301"}


def _join_alone(self: Agreement, states: Any, to: int, state: Any, needed: int) -> bool:
    """What is written on the ways counts as agreed on."""
    kept, self._apart = self._apart, {}
    try:
        return JOIN(self, states, to, state, needed)
    finally:
        self._apart = kept


JOIN = Agreement._join_into


@pytest.mark.parametrize("what", AGREED)
def test_waves_that_load_the_same_words_are_no_race(what: str) -> None:
    verdict = _proved(AGREED[what])
    assert {finding.code for finding in verdict.findings if finding.code != "I104"} == {"I304"}
    assert ASSUMED in verdict.assumptions
    assert _executed(AGREED[what]) == {"I304"}


@pytest.mark.parametrize("what", APART)
def test_waves_that_load_other_words_are(what: str) -> None:
    verdict = _proved(APART[what])
    assert verdict.status is Status.ALARM
    assert "I109" in {finding.code for finding in verdict.findings}
    assert "I109" in _executed(APART[what])


@pytest.mark.parametrize(
    ("what", "where", "name", "instead"),
    [
        ("one wave goes another way", Agreement, "_join_into", _join_alone),
        ("a load on the ways", Agreement, "_is_inside", lambda *_: False),
        ("in another round", agreement, "_SEPARATING", frozenset({OperationKind.END})),
    ],
)
def test_each_premise_is_needed(
    monkeypatch: pytest.MonkeyPatch, what: str, where: object, name: str, instead: object
) -> None:
    """Without it, waves that load other words are taken for such as load the same: so its test can fail."""
    monkeypatch.setattr(where, name, instead)
    assert "I109" not in {finding.code for finding in _proved(APART[what]).findings}


NOT_KNOWN = {
    "a register of the hardware": "s_getreg_b32 s11, hwreg(HW_REG_HW_ID)\ns_and_b32 s10, s11, 4",
    "registers by index": "s_set_gpr_idx_on s9, gpr_idx(SRC0)\nv_mov_b32_e32 v5, v4\ns_set_gpr_idx_off",
}


@pytest.mark.parametrize("what", NOT_KNOWN)
def test_what_is_not_followed_may_differ_by_wave(what: str) -> None:
    verdict = _proved(f"{NOT_KNOWN[what]}\n{SAME}")
    assert "I109" in {finding.code for finding in verdict.findings}


def test_it_is_told_as_a_note() -> None:
    (note,) = (finding for finding in _proved(SAME).findings if finding.code == "I304")
    assert note.severity is Severity.NOTE
    worded(note)
    assert dict(note.evidence)["bytes of LDS"] == "256 of 0x0 to 0xff"


# Wave 0 doesn't wait before the barrier: of the two loads of the same words only wave 1's is over after it.
ONE_WAITS = f"{LOAD}\ns_cmp_eq_u32 s8, 0\ns_cbranch_scc1 over\n{WAIT}\nover:\n{MEET}\n{USE}\n{WAIT}"


def test_every_load_of_the_same_words_has_to_be_waited_for() -> None:
    assert "I109" in {finding.code for finding in _proved(ONE_WAITS).findings}
    assert _executed(ONE_WAITS) == {"I106", "I109", "I304"}
