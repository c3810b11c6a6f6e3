"""rota's own kernels, proved from their machine code alone; all of them are `python -m benchmarks.prove_own`."""

from __future__ import annotations

import re

import pytest

from benchmarks.prove_own import prove_emitted
from rota.emit.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import find_toolchain
from rota.prove.proved_object import prove_object
from tests.emit.kernels import SMALL, ZOO, ping_pong


@pytest.mark.parametrize("name", ["ping-pong", f"{SMALL}, by tile"])
def test_emitted_kernels_are_proved(name: str) -> None:
    verdict = prove_emitted(ZOO[name](), find_toolchain())
    assert verdict.proved, verdict.findings
    assert verdict.statistics.concrete_sites == verdict.statistics.sites > 0


def test_waves_that_take_turns_need_each_barrier() -> None:
    """The same kernel without one of the barriers of its loop is no longer right."""
    compiled, geometry = ping_pong()
    toolchain = find_toolchain()
    assembly = toolchain.compile(emit_gemm(compiled, geometry), compiled.machine.arch).assembly
    barriers = [found.start() for found in re.finditer(r"^\s*s_barrier\b.*\n", assembly, re.MULTILINE)]
    middle = barriers[len(barriers) // 2]
    end = assembly.index("\n", middle) + 1
    (verdict,) = prove_object(toolchain.assemble(assembly[:middle] + assembly[end:], compiled.machine.arch))
    assert {"I109", "I121"} & {finding.code for finding in verdict.findings}
