from __future__ import annotations

from tests.lint.linted import codes, linted, only
from tests.wording.golden import worded

BODY = """void k(float* x, int n) {{
  float sum = x[0];
  for (int i = 0; i < n; i++) {{
    __builtin_amdgcn_s_setprio({level});
    asm volatile("v_add_f32 %0, %0, %0" : "+v"(sum));
    __builtin_amdgcn_s_setprio(0);
  }}
  x[0] = sum;
}}"""


def test_priorities_that_the_wave_has_already() -> None:
    finding = worded(only(linted(BODY.format(level=0)), "I607"))
    assert finding.evidence == (("instructions", 2), ("shares its SIMD", "maybe"))


def test_a_priority_that_goes_up_and_down() -> None:
    assert "I607" not in codes(linted(BODY.format(level=1)))


def test_waves_that_have_a_simd_for_themselves() -> None:
    body = BODY.format(level=1).replace("float sum", 'asm volatile("" ::: "v255", "a255"); float sum')
    finding = worded(only(linted(body), "I607"))
    assert dict(finding.evidence)["shares its SIMD"] == "no"
