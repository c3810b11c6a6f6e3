from __future__ import annotations

from rota.lift.hipblaslt import lower_table
from rota.lift.schedule_table import read_table
from rota.targets.registry import device_named
from tests.findings.smallest import raised
from tests.lift.small_table import small


def test_loads_that_no_pointer_explains() -> None:
    table = read_table(small({"GRA": [[3, 3, 5, 5]]}))
    finding = raised("T303", lambda: lower_table(table, device_named("mi355x")))
    assert "64x64x64_16bit_TN" in finding.message
