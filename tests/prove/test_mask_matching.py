"""Lane masks of seen states: a mask stands for others, and the premises without which a race would be hidden.

Four paths meet, on which masks differ.  The first three become one general state; the fourth is one that this state
doesn't cover.  After the meeting point a race is reached only if the premise that a test is about doesn't hold.
`docs/proof_of_machine_code.md` names the premises.
"""

from __future__ import annotations

import inspect

import pytest

from rota.prove import seen_states
from rota.prove.seen_states import StateMatch
from tests.prove.written import codes, judged

START = """
v_lshlrev_b32_e32 v1, 2, v0
v_xor_b32_e32 v2, 0x100, v1
s_load_dwordx8 s[8:15], s[0:1], 0x0
s_load_dwordx8 s[16:23], s[0:1], 0x20
s_waitcnt lgkmcnt(0)
"""
# Masks that nothing is known of, and that no argument determines.
LOADED = """
global_load_dword v5, v1, s[4:5]
global_load_dword v6, v1, s[6:7]
s_waitcnt vmcnt(0)
v_cmp_gt_u32_e64 s[40:41], v5, v0
v_cmp_gt_u32_e64 s[42:43], v6, v0
"""
# A number that no argument determines in few steps, the same for all waves.
COUNTED = (
    "spin:\ns_mov_b32 s44, s17\n" + 7 * "s_mul_i32 s44, s44, s18\n" + "s_cmp_lt_u32 s44, s20\ns_cbranch_scc1 spin\n"
)
PATHS = """
s_cmp_eq_u32 s16, 1
s_cbranch_scc1 second
s_cmp_eq_u32 s16, 2
s_cbranch_scc1 third
s_cmp_eq_u32 s16, 3
s_cbranch_scc1 fourth
v_cmp_gt_u32_e64 s[46:47], s8, v0
{same}
s_branch meet
second:
v_cmp_gt_u32_e64 s[46:47], s9, v0
{same}
s_branch meet
third:
v_cmp_gt_u32_e64 s[46:47], s10, v0
{same}
s_branch meet
fourth:
v_cmp_gt_u32_e64 s[46:47], s11, v0
{other}
meet:
s_barrier
{test}
s_mov_b64 exec, -1
s_cbranch_scc0 done
ds_write_b32 v1, v0
ds_read_b32 v3, v2
done:
s_waitcnt lgkmcnt(0)
s_and_b64 s[48:49], s[46:47], exec
s_cbranch_scc0 out
global_store_dword v1, v0, s[4:5]
out:
s_nop 0
"""


def _kernel(same: str, other: str, test: str, before: str = "") -> str:
    return START + before + PATHS.format(same=same, other=other, test=test)


KERNELS = {
    "one mask in two registers": _kernel(
        "s_mov_b64 s[50:51], s[46:47]", "v_cmp_gt_u32_e64 s[50:51], s12, v0", "s_xor_b64 s[48:49], s[46:47], s[50:51]"
    ),
    "a mask that is EXEC": _kernel(
        "s_mov_b64 exec, s[40:41]\ns_mov_b64 s[50:51], s[40:41]",
        "s_mov_b64 exec, s[40:41]\ns_mov_b64 s[50:51], s[42:43]",
        "s_andn2_b64 s[48:49], exec, s[50:51]",
        LOADED,
    ),
    "lanes that the mask can't have": _kernel(
        "s_and_b64 s[46:47], s[46:47], 1", "s_nop 0", "s_andn2_b64 s[48:49], s[46:47], 1"
    ),
    "lanes that the mask must have": _kernel(
        "s_or_b64 s[46:47], s[46:47], 1", "s_nop 0", "s_andn2_b64 s[48:49], 1, s[46:47]"
    ),
    "a mask that chose a value": _kernel(
        "v_cndmask_b32_e64 v7, 1, 0, s[40:41]\ns_mov_b64 s[50:51], s[40:41]",
        "v_cndmask_b32_e64 v7, 1, 0, s[40:41]\ns_mov_b64 s[50:51], s[42:43]",
        "s_mov_b64 exec, s[50:51]\nv_cmp_eq_u32_e64 s[52:53], 1, v7\ns_or_b64 s[48:49], s[52:53], 0",
        LOADED,
    ),
    "a mask that all waves share": _kernel(
        "s_cmp_lt_u32 s44, s13\ns_cselect_b64 s[50:51], -1, 0",
        "s_cmp_lt_u32 s44, s13\ns_cselect_b64 s[50:51], -1, 0\ns_and_b64 s[50:51], s[50:51], s[40:41]",
        # Either all waves read, and pass a barrier more, or none does: then the write is after the reads.
        "s_mov_b64 exec, -1\ns_cmp_lg_u64 s[50:51], 0\ns_cbranch_scc0 past\ns_barrier\nds_read_b32 v3, v2\n"
        "s_waitcnt lgkmcnt(0)\npast:\ns_barrier\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_cmp_lg_u32 s8, s8",
        LOADED + COUNTED,
    ),
}

# Two reads of the first active lane, under masks that have the same name at their checkpoints.
FIRST_LANES = (
    START
    + LOADED
    + """
s_mov_b64 exec, s[40:41]
s_barrier
v_readfirstlane_b32 s50, v0
s_mov_b64 exec, {second}
s_barrier
v_readfirstlane_b32 s51, v0
s_mov_b64 exec, -1
s_cmp_lg_u32 s50, s51
s_cbranch_scc0 done
ds_write_b32 v1, v0
ds_read_b32 v3, v2
done:
s_waitcnt lgkmcnt(0)
"""
)


@pytest.mark.parametrize("name", KERNELS)
def test_a_mask_stands_for_no_other_that_something_excludes(name: str) -> None:
    assert "I109" in codes(judged(KERNELS[name]))
    right = KERNELS[name].replace("s_cmp_eq_u32 s16, 3\ns_cbranch_scc1 fourth\n", "")
    assert judged(right).proved  # the general state of the other three paths never reaches the race


def _without(line: str, instead: str) -> type[StateMatch]:
    """The rule with one of its premises dropped."""
    source = inspect.getsource(StateMatch)
    assert source.count(line) == 1
    names = dict(vars(seen_states))
    exec("from __future__ import annotations\n" + source.replace(line, instead), names)
    dropped = names["StateMatch"]
    assert isinstance(dropped, type)
    return dropped


@pytest.mark.parametrize(
    ("name", "line", "instead"),
    [
        ("one mask in two registers", "known[atom] = found\n", "free.append(atom)\n"),
        ("a mask that is EXEC", "self._bind_to_itself(wave_set.exec)", "pass"),
        ("lanes that the mask can't have", "if masks.substitute(old.mask, known) is not mask:", "if False:"),
        ("lanes that the mask must have", "if masks.substitute(old.mask, known) is not mask:", "if False:"),
        ("a mask that chose a value", "for part in symbols_in(symbol.args):", "for part in ():"),
        ("a mask that all waves share", "atom.spread != LANE or ", ""),
    ],
)
def test_each_premise_is_needed(monkeypatch: pytest.MonkeyPatch, name: str, line: str, instead: str) -> None:
    """Without it, the racy kernel is proved: so its test can fail."""
    monkeypatch.setattr(seen_states, "StateMatch", _without(line, instead))
    assert judged(KERNELS[name]).proved


def test_what_is_made_of_a_mask_is_renamed_with_it() -> None:
    assert "I109" in codes(judged(FIRST_LANES.format(second="s[42:43]")))


def test_masks_that_differ_by_name_are_one_state() -> None:
    """Waves leave a loop in different rounds, with the lanes that data chooses, and meet at a barrier."""
    text = """
    s_mov_b64 s[50:51], exec
    s_mov_b64 s[52:53], 0
    again:
    global_load_dword v5, v1, s[4:5]
    s_waitcnt vmcnt(0)
    v_cmp_gt_u32_e32 vcc, v5, v0
    s_or_b64 s[52:53], vcc, s[52:53]
    s_andn2_b64 exec, exec, s[52:53]
    s_cbranch_execnz again
    s_mov_b64 exec, s[50:51]
    ds_write_b32 v1, v0
    s_waitcnt lgkmcnt(0)
    {meet}
    ds_read_b32 v3, v2
    s_waitcnt lgkmcnt(0)
    """
    for waves in (2, 4, 16):
        verdict = judged(START + text.format(meet="s_barrier"), waves=waves, max_workgroup=64 * waves)
        assert verdict.proved
        assert verdict.statistics.states < 40 * waves
    assert codes(judged(START + text.format(meet="s_nop 0"))) == ["I109"]
