"""How far vector instructions of gfx1250 must be apart: each rule broken by one, and kept."""

from __future__ import annotations

import pytest

from rota.isa.hazards.wait_states import check_spacing
from rota.targets.cdna5 import CDNA5, WMMA_FORMS
from tests.isa.gfx1250 import listed

HALF = "v_wmma_f32_16x16x32_f16 v[0:7], v[16:23], v[24:31], v[0:7]"
BYTE = "v_wmma_i32_16x16x64_iu8 v[0:7], v[16:23], v[24:31], v[0:7]"
SHORT = "v_wmma_f32_16x16x64_fp8_fp8 v[0:7], v[16:23], v[24:31], v[0:7]"
SPARSE = "v_swmmac_f32_16x16x64_f16 v[0:7], v[16:23], v[24:39], v40"
SPARSE_BYTE = "v_swmmac_i32_16x16x128_iu8 v[0:7], v[16:23], v[24:39], v[40:41]"
SLOW = "v_exp_f32_e32 v1, v2"
USE, OVERWRITE, FACTOR = "v_add_f32_e32 v50, v0, v51", "v_mov_b32_e32 v7, 0", "v_mov_b32_e32 v17, 0"
NEXT = "v_wmma_f32_16x16x32_f16 v[64:71], v[0:7], v[72:79], v[64:71]"
MODE = "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 24, 1), 1"
BROKEN = [
    *((HALF, then, "wmma_8_clocks_result", 4) for then in (USE, OVERWRITE, "v_exp_f32_e32 v50, v3")),
    (HALF, FACTOR, "wmma_8_clocks_factor", 4),
    (HALF, "v_mov_b32_e32 v31, 0", "wmma_8_clocks_factor", 4),
    (HALF, NEXT, "wmma_8_clocks_next", 5),
    (BYTE, USE, "wmma_16_clocks_result", 8),
    (BYTE, FACTOR, "wmma_16_clocks_factor", 8),
    (BYTE, NEXT, "wmma_16_clocks_next", 9),
    (SHORT, USE, "wmma_4_clocks_result", 1),
    (SHORT, FACTOR, "wmma_4_clocks_factor", 1),
    (SHORT, NEXT, "wmma_4_clocks_next", 2),
    (SPARSE, USE, "wmma_sparse_8_clocks_result", 2),
    (SPARSE, "v_mov_b32_e32 v40, 0", "wmma_sparse_8_clocks_factor", 2),
    (SPARSE, NEXT, "wmma_sparse_8_clocks_next", 3),
    (SPARSE_BYTE, USE, "wmma_sparse_16_clocks_result", 4),
    (SPARSE_BYTE, FACTOR, "wmma_sparse_16_clocks_factor", 4),
    (SPARSE_BYTE, NEXT, "wmma_sparse_16_clocks_next", 5),
    (SLOW, "v_add_f32_e32 v50, v1, v51", "transcendental_result", 1),
    (SLOW, "v_mov_b32_e32 v1, 0", "transcendental_result", 1),
    (SLOW, "v_mov_b32_e32 v2, 0", "transcendental_source", 1),
    (
        "v_exp_f32_e32 v8, v2",
        "v_wmma_f32_16x16x32_f16 v[64:71], v[8:15], v[72:79], v[64:71]",
        "transcendental_result",
        1,
    ),
    *((first, MODE, "mode_write", 2) for first in ("v_mov_b32_e32 v1, 0", "ds_load_b32 v1, v2")),
]


def broken(*body: str) -> list[str]:
    return [str(dict(each.evidence)["rule"]) for each in check_spacing(listed(*body), CDNA5)]


@pytest.mark.parametrize(("first", "then", "rule", "apart"), BROKEN)
def test_one_less_breaks_a_rule(first: str, then: str, rule: str, apart: int) -> None:
    assert broken(first, *["v_nop"] * (apart - 1), then) == [rule]
    assert broken(first, *["v_nop"] * apart, then) == []


def test_only_v_nop_keeps_a_write_of_mode_apart() -> None:
    move, other = "v_mov_b32_e32 v1, 0", "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2"
    assert broken(move, "s_nop 0", "s_nop 0", MODE) == ["mode_write"]
    assert broken(move, "v_nop", move, "v_nop", MODE) == ["mode_write"]
    assert broken(move, "s_cbranch_vccz over", "v_nop", "v_nop", "over:", MODE) == ["mode_write"]
    assert broken(MODE, move, other) == []


def test_every_rule_has_its_example() -> None:
    assert {rule.name for rule in CDNA5.hazards.rules} == {rule for _, _, rule, _ in BROKEN}


@pytest.mark.parametrize(
    "between", ["s_nop 7", "s_mov_b32 s4, 0", "ds_load_b32 v50, v51", "s_delay_alu instid0(VALU_DEP_1)"]
)
def test_only_vector_instructions_pass_the_time(between: str) -> None:
    assert broken(HALF, *[between] * 5, USE) == ["wmma_8_clocks_result"]
    assert broken(SLOW, between, "v_mov_b32_e32 v2, 0") == ["transcendental_source"]


def test_any_vector_instruction_passes_it() -> None:
    other = "v_dual_mov_b32 v50, 0 :: v_dual_mov_b32 v51, 0"
    assert broken(HALF, other, "v_mov_b32_e32 v52, 0", "v_exp_f32_e32 v53, v54", other, USE) == []


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (HALF, HALF),  # it adds to the sum
        (HALF, "global_store_b32 v50, v0, s[4:5]"),
        (HALF, "ds_load_b128 v[16:19], v50"),
        (HALF, "v_add_f32_e32 v50, v16, v51"),  # it reads a factor
        (SLOW, "v_exp_f32_e32 v3, v1"),
        (SLOW, "global_store_b32 v50, v1, s[4:5]"),
        (SLOW, "v_add_f32_e32 v50, v2, v51"),
    ],
)
def test_what_need_not_be_apart(first: str, then: str) -> None:
    assert broken(first, then) == []


def test_a_product_of_four_bits_is_short() -> None:
    product = "v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[16:{}], v[32:{}], v[0:7]"
    wide, narrow = product.format(31, 47), product.format(23, 39)
    narrow += " matrix_a_fmt:MATRIX_FMT_FP4 matrix_b_fmt:MATRIX_FMT_FP4"
    assert broken(wide, "v_nop", USE) == ["wmma_8_clocks_result"]
    assert (broken(narrow, USE), broken(narrow, "v_nop", USE)) == (["wmma_4_clocks_result"], [])


def test_a_rule_holds_on_every_path() -> None:
    nops = ["v_nop"] * 4
    assert broken(HALF, "s_cbranch_scc1 meet", *nops, "meet:", USE) == ["wmma_8_clocks_result"]
    assert broken("loop:", FACTOR, HALF, "s_cbranch_scc1 loop") == ["wmma_8_clocks_factor"]
    assert broken("s_branch end", "dead:", "s_branch dead", "end:", "v_nop", USE) == []


def test_the_assembler_knows_every_form() -> None:
    known = {form.name for form in WMMA_FORMS}
    assert len(known) == len(WMMA_FORMS)
    assert {
        HALF.split(maxsplit=1)[0],
        BYTE.split(maxsplit=1)[0],
        SHORT.split(maxsplit=1)[0],
        SPARSE.split(maxsplit=1)[0],
        SPARSE_BYTE.split(maxsplit=1)[0],
    } <= known
    for form in WMMA_FORMS:
        listed_name = listed(_line(form.name))[0].opcode
        assert listed_name == form.name


def _line(name: str) -> str:
    """The instruction with as many registers as its formats and shape take."""
    form = next(each for each in WMMA_FORMS if each.name == name)
    bits = {"f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "iu8": 8, "f8f6f4": 8, "f4": 4}
    left = form.rows * form.depth * bits[form.left] // (32 * 32) // (2 if form.sparse else 1)
    right = form.columns * form.depth * bits[form.right] // (32 * 32)
    total = form.rows * form.columns * (16 if form.total in {"f16", "bf16"} else 32) // (32 * 32)
    if form.total == "bf16f32":
        total = 8
    sums = f"v[128:{127 + total}]"
    factors = f"v[0:{left - 1}], v[32:{31 + right}]"
    if form.sparse:
        return f"{name} {sums}, {factors}, {'v64' if form.depth == 64 else 'v[64:65]'}"
    added = f"v[160:{159 + (8 if form.total == 'bf16f32' else total)}]"
    target = f"v[128:{127 + (4 if form.total == 'bf16f32' else total)}]"
    scales = "" if not form.scaled else ", v[64:65], v[66:67]" if "scale16" in name else ", v64, v65"
    return f"{name} {target}, {factors}, {added}{scales}"
