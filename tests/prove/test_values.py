"""What the proof computes covers what the interpreter computes: registers, EXEC, SCC and bytes of LDS, lane by lane."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from rota.isa.decoded import KernelProgram, load_program
from rota.prove import symbol, transfer
from rota.prove.kernel_proof import prove
from tests.campaigns.machine_code.drawn_kernels import drawn, facts
from tests.campaigns.machine_code.value_meaning import DifferError
from tests.campaigns.machine_code.value_oracle import compared, of_corpus, of_seed
from tests.campaigns.machine_code.value_record import Launch
from tests.isa.corpus.cases import FOLDER, Case
from tests.shared import shared

TAB = "\t"
SEEDS = range(8)
KERNELS = ("h_dynlds.gfx942", "h_reduction.gfx950", "h_warpreduce.gfx942", "t_sort.gfx950", "g_mxfp4.gfx950")


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("naming", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_kernel(seed: int, naming: bool) -> None:
    made = of_seed(seed)
    assert compared(made.program, made.launch, everything=True, naming=naming).checked > 1000
    assert compared(made.program, made.launch, naming=naming).instructions > 40


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("name", KERNELS)
def test_a_compiled_kernel(name: str) -> None:
    program, launch = of_corpus(Case(path=shared(f"{FOLDER}/{name}.hsaco"), name=name))
    assert compared(program, launch, naming=True).sites > 0


# What the comparison found when it was made: the smallest kernel of each.
FOUND = {
    "EXEC is written": "s_mov_b64 s[10:11], 0xff\ns_andn1_wrexec_b64 s[12:13], s[10:11]\nv_mov_b32_e32 v2, 7",
    "a constant of 64 bits has a sign": "v_mov_b64_e32 v[2:3], -1\nv_mad_u64_u32 v[4:5], s[10:11], v0, 3, -2",
    "mbcnt differs by lane": "v_mbcnt_lo_u32_b32 v2, s4, s5",
    "no lane is active": """
        v_cmp_gt_u32_e64 s[10:11], 8, v0
        v_cmp_lt_u32_e64 s[12:13], 8, v0
        s_and_saveexec_b64 s[14:15], s[12:13]
        v_mov_b32_e32 v0, s4
        s_mov_b64 exec, 0
        v_readfirstlane_b32 s16, v0""",
    "a half that stays": """
        v_mov_b32_e32 v2, s4
        v_mad_u16 v2, s6, s6, s6
        v_mov_b32_e32 v3, v2
        v_mov_b32_e32 v2, s5
        v_mad_u16 v2, s6, s6, s6""",
    "a pair of which one half differs": """
        s_mov_b32 s10, s4
        s_mov_b32 s11, s5
        s_mov_b32 s12, s4
        s_mov_b32 s13, s6
        s_bitset1_b64 s[10:11], 3
        s_bitset1_b64 s[12:13], 3""",
    "a load leaves lanes alone": """
        v_lshlrev_b32_e32 v2, 2, v0
        ds_write_b32 v2, v0
        v_lshlrev_b32_e32 v2, 3, v0
        v_cmp_gt_u32_e64 s[10:11], 8, v0
        s_and_saveexec_b64 s[12:13], s[10:11]
        global_load_dword v2, v0, s[28:29]
        s_waitcnt vmcnt(0)
        s_xor_b64 exec, exec, s[12:13]
        ds_write_b32 v2, v0 offset:1024""",
    "a register's own rows change places": "v_permlane16_swap_b32_e32 v0, v0",
}


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("what", FOUND)
def test_what_was_wrong(what: str, everything: bool) -> None:
    compared(*_written(FOUND[what]), everything=everything)


def _written(text: str, waves: int = 2) -> tuple[KernelProgram, Launch]:
    head = "s_load_dwordx4 s[4:7], s[0:1], 0x0\ns_load_dwordx2 s[28:29], s[0:1], 0x18\ns_waitcnt lgkmcnt(0)\n"
    lines = "".join(
        f"{'' if line.endswith(':') else TAB}{line.strip()}\n" for line in (head + text).splitlines() if line.strip()
    )
    args = [*(np.uint32(each) for each in (5, 0x1234_5678, 0xFFFF_FFF0, 3, 9, 77)), np.arange(512, dtype=np.uint32)]
    return load_program(facts(waves), f"k:\n{lines}\ts_endpgm\n"), Launch(args=args, block=(64 * waves, 1, 1))


# Waves go apart two ways: low and high ones, then even and odd ones.  Both times an argument is compared with rows 0
# and 1, which are other waves' then; if it is 0, wave 2 takes the two comparisons differently, and writes what wave 0
# does.
REGROUPED = """
v_readfirstlane_b32 s20, v0
s_lshr_b32 s20, s20, 6
s_and_b32 s21, s20, 1
s_lshr_b32 s22, s20, 1
s_waitcnt lgkmcnt(0)
v_lshlrev_b32_e32 v1, 2, v0
s_mov_b32 s30, 0
s_mov_b32 s31, 0
s_barrier
s_cmp_eq_u32 s22, 0
s_cbranch_scc1 low
s_cmp_lt_u32 s4, s21
s_cbranch_scc1 a1
s_mov_b32 s30, 8
a1:
s_branch met
low:
s_cmp_lt_u32 s4, s21
s_cbranch_scc1 a2
s_mov_b32 s30, 8
a2:
s_nop 0
met:
s_barrier
s_cmp_eq_u32 s21, 0
s_cbranch_scc1 even
s_cmp_lt_u32 s4, s22
s_cbranch_scc1 b1
s_mov_b32 s31, 8
b1:
s_branch out
even:
s_cmp_lt_u32 s4, s22
s_cbranch_scc1 b2
s_mov_b32 s31, 8
b2:
s_nop 0
out:
s_lshl_b32 s32, s20, 8
s_add_u32 s32, s32, s31
s_add_u32 s32, s32, s30
s_cmp_lg_u32 s32, 0x208
s_cbranch_scc1 fine
v_subrev_u32_e32 v1, 0x200, v1
fine:
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
"""


def test_waves_that_go_apart_anew_decide_anew() -> None:
    program, launch = _written(REGROUPED, waves=4)
    verdict = prove(program.facts, tuple(step.instruction for step in program.steps))
    assert "I109" in {finding.code for finding in verdict.findings}
    for argument in (0, 1, 5):
        args = [np.uint32(argument), *launch.args[1:]]
        compared(program, replace(launch, args=args), naming=True)


# The comparison itself: what is wrong on purpose is found.


def test_wrong_arithmetic_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(symbol.ARITHMETIC, "shl", lambda a, b: a << (b & 31) + 1)
    program, launch = _written("v_lshlrev_b32_e32 v2, 2, v0")
    with pytest.raises(DifferError, match="v_lshlrev_b32_e32 v2, 2, v0"):
        compared(program, launch, everything=True)


def test_a_wrong_decision_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(symbol.COMPARISONS, "lt_u", lambda a, b: a <= b)
    text = "s_mov_b32 s10, 4\ns_cmp_lt_u32 s10, 4\ns_cbranch_scc1 out\nv_mov_b32_e32 v1, v0\nout:\nv_mov_b32_e32 v2, v0"
    program, launch = _written(text)
    with pytest.raises(DifferError, match=r"s_cmp_lt_u32|s_cbranch_scc1"):
        compared(program, launch)


def test_a_spread_that_is_too_narrow_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_MIN_MAX", {**transfer._MIN_MAX, "s_min_u32": "max_u"})
    program, launch = _written("v_readfirstlane_b32 s10, v0\ns_min_u32 s11, s10, s4\ns_nop 0")
    with pytest.raises(DifferError):
        compared(program, launch, everything=True)


def test_drawn_kernels_are_the_same_every_time() -> None:
    assert drawn(Random(3), 20).text == drawn(Random(3), 20).text
