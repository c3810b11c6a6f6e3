"""A share of the campaign of `benchmarks.instructions`: every opcode once, a few C functions; and that it can fail."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.campaigns.machine_code.instructions import executed_opcodes, without_oracle
from tests.isa.every_opcode import every_instruction
from tests.isa.plain.c_campaign import judged_functions
from tests.isa.plain.families import ARCHITECTURES, FAMILIES, Family
from tests.isa.plain.judge import assembled, fresh_state, judged
from tests.isa.plain.scalar import run_scalar
from tests.isa.plain.special import run_vector
from tests.isa.shown_elsewhere import ELSEWHERE

pytestmark = pytest.mark.thorough  # compiles, or starts commands

FEWEST = 1000  # opcodes that are judged alone
ALONE = ("memory", "matrix")  # families with a test for each opcode: test_memory_oracles, test_matrix_forms
MASKS, SOME = "row_mask:0xf bank_mask:0xf", "row_mask:0xa bank_mask:0x6"


def test_hundreds_of_opcodes_have_an_oracle() -> None:
    assert len({opcode for family in FAMILIES for opcode in family.opcodes}) >= FEWEST


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_opcode_that_is_executed_has_an_oracle(arch: str) -> None:
    executed = executed_opcodes(arch)
    assert len(executed) > 0.8 * len(every_instruction(arch))
    assert without_oracle(executed) == []


def test_an_opcode_without_an_oracle_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [family for family in FAMILIES if family.name != "memory"]
    monkeypatch.setattr("tests.campaigns.machine_code.instructions.FAMILIES", others)
    executed = executed_opcodes("gfx950")
    assert "ds_read_b64_tr_b4" in without_oracle(executed)
    assert "v_add_u32" not in without_oracle(executed)
    assert without_oracle({"v_made_up_b32", "s_barrier"}) == ["v_made_up_b32"]


@pytest.mark.parametrize(("opcode", "file"), sorted(ELSEWHERE.items()))
def test_tests_that_are_named_have_the_opcode(opcode: str, file: str) -> None:
    assert opcode in (Path(__file__).parents[2] / file).read_text()


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", ALONE)
def test_families_of_checks_give_verdicts(name: str, arch: str) -> None:
    (family,) = (each for each in FAMILIES if each.name == name)
    opcodes = Random(name).sample(family.opcodes, 12)
    verdicts = [verdict for _, verdict in family.judge(Random(name), arch, opcodes, 1)]
    assert {verdict.outcome for verdict in verdicts} <= {"right", "refused"}
    assert sum(verdict.outcome == "right" for verdict in verdicts) > 5


def test_a_check_that_fails_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.isa.memory.lds_ops._TEAM", 8)
    (family,) = (each for each in FAMILIES if each.name == "memory")
    ((_, verdict),) = family.judge(Random(3), "gfx950", ["ds_read_b64_tr_b4"], 1)
    assert verdict.outcome.startswith("differs")


@pytest.mark.parametrize("family", [each for each in FAMILIES if each.name not in ALONE], ids=lambda each: each.name)
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
