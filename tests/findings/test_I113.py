from __future__ import annotations

from rota.errors import Finding
from tests.findings.smallest import raised
from tests.isa.gfx1250 import listed

SET, USE = "s_set_vgpr_msb 1", "v_mov_b32_e32 v3, v2"


def refused(*body: str) -> Finding:
    return raised("I113", lambda: listed(*body, vgprs=1024))


def test_two_paths_with_two_banks_meet() -> None:
    finding = refused("s_cbranch_scc1 meet", SET, "meet:", USE)
    assert finding.concerns[0].label == USE
    assert dict(finding.evidence) == {"operand": "v2", "place": "first source", "bank of 256 registers": "0 or 1"}


def test_a_loop_that_does_not_put_the_bank_back() -> None:
    finding = refused("loop:", USE, SET, "s_cbranch_scc1 loop")
    assert finding.concerns[0].label == USE


def test_only_the_operand_that_a_path_decides_is_refused() -> None:
    """The target is of the same bank on both paths, and so is a source that no path changes."""
    instructions = listed("s_cbranch_scc1 meet", SET, "meet:", "v_mov_b32_e32 v3, s2", vgprs=1024)
    assert instructions[-1].operands == ("v3", "s2")


def test_a_jump_by_registers() -> None:
    finding = refused(SET, "s_get_pc_i64 s[2:3]", "s_set_pc_i64 s[2:3]")
    assert finding.concerns[0].label == "s_set_pc_i64 s[2:3]"


def test_a_write_of_mode_may_change_the_bank() -> None:
    mode = "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1"
    assert dict(refused(SET, mode, USE).evidence)["bank of 256 registers"] == "0 or 1"
    assert listed(SET, mode, "s_nop 0", SET, USE, vgprs=1024)[-1].operands == ("v3", "v258")
    register = "s_setreg_b32 hwreg(HW_REG_WAVE_MODE, 0, 2), s2"
    assert dict(refused(register, USE).evidence)["bank of 256 registers"] == "0 or 1 or 2 or 3"


def test_right_after_a_write_of_mode_a_bank_is_not_set() -> None:
    mode = "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1"
    assert refused(mode, SET, USE).concerns[0].label == USE
    assert listed(mode, "s_nop 0", SET, USE, vgprs=1024)[-1].operands == ("v3", "v258")
