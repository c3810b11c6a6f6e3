"""Calibration in a closed loop: planted factors are found again; wrong units, devices and files end in findings."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import median

import pytest

from rota.errors import MeasureError
from rota.predict.calibrate import COLUMNS, MeasuredGemm, calibrate, correction_named, keep, read_runs
from rota.predict.predict_problem import Correction, GemmProblem, predict_problem
from tests.predict.kernels import kernel
from tests.wording.golden import mentions, worded

RUN = ((128, 4096, 4096), (4096, 4096, 4096), (8192, 8192, 8192))
ASKED = [(m, n, k) for m in (16, 256, 1024, 4096, 16384) for n in (1024, 4096, 16384) for k in (1024, 8192)]
PLANTED = [
    Correction("planted", 0, 1.25, 1.2, 1.1),
    Correction("planted", 0, 0.8, 0.85, 0.9),
    Correction("planted", 0, 1.5, 1.1, 1.1),
    Correction("planted", 0, 1.0, 1.3, 1.0),
]


def made_runs(planted: Correction, seed: int, noise: float = 0.05) -> list[MeasuredGemm]:
    drawn = random.Random(seed)
    problems = [GemmProblem(m=m, n=n, k=k) for m, n, k in RUN]
    return [
        MeasuredGemm(each, predict_problem(kernel(), each, planted).us * (1 + drawn.gauss(0, noise)), (), "", number)
        for number, each in enumerate(problems, 2)
    ]


@pytest.mark.parametrize("planted", PLANTED)
def test_three_noisy_runs_bring_predictions_within_three_per_cent(planted: Correction) -> None:
    before, after = [], []
    for seed in range(20):
        fix = calibrate(kernel(), made_runs(planted, seed), "lab").correction
        for m, n, k in ASKED:
            problem = GemmProblem(m=m, n=n, k=k)
            true = predict_problem(kernel(), problem, planted).us
            before.append(abs(predict_problem(kernel(), problem).us / true - 1))
            after.append(abs(predict_problem(kernel(), problem, fix).us / true - 1))
    assert median(before) > 0.08
    assert median(after) < 0.03


def test_it_says_how_far_off_it_was() -> None:
    found = calibrate(kernel(), made_runs(Correction("", 0, 1.3, 1.3, 1.3), 0, noise=0.0), "lab")
    assert found.bias == pytest.approx(1.3, rel=0.01)
    assert found.error_before == pytest.approx(1 - 1 / 1.3, rel=0.02)
    assert found.error_after < 0.01
    assert mentions(worded(str(found)), "x1.30", "23.1%")


def written(path: Path, *rows: str, header: str = ",".join(COLUMNS)) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def own_rows(device: str = "mi355x", unit: float = 1.0) -> list[str]:
    return [
        f"{device},{m},{n},{k},bf16,TN,mine,256x256x64,1,{run.us * unit:.3f},100"
        for (m, n, k), run in zip(RUN, made_runs(PLANTED[0], 1), strict=True)
    ]


def test_a_file_in_rotas_format_becomes_a_profile_that_predictions_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_PROFILES", str(tmp_path / "profiles"))
    mine = kernel()
    found = read_runs(written(tmp_path / "runs.csv", *own_rows()), mine.device)
    assert (found.form, len(found.runs)) == ("rota's CSV", 3)
    result = calibrate(mine, found.runs, "lab")
    keep(result, mine, found.path)
    fix = correction_named("lab", mine)
    assert fix == result.correction
    predicted = predict_problem(mine, GemmProblem(m=4096, n=4096, k=4096), fix)
    assert predicted.profile == "lab"
    assert "profile 'lab', 3 runs" in predicted.basis
    uncalibrated = kernel("mi300x", "bf16")
    with pytest.raises(MeasureError) as caught:
        correction_named("lab", uncalibrated)
    assert [each.code for each in worded(caught.value).findings] == ["M205"]
    assert mentions(caught.value, "bf16", "MI355X")
    with pytest.raises(MeasureError, match=r"M205"):
        correction_named("lap", mine)
    (tmp_path / "profiles" / "lab.json").write_text('{"format": 1, "device": ')
    with pytest.raises(MeasureError) as caught:
        correction_named("lab", mine)
    assert [each.code for each in worded(caught.value).findings] == ["M205"]
    (tmp_path / "profiles" / "lab.json").write_text('{"format": 1, "runs": 3, "start": -1}')
    with pytest.raises(MeasureError) as caught:
        correction_named("lab", mine)
    assert [each.code for each in worded(caught.value).findings] == ["M205"]


def test_a_profile_has_a_plain_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_PROFILES", str(tmp_path))
    result = calibrate(kernel(), made_runs(PLANTED[0], 1), "../lab")
    with pytest.raises(MeasureError, match=r"M205"):
        keep(result, kernel(), "runs.csv")


AITER = "gfx,cu_num,M,N,K,libtype,kernelId,splitK,us,kernelName,tflops,bw,errRatio"


def test_a_tuned_csv_of_aiter_is_read(tmp_path: Path) -> None:
    """Made by us: the columns are AITER's, the times are not."""
    rows = [f"gfx950,256,{m},{n},{k},asm,1,0,{9.0 * m},mine_256x256,1,1,0" for m, n, k in RUN]
    rows += ["gfx950,256,16,512,7168,asm,1,3,8.0,mine_256x256,1,1,0", "gfx950,256,16,512,7168,ck,1,0,8.0,other,1,1,0"]
    found = read_runs(written(tmp_path / "t.csv", *rows, header=AITER), kernel().device, kernel_name="mine")
    assert (found.form, len(found.runs)) == ("AITER's tuned CSV", 3)
    assert found.left_out == "1 rows with a split K, 1 of other kernels"
    with pytest.raises(MeasureError) as caught:
        read_runs(tmp_path / "t.csv", kernel("mi300x").device)
    assert [each.code for each in worded(caught.value).findings] == ["M203"]
    assert mentions(caught.value, "gfx950", "256", "MI300X")


TRACE = '"Kind","Agent_Id","Queue_Id","Kernel_Name","Start_Timestamp","End_Timestamp"'


def test_a_kernel_trace_of_rocprofv3_is_read(tmp_path: Path) -> None:
    """Made by us, in the columns that its documentation shows."""
    rows = [f'"KERNEL_DISPATCH","Agent 4",1,"void mine<256>(float*)",{n * 10000},{n * 10000 + 7500}' for n in range(3)]
    rows.append('"KERNEL_DISPATCH","Agent 4",1,"fill(float*)",1,2')
    path = written(tmp_path / "t.csv", *rows, header=TRACE)
    problem = GemmProblem(m=64, n=64, k=64)
    found = read_runs(path, kernel().device, problem=problem, kernel_name="mine")
    assert [run.us for run in found.runs] == [7.5] * 3
    assert found.left_out == "1 dispatches of other kernels"
    with pytest.raises(MeasureError) as caught:
        read_runs(path, kernel().device)
    assert [each.code for each in worded(caught.value).findings] == ["M201"]
    written(path, '"KERNEL_DISPATCH","Agent 4",1,"mine",20,10', header=TRACE)
    with pytest.raises(MeasureError) as caught:
        read_runs(path, kernel().device, problem=problem, kernel_name="mine")
    assert [each.code for each in worded(caught.value).findings] == ["M201"]
    assert mentions(caught.value, "10", "20")
