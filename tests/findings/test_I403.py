from __future__ import annotations

from tests.prove.written import codes, evidence, judged

LOAD = "v_lshlrev_b32_e32 v1, 2, v0\ns_mov_b32 m0, 0\ns_nop 0\nglobal_load_lds_dword v1, s[4:5]"


def test_a_load_to_lds_lands_before_its_wave_ends() -> None:
    verdict = judged(LOAD, waves=1)
    assert codes(verdict) == ["I403"]
    assert evidence(verdict, "I403")["missing wait"] == "vmcnt(0) before it"
    assert judged(f"{LOAD}\ns_waitcnt vmcnt(0)", waves=1).proved


def test_a_load_to_a_register_may_be_late() -> None:
    assert judged("v_lshlrev_b32_e32 v1, 2, v0\nglobal_load_dword v2, v1, s[4:5]", waves=1).proved
