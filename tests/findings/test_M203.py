from __future__ import annotations

from pathlib import Path

import pytest

from rota import GFX942, GFX950
from rota.predict.calibrate import read_runs
from tests.findings.smallest import raised

OWN = "device,M,N,K,type,tile,split_k,us\n{},64,64,64,bf16,256x256x64,1,5.0\n"
AITER = "gfx,cu_num,M,N,K,splitK,us,kernelName\n{},64,64,64,0,5.0,mine\n"


@pytest.mark.parametrize(
    ("text", "device"), [(OWN, "mi300x"), (OWN, "gfx942"), (AITER, "gfx942,304"), (AITER, "gfx950,80")]
)
def test_runs_of_another_device_are_refused(tmp_path: Path, text: str, device: str) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(text.format(device))
    finding = raised("M203", lambda: read_runs(path, GFX950))
    assert ("device", "MI355X (gfx950)") in finding.evidence
    if device != "gfx950,80":
        assert len(read_runs(path, GFX942).runs) == 1
