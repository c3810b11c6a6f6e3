from __future__ import annotations

from rota.errors import Severity
from tests.lint.linted import codes, linted, only
from tests.wording.golden import worded

ARRAY = """void k(float* x, int* n) {{
  float own[100];
  unsigned item = __builtin_amdgcn_workitem_id_x();
  for (int i = 0; i < 100; i++) own[i] = x[i * 64 + item];
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < 1000; i++) sum += own[{place}];
  x[item] = sum;
}}"""


def test_an_array_that_memory_indexes() -> None:
    finding = worded(only(linted(ARRAY.format(place="n[i] & 63")), "I602"))
    facts = dict(finding.evidence)
    assert (facts["loads"], facts["stores"], facts["spilled registers by the notes"]) == (1, 0, 0)
    assert facts["bytes a lane and trip"] == 4
    assert finding.severity is Severity.WARNING


def test_an_array_with_known_places_is_in_registers() -> None:
    assert "I602" not in codes(linted(ARRAY.format(place="5")))
