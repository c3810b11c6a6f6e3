from __future__ import annotations

from dataclasses import replace

from rota.isa.binary.toolchain import find_toolchain
from tests.findings.smallest import raised
from tests.wording.golden import mentions


def test_a_compiler_that_is_not_there() -> None:
    finding = raised("T101", lambda: find_toolchain("no-such-clang++"))
    assert "no-such-clang++" in finding.message
    assert finding.fixes[0] == "apt-get install clang-22 lld-22 llvm-22"


def test_a_compiler_without_its_linker() -> None:
    lonely = replace(find_toolchain(), name="lonely", linker=("no-such-lld",))
    finding = raised("T101", lambda: lonely.assemble("\ts_nop 0\n", "gfx950"))
    assert mentions(finding.message, "lonely", "no-such-lld")
    assert finding.fixes[0] == "apt-get install clang-22 lld-22 llvm-22"
