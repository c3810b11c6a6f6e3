from __future__ import annotations

from tests.lint.linted import codes, linted, only
from tests.wording.golden import worded

BODY = """void k(float* x, int n) {{
  unsigned item = __builtin_amdgcn_workitem_id_x();
  for (int i = 0; i < n; i++) {{
    x[i * 64 + item] = 1;
    {wait}
  }}
}}"""


def test_a_wait_for_stores_that_nobody_reads() -> None:
    report = linted(BODY.format(wait='asm volatile("s_waitcnt vmcnt(0)");'), needed=True)
    finding = worded(only(report, "I605"))
    assert [each.label for each in finding.concerns] == ["s_waitcnt vmcnt(0)"]
    assert dict(finding.evidence)["with all others of these"] == "yes"


def test_a_loop_without_it() -> None:
    assert "I605" not in codes(linted(BODY.format(wait=""), needed=True))


def test_nobody_asks_unless_it_is_asked_for() -> None:
    assert "I605" not in codes(linted(BODY.format(wait='asm volatile("s_waitcnt vmcnt(0)");')))
