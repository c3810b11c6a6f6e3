"""rota's own kernels, proved from their machine code alone; all of them are `python -m benchmarks.prove_own`."""

from __future__ import annotations

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


def test_waves_that_take_turns_need_their_waits() -> None:
    """The same kernel with waits in its loop for one load less is no longer right."""
    compiled, geometry = ping_pong()
    toolchain = find_toolchain()
    assembly = toolchain.compile(emit_gemm(compiled, geometry), compiled.machine.arch).assembly
    assert "vmcnt(6)" in assembly
    weaker = toolchain.assemble(assembly.replace("vmcnt(6)", "vmcnt(8)"), compiled.machine.arch)
    (verdict,) = prove_object(weaker)
    assert "I109" in {finding.code for finding in verdict.findings}
