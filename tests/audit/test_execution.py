"""What only a run of several workgroups shows."""

from __future__ import annotations

import pytest

from rota.audit.gemm_launch import SEVERAL, GemmProgram, Numbers, load_emitted
from rota.isa.binary.toolchain import find_toolchain
from tests.audit import sabotage
from tests.emit.kernels import SMALL_MI300X, by_values


@pytest.fixture(scope="module")
def exchanged() -> GemmProgram:
    compiled, geometry = by_values(SMALL_MI300X)
    source = sabotage.exchanged_workgroups(sabotage.source_of(compiled, geometry))
    return load_emitted(compiled, geometry, find_toolchain().compile(source, "gfx942"))


@pytest.mark.thorough  # runs for seconds
def test_workgroups_whose_ids_are_exchanged_are_wrong(exchanged: GemmProgram) -> None:
    assert not exchanged.launch(0, grid=SEVERAL, numbers=Numbers.FULL).right
    done = exchanged.run_trips(0, 0)
    assert done.right == done.runs - 1


def test_a_square_grid_would_hide_it(exchanged: GemmProgram) -> None:
    assert exchanged.launch(0, grid=(2, 2), numbers=Numbers.FULL).right
