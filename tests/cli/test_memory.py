"""`rota memory`: formulas, bounds, workgroups, flags, and how the run ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.isa.binary.toolchain import find_toolchain
from tests.cli.command import data, rota
from tests.isa.gfx1250 import assembled
from tests.shared import shared

SOURCE = """extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64)))
void k(float* x, unsigned n, unsigned s) {{
  unsigned i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i {below} n) x[{at}] = i;
}}"""
EXTENT, RANGES = "--extent x=4*n", "--range n=1..65536 --range group_x=0..65535"


def written(folder: Path, *, below: str = "<", at: str = "i") -> Path:
    file = folder / "kernel.hsaco"
    file.write_bytes(find_toolchain().compile(SOURCE.format(below=below, at=at), "gfx950").hsaco)
    return file


def test_a_right_kernel_ends_well(tmp_path: Path) -> None:
    file = written(tmp_path)
    (kernel,) = data(f"memory {file} {EXTENT} {RANGES} --apart")["kernels"]
    (access,) = kernel["accesses"]
    assert (access["pointer"], access["verb"], access["bytes"], access["bounds"]) == ("x", "write", 4, "inside")
    assert {each["code"] for each in kernel["findings"]} <= {"I501"}


@pytest.mark.parametrize(
    ("change", "options", "code"),
    [({"below": "<="}, EXTENT, "I502"), ({"at": "i / 128"}, "--apart", "I503"), ({"at": "i * s"}, "", "I501")],
)
def test_a_wrong_one_ends_in_findings(change: dict[str, str], options: str, code: str, tmp_path: Path) -> None:
    file = written(tmp_path, **change)
    (kernel,) = data(f"memory {file} {options} {RANGES}", status=1)["kernels"]
    assert code in {each["code"] for each in kernel["findings"]}
    assert code in rota(f"memory {file} {options} {RANGES}").stdout


def level(finding: dict[str, object]) -> object:
    return dict(finding["evidence"])["level"]  # type: ignore[call-overload]


def test_an_access_outside_is_shown_by_a_launch(tmp_path: Path) -> None:
    (kernel,) = data(f"memory {written(tmp_path, below='<=')} {EXTENT} {RANGES}", status=1)["kernels"]
    assert [level(each) for each in kernel["findings"] if each["code"] == "I502"] == ["shown"]


def test_a_project_says_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path)
    settings = 'name = "k"\nextents = ["x = 4*n"]\nranges = ["n=1..65536", "group_x=0..65535"]\n'
    (tmp_path / "rota.toml").write_text(f"[[kernels]]\n{settings}")
    monkeypatch.chdir(tmp_path)
    assert {each["bounds"] for each in data(f"memory {file}")["kernels"][0]["accesses"]} == {"inside"}
    (tmp_path / "rota.toml").write_text("extents = [3]\n")
    assert rota(f"memory {file}").exit_code == 2


@pytest.mark.parametrize(("count", "status"), [(128, 0), (127, 1)])
def test_a_launch_says_it(count: int, status: int, tmp_path: Path) -> None:
    launches = tmp_path / "launches.py"
    launches.write_text(
        "import numpy as np\n"
        f"def two(): return {{'args': [np.zeros({count}, np.float32), 128, 1], 'grid': 2, 'block': 64}}\n"
    )
    (kernel,) = data(f"memory {written(tmp_path)} --launch {launches}:two", status=status)["kernels"]
    assert {each["bounds"] for each in kernel["accesses"]} == {"inside" if not status else "undecided"}
    assert rota(f"memory {written(tmp_path)} --launch {launches}:two {EXTENT}").exit_code == 2


def test_pointers_that_are_the_same(tmp_path: Path) -> None:
    shift = "void k(float* y, const float* x, unsigned n) { unsigned i = __builtin_amdgcn_workgroup_id_x() * 64 + "
    body = "__builtin_amdgcn_workitem_id_x(); if (i + 1 < n) y[i] = x[i + 1]; }"
    head = 'extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64)))\n'
    file = tmp_path / "kernel.hsaco"
    file.write_bytes(find_toolchain().compile(head + shift + body, "gfx950").hsaco)
    ranges = "--range n=1..65536 --range group_x=0..1023"
    (kernel,) = data(f"memory {file} --apart {ranges}")["kernels"]
    assert "I503" not in {each["code"] for each in kernel["findings"]}
    (kernel,) = data(f"memory {file} --apart --same y=x {ranges}", status=1)["kernels"]
    assert "I503" in {each["code"] for each in kernel["findings"]}
    assert rota(f"memory {file} --apart --same y=q").exit_code == 1
    assert rota(f"memory {file} --same y=x").exit_code == 2


def test_without_an_extent_nothing_is_said_of_bounds(tmp_path: Path) -> None:
    (kernel,) = data(f"memory {written(tmp_path)}")["kernels"]
    assert {each["bounds"] for each in kernel["accesses"]} == {"no extent"}


def test_what_isnt_read_isnt_apart(tmp_path: Path) -> None:
    file = tmp_path / "kernel.hsaco"
    file.write_bytes(assembled("global_load_b32 v1, v0, s[4:5] scale_offset", "s_endpgm").hsaco)
    assert data(f"memory {file}")["kernels"][0]["not_read"] == ["global_load_b32 v1, v0, s[4:5] scale_offset"]
    (kernel,) = data(f"memory {file} --apart", status=1)["kernels"]
    assert kernel["findings"] == []


def test_flags_between_workgroups_are_listed() -> None:
    folder = shared("kernels/aiter")
    file = folder / "gfx942__fmoe__silu__fmoe_bf16_a16_blockscaleFp8_g1u1_vs_silu_1tg_16x128_flat_pf3.co"
    result = rota(f"memory {file}")
    assert result.exit_code == 1
    assert "I305" in result.stdout


@pytest.mark.parametrize(
    "option",
    ["--extent x", "--extent x=4*q", "--extent x=4%n", "--range n=1", "--range n", "--where n", "--where n!=4"],
)
def test_what_is_stated_wrongly_is_refused(option: str, tmp_path: Path) -> None:
    result = rota(f"memory {written(tmp_path)} {option}")
    assert result.exit_code == 1
    assert "I107" in result.stderr


def test_bounds_want_z3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.prove.bit_vectors.is_available", lambda: False)
    file = written(tmp_path)
    assert rota(f"memory {file}").exit_code == 0
    result = rota(f"memory {file} {EXTENT} {RANGES}")
    assert result.exit_code == 1
    assert "T301" in result.stderr
