"""`build_kernel_program` ends with verification, as its page says, and builds blocks for a double buffer alone."""

from __future__ import annotations

import pytest

from rota import DeclarationError, ProgramError, SingleBufferSchedule, build_kernel_program
from tests.programs.ported import Plain, Rotating


def test_a_fragment_of_another_stage_that_no_rotation_declares_is_refused() -> None:
    schedule = Rotating()
    body, knobs = schedule.build_body(), schedule.schedule_config()
    built = build_kernel_program(body, schedule.config(), knobs, schedule.derive_edges(body))
    assert len(built.blocks) == 8
    undeclared = schedule.config().but(cross_stage_rotation=False)
    with pytest.raises(ProgramError) as caught:
        build_kernel_program(body, undeclared, knobs, schedule.derive_edges(body))
    assert {finding.code for finding in caught.value.findings} == {"P103"}


def test_a_load_that_overwrites_what_is_still_read_is_refused() -> None:
    schedule = Plain()
    body = list(schedule.build_body())
    body.insert(2, body.pop(10))  # copy_a t1 goes to the first block; the third one reads that tile
    with pytest.raises(ProgramError) as caught:
        build_kernel_program(body, schedule.config())
    assert "P107" in {finding.code for finding in caught.value.findings}


def test_a_single_buffer_has_no_blocks() -> None:
    schedule = SingleBufferSchedule(2)
    with pytest.raises(DeclarationError) as caught:
        build_kernel_program(schedule.build_body(), schedule.config())
    (finding,) = caught.value.findings
    assert finding.code == "D106"
    assert dict(finding.evidence) == {"depth": 1, "least depth with blocks": 2}
