"""A share of the campaign of `benchmarks.instructions`: every opcode once, a few C functions; and that it can fail."""

from __future__ import annotations

from random import Random

import pytest

from tests.isa.plain.c_campaign import judged_functions
from tests.isa.plain.families import ARCHITECTURES, FAMILIES, Family
from tests.isa.plain.judge import assembled, fresh_state, judged
from tests.isa.plain.scalar import run_scalar
from tests.isa.plain.special import run_vector

FEWEST = 600  # opcodes that are judged alone
MASKS, SOME = "row_mask:0xf bank_mask:0xf", "row_mask:0xa bank_mask:0x6"


def test_hundreds_of_opcodes_have_an_oracle() -> None:
    assert len({opcode for family in FAMILIES for opcode in family.opcodes}) >= FEWEST


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_single_instructions_do_what_the_plain_machine_does(family: Family, arch: str) -> None:
    first = ARCHITECTURES.index(arch)
    opcodes = family.opcodes[first :: 3 if "scaled" in family.name else 2]
    verdicts = [verdict for _, verdict in family.judge(Random(family.name), arch, opcodes, 1)]
    assert [verdict for verdict in verdicts if verdict.outcome not in {"right", "refused"}] == []
    if arch == "gfx950" or "scaled" not in family.name:  # only gfx950 has those
        assert sum(verdict.outcome == "right" for verdict in verdicts) > len(opcodes) * 0.7


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_c_functions_give_what_they_give_here(arch: str) -> None:
    verdicts = list(judged_functions(5, 20, arch))
    assert [(each.function.body, each.outcome) for each in verdicts if each.outcome != "right"] == []
    assert len(frozenset().union(*(each.opcodes for each in verdicts))) > 60


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("v_add_u32_e32 v8, v0, v2", "v_sub_u32_e32 v8, v0, v2"),
        ("v_max_f32_e32 v8, v0, v2", "v_min_f32_e32 v8, v0, v2"),
        ("v_mul_f32_e64 v8, -v0, v2", "v_mul_f32_e64 v8, v0, v2"),
        ("v_mov_b32_e32 v8, v0", "v_mov_b32_e32 v9, v0"),
        ("v_cmp_lt_u32_e64 s[6:7], v0, v2", "v_cmp_lt_i32_e64 s[6:7], v0, v2"),
        (f"v_mov_b32_dpp v8, v0 row_shr:1 {MASKS}", f"v_mov_b32_dpp v8, v0 row_shl:1 {MASKS}"),
        ("v_add_f64 v[8:9], v[0:1], v[2:3]", "v_mul_f64 v[8:9], v[0:1], v[2:3]"),
        ("v_mad_u64_u32 v[8:9], s[6:7], v0, v2, v[4:5]", "v_mad_u64_u32 v[8:9], s[10:11], v0, v2, v[4:5]"),
    ],
)  # fmt: skip
def test_another_instruction_is_noticed(text: str, other: str) -> None:
    (instruction,) = assembled([other], "gfx950")
    assert instruction is not None
    state = fresh_state(Random(1), "gfx950")
    assert judged(text, instruction, state, "gfx950", run_vector).outcome not in {"right", "refused"}


FORMS = (
    "quad_perm:[3,0,2,1]", "row_shl:3", "row_shr:14", "row_ror:5", "wave_shl:1", "wave_shr:1", "wave_rol:1",
    "wave_ror:1", "row_mirror", "row_half_mirror", "row_bcast:15", "row_bcast:31", "row_newbcast:9",
)  # fmt: skip


@pytest.mark.parametrize("bound", ["", " bound_ctrl:1"])
def test_every_way_to_cross_lanes(bound: str) -> None:
    texts = [f"v_sub_u32_dpp v8, v0, v2 {form} {masks}{bound}" for form in FORMS for masks in (MASKS, SOME)]
    texts.append(f"v_mov_b64_dpp v[8:9], v[0:1] row_newbcast:3 {SOME}{bound}")
    random = Random(8)
    for text, instruction in zip(texts, assembled(texts, "gfx942"), strict=True):
        assert instruction is not None
        for mask in (0xFFFF_FFFF_FFFF_FFFF, 0x1234_5678_9ABC_DEF0):
            state = fresh_state(random, "gfx942")
            state.put_mask(126, mask)
            assert judged(text, instruction, state, "gfx942", run_vector).outcome == "right"


def test_another_scalar_instruction_is_noticed() -> None:
    (instruction,) = assembled(["s_add_u32 s8, s2, s4"], "gfx950")
    assert instruction is not None
    state = fresh_state(Random(4), "gfx950")
    state.scc = 1
    assert judged("s_addc_u32 s8, s2, s4", instruction, state, "gfx950", run_scalar).outcome != "right"
