"""What a write leaves in lanes that don't execute matters only if somebody reads these lanes.

Each kernel writes the address of an LDS access in the lanes of a mask, and is racy in the others.  If a premise of the
rule is dropped, it is proved; `docs/proof_of_machine_code.md` names the premises.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rota.prove import slicing
from tests.prove.written import codes, judged

# v1 is the place of a work item, v2 that of one in the other wave.
WRITTEN = """
v_lshlrev_b32_e32 v1, 2, v0
v_xor_b32_e32 v2, 0x100, v1
s_load_dwordx4 s[8:11], s[0:1], 0x0
s_waitcnt lgkmcnt(0)
v_mov_b32_e32 v4, v2
s_mov_b64 exec, s[8:9]
v_mov_b32_e32 v4, v1
{then}
s_mov_b64 exec, -1
ds_read_b32 v3, {read}
s_waitcnt lgkmcnt(0)
"""
OWN = "ds_write_b32 v4, v0"
BY_LANE = "s_mov_b64 exec, -1\nv_mov_b32_e32 v5, s14\nv_mov_b32_e32 v6, s15\nds_write_b32 v5, v0"
RACY = {
    "all lanes": ("s_mov_b64 exec, -1\n" + OWN, "v1"),
    "other lanes": ("s_mov_b64 exec, s[10:11]\n" + OWN, "v1"),
    "the lanes that are left": ("s_andn2_saveexec_b64 s[12:13], -1\n" + OWN, "v1"),
    "a lane by its number": ("s_nop 4\nv_readlane_b32 s14, v4, 5\nv_readlane_b32 s15, v1, 5\n" + BY_LANE, "v6"),
}
RIGHT = {
    "the same lanes": OWN,
    "fewer lanes": "s_and_b64 exec, exec, s[10:11]\n" + OWN,
    "fewer lanes, and those that were": "s_and_saveexec_b64 s[12:13], s[10:11]\n" + OWN,
    "lanes without some": "s_andn2_b64 exec, exec, s[10:11]\n" + OWN,
    "lanes that compare": "v_cmpx_lt_u32_e64 s[12:13], s10, v0\n" + OWN,
}


@pytest.mark.parametrize("name", RIGHT)
def test_lanes_that_execute_were_written(name: str) -> None:
    assert judged(WRITTEN.format(then=RIGHT[name], read="v1")).proved


@pytest.mark.parametrize("name", RACY)
def test_lanes_that_were_not_written_are_read(name: str) -> None:
    then, read = RACY[name]
    assert "I109" in codes(judged(WRITTEN.format(then=then, read=read)))


def _always(*_: object) -> bool:
    return True


@pytest.mark.parametrize(
    ("name", "premise"),
    [
        ("all lanes", "narrows_exec"),
        ("other lanes", "narrows_exec"),
        ("the lanes that are left", "narrows_exec"),
        ("a lane by its number", "_is_lane_wise"),
    ],
)
def test_each_premise_is_needed(monkeypatch: pytest.MonkeyPatch, name: str, premise: str) -> None:
    """Without it, the racy kernel is proved: so its test can fail."""
    dropped: Callable[..., bool] = _always
    monkeypatch.setattr(slicing, premise, dropped)
    then, read = RACY[name]
    assert judged(WRITTEN.format(then=then, read=read)).proved


def test_a_lane_that_is_not_read_keeps_no_state_apart() -> None:
    """A register that two paths leave different, and that is written again before lanes of it are read."""
    text = """
    v_lshlrev_b32_e32 v1, 2, v0
    s_load_dwordx4 s[8:11], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    s_mov_b32 s12, 0
    again:
    v_add_u32_e32 v4, s12, v1
    s_add_i32 s12, s12, 4
    s_cmp_lt_u32 s12, s8
    s_cbranch_scc1 again
    s_barrier
    s_mov_b64 exec, s[10:11]
    v_mov_b32_e32 v4, v1
    ds_write_b32 v4, v0
    s_waitcnt lgkmcnt(0)
    """
    verdict = judged(text)
    assert verdict.proved
    assert verdict.statistics.states < 20
