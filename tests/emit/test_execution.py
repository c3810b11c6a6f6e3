"""One row of `python -m benchmarks.execution`: C is right for every trip count under 20 interleavings."""

from __future__ import annotations

from functools import cache

import pytest

from rota.audit.gemm_launch import GemmProgram, load_emitted
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import find_toolchain
from tests.emit.kernels import SMALL, by_values


@cache
def small() -> GemmProgram:
    compiled, geometry = by_values(SMALL, instructions=True)
    code = find_toolchain().compile(emit_gemm(compiled, geometry), compiled.machine.arch)
    return load_emitted(compiled, geometry, code)


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_c_is_right(trips: int) -> None:
    result = small().run_trips(trips, seeds=11)
    assert result.right == result.runs == 21, "\n\n".join(map(str, result.findings))
