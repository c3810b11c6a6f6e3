from __future__ import annotations

from tests.lint.linted import codes, linted, only
from tests.wording.golden import worded

BODY = 'void k(float* x) {{ asm volatile("" ::: "v{last}"); x[__builtin_amdgcn_workitem_id_x()] = 0; }}'
LDS = """void k(float* x) {{
  __shared__ float tile[{floats}];
  unsigned item = __builtin_amdgcn_workitem_id_x();
  tile[item] = x[item];
  asm volatile("" :: "r"(tile) : "memory");
  __syncthreads();
  x[item] = tile[255 - item];
}}"""


def test_eight_registers_too_many_for_a_fifth_workgroup() -> None:
    finding = worded(only(linted(BODY.format(last=103), items=256), "I604"))
    assert dict(finding.evidence)["registers for one more"] == 96


def test_a_workgroup_that_is_far_from_the_next_step() -> None:
    assert "I604" not in codes(linted(BODY.format(last=127), items=256))


def test_a_few_bytes_of_lds_too_many_for_a_third_workgroup() -> None:
    finding = worded(only(linted(LDS.format(floats=13700), items=256), "I604"))
    assert dict(finding.evidence)["bytes of LDS for one more"] == 160 * 1024 // 3
    assert "I604" not in codes(linted(LDS.format(floats=13600), items=256))
