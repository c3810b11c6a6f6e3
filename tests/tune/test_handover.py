"""What is handed over: formats that others read, a header that compiles, kernels that are proved and audited."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rota.tune.dispatch_table import COLUMNS, dispatch_header, emit_kernels, library_files, table_files
from rota.tune.point import JobKind, LoopPoint, PointRow, PointStatus
from rota.tune.space import ProblemShape, Pruned, Swizzle
from rota.tune.tune_library import (
    DeviceTable,
    Store,
    Tally,
    TunedLibrary,
    choices,
    library_in,
    rank,
    shape_key,
    tune_library,
)
from rota.tune.tune_report import report_page
from tests.campaigns.tuning.tune_emitted import audited, runs_right
from tests.tune.spaces import SHAPES, makers, space

SWIZZLES = (Swizzle(8, 4), Swizzle(1, 1))


def proved(
    tile: tuple[int, int, int], element: str = "bf16", clocks: float = 1000.0, device: str = "MI355X"
) -> PointRow:
    """A row as a search would leave it, without a search."""
    point = LoopPoint(device=device, element=element, tile=tile, waves=4)
    facts = {
        "loop_clocks": clocks,
        "matrix_clocks": 0.9 * clocks,
        "interval": 900,
        "least": True,
        "certificate": "proved",
        "lds_bytes": 65536,
        "registers": 128,
        "barriers": 2,
        "stages": 3,
        "unroll": 2,
        "tiles_outside": 2,
    }
    key = f"{device}{tile}{element}"
    return PointRow(key=key, kind=JobKind.SOLVE, point=point, status=PointStatus.PROVED, facts=facts)


def made(*rows: PointRow, shapes: tuple[ProblemShape, ...] = SHAPES) -> TunedLibrary:
    ranking = rank(rows[0].point.device, rows, (1, 4), SWIZZLES, ())
    found = dict(choices(ranking, shapes))
    table = DeviceTable(
        ranking.device,
        ranking,
        {shape: found[shape_key(shape)] for shape in shapes},
        ((ProblemShape(3, 3, 3, "<b>"), "the space is of <bf16>"),),
    )
    failed = replace(rows[0], key="x", status=PointStatus.FAILED, code="S301", message="<script>")
    return TunedLibrary(Path("lib"), (table,), (*rows, failed), (Pruned("a", "L103", "too large"),), Tally(asked=3))


LIBRARY = made(proved((256, 256, 64), clocks=2100.0), proved((64, 64, 64), clocks=300.0))


def test_the_tables_have_a_row_for_each_shape_and_no_prediction_under_us() -> None:
    files = table_files(LIBRARY)
    own = list(csv.DictReader(io.StringIO(files["dispatch.csv"])))
    assert tuple(own[0]) == COLUMNS
    assert [(int(row["M"]), int(row["N"]), int(row["K"])) for row in own] == [shape[:3] for shape in SHAPES]
    assert all(not row["us"] and float(row["predicted_us"]) > 0 for row in own)
    tuned = list(csv.DictReader(io.StringIO(files["aiter_tuned_gemm.csv"])))
    assert [row["us"] for row in tuned] == [""] * len(SHAPES)
    assert {(row["gfx"], row["cu_num"], row["dtype"]) for row in tuned} == {("gfx950", "256", "torch.bfloat16")}
    assert not [name for name in files if name.startswith("vllm")]  # those are about fp8
    untuned = list(csv.DictReader(io.StringIO(files["untuned.csv"])))
    assert [(row["M"], row["why"]) for row in untuned] == [("3", "the space is of <bf16>")]


def test_candidates_that_only_the_order_of_workgroups_tells_apart_share_their_chance() -> None:
    for choice in LIBRARY.tables[0].choices.values():
        assert len(choice["shortlist"]) >= 2  # the model knows nothing of the order
        assert choice["chance"] < 0.51
        assert choice["swizzle"] == [8, 4]  # the first of the space


def test_vllm_files_are_keyed_by_m_and_hold_unsplit_winners() -> None:
    shapes = tuple(ProblemShape(m, 7168, 2048) for m in (8192, 64, 4096))
    files = table_files(made(proved((256, 256, 128), "fp8"), shapes=shapes))
    (name,) = (each for each in files if each.startswith("vllm/"))
    assert name == "vllm/N=7168,K=2048,device_name=AMD_Instinct_MI355X,dtype=fp8_w8a8,block_shape=[128,128].json"
    data = json.loads(files[name])
    assert list(data) == sorted(data, key=int)
    assert data["8192"] == {
        "BLOCK_SIZE_M": 256,
        "BLOCK_SIZE_N": 256,
        "BLOCK_SIZE_K": 128,
        "GROUP_SIZE_M": 4,
        "num_warps": 4,
        "matrix_instr_nonkdim": 16,
        "kpack": 1,
    }


def test_the_header_finds_every_shape_and_tells_what_is_not_tuned(tmp_path: Path) -> None:
    compiler = shutil.which("clang++-22") or shutil.which("clang++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (table,) = LIBRARY.tables
    (tmp_path / "dispatch.h").write_text(dispatch_header(table))
    asked = "\n".join(f"  told({shape.m}, {shape.n}, {shape.k});" for shape in (*SHAPES, ProblemShape(5, 6, 7)))
    (tmp_path / "main.cpp").write_text(
        '#include <cstdio>\n#define ROTA_UNTUNED(m, n, k) std::printf("untuned %d %d %d\\n", m, n, k)\n'
        '#include "dispatch.h"\nusing namespace rota_mi355x_bf16;\n'
        "static void told(int M, int N, int K) {\n  const entry* const at = find(M, N, K);\n"
        '  if (at) std::printf("%s %d %.3f %d\\n", names[(int)at->chosen], at->split_k, at->us, at->measured);\n}\n'
        f"int main() {{\n{asked}\n}}\n"
    )
    subprocess.run(
        [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "main.cpp", "-o", "main"], cwd=tmp_path, check=True
    )
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == [
        *(f"{each['kernel']} {each['split_k']} {each['us']:.3f} 0" for each in table.choices.values()),
        "untuned 5 6 7",
    ]


def test_the_report_shows_coverage_winners_and_refusals_and_escapes_names() -> None:
    page = report_page(LIBRARY)
    assert "6 of 7 shapes" in page
    assert "S301" in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert all(choice["kernel"] in page for choice in LIBRARY.tables[0].choices.values())


@pytest.mark.slow  # `python -m benchmarks.tune_emitted` has all of them
def test_a_winner_is_proved_compiled_and_audited_exact(tmp_path: Path) -> None:
    both = space(tile="64x64x64", split_k=1, make=makers("misfit", "well"))
    library = tune_library([SHAPES[0]], both, tmp_path, audit=True)
    assert [(row.status, row.code) for row in library.rows] == [(PointStatus.REFUSED, "T203"), (PointStatus.PROVED, "")]
    with Store(tmp_path) as store:
        audits = [row for row in store.rows().values() if row.kind is JobKind.AUDIT]
    assert [(row.point.make, row.status) for row in audits] == [(*makers("well"), PointStatus.PROVED)]
    (table,) = library.tables
    assert {each.row.point.make for each in table.ranking.configurations} == set(makers("well"))  # only that may win
    assert table_files(library_in(tmp_path)) == table_files(library)
    (emitted,) = emit_kernels(table)
    assert emitted.compiled.certificate is not None
    names = [name for name, _ in library_files(library)]
    assert names == [f"{emitted.symbol}.hip", f"{emitted.symbol}.h", "dispatch_mi355x_bf16.h"]


@pytest.mark.slow
def test_a_winners_kernel_computes_the_product(tmp_path: Path) -> None:
    library = tune_library([SHAPES[0]], space(tile="64x64x64", split_k=1), tmp_path)
    (emitted,) = emit_kernels(library.tables[0])
    code, findings = audited(emitted)
    assert findings == ()
    assert runs_right(emitted, code, (50, 70, 200)) == []
