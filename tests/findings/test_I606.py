from __future__ import annotations

from tests.lint.linted import codes, linted, only
from tests.wording.golden import worded

BODY = """void k(float* x) {{
  __shared__ float tile[128];
  unsigned item = __builtin_amdgcn_workitem_id_x();
  tile[item] = x[item];
  asm volatile("s_waitcnt lgkmcnt(0)\\n s_barrier" ::: "memory");
  x[item] = tile[{place}];
}}"""


def test_a_barrier_between_accesses_of_a_work_items_own_word() -> None:
    finding = worded(only(linted(BODY.format(place="item"), items=128, needed=True), "I606"))
    assert [each.label for each in finding.concerns] == ["s_barrier"]


def test_a_barrier_between_accesses_of_each_others_words() -> None:
    assert "I606" not in codes(linted(BODY.format(place="127 - item"), items=128, needed=True))
