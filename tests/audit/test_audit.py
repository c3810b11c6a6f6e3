from __future__ import annotations

from collections.abc import Callable

import pytest

from rota import CompiledSchedule, KernelGeometry
from rota.audit.audit import WaitVerdict, audit_gemm
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import find_toolchain
from tests.audit import sabotage
from tests.emit.kernels import FP8, SMALL, SMALL_MI300X, Emitted, by_values, staggered
from tests.wording.golden import worded

KERNELS: dict[str, Callable[[], Emitted]] = {"small": lambda: by_values(SMALL), "staggered": lambda: staggered(FP8)}


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("name", KERNELS)
def test_machine_code_is_the_schedule(name: str) -> None:
    compiled, geometry = KERNELS[name]()
    report = sabotage.audited(compiled, geometry, sabotage.source_of(compiled, geometry))
    assert report.exact, str(report)
    assert report.tally(WaitVerdict.EQUAL) == len(report.waits) > 0
    assert report.facts.spills == 0
    assert report.certificate is not None
    worded(str(report).splitlines()[-1])


@pytest.mark.thorough  # compiles, or starts commands
def test_a_tail_kernel_is_audited_by_its_name() -> None:
    compiled, geometry = by_values(SMALL_MI300X)
    tail, _ = by_values(SMALL_MI300X, remainder=1)
    code = find_toolchain().compile(emit_gemm(compiled, geometry, tails=[tail]), "gfx942")
    assert {kernel.name for kernel in code.kernels} == {compiled.name, f"{compiled.name}_tail1"}
    assert audit_gemm(compiled, geometry, code, kernel=compiled.name).exact
    assert audit_gemm(tail, geometry, code, kernel=f"{compiled.name}_tail1").exact
    assert not audit_gemm(tail, geometry, code, kernel=compiled.name).clean


def small() -> tuple[CompiledSchedule, KernelGeometry, str]:
    compiled, geometry = by_values(SMALL_MI300X)
    return compiled, geometry, sabotage.source_of(compiled, geometry)


FAULTS: dict[str, tuple[Callable[[str], str], set[str]]] = {
    "vm wait weakened": (lambda s: sabotage.changed(s, sabotage.is_vm_wait, sabotage.one_weaker), {"I204", "R102"}),
    "lgkm wait weakened": (lambda s: sabotage.changed(s, sabotage.is_lgkm_wait, sabotage.one_weaker), {"I204"}),
    "vm wait removed": (lambda s: sabotage.changed(s, sabotage.is_vm_wait, sabotage.without), {"I204", "R102"}),
    "barrier removed": (lambda s: sabotage.changed(s, sabotage.is_barrier, sabotage.without), {"I205"}),
    "read of another stage": (lambda s: sabotage.changed(s, sabotage.is_read, sabotage.other_address(16384)), {"I203"}),
    "load into another stage": (
        lambda s: sabotage.changed(s, sabotage.is_dma, sabotage.other_address(16384)),
        {"I203"},
    ),
    "read of another part": (
        lambda s: sabotage.changed(s, sabotage.is_read, sabotage.other_address(2048), 3),
        {"I203"},
    ),
    "read before its barrier": (lambda s: sabotage.moved_up(s, sabotage.is_read, sabotage.is_barrier), {"I202"}),
    "read left out": (lambda s: sabotage.changed(s, sabotage.is_read, sabotage.without), {"I202"}),
    "wrong fragment": (
        lambda s: sabotage.changed(s, sabotage.is_mfma, lambda line: line.replace("a[0][0]", "a[0][1]")),
        {"I203"},
    ),
    "wrong operand's memory": (
        lambda s: sabotage.changed(s, sabotage.loads_a, lambda line: line.replace("a_global", "b_global")),
        {"I203"},
    ),
    "wrong element": (lambda s: sabotage.changed(s, sabotage.is_mfma, sabotage.of_another_element), {"I203"}),
    "wrong accumulator": (
        lambda s: sabotage.changed(s, sabotage.is_mfma, lambda line: line.replace("c[0][0]", "c[1][1]")),
        {"I203"},
    ),
}


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("fault", FAULTS)
def test_sabotage_is_caught(fault: str) -> None:
    change, codes = FAULTS[fault]
    compiled, geometry, source = small()
    wrong = change(source)
    assert wrong.splitlines() != source.splitlines()
    report = sabotage.audited(compiled, geometry, wrong)
    assert not report.clean
    assert codes <= {finding.code for finding in report.findings}, str(report)
