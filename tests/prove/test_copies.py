"""Waves in copies of the code: that they make as many rounds is known from what they count, not from where they are."""

from __future__ import annotations

import pytest

from tests.prove.test_met_states import START
from tests.prove.written import codes, judged

# Two waves, each in its own copy of a loop; after it each writes what the other one writes in the loop.
COPIES = (
    START
    + """
v_lshrrev_b32_e32 v4, 6, v0
s_nop 1
v_readfirstlane_b32 s24, v4
s_mov_b32 s26, 0
s_mov_b32 s27, s9
s_nop 4
s_cmp_eq_u32 s24, 0
s_cbranch_scc0 second
{first}
s_branch out
second:
s_nop 0
{second}
out:
ds_write_b32 v2, v0
"""
)
ROUND = """
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
{barrier}
ds_read_b32 v3, v2
s_waitcnt lgkmcnt(0)
s_barrier
s_add_u32 s26, s26, {step}
"""
# s27 is what it was, or 0, by more and more comparisons: so states differ until their registers become unknown.
COUNTED = f"""
{{copy}}:
{ROUND}
s_add_u32 s28, s26, 1
s_cmp_lt_u32 s28, s8
s_cselect_b32 s27, s27, 0
s_cmp_{{compare}} s26, {{end}}
s_cbranch_scc1 {{copy}}
s_cmp_eq_u32 s27, 7
s_cbranch_scc1 {{copy}}_out
global_store_dword v1, v0, s[4:5]
{{copy}}_out:
s_nop 0
"""
# A workgroup takes one tile after the other, so many apart as there are workgroups.
PERSISTENT = f"""
{{copy}}:
s_mul_i32 s28, s26, s10
s_add_u32 s28, s28, s11
s_cmp_{{compare}} s28, {{end}}
s_cbranch_scc0 {{copy}}_out
{ROUND}
s_branch {{copy}}
{{copy}}_out:
s_nop 0
"""
PLAIN = {"barrier": "s_barrier", "step": "1", "compare": "lt_i32", "end": "s8"}


def _both(loop: str, first: dict[str, str], second: dict[str, str]) -> str:
    return COPIES.format(first=loop.format(copy="a", **PLAIN | first), second=loop.format(copy="b", **PLAIN | second))


@pytest.mark.parametrize("loop", [COUNTED, PERSISTENT], ids=["counted", "persistent"])
@pytest.mark.parametrize("compare", ["lt_i32", "lt_u32", "lg_u32"])
def test_copies_that_count_alike_make_as_many_rounds(loop: str, compare: str) -> None:
    verdict = judged(_both(loop, {"compare": compare}, {"compare": compare}))
    assert verdict.proved
    assert codes(verdict) == []


@pytest.mark.parametrize("loop", [COUNTED, PERSISTENT], ids=["counted", "persistent"])
@pytest.mark.parametrize(
    ("part", "changed"), [("step", "2"), ("end", "s12"), ("compare", "lt_u32"), ("barrier", "s_nop 0")]
)
def test_copies_that_do_not_are_found(loop: str, part: str, changed: str) -> None:
    assert {"I109", "I121"} <= set(codes(judged(_both(loop, {}, {part: changed}))))


@pytest.mark.parametrize(("rounds", "found"), [(1, []), (2, []), (3, ["I121"])])
def test_copies_that_are_a_few_barriers_apart_decide_alike(rounds: int, found: list[str]) -> None:
    """How far one may be after is a matter of effort: beyond that, what the other one decided is forgotten."""
    loop = "{copy}:\ns_barrier\ns_barrier\ns_add_u32 s26, s26, 1\ns_cmp_lt_i32 s26, s8\ns_cbranch_scc1 {copy}\n"
    late = "s_barrier\n" * 2 * rounds
    text = COPIES.format(first=loop.format(copy="a") + late, second=late + loop.format(copy="b"))
    assert codes(judged(text.replace("ds_write_b32 v2, v0", "s_nop 0"))) == found
