from __future__ import annotations

from rota.isa.binary.toolchain import find_toolchain
from tests.findings.smallest import raised


def test_a_source_that_does_not_compile() -> None:
    finding = raised("T102", lambda: find_toolchain().compile("void f() {\n  return missing;\n}", "gfx950"))
    assert "kernel.hip:2:10: error: use of undeclared identifier 'missing'" in finding.message
    assert "--offload-arch=gfx950" in str(dict(finding.evidence)["command"])


def test_assembly_that_does_not_assemble() -> None:
    finding = raised("T102", lambda: find_toolchain().assemble("\tv_frobnicate v0\n", "gfx950"))
    assert "error: invalid instruction" in finding.message
