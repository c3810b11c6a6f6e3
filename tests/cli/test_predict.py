from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import data, rota
from tests.wording.golden import mentions, worded

PREDICT = "predict four_wave --problem 4096x4096x4096"
CALIBRATE = "calibrate {} --kernel four_wave --name lab"


def test_a_whole_problem_has_a_time_parts_and_a_band(tmp_path: Path) -> None:
    ran = rota(f"{PREDICT} --type bf16 --device mi355x --svg {tmp_path / 'p.svg'}")
    assert ran.exit_code == 0, ran.output
    worded(ran.stdout)
    assert mentions(ran.stdout, "256", "256x256")
    assert "80 % band" in (tmp_path / "p.svg").read_text()


def test_a_sweep_and_a_comparison() -> None:
    assert "= M" in rota(f"{PREDICT} --sweep mn").stdout
    ran = rota(f"{PREDICT} single_buffer")
    worded(ran.stdout)
    assert rota(f"{PREDICT} single_buffer --sweep m").exit_code == 2


def test_another_type_is_a_finding() -> None:
    ran = rota(f"{PREDICT} --type fp8")
    assert ran.exit_code == 1
    worded(ran.stderr)
    assert mentions(ran.stderr, "error[M102]", "four_wave", "bf16", "fp8")


def test_measured_runs_become_a_profile_that_a_prediction_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_PROFILES", str(tmp_path / "profiles"))
    told = data(PREDICT)
    assert told["us_range"]["low"] < told["us"] < told["us_range"]["high"]
    assert sum(part["us"] for part in told["parts"]) == pytest.approx(told["us"])
    assert (told["calibrated"], told["profile"]) == (True, None)
    plain = told["us"]
    rows = [f"mi355x,4096,4096,4096,bf16,TN,four_wave,256x256x64,1,{1.2 * plain},100"] * 3
    runs = tmp_path / "runs.csv"
    runs.write_text("\n".join(["device,M,N,K,type,layout,kernel,tile,split_k,us,runs", *rows]) + "\n")
    ran = rota(CALIBRATE.format(runs))
    assert ran.exit_code == 0, ran.output
    worded(ran.stdout)
    assert "x1.20" in ran.stdout
    told = data(f"{PREDICT} --profile lab")
    assert told["profile"] == "lab"
    assert told["us"] == pytest.approx(1.2 * plain, rel=0.01)
    assert told["basis"].startswith("calibrated by profile 'lab', 3 runs")
