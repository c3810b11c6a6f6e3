from __future__ import annotations

from rota.isa.binary.toolchain import find_toolchain
from tests.findings.smallest import raised
from tests.wording.golden import mentions


def test_a_source_that_does_not_compile() -> None:
    finding = raised("T102", lambda: find_toolchain().compile("void f() {\n  return missing;\n}", "gfx950"))
    assert mentions(finding.message, "kernel.hip:2:10", "missing")
    assert "--offload-arch=gfx950" in str(dict(finding.evidence)["command"])


def test_assembly_that_does_not_assemble() -> None:
    raised("T102", lambda: find_toolchain().assemble("\tv_frobnicate v0\n", "gfx950"))
