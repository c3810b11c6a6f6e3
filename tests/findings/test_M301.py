from __future__ import annotations

import json
from pathlib import Path

import pytest

from rota.predict.thread_trace import compare_trace, read_trace
from tests.cycles.timed_loops import only_mfmas
from tests.findings.smallest import raised
from tests.predict.traces import HEADER, made_csv

MFMA = "v_mfma_f32_16x16x32_bf16"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("stats.csv", ""),
        ("stats.csv", "a,b\n1,2\n"),
        ("stats.csv", "CodeObj,Vaddr,Instruction,Hitcount,Latency,Stall,Idle,Source\n1,16,s_nop,3"),
        ("stats.csv", "CodeObj,Vaddr,Instruction,Hitcount,Latency,Stall,Idle,Source\n1,16,s_nop,-3,1,1,1,x\n"),
        ("stats.csv", "CodeObj,Vaddr,Instruction,Hitcount,Latency,Stall,Idle,Source\n1,16,s_nop,0,0,0,0,x\n"),
        ("code.json", "{"),
        ("code.json", json.dumps({"header": HEADER, "code": None})),
        ("code.json", json.dumps({"header": HEADER, "code": [["s_nop", 0, 1]]})),
        ("code.json", json.dumps({"header": "other", "code": []})),
        ("code.json", "[]"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    raised("M301", lambda: read_trace(tmp_path / name))


def test_a_trace_of_another_loop_is_refused(tmp_path: Path) -> None:
    loop = only_mfmas(MFMA, count=4)
    path = made_csv(tmp_path / "stats.csv", [f"{MFMA} a[0:3], v0, v1, a[0:3]"] * 5)
    finding = raised("M301", lambda: compare_trace(loop, read_trace(path)))
    assert ("instructions, of the schedule and traced", "4 and 5") in finding.evidence
