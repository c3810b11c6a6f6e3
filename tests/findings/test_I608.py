from __future__ import annotations

import pytest

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


ROWS = """void k(float4* x, float* out, int n) {{
  unsigned item = __builtin_amdgcn_workitem_id_x();
  float sum = 0;
  for (int i = 0; i < n; i++) {{
    float4 part = x[{place}];
    sum += part.x + part.y + part.z + part.w;
  }}
  out[item] = sum;
}}"""


@pytest.mark.parametrize(
    ("place", "lines", "fewest"),
    [("item * n + i", 64, 16), ("item * 8 + i", 64, 16), ("(item & 15) * 64 + i", 16, 4), ("item / 4 * n + i", 16, 4)],
)
def test_lanes_that_load_rows(place: str, lines: int, fewest: int) -> None:
    finding = worded(only(linted(ROWS.format(place=place)), "I608"))
    assert finding.evidence == (("lines", lines), ("fewest lines", fewest), ("instructions", 1))


@pytest.mark.parametrize(
    "place", ["i * 64 + item", "i", "i * 8 + (item & 7)", "n * i + item", "out[item]", "i + (item & 3) * 64"]
)
def test_lanes_that_load_side_by_side_or_nobody_knows(place: str) -> None:
    body = ROWS.format(place=f"(int)({place})")
    assert "I608" not in codes(linted(body))
