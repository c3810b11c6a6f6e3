"""`rota improve`: what it prints, what it writes, and how the run ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.isa.binary.toolchain import read_object
from rota.prove.kernel_proof import prove_object
from tests.cli.command import data, rota
from tests.lint.linted import compiled
from tests.shared import shared


@pytest.mark.thorough  # searches for seconds
def test_the_better_object_is_written_and_proved(tmp_path: Path) -> None:
    file, output = shared("kernels/compiled/t_matmul_fp32.gfx942.hsaco"), tmp_path / "better.hsaco"
    result = data(f"improve {file} -o {output}")
    (kernel,) = result["kernels"]
    assert kernel["clocks"] < kernel["before"]
    assert not result["refused"]
    assert all(each.proved for each in prove_object(read_object(output), witness=False))
    assert output.read_bytes() != file.read_bytes()


def test_what_is_not_improved_ends_with_1_and_writes_nothing(tmp_path: Path) -> None:
    file, output = tmp_path / "k.hsaco", tmp_path / "better.hsaco"
    file.write_bytes(compiled("void k(float* x) { x[__builtin_amdgcn_workitem_id_x()] = 1; }").hsaco)
    result = data(f"improve {file} -o {output}", status=1)
    assert [each["code"] for each in result["refused"]] == ["I610"]
    assert not output.exists()
    assert rota(f"improve {file}").exit_code == 1
