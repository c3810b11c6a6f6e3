from __future__ import annotations

from dataclasses import replace

from rota.isa.binary.toolchain import find_toolchain
from tests.findings.smallest import raised


def test_a_compiler_that_is_not_there() -> None:
    finding = raised("T101", lambda: find_toolchain("no-such-clang++"))
    assert finding.message == "no toolchain found: no-such-clang++"
    assert finding.fixes[0] == "apt-get install clang-22 lld-22 llvm-22"


def test_a_compiler_without_its_linker() -> None:
    lonely = replace(find_toolchain(), name="lonely", linker=("no-such-lld",))
    finding = raised("T101", lambda: lonely.assemble("\ts_nop 0\n", "gfx950"))
    assert finding.message == "no toolchain found: lonely needs no-such-lld"
    assert finding.fixes[0] == "apt-get install clang-22 lld-22 llvm-22"
