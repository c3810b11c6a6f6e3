from __future__ import annotations

from pathlib import Path

import pytest

from rota.predict.calibrate import correction_named
from tests.findings.smallest import raised
from tests.predict.kernels import kernel


def test_a_name_that_no_profile_has_is_refused_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_PROFILES", str(tmp_path))
    (tmp_path / "laboratory.json").write_text("{}")
    finding = raised("M205", lambda: correction_named("laboratry", kernel()))
    assert "'laboratory'" in finding.fixes[0]
    for name in ("../laboratory", ""):
        raised("M205", lambda name=name: correction_named(name, kernel()))  # type: ignore[misc]
