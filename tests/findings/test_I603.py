from __future__ import annotations

from rota.errors import Severity
from tests.lint.linted import codes, linted, only
from tests.wording.golden import worded

MOVED = """void k(float* x, int n) {{
  float sum = x[0];
  for (int i = 0; i < n; i++) asm volatile("{text}" : "+v"(sum) : : "a0");
  x[0] = sum;
}}"""


def test_a_sum_that_goes_to_the_other_file_and_back() -> None:
    copies = "v_accvgpr_write_b32 a0, %0\\n s_nop 3\\n v_accvgpr_read_b32 %0, a0"
    finding = worded(only(linted(MOVED.format(text=copies)), "I603"))
    assert dict(finding.evidence)["copies a trip"] == 2
    assert finding.severity is Severity.WARNING


def test_a_sum_that_stays_where_it_is() -> None:
    assert "I603" not in codes(linted(MOVED.format(text="v_add_f32 %0, %0, %0")))
