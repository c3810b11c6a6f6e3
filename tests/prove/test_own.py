"""rota's own kernels, proved from their machine code alone; all of them are `python -m benchmarks.prove_own`."""

from __future__ import annotations

from functools import cache

import pytest

from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.prove.kernel_proof import prove_object
from tests.emit.kernels import ping_pong


@cache
def staggered() -> CodeObject:
    """Two groups of waves that run the same loop one barrier apart, each with a bound that it computes itself."""
    compiled, geometry = ping_pong()
    return find_toolchain().compile(emit_gemm(compiled, geometry), compiled.machine.arch)


def test_waves_that_take_turns_are_proved() -> None:
    (verdict,) = prove_object(staggered())
    assert verdict.proved, verdict.findings
    assert verdict.statistics.concrete_sites == verdict.statistics.sites > 0


@pytest.mark.thorough  # runs for seconds
def test_waves_that_take_turns_need_their_waits() -> None:
    """The same kernel with waits in its loop for one load less is no longer right."""
    assembly = staggered().assembly
    assert "vmcnt(6)" in assembly
    weaker = find_toolchain().assemble(assembly.replace("vmcnt(6)", "vmcnt(8)"), staggered().arch)
    (verdict,) = prove_object(weaker)
    assert "I109" in {finding.code for finding in verdict.findings}
