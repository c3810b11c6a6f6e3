from __future__ import annotations

import pytest

from rota import DeclarativeSchedule, OpDesc, ScheduleConfig, compile_schedule
from tests.findings.proofs import found, loop


@pytest.mark.parametrize(
    ("wait", "largest"), [(OpDesc.wait_lgkm(15), 14), (OpDesc.wait_lgkm(40), 14), (OpDesc.wait_vm(63), 62)]
)
def test_a_count_with_all_bits_set_is_no_wait(wait: OpDesc, largest: int) -> None:
    (finding,) = found("L101", loop(prologue=[wait]))
    assert ("largest real wait", largest) in finding.evidence


def test_the_largest_real_waits_are_fine() -> None:
    found("L101", loop(prologue=[OpDesc.wait_lgkm(14), OpDesc.wait_vm(62)]), times=0)


def test_repair_clamps_a_derived_wait_and_lists_it() -> None:
    wide = DeclarativeSchedule(ScheduleConfig(scheduling="GREEDY", lgkm_per_load_a=18, lgkm_per_load_b=4))
    written = compile_schedule(wide, sync="as_written")
    found("L101", written, times=2)
    compiled = compile_schedule(wide)
    assert [str(repair.change).split(" ", 1)[1] for repair in compiled.repairs] == [
        "wait_lgkm(18) became wait_lgkm(14)"
    ] * 2
    assert len(compiled.kernel) == len(written.kernel)
