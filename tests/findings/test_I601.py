from __future__ import annotations

from rota.errors import Severity
from tests.lint.linted import codes, linted, only
from tests.wording.golden import worded

READ = """void k(float4* out) {{
  __shared__ float4 tile[512];
  unsigned item = __builtin_amdgcn_workitem_id_x();
  for (unsigned row = 0; row < 512; row += 64) tile[row + item] = out[row + item];
  __syncthreads();
  out[item] = tile[{place}];
}}"""


def test_rows_of_as_many_bytes_as_there_are_banks() -> None:
    report = linted(READ.format(place="item * 8"))
    finding = worded(only(report, "I601"))
    assert dict(finding.evidence)["ways"] == 8
    assert [each.label.partition(" ")[0] for each in finding.concerns] == ["ds_read_b128"]
    assert finding.severity is Severity.NOTE  # it is executed once
    (site,) = [each for each in report.sites if each.verb == "read"]
    assert (site.free_clocks, site.worst.extra) == (4, 4 * 7)


def test_lanes_that_read_one_after_the_other() -> None:
    assert "I601" not in codes(linted(READ.format(place="item")))
