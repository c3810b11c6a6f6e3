from __future__ import annotations

from pathlib import Path

from rota.bench.bench_plan import BenchKernel, BenchSubjects
from rota.bench.bench_results import COLUMNS, read_results
from tests.findings.smallest import raised


def test_results_of_another_object(tmp_path: Path) -> None:
    row = dict.fromkeys(COLUMNS, "1") | {"plan": "0123", "arch": "gfx950", "objects": "4567"}
    path = tmp_path / "results.csv"
    path.write_text(f"{','.join(COLUMNS)}\n{','.join(row.values())}\n")
    asked = BenchSubjects(arch="gfx950", kernels=(BenchKernel("k", "after", "89ab", "k"),))
    finding = raised("M206", lambda: read_results(path, asked))
    assert [name for name, _ in finding.evidence] == ["file", "asked for"]
    assert ["4567" in str(dict(finding.evidence)["file"]), "89ab" in str(dict(finding.evidence)["asked for"])] == [
        True
    ] * 2
