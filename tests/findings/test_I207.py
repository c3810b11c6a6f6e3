from __future__ import annotations

from dataclasses import replace

from rota.audit.audit import audit_gemm
from rota.isa.binary.toolchain import find_toolchain
from tests.audit import sabotage
from tests.emit.kernels import SMALL_MI300X, by_values


def test_memory_that_was_not_predicted_is_found() -> None:
    compiled, geometry = by_values(SMALL_MI300X)
    source = sabotage.source_of(compiled, geometry).replace("memory[65536]", "memory[65024]")
    audit = sabotage.audited(compiled, geometry, source)
    assert {finding.code for finding in audit.findings} == {"I207"}


def test_more_registers_than_a_wave_may_have_are_found() -> None:
    compiled, geometry = by_values(SMALL_MI300X)
    code = find_toolchain().compile(sabotage.source_of(compiled, geometry), "gfx942")
    facts = code.kernel()
    greedy = replace(code, kernels=(replace(facts, vgprs=520, descriptor=replace(facts.descriptor, vgprs=520)),))
    assert {finding.code for finding in audit_gemm(compiled, geometry, greedy).findings} == {"I207"}
