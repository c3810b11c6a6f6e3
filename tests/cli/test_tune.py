"""`rota tune` as a user types it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rota.cli.commands.tune import _Line
from rota.tune.tune_library import Tally, library_in, progress_line, summary
from tests.bench.host import run_folder
from tests.cli.command import rota
from tests.wording.golden import mentions, worded

pytestmark = pytest.mark.thorough  # searches, in processes of its own

SPACE = 'tile = ["64x64x64", "48x64x64"]\nwaves = 4\ngrain = "tiles"\neffort = 0.0\nsplit_k = [1, 4]\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("tuned")
    (found / "shapes.csv").write_text("M,N,K\n1,4096,4096\n4096,4096,4096\n")
    (found / "space.toml").write_text(SPACE)
    result = rota(f"tune {found}/shapes.csv --space {found}/space.toml -o {found}/lib --parquet {found}/parquet")
    assert result.exit_code == 0, result.output
    worded(result.output)
    return found


def test_the_files_are_there(folder: Path) -> None:
    for name in ("dispatch.csv", "aiter_tuned_gemm.csv", "report.html", "library.sqlite"):
        assert (folder / "lib" / name).stat().st_size > 0
    assert not (folder / "lib" / "untuned.csv").exists()


def test_parquet_holds_points_and_choices(folder: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    points = parquet.read_table(folder / "parquet" / "points.parquet").to_pylist()
    assert [(row["status"], row["tile"]) for row in points] == [("proved", "64x64x64")]
    choices = parquet.read_table(folder / "parquet" / "choices.parquet").to_pylist()
    assert [(row["m"], row["basis"]) for row in choices] == [(1, "predicted"), (4096, "predicted")]


def test_a_second_run_and_the_status(folder: Path) -> None:
    result = rota(f"tune {folder}/shapes.csv --space {folder}/space.toml -o {folder}/lib --json")
    data = json.loads(result.stdout)
    assert (data["ok"], data["tally"]["done"], data["tally"]["evaluated"]) == (True, 0, 0)
    assert [each["code"] for each in data["pruned"]] == ["D102"]
    status = rota(f"tune status {folder}/lib")
    assert status.exit_code == 0
    worded(status.output)


def test_measured_times_come_back_in(folder: Path) -> None:
    (choice,) = (c for shape, c in library_in(folder / "lib").tables[0].choices.items() if shape.m == 4096)
    header = "device,M,N,K,type,layout,kernel,tile,split_k,us,runs"
    (folder / "runs.csv").write_text(
        f"{header}\nmi355x,4096,4096,4096,bf16,TN,{choice['kernel']},64x64x64,1,77.5,100\n"
    )
    line = f"tune {folder}/shapes.csv --space {folder}/space.toml -o {folder}/lib"
    assert rota(f"{line} --measure {folder}/runs.csv").exit_code == 0
    rows = (folder / "lib" / "dispatch.csv").read_text().splitlines()
    assert ",1,77.500,,77.500,77.500,measured," in rows[-1]
    (folder / "runs.csv").write_text(f"{header}\nmi355x,4096,4096,4096,bf16,TN,mine,64x64x64,1,77.5,100\n")
    refused = rota(f"{line} --measure {folder}/runs.csv")
    assert (refused.exit_code, "M204" in refused.output) == (1, True)
    assert "M201" in rota(f"{line} --measure {folder}/nothing.csv").output


def test_a_benchmark_is_written_run_and_read_back(folder: Path) -> None:
    (folder / "small.csv").write_text("M,N,K\n5,128,1024\n")
    (folder / "orders.toml").write_text(f'{SPACE.replace("[1, 4]", "1")}swizzle = ["8x4", "1x4"]\n')
    line = f"tune {folder}/small.csv --space {folder}/orders.toml -o {folder}/own"
    written = rota(f"{line} --write-bench {folder}/bench")
    assert written.exit_code == 0, written.output
    worded(written.output.splitlines()[-1])
    bench = folder / "bench" / "mi355x"
    assert {path.suffix for path in bench.iterdir()} == {"", ".cpp", ".hsaco", ".md", ".txt"}
    assert "--measure results.csv" in (bench / "README.md").read_text()
    assert run_folder(bench, "--rounds", "8", ARCH="gfx950", US="1,0.5").returncode == 0
    result = rota(f"{line} --measure {bench}/results.csv")
    assert result.exit_code == 0, result.output
    worded(result.output.splitlines()[-1])
    (row,) = (folder / "own" / "dispatch.csv").read_text().splitlines()[1:]
    assert ",measured," in row
    nothing = rota(f"{line} --write-bench {folder}/more")
    assert (nothing.exit_code, (folder / "more").exists()) == (0, False)
    worded(nothing.output.splitlines()[-1])
    other = rota(f"tune {folder}/small.csv --space {folder}/orders.toml -o {folder}/lib2 --measure {bench}/results.csv")
    assert (other.exit_code, "M206" in other.output) == (1, True)


def test_an_hour_is_planned_and_just_that_is_written(folder: Path) -> None:
    (folder / "many.csv").write_text("M,N,K\n5,128,1024\n6,256,1024\n7,512,1024\n")
    (folder / "orders.toml").write_text(f'{SPACE.replace("[1, 4]", "1")}swizzle = ["8x4", "1x4"]\n')
    line = f"tune {folder}/many.csv --space {folder}/orders.toml -o {folder}/hour --hours 0.5"
    few = rota(f"{line} --run-seconds 400 --write-bench {folder}/planned")
    assert few.exit_code == 0, few.output
    worded("\n".join(few.output.splitlines()[-5:]))
    text = (folder / "planned" / "mi355x" / "plan.txt").read_text()
    assert [text.count(shape) > 0 for shape in ("5x128x1024", "6x256x1024", "7x512x1024")].count(True) == 2
    (plan,) = json.loads(rota(f"{line} --json").stdout)["plans"]
    assert (plan["budget"], plan["runs"], plan["decided_before"], plan["decided_after"]) == (180, 6, 0, 3)
    assert plan["after"] < plan["before"]
    none = rota(f"{line} --run-seconds 1800 --write-bench {folder}/none")
    assert (none.exit_code, (folder / "none").exists()) == (0, False)


def test_what_is_left_to_measure_is_listed(folder: Path) -> None:
    (folder / "both.csv").write_text("M,N,K\n5,128,1024\n6,128,1024\n")
    (folder / "orders.toml").write_text(f'{SPACE.replace("[1, 4]", "1")}swizzle = ["8x4", "1x4"]\n')
    line = f"tune {folder}/both.csv --space {folder}/orders.toml -o {folder}/left"
    header = "device,M,N,K,type,layout,kernel,tile,split_k,us,runs"
    (folder / "file").write_text("")
    assert rota(f"{line} --write-bench {folder}/file/below").exit_code == 2
    (table,) = library_in(folder / "left").tables
    first, *others = [each for each in table.ranking.configurations if each.split_k == 1]
    rows = [f"mi355x,5,128,1024,bf16,TN,{each.kernel},64x64x64,1,1.5,100" for each in (first, *others)]
    (folder / "runs.csv").write_text("\n".join([header, *rows, ""]))
    result = rota(f"{line} --measure {folder}/runs.csv")
    assert result.exit_code == 0, result.output
    assert mentions(worded("\n".join(result.output.splitlines()[-2:])), 1, 2, "6x128x1024")
    assert [each["left"] for each in json.loads(rota(f"{line} --json").stdout)["tables"]] == [1]


def test_kernels_are_written_from_a_library(folder: Path) -> None:
    result = rota(f"emit --from {folder}/lib -o {folder}/kernels")
    assert result.exit_code == 0, result.output
    names = sorted(path.name for path in (folder / "kernels").iterdir())
    assert [name.rpartition(".")[2] for name in names] == ["h", "hip", "h"]
    assert names[2] == "dispatch_mi355x_bf16.h"
    assert f'#include "{names[0]}"' in (folder / "kernels" / names[2]).read_text()


def test_shapes_that_nothing_serves_end_with_a_finding(folder: Path) -> None:
    (folder / "fp8.csv").write_text("M,N,K,dtype\n1,4096,4096,torch.float8_e4m3fn\n")
    result = rota(f"tune {folder}/fp8.csv --space {folder}/space.toml -o {folder}/lib")
    assert result.exit_code == 1
    assert "S401" in result.output
    assert (folder / "lib" / "untuned.csv").exists()
    rota(f"tune {folder}/shapes.csv --space {folder}/space.toml -o {folder}/lib")
    assert not (folder / "lib" / "untuned.csv").exists()


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("tune", "-o"),
        ("tune shapes.csv", "-o"),
        ("tune a b c --space s -o d", "-o"),
        ("tune shapes.csv --space s.toml --device mi300x -o d", "--device"),
        ("tune shapes.csv --space s.toml -o d --tokens x", "--tokens"),
        ("emit --from lib", "-o"),
        ("emit four_wave --from lib -o d", "KERNEL"),
        ("emit", "KERNEL"),
    ],
)
def test_usage_errors(line: str, option: str) -> None:
    result = rota(line)
    assert (result.exit_code, option in worded(result.output)) == (2, True)


def test_a_folder_without_a_library(tmp_path: Path) -> None:
    result = rota(f"tune status {tmp_path}")
    assert (result.exit_code, "S401" in result.output) == (1, True)


def test_the_live_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(asked=8, hits=2, done=2, proved=3, refused=1)
    tally.started -= 4.0
    assert progress_line(tally).startswith(
        "solving [############............] 4 of 8 loops: 3 proved, 1 refused, 0 failed, 0.5/s"
    )
    assert "s left" in progress_line(tally)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    line = _Line()
    line(tally)
    assert "4 of 8 loops" in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    line(tally)
    assert capsys.readouterr().err == ""  # off a terminal, not so soon
    line._last -= 10.0
    line(tally)
    line(tally)
    assert capsys.readouterr().err.count("4 of 8 loops") == 1
    assert "0 points by formula" in summary(tally)
