from __future__ import annotations

from rota import FrameworkTag, SchedGroupHints, SingleBufferSchedule, compile_schedule


def test_without_hints_the_kernel_is_the_body() -> None:
    compiled = compile_schedule(SingleBufferSchedule(3), sync="as_written")
    assert tuple(entry.op for entry in compiled.kernel) == compiled.body
    assert compiled.program is None
    assert compiled.kernel_deps == compiled.edges


def test_hints_share_out_every_mfma_when_there_are_stores() -> None:
    hints = SchedGroupHints(m_mmas=4, n_mmas=2, k_mmas=8, a_loads_per_thread=2, b_loads_per_thread=1)
    compiled = compile_schedule(SingleBufferSchedule(2, hints))
    groups = [entry.op for entry in compiled.kernel if entry.op.tag == FrameworkTag.SCHED_GROUP_BARRIER]
    assert sum(op.wait_value for op in groups if op.subtile == 3) == 4 * 2 * 8
    assert sum(op.wait_value for op in groups if op.subtile == 0) == 2 * (4 + 2)
    assert sum(op.wait_value for op in groups if op.subtile == 1) == 3
