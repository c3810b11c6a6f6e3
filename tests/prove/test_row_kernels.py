"""A share of the drawn row kernels, and softmax of one to sixteen waves; `benchmarks.row_kernels` has them all."""

from __future__ import annotations

from random import Random

import pytest

from rota.isa.binary.toolchain import find_toolchain
from rota.prove.kernel_proof import prove_object
from tests.campaigns.machine_code.row_kernels import ARCH, FAMILIES, PRELUDE, draw, judge

DECIDED = FAMILIES[:-1]
"""Families of which every drawn kernel of this seed is decided: all but transposes."""


@pytest.mark.thorough  # launches and proves a kernel and its twin of each family
def test_a_share_of_the_campaign() -> None:
    """The interpreter says what each kernel is; the proof says the same of the kernel and of its twin."""
    random = Random(2)
    drawn = [draw(random, number, waves=2) for number in range(len(FAMILIES))]
    outcomes = list(judge([kernel for kernel in drawn if kernel.family in DECIDED]))
    assert [str(each) for each in outcomes if not each.confirmed or each.kind != "right"] == []
    assert len(outcomes) == 2 * len(DECIDED)


SOFTMAX = """
KERNEL __attribute__((amdgpu_flat_work_group_size({block}, {block}))) void {name}(const float* x, float* y, int n) {{
  SHARED float red[{waves}];
  int t = __builtin_amdgcn_workitem_id_x();
  const float* row = x + (long)__builtin_amdgcn_workgroup_id_x() * n;
  float m = -3e38f, s = 0;
  for (int i = t; i < n; i += {block}) m = larger(m, row[i]);
  for (int d = 32; d; d >>= 1) m = larger(m, swap(m, d));
  if (t % 64 == 0) red[t >> 6] = m;
  SYNC for (int i = 0; i < {waves}; i++) m = larger(m, red[i]);
  {again} for (int i = t; i < n; i += {block}) s += __builtin_amdgcn_exp2f(row[i] - m);
  for (int d = 32; d; d >>= 1) s += swap(s, d);
  if (t % 64 == 0) red[t >> 6] = s;
  SYNC s = 0;
  for (int i = 0; i < {waves}; i++) s += red[i];
  for (int i = t; i < n; i += {block}) y[i] = __builtin_amdgcn_exp2f(row[i] - m) / s;
}}
"""


@pytest.mark.parametrize("waves", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("barrier", ["SYNC", ""])
def test_softmax_of_one_to_sixteen_waves(waves: int, barrier: str) -> None:
    """Without the barrier between its two reductions, a wave writes what another still reads."""
    block = 64 * waves
    text = SOFTMAX.format(block=block, waves=waves, name="softmax", again=barrier)
    verdict = prove_object(find_toolchain().compile(PRELUDE + text, ARCH), block=block, witness=False)[0]
    racy = waves > 1 and not barrier
    assert [finding.code for finding in verdict.findings] == (["I109"] if racy else [])
    assert verdict.proved != racy
    assert verdict.statistics.states < 100 * waves + 50
