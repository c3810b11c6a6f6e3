from __future__ import annotations

from tests.isa.single import execute, fresh
from tests.wording.golden import mentions, worded

MFMA = "v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]"


def test_a_result_is_read_before_its_mfma_has_passed() -> None:
    wave = execute(f"{MFMA}\ns_nop 5\nv_accvgpr_read_b32 v8, a0", fresh(dict.fromkeys(range(4), 0)), "gfx942")
    (finding,) = wave.faults.findings()
    assert finding.code == "I104"
    worded(finding)
    assert mentions(finding.message, "v_accvgpr_read_b32", "a0", 1)


def test_one_wait_state_more_is_enough() -> None:
    wave = execute(f"{MFMA}\ns_nop 6\nv_accvgpr_read_b32 v8, a0", fresh(dict.fromkeys(range(4), 0)), "gfx942")
    assert wave.faults.findings() == ()
