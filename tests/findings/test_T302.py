from __future__ import annotations

from rota.lift.schedule_table import read_table
from tests.findings.smallest import raised
from tests.wording.golden import mentions


def test_a_table_that_lacks_a_field() -> None:
    finding = raised("T302", lambda: read_table({"name": "_get_schedule_64x64x64_16bit"}))
    assert mentions(finding.message, "_get_schedule_64x64x64_16bit", "code_paths")
    assert finding.concerns[0].role == "schedule table"
