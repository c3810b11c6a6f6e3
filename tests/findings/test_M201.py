from __future__ import annotations

from pathlib import Path

import pytest

from rota import GFX950
from rota.predict.calibrate import read_runs
from tests.findings.smallest import raised
from tests.wording.golden import mentions

HEAD = "device,M,N,K,type,tile,split_k,us\n"
ROW = "mi355x,64,64,64,bf16,256x256x64,1,5.0\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ("runs.csv:1",)),
        (HEAD, ("runs.csv:1",)),
        (HEAD + ROW[:-1], ("runs.csv:2",)),
        (HEAD + ROW + ROW[:20] + "\n", ("runs.csv:3", 5, 8)),
        (HEAD.replace("us", "ms") + ROW, ("us",)),
        (HEAD + ROW.replace("5.0", "fast"), ("us", "fast")),
        (HEAD + ROW.replace("5.0", "-5"), ("us", "-5")),
        (HEAD + ROW.replace("5.0", "inf"), ("us", "inf")),
        (HEAD + ROW.replace("64,64,64", "64,64,many"), ("K", "many")),
        (HEAD + ROW.replace("256x256x64", "256x256"), ("256x256",)),
        ("Kernel_Name,Start_Timestamp,End_Timestamp\nmine,10,5\n", ("runs.csv:1",)),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(tmp_path: Path, text: str, names: tuple[object, ...]) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(text)
    assert mentions(raised("M201", lambda: read_runs(path, GFX950)).message, *names)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    raised("M201", lambda: read_runs(tmp_path / "none.csv", GFX950))
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    raised("M201", lambda: read_runs(tmp_path / "b.csv", GFX950))
