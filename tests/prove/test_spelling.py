"""The path to a finding in the words of the kernel's author: arguments by name, work items, waves together."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.isa.binary.hip_source import compile_hip
from rota.isa.binary.toolchain import read_object
from rota.prove.kernel_proof import prove_object

KERNEL = """
#include <hip/hip_runtime.h>
extern "C" __global__ __launch_bounds__(256) void k(float* out, const float* in, int rows, unsigned K) {{
  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = in[t];
  if ({condition}) __syncthreads();
  out[t] = tile[t ^ 64];
}}
"""


@pytest.mark.parametrize(
    ("condition", "path"),
    [
        ("rows < 64", "rows > 63"),
        ("K > 7", "K < 8"),
        ("rows != 5", "rows == 5"),
        ("rows >= -3", "rows < -3"),
        ("2 * rows != 8", "rows == 4"),
        ("blockIdx.x == 2", "blockIdx.x != 2"),
    ],
)
def test_a_condition_is_an_expression_of_the_arguments(condition: str, path: str, tmp_path: Path) -> None:
    file = tmp_path / "k.hip"
    file.write_text(KERNEL.format(condition=condition))
    (verdict,) = prove_object(read_object(compile_hip(file, "gfx950").hsaco), block=256)
    race = next(finding for finding in verdict.findings if finding.code == "I109")
    first = str(dict(race.evidence)["path"]).split(";")[0]
    assert path in first.partition(" at ")[0]


ROWS = """
#include <hip/hip_runtime.h>
extern "C" __global__ __launch_bounds__(256) void k(float* out, const float* in, int n) {
  __shared__ float tile[256];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) sum += in[i];
  tile[threadIdx.x] = sum;
  out[threadIdx.x] = tile[threadIdx.x ^ 64];
}
"""


def test_waves_that_decide_alike_are_named_together(tmp_path: Path) -> None:
    file = tmp_path / "k.hip"
    file.write_text(ROWS)
    (verdict,) = prove_object(read_object(compile_hip(file, "gfx950").hsaco), block=256)
    race = next(finding for finding in verdict.findings if finding.code == "I109")
    first = str(dict(race.evidence)["path"]).split(";")[0]
    assert "waves 0, 1, 2 and 3: " in first
    assert "threadIdx.x < n" in first
