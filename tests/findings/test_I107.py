from __future__ import annotations

from dataclasses import replace

from rota.isa.decoded import load_program
from rota.isa.launch.run import run_kernel
from tests.findings.smallest import raised
from tests.isa.single import DESCRIPTOR, facts, listing, loaded
from tests.wording.golden import mentions


def test_too_many_arguments() -> None:
    finding = raised("I107", lambda: run_kernel(loaded("s_nop 0"), args=[1], block=(64, 1, 1)))
    assert dict(finding.evidence)["arguments"] == "1 given, 0 declared"


def test_more_lds_than_the_machine_has() -> None:
    """It was accepted: 96 KiB on gfx942, which has 64."""
    older = load_program(replace(facts("gfx942"), descriptor=replace(DESCRIPTOR, lds_bytes=98304)), listing("s_nop 0"))
    finding = raised("I107", lambda: run_kernel(older, args=[], block=(64, 1, 1)))
    assert dict(finding.evidence)["LDS"] == "98304 bytes; gfx942 has 65536"
    raised("I107", lambda: run_kernel(loaded("s_nop 0"), args=[], block=(64, 1, 1), dynamic_lds=160 * 1024))
    run_kernel(loaded("s_nop 0"), args=[], block=(64, 1, 1), dynamic_lds=156 * 1024)


def test_too_many_work_items() -> None:
    finding = raised("I107", lambda: run_kernel(loaded("s_nop 0"), args=[], block=(64, 5, 1)))
    assert mentions(dict(finding.evidence)["workgroup"], "64", "256")


def test_a_workgroup_of_another_shape_than_the_kernel_was_compiled_for() -> None:
    square = load_program(facts(required_workgroup=(8, 8, 1)), listing("s_nop 0"))
    finding = raised("I107", lambda: run_kernel(square, args=[], block=(64, 1, 1)))
    assert dict(finding.evidence)["compiled for"] == "(8, 8, 1) work-items"
    assert run_kernel(square, args=[], block=(8, 8, 1)).findings == ()
