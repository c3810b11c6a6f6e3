from __future__ import annotations

import sys

import pytest

from rota import DeclarativeSchedule, compile_schedule
from rota.errors import ToolchainError
from rota.view.perfetto_trace import perfetto_trace
from tests.view.toy_machine import run


def test_T301_a_trace_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "perfetto", None)  # None makes an import of it fail
    for name in [name for name in sys.modules if name.startswith("perfetto.")]:
        monkeypatch.setitem(sys.modules, name, None)
    compiled = compile_schedule(DeclarativeSchedule())
    with pytest.raises(ToolchainError) as caught:
        perfetto_trace(compiled, run(compiled))
    assert [finding.code for finding in caught.value.findings] == ["T301"]
    # the package to install, not whichever of its modules was not loaded yet
    assert caught.value.findings[0].evidence == (("missing", "perfetto"),)
    assert "rota[trace]" in str(caught.value)
