"""`rota lint`: what it prints, its data, the gate against an older build, and how the run ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import data, rota
from tests.findings.test_I602 import ARRAY
from tests.lint.linted import compiled
from tests.shared import shared
from tests.wording.golden import mentions

SPILLS, FITS = ARRAY.format(place="n[i] & 63"), ARRAY.format(place="5")


def written(folder: Path, name: str, body: str) -> Path:
    file = folder / f"{name}.hsaco"
    file.write_bytes(compiled(body).hsaco)
    return file


def test_a_finding_fails_no_run_unless_it_is_asked_to(tmp_path: Path) -> None:
    file = written(tmp_path, "spills", SPILLS)
    (kernel,) = data(f"lint {file}")["kernels"]
    assert "I602" in {each["code"] for each in kernel["findings"]}
    assert [each["private"] for each in kernel["loops"]].count(1) == 1
    assert kernel["private_bytes"] == 416
    assert bool(kernel["predicted"]) != bool(kernel["not_predicted"])
    assert rota(f"lint {file} --fail-on warning").exit_code == 1
    assert rota(f"lint {file} --fail-on note").exit_code == 1
    assert rota(f"lint {written(tmp_path, 'fits', FITS)} --fail-on warning").exit_code == 0


def test_a_worse_build_fails_the_run(tmp_path: Path) -> None:
    new, old = written(tmp_path, "new", SPILLS), written(tmp_path, "old", FITS)
    result = data(f"lint {new} --against {old}", status=1)
    (compared,) = result["compared"]
    assert compared["worse"]
    assert {each["code"] for each in compared["findings"]} == {"I609"}
    assert not result["ok"]
    printed = rota(f"lint {new} --against {old}")
    assert printed.exit_code == 1
    assert "I609" in printed.stdout
    assert rota(f"lint {old} --against {new}").exit_code == 0
    assert rota(f"lint {old} --against {old}").exit_code == 0


def test_a_kernel_of_others_is_predicted_and_counted() -> None:
    file = shared("kernels/compiled/t_flash_s1.gfx950.hsaco")
    (kernel,) = data(f"lint {file} --dynamic-lds 65536")["kernels"]
    assert {each["known"] for each in kernel["lds"]} == {"exact", "no rule known for its width"}
    assert all(each["ways"] is None for each in kernel["lds"] if each["known"] != "exact")
    predicted = kernel["predicted"]
    assert predicted["without_conflicts"] < predicted["clocks"]
    assert max(predicted["bounds"].values()) <= predicted["clocks"]
    assert kernel["occupancy"] == 2
    printed = rota(f"lint {file} --all").stdout
    assert mentions(printed, "MI355X", "ds_read_b64_tr_b16", 24)
    assert printed.count("ds_read_b128") >= 24


def test_kernels_are_compared_by_name() -> None:
    folder = shared("kernels/compiled")
    both = folder / "m_256_128_64_8_2_bf16.gfx942.hsaco"
    result = data(f"lint {both} --against {folder / 'triton-3.8.0' / both.name}")
    (compared,) = result["compared"]
    assert compared["name"] == result["kernels"][0]["name"]


def test_an_architecture_without_devices_is_read_without_clocks() -> None:
    file = min(shared("kernels/gfx1250/triton").glob("m_*.hsaco"))
    (kernel,) = data(f"lint {file}")["kernels"]
    assert kernel["predicted"] is None
    assert kernel["occupancy"] is None


def test_a_kernel_that_is_not_understood_fails_the_run(tmp_path: Path) -> None:
    source = tmp_path / "odd.hip"
    source.write_text('extern "C" __attribute__((global)) void k() { asm volatile("s_rfe_b64 s[0:1]"); }')
    result = data(f"lint {source} --device mi355x", status=1)
    assert result["kernels"] == []
    assert result["unread"]


@pytest.mark.parametrize("text", ["", "no.hsaco", "{folder}"])
def test_what_is_no_kernel_is_refused(text: str, tmp_path: Path) -> None:
    assert rota(f"lint {text.format(folder=tmp_path)}").exit_code in {1, 2}
