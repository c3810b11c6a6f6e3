"""A share of the fleet's campaign: a second run, one worker, kills, and the same table everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.campaigns.fleet import verdict_table
from tests.campaigns.fleet.fleet import main
from tests.shared import shared

pytestmark = pytest.mark.thorough  # processes, and kills


def test_the_table_is_the_same_however_a_run_goes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("raw_sync_ok", "raw_nosync", "war_ok", "reduce_own", "uninit_lds", "waw"):
        file = shared(f"kernels/compiled/races/{name}.gfx950.hsaco")
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert main([str(tmp_path), "--one", "--kills", "3"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("the same table: True") == 3
    assert re.search(r"2 workers: 6 kernels", printed) or "workers: 6 kernels" in printed


def test_the_public_table_is_the_same_a_second_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    site = tmp_path / "site"
    assert verdict_table.main(["-o", str(site), "--compiled", "--every", "40", "--twice"]) == 0
    printed = capfd.readouterr().out
    assert re.search(r"again, with an empty store: \d+ files, 0 differ", printed)
    assert re.search(r"^status +compiled$", printed, re.MULTILINE)
    assert (site / "verdicts.csv").read_text("utf-8").count("\n") > 2
