from __future__ import annotations

import pytest

from rota import compile_schedule
from tests.findings.smallest import Small, raised


@pytest.mark.parametrize("sync", ["repair", "strict"])
def test_a_planned_sync_mode_says_that_it_is_not_there_yet(sync: str) -> None:
    finding = raised("N101", lambda: compile_schedule(Small(), sync=sync))
    assert sync in finding.message
