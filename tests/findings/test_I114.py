from __future__ import annotations

from rota.isa.hazards.dependency_waits import check_dependency_waits
from rota.targets.cdna5 import CDNA5
from tests.isa.gfx1250 import listed
from tests.wording.golden import mentions, worded

MODE = "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2"
ADD, STORE = "v_add_nc_u32_e32 v1, v2, v3", "ds_store_b32 v5, v1"


def test_a_result_is_stored_while_the_vector_unit_still_writes_it() -> None:
    (finding,) = check_dependency_waits(listed(MODE, ADD, STORE), CDNA5)
    assert finding.code == "I114"
    worded(finding)
    assert mentions(finding.message, "ds_store_b32", "v1", "v_add_nc_u32_e32")
    assert [each.label for each in finding.concerns] == [STORE, ADD]


def test_with_a_wait_nothing_is_said() -> None:
    assert check_dependency_waits(listed(MODE, ADD, "s_wait_alu depctr_va_vdst(0)", STORE), CDNA5) == ()
