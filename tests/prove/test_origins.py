"""Addresses of which the whole workgroup shares an unknown part, and those that data chooses.

Each racy kernel breaks one premise; if the premise is dropped, the kernel is proved.  `docs/proof_of_machine_code.md`
names the premises.
"""

from __future__ import annotations

from typing import Any

import pytest

from rota.prove import touched_bytes
from rota.prove.causes import EvidenceLevel, level_of
from rota.prove.memory_steps import MemorySteps
from rota.prove.state import WaveSet
from rota.prove.symbol import Value
from tests.prove.written import codes, judged

# s4 and s5 are arguments, v1 is the place of a work item, v9 a word that it loads; v2 is written, and v3 read.
OPENING = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
s_waitcnt lgkmcnt(0)
global_load_dword v9, v1, s[6:7]
s_waitcnt vmcnt(0)
"""
WAIT = "s_waitcnt lgkmcnt(0)\n"
WRITE, READ = "ds_write_b32 v2, v0\n" + WAIT, "ds_read_b32 v5, v3\n" + WAIT
BARRIER = "s_barrier\n"
TURNED = "v_add_u32_e32 v{to}, s{by}, v{of}\nv_and_b32_e32 v{to}, {mask}, v{to}\n"
WORDS = "v_lshlrev_b32_e32 v{to}, 2, v{to}\n"
OWN = "v_mov_b32_e32 v3, v2\n"


def turn(*, to: int = 2, by: int = 4, of: int = 0, mask: str = "0x7f") -> str:
    """The place of a ring of words, turned by an argument."""
    return (TURNED + WORDS).format(to=to, by=by, of=of, mask=mask)


RING = turn() + OWN
BYTES = TURNED.format(to=2, by=4, of=1, mask="0x1fc") + OWN
ANOTHER_WAVE = turn() + "v_xor_b32_e32 v4, 64, v0\n" + turn(to=3, of=4)
SUM = "s_and_b32 s4, s4, 0xfc\nv_add_u32_e32 v2, s4, v1\n" + OWN
CHOSEN = "v_and_b32_e32 v2, 63, v9\nv_lshlrev_b32_e32 v2, 2, v2\n"
BY_WAVE = CHOSEN + "v_and_b32_e32 v4, 0x100, v1\nv_add_u32_e32 v2, v2, v4\n" + OWN
EVEN = "v_and_b32_e32 v3, 0x7f, v9\nv_lshlrev_b32_e32 v3, 3, v3\nv_lshlrev_b32_e32 v2, 3, v0\n"
ODD_WRITE = WRITE.replace("v0\n", "v0 offset:4\n", 1)
MOVED = "v_xor_b32_e32 v6, 0x80, v1\n{lanes}ds_bpermute_b32 v2, v6, v1\n" + WAIT + "s_mov_b64 exec, -1\n" + OWN
RIGHT = {
    "a ring of words": RING + WRITE + READ,
    "a ring of bytes": BYTES + WRITE + READ,
    "a ring, and a barrier between waves": ANOTHER_WAVE + WRITE + BARRIER + READ,
    "a sum": SUM + WRITE + READ,
    "a part of LDS for each wave": BY_WAVE + WRITE + READ,
    "even words that data chooses, and odd ones": EVEN + ODD_WRITE + READ,
    "addresses from other lanes": MOVED.format(lanes="") + WRITE + READ,
}
RACY = {
    "a ring, and no barrier between waves": ANOTHER_WAVE + WRITE + READ,
    "another argument": turn() + turn(to=3, by=5) + WRITE + READ,
    "the next place": RING + WRITE + READ.replace("v3\n", "v3 offset:4\n", 1),
    "a mask with a gap": turn(mask="0x5f") + WRITE,
    "a carry from below": TURNED.format(to=2, by=4, of=8, mask="0x1fc") + WRITE,
    "words over the end of a place": RING + WRITE.replace("write_b32 v2, v0", "write_b64 v2, v[0:1]"),
    "a known address": RING + OWN.replace("v2", "v1") + WRITE + READ,
    "data, and a known address": CHOSEN + OWN.replace("v2", "v1") + WRITE + READ,
    "words that data chooses, and odd ones": EVEN.replace("3, 3, v3", "3, 2, v3") + ODD_WRITE + READ,
    "lanes that give nothing": MOVED.format(lanes="s_mov_b32 exec_hi, 0\n") + WRITE + READ,
}
HALVES = "v_lshlrev_b32_e32 v8, 1, v0\n"  # each pair of work items has one place


@pytest.mark.parametrize("name", RIGHT)
def test_waves_that_stay_apart_are_proved(name: str) -> None:
    verdict = judged(OPENING + RIGHT[name])
    assert verdict.proved, verdict.findings


@pytest.mark.parametrize("name", RACY)
def test_waves_that_may_meet_are_not(name: str) -> None:
    assert "I109" in codes(judged(OPENING + HALVES + RACY[name]))


def _yes(*_: object) -> bool:
    return True


@pytest.mark.parametrize(("name", "premise"), [("a mask with a gap", "_is_ring"), ("a carry from below", "_no_carry")])
def test_each_premise_is_needed(monkeypatch: pytest.MonkeyPatch, name: str, premise: str) -> None:
    """Without it, the racy kernel is proved: so its test can fail."""
    monkeypatch.setattr(touched_bytes, premise, _yes)
    assert judged(OPENING + HALVES + RACY[name]).proved


@pytest.mark.parametrize("name", ["another argument", "the next place"])
def test_only_what_turns_alike_is_compared(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    real = touched_bytes.find_origin

    def of_any(*args: Any) -> touched_bytes.SharedOrigin | None:
        found = real(*args)
        return found and found._replace(key="one for all")

    monkeypatch.setattr(touched_bytes, "find_origin", of_any)
    assert judged(OPENING + RACY[name]).proved


def test_lanes_that_do_not_execute_give_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = MemorySteps._gather

    def as_if_all_did(self: MemorySteps, wave_set: WaveSet, *rest: Any) -> Value | None:
        held = wave_set.exec
        wave_set.exec = self._touched.masks.leaf((self._touched.masks.all,) * len(wave_set.waves))
        moved = real(self, wave_set, *rest)
        wave_set.exec = held
        return moved

    monkeypatch.setattr(MemorySteps, "_gather", as_if_all_did)
    assert judged(OPENING + RACY["lanes that give nothing"]).proved


def test_what_is_known_of_both_addresses_decides_the_level() -> None:
    def level(text: str) -> EvidenceLevel | None:
        return level_of(judged(OPENING + text).findings[0])

    assert level(RACY["a ring, and no barrier between waves"]) is EvidenceLevel.REQUIRED
    assert level(RACY["data, and a known address"]) is EvidenceLevel.REQUIRED
    assert level(RACY["another argument"]) is EvidenceLevel.UNDECIDED
    assert level(CHOSEN + WRITE) is EvidenceLevel.UNDECIDED  # perhaps the data is a permutation


@pytest.mark.parametrize(
    "chosen",
    [
        CHOSEN.replace("v9", "v8"),  # a word that the kernel has written to LDS
        CHOSEN.replace("63, v9", "s4, v9"),  # an argument says which bits
        CHOSEN.replace("63, v9", "41, v9"),  # not every number below 41
    ],
)
def test_data_that_is_not_free_may_stay_apart(chosen: str) -> None:
    before = "ds_read_b32 v8, v1 offset:2048\n" + WAIT
    verdict = judged(OPENING + before + chosen + OWN.replace("v2", "v1") + WRITE + READ)
    levels = {level_of(each) for each in verdict.findings if each.code == "I109"}
    assert levels == {EvidenceLevel.UNDECIDED}
