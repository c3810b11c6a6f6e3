from __future__ import annotations

from time import process_time

import numpy as np
import pytest

from rota.isa.binary.kernel_facts import Argument
from rota.isa.decoded import load_program
from rota.isa.launch import run
from rota.isa.launch.processes import time_limit
from tests.findings.smallest import raised
from tests.isa.single import facts, listing, loaded
from tests.wording.golden import mentions

FOREVER = ".LBB0_1:\n{body}\ns_branch .LBB0_1"
WAY_OUT = "s_mov_b32 s0, 0\n.LBB0_1:\n{body}\ns_cmp_eq_u32 s0, 1\ns_cbranch_scc0 .LBB0_1"


@pytest.mark.parametrize("body", ["s_nop 0", "s_add_u32 s0, s0, 1", "s_barrier"])
def test_a_loop_without_a_way_out(body: str) -> None:
    forever = loaded(FOREVER.format(body=body))
    raised("I108", lambda: run.run_kernel(forever, args=[], block=(256, 1, 1)))


def test_a_loop_in_which_nothing_changes() -> None:
    again = loaded(WAY_OUT.format(body="s_nop 0"))
    finding = raised("I108", lambda: run.run_kernel(again, args=[], block=(64, 1, 1)))
    assert dict(finding.evidence) == {"workgroup": 0, "waves that repeat": "0"}


def test_a_loop_that_counts_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST_INSTRUCTIONS", 1000)
    far = loaded(WAY_OUT.format(body="s_add_u32 s0, s0, 2"))
    finding = raised("I108", lambda: run.run_kernel(far, args=[], block=(64, 1, 1)))
    assert "1000" in finding.message


def test_the_core_keeps_the_limit_of_a_wave_that_never_waits() -> None:
    """It ends after 30,000 instructions, three times the limit."""
    late = loaded("s_mov_b32 s0, 0\n.LBB0_1:\ns_add_u32 s0, s0, 1\ns_cmp_eq_u32 s0, 0x2710\ns_cbranch_scc0 .LBB0_1")
    for most in (10_000, 100_000):

        def launch(most: int = most) -> run.KernelOutcome:
            return run.run_dispatch(late, buffers=[], values=[], grid=(1, 1, 1), block=(64, 1, 1), most=most)

        if most < 30_000:
            assert "10000" in raised("I108", launch).message
        else:
            assert not launch().findings


def test_a_loop_that_counts_too_far_on_the_core_is_not_counted_again() -> None:
    """5 million instructions take the core seconds, and NumPy minutes."""
    far = loaded(WAY_OUT.format(body="s_add_u32 s0, s0, 2"))
    started = process_time()
    finding = raised(
        "I108", lambda: run.run_dispatch(far, buffers=[], values=[], grid=(1, 1, 1), block=(64, 1, 1), most=5_000_000)
    )
    assert "5000000" in finding.message
    assert process_time() - started < 20


def test_a_launch_that_takes_too_long() -> None:
    far = loaded(WAY_OUT.format(body="s_add_u32 s0, s0, 2"))
    with time_limit(0.2):
        finding = raised(
            "I108", lambda: run.run_dispatch(far, buffers=[], values=[], grid=(1, 1, 1), block=(64, 1, 1), most=2**40)
        )
    assert "0.2" in finding.message


def test_waves_that_meet_at_a_barrier_again_and_again() -> None:
    again = loaded(WAY_OUT.format(body="s_barrier"))
    finding = raised("I108", lambda: run.run_kernel(again, args=[], block=(256, 1, 1)))
    assert "0" in str(dict(finding.evidence)["waves that repeat"])


def test_a_wave_that_others_wait_for_at_a_barrier() -> None:
    """Wave 0 repeats, wave 1 has come to the barrier."""
    text = """v_readfirstlane_b32 s0, v0
        s_cmp_lg_u32 s0, 0
        s_cbranch_scc1 .LBB0_2
        .LBB0_1:
        s_cmp_eq_u32 s0, 0
        s_cbranch_scc1 .LBB0_1
        .LBB0_2:
        s_barrier"""
    finding = raised("I108", lambda: run.run_kernel(loaded(text), args=[], block=(128, 1, 1)))
    assert dict(finding.evidence) == {"workgroup": 0, "waves that repeat": "0", "waves at a barrier": "1"}
    assert [concern.label for concern in finding.concerns] == ["s_cmp_eq_u32 s0, 0", "s_barrier"]


WAITS_FOR_A_FLAG = """s_load_dwordx2 s[6:7], s[0:1], 0x0
    v_mov_b32_e32 v1, 0
    v_mov_b32_e32 v3, 7
    s_waitcnt lgkmcnt(0)
    s_cmp_lg_u32 s2, {writer}
    s_cbranch_scc1 .LBB0_1
    global_store_dword v1, v3, s[6:7]
    .LBB0_1:
    global_load_dword v2, v1, s[6:7]
    s_waitcnt vmcnt(0)
    v_readfirstlane_b32 s5, v2
    s_cmp_eq_u32 s5, 0
    s_cbranch_scc1 .LBB0_1"""


def waiting(writer: int) -> run.KernelOutcome:
    """Three workgroups wait until memory holds something else than 0; one of them writes it."""
    told = facts(
        arguments=(Argument(name="flag", offset=0, size=8, kind="global_buffer"),),
        kernarg_bytes=8,
        user_sgprs=(("kernarg_segment_ptr", 2),),
        workgroup_ids=(True, False, False),
    )
    program = load_program(told, listing(WAITS_FOR_A_FLAG.format(writer=writer)))
    return run.run_kernel(program, args=[np.zeros(16, np.uint32)], grid=(3, 1, 1), block=(64, 1, 1))


def test_memory_that_nobody_writes() -> None:
    assert mentions(dict(raised("I108", lambda: waiting(writer=3)).evidence)["workgroup"], 0, 3)


@pytest.mark.parametrize("writer", [0, 1, 2])
def test_a_workgroup_that_waits_for_a_later_one_ends(writer: int) -> None:
    assert waiting(writer).buffers[0][0] == 7


def test_too_many_workgroups_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device holds so many at once; the one that they wait for would never start."""
    monkeypatch.setattr("rota.isa.launch.run.MOST_ASIDE", 1)
    assert mentions(dict(raised("I108", lambda: waiting(writer=2)).evidence)["workgroup"], 1, 2)
