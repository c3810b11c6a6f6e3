from __future__ import annotations

import pytest

from rota.isa import run
from tests.findings.smallest import raised
from tests.isa.single import loaded


def test_a_loop_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST_INSTRUCTIONS", 1000)
    forever = loaded(".LBB0_1:\ns_branch .LBB0_1")
    finding = raised("I108", lambda: run.run_kernel(forever, args=[], block=(64, 1, 1)))
    assert finding.message == "wave 0 executed 1000 instructions and hasn't ended"
