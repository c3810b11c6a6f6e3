from __future__ import annotations

from tests.lint.linted import codes, linted, only
from tests.wording.golden import worded

BODY = """void k({type}* x, float* out, int n) {{
  unsigned item = __builtin_amdgcn_workitem_id_x();
  float sum = 0;
  for (int i = 0; i < n; i++) sum += x[i * 64 + item];
  out[item] = sum;
}}"""


def test_a_loop_that_loads_bytes() -> None:
    finding = worded(only(linted(BODY.format(type="unsigned char")), "I608"))
    assert dict(finding.evidence)["bytes a lane"] == 1


def test_a_loop_that_loads_words() -> None:
    assert "I608" not in codes(linted(BODY.format(type="float")))
