"""Waits between vector units and memory instructions in scheduling mode 2, one broken rule at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota.errors import Finding
from rota.isa.binary.toolchain import read_object
from rota.isa.hazards.dependency_waits import check_dependency_waits
from rota.targets.cdna5 import CDNA5
from tests.isa.gfx1250 import listed
from tests.shared import shared

MODE = "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2"
ADD, LOAD, STORE = "v_add_nc_u32_e32 v1, v2, v3", "global_load_b32 v1, v4, s[4:5]", "ds_store_b32 v5, v1"
WMMA = "v_wmma_f32_16x16x32_f16 v[16:23], v[32:39], v[40:47], v[16:23]"
WAIT_VALU, WAIT_MEMORY = "s_wait_alu depctr_va_vdst({})", "s_wait_alu depctr_vm_vsrc({})"


def found(*body: str, mode: str = MODE) -> list[Finding]:
    return [*check_dependency_waits(listed(*([mode] if mode else []), *body), CDNA5)]


def rules(*body: str) -> list[tuple[str, ...]]:
    """For each finding: its rule, the wait that is missing, the later instruction and the earlier one."""
    return [
        (str(dict(each.evidence)["rule"]), str(dict(each.evidence)["missing wait"]).split()[0],
         *(concern.label.split()[0] for concern in each.concerns))
        for each in found(*body)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "then", "rule", "counter"),
    [
        (ADD, STORE, "va_vdst: reads what writes", "va_vdst"),
        (ADD, "global_store_b32 v1, v4, s[4:5]", "va_vdst: reads what writes", "va_vdst"),
        (ADD, "global_load_async_to_lds_b32 v1, v4, s[4:5]", "va_vdst: reads what writes", "va_vdst"),
        (ADD, LOAD, "va_vdst: overwrites what writes", "va_vdst"),
        (ADD, "ds_load_b32 v2, v9", "va_vdst: overwrites what reads", "va_vdst"),
        (WMMA, "ds_load_b128 v[32:35], v9", "va_vdst: overwrites what reads", "va_vdst"),
        ("v_exp_f32_e32 v1, v2", STORE, "va_vdst: reads what writes", "va_vdst"),
        (STORE, "v_mov_b32_e32 v1, 0", "vm_vsrc: overwrites what reads", "vm_vsrc"),
        (LOAD, "v_mov_b32_e32 v4, 0", "vm_vsrc: overwrites what reads", "vm_vsrc"),
        (
            "global_load_async_to_lds_b32 v1, v4, s[4:5]",
            "v_mov_b32_e32 v1, 0",
            "vm_vsrc: overwrites what reads",
            "vm_vsrc",
        ),
    ],
)
def test_one_wait_is_needed_and_enough(first: str, then: str, rule: str, counter: str) -> None:
    ends = then.split(maxsplit=1)[0], first.split(maxsplit=1)[0]
    assert rules(first, then) == [(rule, f"{counter}(0)", *ends)]
    wait, other = (WAIT_VALU, WAIT_MEMORY) if counter == "va_vdst" else (WAIT_MEMORY, WAIT_VALU)
    assert rules(first, wait.format(0), then) == []
    assert len(rules(first, wait.format(1), then)) == 1
    assert len(rules(first, other.format(0), then)) == 1
    assert rules(first, "s_wait_idle", then) == []
    assert found(first, then, mode="") == []
    assert found(first, then, mode=MODE.replace("), 2", "), 0")) == []


def test_a_count_leaves_younger_ones_of_the_same_unit() -> None:
    one, other = "v_mov_b32_e32 v1, 0", "v_mov_b32_e32 v6, 0"
    assert rules(one, other, WAIT_VALU.format(1), STORE) == []
    assert [each[1] for each in rules(one, other, STORE)] == ["va_vdst(1)"]
    assert [each[1] for each in rules(one, other, WAIT_VALU.format(2), STORE)] == ["va_vdst(1)"]


def test_units_end_in_no_order() -> None:
    """A transcendental that is younger says nothing of a sum; a large product ends after all before it."""
    assert len(rules("v_mov_b32_e32 v1, 0", "v_exp_f32_e32 v6, v7", WAIT_VALU.format(1), STORE)) == 1
    assert rules("v_mov_b32_e32 v1, 0", WMMA, WAIT_VALU.format(1), STORE) == []
    assert len(rules(WMMA, "v_mov_b32_e32 v6, 0", WAIT_VALU.format(1), "ds_store_b32 v5, v16")) == 1


def test_double_precision_has_no_order_of_its_own() -> None:
    lines = ("v_add_f64_e32 v[10:11], v[12:13], v[14:15]", "v_add_f64_e32 v[24:25], v[12:13], v[14:15]")
    assert len(rules(*lines, WAIT_VALU.format(1), "ds_store_b64 v5, v[10:11]")) == 1
    assert rules(*lines, WAIT_VALU.format(0), "ds_store_b64 v5, v[10:11]") == []


def test_memory_instructions_read_in_the_order_of_their_unit() -> None:
    lds, memory = "ds_store_b32 v5, v1", "global_store_b32 v8, v9, s[4:5]"
    write = "v_mov_b32_e32 v1, 0"
    assert rules(lds, "ds_store_b32 v6, v7", WAIT_MEMORY.format(1), write) == []
    assert len(rules(lds, memory, WAIT_MEMORY.format(1), write)) == 1


def test_what_has_no_register_to_read_is_not_counted() -> None:
    """vm_vsrc may not count it, so that it is no younger one."""
    older, plain = "buffer_store_b32 v1, v5, s[4:7], null offen", "buffer_load_b32 v6, off, s[4:7], null"
    assert len(rules(older, plain, WAIT_MEMORY.format(1), "v_mov_b32_e32 v1, 0")) == 1
    assert (
        rules(older, "buffer_load_b32 v6, v7, s[4:7], null offen", WAIT_MEMORY.format(1), "v_mov_b32_e32 v1, 0") == []
    )


def test_a_wait_for_a_memory_instruction_covers_what_it_reads() -> None:
    write = "v_mov_b32_e32 v4, 0"
    assert rules(LOAD, "s_wait_loadcnt 0x0", write) == []
    assert len(rules(LOAD, "s_wait_dscnt 0x0", write)) == 1
    other = "global_load_b32 v6, v7, s[4:5]"
    assert rules(LOAD, other, "s_wait_loadcnt 0x1", write) == []
    assert len(rules(LOAD, other, "s_wait_loadcnt 0x2", write)) == 1


def test_a_load_does_not_overwrite_what_an_older_one_reads() -> None:
    assert rules(LOAD, "ds_load_b32 v4, v9") == [
        ("vm_vsrc: overwrites what reads", "vm_vsrc(0)", "ds_load_b32", "global_load_b32")
    ]
    assert rules(LOAD, WAIT_MEMORY.format(0), "ds_load_b32 v4, v9") == []


def test_what_a_vector_instruction_writes_again_counts_from_there() -> None:
    assert [each[3] for each in rules("v_exp_f32_e32 v1, v2", "v_nop", ADD, STORE)] == ["v_add_nc_u32_e32"]


def test_another_unit_that_reads_a_result_has_waited_for_it() -> None:
    use = "v_add_nc_u32_e32 v6, v16, v7"
    assert rules(WMMA, *["v_nop"] * 4, use, "ds_load_b128 v[32:35], v9") == []
    assert len(rules(WMMA, *["v_nop"] * 4, "v_add_nc_u32_e32 v6, v50, v7", "ds_load_b128 v[32:35], v9")) == 1


def test_more_than_a_counter_holds_cannot_be_under_way() -> None:
    assert rules("v_mov_b32_e32 v1, 0", *["v_mov_b32_e32 v6, 0"] * 15, STORE) == []
    assert len(rules("v_mov_b32_e32 v1, 0", *["v_mov_b32_e32 v6, 0"] * 14, STORE)) == 1


def test_a_wait_is_needed_on_every_path() -> None:
    lines = ("s_cbranch_scc1 meet", WAIT_VALU.format(0), "meet:", STORE)
    assert len(rules(ADD, *lines)) == 1
    wait = WAIT_VALU.format(0)
    assert rules(ADD, "s_cbranch_scc1 other", wait, "s_branch meet", "other:", wait, "meet:", STORE) == []


def test_a_loop_carries_what_is_under_way() -> None:
    loop = ("loop:", "ds_load_b128 v[32:35], v9", "s_wait_dscnt 0x0", WMMA, "s_cbranch_scc1 loop")
    assert [each[0] for each in rules(*loop)] == ["va_vdst: overwrites what reads"]
    assert rules("loop:", WAIT_VALU.format(0), *loop[1:]) == []


def test_a_wait_as_a_number() -> None:
    assert rules(ADD, "s_wait_alu 0x0fff", STORE) == []
    assert len(rules(ADD, "s_wait_alu 0xffff", STORE)) == 1


def shipped(pattern: str) -> list[str]:
    return sorted(str(each) for each in shared("kernels/gfx1250").glob(pattern))


@pytest.mark.parametrize("pattern", ["triton/*.gfx1250.hsaco", "gluon/*.gfx1250.hsaco"])
def test_code_of_a_compiler_that_sets_the_mode_keeps_the_rules(pattern: str) -> None:
    objects = [read_object(path) for path in shipped(pattern)]
    assert len(objects) > 20
    waits = [each for code in objects for each in code.instructions() if each.opcode == "s_wait_alu"]
    assert len(waits) > 100
    assert [each.message for code in objects for each in check_dependency_waits(code.instructions(), CDNA5)] == []


@pytest.mark.thorough
def test_a_compilers_waits_are_needed() -> None:
    """Each s_wait_alu of compiled code is taken away alone; of some, another wait covers the same."""
    noticed = total = 0
    for path in shipped("triton/m_fp16_64_64_32_4w_s2.gfx1250.hsaco"):
        instructions = read_object(path).instructions()
        for place, each in enumerate(instructions):
            if each.opcode == "s_wait_alu":
                nothing = replace(each, opcode="s_nop", text="s_nop 0", operands=("0",))
                weaker = (*instructions[:place], nothing, *instructions[place + 1 :])
                noticed += bool(check_dependency_waits(weaker, CDNA5))
                total += 1
    assert total > 30
    assert noticed / total > 0.8
