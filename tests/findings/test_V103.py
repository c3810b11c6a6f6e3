from __future__ import annotations

from dataclasses import replace

from rota import OpRole, SingleBufferSchedule, compile_schedule
from tests.findings.proofs import found
from tests.findings.smallest import Small


def test_an_epilogue_that_leaves_out_its_last_compute_is_reported() -> None:
    written = compile_schedule(Small(), sync="as_written")
    last = max(i for i, entry in enumerate(written.epilogue) if entry.op.role is OpRole.COMPUTE)
    found("V103", replace(written, epilogue=(*written.epilogue[:last], *written.epilogue[last + 1 :])))


def test_a_kernel_that_computes_nothing_is_reported_although_the_loop_runs_for_ever() -> None:
    written = compile_schedule(Small(), sync="as_written")
    lazy = tuple(entry for entry in written.kernel if entry.op.role is not OpRole.COMPUTE)
    found("V103", replace(written, kernel=lazy), times=None)


def test_registers_that_the_kernel_never_loads_again_are_reported_although_no_two_trips_are_alike() -> None:
    written = compile_schedule(SingleBufferSchedule(2))
    elsewhere = tuple(
        replace(entry, op=entry.op.but(channel=1)) if entry.op.role is OpRole.GLOBAL_LOAD else entry
        for entry in written.kernel
    )
    found("V103", replace(written, kernel=elsewhere), times=None)
