from __future__ import annotations

import pytest

from tests.findings.smallest import raised
from tests.lift.small_loop import BUFFERS, lifted, looped

SKIP = ("s_cmp_eq_u32 s4, 7", "s_cbranch_scc1 over", "s_waitcnt vmcnt(0)", "over:")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("v_mov_b32_e32 v1, 0", "it has no loop"),
        (looped("v_mov_b32_e32 v9, 0"), "no loop of it uses memory or matrix instructions"),
        (looped(*BUFFERS, *SKIP), "its loop has more than one path through it"),
        (looped(*BUFFERS, "s_frobnicate s0"), "rota doesn't know s_frobnicate"),
    ],
)
def test_what_is_not_lifted_is_said(text: str, why: str) -> None:
    finding = raised("T304", lambda: lifted(text))
    assert finding.message == f"k is not lifted: {why}"


def test_waves_that_never_come_to_the_loop() -> None:
    leave = ("v_readfirstlane_b32 s7, v0", "s_cmp_eq_u32 s7, 0", "s_cbranch_scc1 out")
    before = ("s_load_dword s4, s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", *leave)
    text = looped("global_load_dword v9, v0, s[8:9]", "s_waitcnt vmcnt(0)", before=before) + "\nout:"
    finding = raised("T304", lambda: lifted(text))
    assert finding.message == "k is not lifted: 1 of its 2 waves reach no loop with as much work"
