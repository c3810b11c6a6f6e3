"""Formulas of registers are what the interpreter computes, in drawn kernels; faults are found in public kernels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rota.isa.decoded import load_program
from rota.prove.footprint import numbers
from tests.campaigns.machine_code.drawn_kernels import facts
from tests.campaigns.machine_code.footprint_oracle import DifferError, compared
from tests.campaigns.machine_code.overflow_pairs import FAULTS, list_pairs, overflows_of, reports
from tests.campaigns.machine_code.value_oracle import of_seed
from tests.campaigns.machine_code.value_record import Launch
from tests.shared import shared

WORD = np.uint64(1 << 32)
IntArray = NDArray[np.uint64]
SEEDS = range(4000, 4024)


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_kernel(seed: int) -> None:
    made = of_seed(seed)
    assert compared(made.program, made.launch)["words"] > 500


# What the comparison found when it was made: the smallest kernel of each.
FOUND = {
    "inactive lanes leave no carry": "s_mov_b64 exec, 0xff\nv_add_co_u32_e32 v2, vcc, -1, v0\ns_mov_b64 exec, -1",
    "a signed sum has no carry": "s_mov_b32 s4, -1\ns_add_i32 s5, s4, s4\ns_addc_u32 s6, 0, 0",
    "equal numbers set SCC as well": "s_cmp_eq_u32 0, 0\ns_mov_b32 s4, -1\ns_min_i32 s5, s4, -1",
    "a width has five bits": "v_mov_b32_e32 v2, 64\nv_bfe_u32 v3, v0, v2, v2",
    "a shift of 64 bits keeps the sign": "s_mov_b32 s5, s4\ns_ashr_i64 s[6:7], s[4:5], 4",
    "half of EXEC": "s_mov_b32 exec_lo, 0xff\nv_mov_b32_e32 v2, 7\ns_mov_b64 exec, -1",
    "no lane is active": """
        v_mov_b32_e32 v2, 7
        s_mov_b64 exec, 0
        v_mov_b32_e32 v2, 9
        v_readfirstlane_b32 s4, v2""",
    "lanes that read nothing stay": "v_mov_b32_dpp v2, v0 row_shr:1 row_mask:0xf bank_mask:0xf",
    "a sum that clamps": "v_mov_b32_e32 v2, -1\nv_add_u32_e64 v3, v2, v0 clamp",
    "a division by an argument": """
        s_or_b32 s4, s4, 1
        s_sub_i32 s5, 0, s4
        v_cvt_f32_u32_e32 v1, s4
        v_rcp_iflag_f32_e32 v1, v1
        v_mul_f32_e32 v1, 0x4f7ffffe, v1
        v_cvt_u32_f32_e32 v1, v1
        v_readfirstlane_b32 s6, v1
        s_mul_i32 s5, s5, s6
        s_mul_hi_u32 s5, s6, s5
        s_add_i32 s6, s6, s5
        s_mul_hi_u32 s7, s2, s6
        s_mul_i32 s8, s7, s4
        s_sub_i32 s8, s2, s8
        s_add_i32 s9, s7, 1
        s_sub_i32 s10, s8, s4
        s_cmp_ge_u32 s8, s4
        s_cselect_b32 s7, s9, s7
        s_cselect_b32 s8, s10, s8
        s_add_i32 s9, s7, 1
        s_sub_i32 s10, s8, s4
        s_cmp_ge_u32 s8, s4
        s_cselect_b32 s7, s9, s7
        s_cselect_b32 s8, s10, s8
        v_mov_b32_e32 v2, s7
        v_mov_b32_e32 v3, s8""",
    "an unknown part of an unknown word": "v_and_or_b32 v2, v3, v4, v5\nv_or3_b32 v2, v3, v4, v5",
}


@pytest.mark.parametrize("name", FOUND)
def test_what_the_comparison_found(name: str) -> None:
    assert compare_text(FOUND[name])["words"] > 0


def compare_text(text: str) -> dict[str, int]:
    lines = "\n".join(f"\t{line.strip()}" for line in text.strip().splitlines())
    program = load_program(
        facts(1), f"k:\n\ts_load_dword s4, s[0:1], 0x0\n\ts_waitcnt lgkmcnt(0)\n{lines}\n\ts_endpgm\n"
    )
    made = of_seed(0)
    launch = Launch(args=made.launch.args, block=(64, 1, 1), grid=(3, 1, 1), group=(1, 0, 0))
    return dict(compared(program, launch))


def test_the_comparison_finds_a_wrong_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product that is taken for a sum."""
    monkeypatch.setitem(numbers.ON_NUMBERS, "v_mul_lo_u32", numbers.ON_NUMBERS["v_add_u32"])
    monkeypatch.setattr("rota.prove.footprint.accesses._ACTIONS", {**numbers.ON_NUMBERS})
    with pytest.raises(DifferError):
        compare_text("v_mul_lo_u32 v2, v0, s4\nv_mov_b32_e32 v3, v2")


FIRST = ("2151", "2189", "4341")


@pytest.mark.parametrize("pull", FIRST)
def test_a_public_fix_is_told_apart(pull: str) -> None:
    shared("kernels/pairs/PAIRS.json")
    for pair in (each for each in list_pairs() if each.id == pull):
        assert pair.fault is not None
        assert reports(overflows_of(pair.before), pair.fault) != []
        assert reports(overflows_of(pair.after), pair.fault) == []


def test_every_fault_is_one_of_the_shared_objects() -> None:
    shared("kernels/pairs/PAIRS.json")
    assert FAULTS.keys() <= {each.before.stem for each in list_pairs()}


# Division by an argument, as LLVM computes it.


def quotient_of(one: IntArray, by: IntArray, *, up: bool) -> IntArray:
    """The instructions that are taken for a division, with a reciprocal that is rounded up, or down."""
    rounded = by.astype(np.float32)
    near = (np.float32(1) / rounded).astype(np.float32)
    error = near.astype(np.float64) * rounded.astype(np.float64) - 1  # exact
    off = (error < 0).astype(np.int32) if up else -(error > 0).astype(np.int32)
    near = (near.view(np.int32) + off).view(np.float32)
    first = (near * np.array(0x4F7FFFFE, np.uint32).view(np.float32)).astype(np.float64).astype(np.uint64)
    first = np.minimum(first, WORD - np.uint64(1))  # v_cvt_u32_f32 saturates
    left = np.mod(WORD - np.mod(by * first, WORD), WORD)
    better = np.mod(first + np.right_shift(first * left, np.uint64(32)), WORD)
    found: IntArray = np.right_shift(one * better, np.uint64(32))
    rest = (one - found * by) % WORD
    for _ in range(2):
        more = rest >= by
        found, rest = found + more.astype(np.uint64), np.where(more, rest - by, rest)
    return found


@pytest.mark.parametrize("up", [False, True])
def test_what_counts_as_a_division_is_one(up: bool) -> None:
    random = np.random.default_rng(7)
    powers = (np.uint64(1) << np.arange(32, dtype=np.uint64)).repeat(3) + np.tile([-1, 0, 1], 32).astype(np.uint64)
    by = np.concatenate([powers, random.integers(1, WORD, 20000), random.integers(1, 5000, 20000)]).astype(np.uint64)
    by = np.clip(by, 1, WORD - 1).astype(np.uint64)
    multiples = random.integers(0, WORD, len(by)).astype(np.uint64) // by * by
    for one in (multiples, np.maximum(multiples, 1) - np.uint64(1), np.full(len(by), WORD - 1, np.uint64)):
        assert np.array_equal(quotient_of(one, by, up=up), one // by)
