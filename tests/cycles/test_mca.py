"""The cycle model beside llvm-mca, where llvm-mca is valid: one wave, MFMA, LDS reads, loads and waits."""

from __future__ import annotations

import shutil

import pytest

from rota import GFX950
from rota.cycles.instructions import encode
from rota.kernels.gemm import BF16, GemmShape
from tests.campaigns.schedules.mca import AGREEMENT, MCA, assembly, compare, llvm_latencies, one_after_another, one_wave

pytestmark = pytest.mark.skipif(shutil.which(MCA) is None, reason=f"{MCA} is not installed")

SHAPES = [
    GemmShape(name="square", instruction=BF16, mma=(16, 32), rows=128, columns=128, waves=4),
    GemmShape(name="wide", instruction=BF16, mma=(16, 32), rows=64, columns=256, waves=4),
    GemmShape(name="large", instruction="v_mfma_f32_32x32x16_bf16", mma=(32, 16), rows=256, columns=256, waves=4),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_one_wave_takes_as_long_as_llvm_says(shape: GemmShape) -> None:
    theirs, ours = compare(one_after_another(shape.loop(instructions=True)), shape)
    assert ours == pytest.approx(theirs, rel=AGREEMENT)


def test_the_text_holds_every_instruction() -> None:
    shape = SHAPES[0]
    code = one_wave(encode(one_after_another(shape.loop(instructions=True)), llvm_latencies(GFX950)))
    lines = assembly(code, shape).splitlines()
    tiles = code.tiles_per_trip
    # A wave's 64 x 64 x 64 from 16 x 16 x 32; 64 rows of A and of B, 1 KiB a read; 32 KiB by 4 waves, 1 KiB a load.
    assert sum(line.startswith("v_mfma") for line in lines) == 32 * tiles
    assert sum(line.startswith("ds_read_b128") for line in lines) == 16 * tiles
    assert sum(line.startswith("buffer_load_dwordx4") for line in lines) == 8 * tiles
    assert sum(line.startswith("s_waitcnt") for line in lines) > 0
    assert not any("barrier" in line for line in lines)
