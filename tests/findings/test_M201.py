from __future__ import annotations

from pathlib import Path

import pytest

from rota import GFX950
from rota.predict.calibrate import read_runs
from tests.findings.smallest import raised

HEAD = "device,M,N,K,type,tile,split_k,us\n"
ROW = "mi355x,64,64,64,bf16,256x256x64,1,5.0\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "lacks device"),
        (HEAD, "holds no runs"),
        (HEAD + ROW[:-1], "ends inside a line"),
        (HEAD + ROW + ROW[:20] + "\n", "runs.csv:3: it has 5 fields, the first line 8"),
        (HEAD.replace("us", "ms") + ROW, "lacks us"),
        (HEAD + ROW.replace("5.0", "fast"), "us is 'fast'"),
        (HEAD + ROW.replace("5.0", "-5"), "us is '-5'"),
        (HEAD + ROW.replace("5.0", "inf"), "us is 'inf'"),
        (HEAD + ROW.replace("64,64,64", "64,64,many"), "K is 'many'"),
        (HEAD + ROW.replace("256x256x64", "256x256"), "its tile is '256x256'"),
        ("Kernel_Name,Start_Timestamp,End_Timestamp\nmine,10,5\n", "doesn't say which problem"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(text)
    if not text:
        why = "holds no runs"
    assert why in raised("M201", lambda: read_runs(path, GFX950)).message


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    assert "can't be read" in raised("M201", lambda: read_runs(tmp_path / "none.csv", GFX950)).message
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    assert "can't be read" in raised("M201", lambda: read_runs(tmp_path / "b.csv", GFX950)).message
