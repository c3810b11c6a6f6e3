"""From start times to phases: proved right for every trip count and remainder, wrong where the times are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import ProofError, verify
from rota.compiled.proved import repaired
from rota.program.loop_spec import LoopSpec, Read
from rota.values.compile_loop import unroll_bare
from rota.values.loop import Loop
from rota.values.unroll import Placement

MFMA = "v_mfma_f32_16x16x32_bf16"
COPIES = (("A", 2), ("B", 2))


def gemm() -> LoopSpec:
    loop = Loop("gemm", waves=4)
    tiles = [loop.tile(name, size=16384) for name in ("A", "B")]
    for tile in tiles:
        loop.load(tile, instructions=4, moved=16384)
    a, b = (loop.fragment(tile.lower(), tile, registers=16, instructions=4) for tile in tiles)
    loop.mma(loop.accumulator("c", registers=64), a, b, instruction=MFMA, instructions=32)
    return loop.build()


@pytest.mark.parametrize(
    ("starts", "copies"),
    [((0, 10, 60, 70, 80), 1), ((0, 10, 120, 130, 150), 2), ((0, 10, 60, 70, 150), 2), ((0, 10, 220, 230, 310), 3)],
    ids=["one stage", "two stages", "the MMA a period later", "four stages"],
)
@pytest.mark.parametrize("remainder", [0, 1, 3])
def test_a_gemm_from_values_is_proved_for_every_trip_count(
    starts: tuple[int, ...], copies: int, remainder: int
) -> None:
    placement = Placement(interval=100, starts=starts, copies=(("A", copies), ("B", copies)))
    compiled = repaired(unroll_bare(gemm(), placement, remainder))
    assert compiled.certificate is not None
    assert compiled.trip_tiles == (copies, placement.stages - 1 + remainder)
    kernel_ops = [entry.op.name for entry in compiled.kernel if not entry.op.is_framework]
    assert sorted(kernel_ops) == sorted([op.name for op in gemm().ops] * copies)


def test_a_tile_overwritten_before_it_is_read_is_a_wrong_version() -> None:
    # The reads run three periods after the loads, but only two copies exist.
    placement = Placement(interval=100, starts=(0, 10, 320, 330, 340), copies=COPIES)
    with pytest.raises(ProofError) as caught:
        repaired(unroll_bare(gemm(), placement))
    assert {finding.code for finding in caught.value.findings} == {"V106"}
    three = Placement(interval=100, starts=(0, 10, 320, 330, 340), copies=(("A", 4), ("B", 4)))
    assert repaired(unroll_bare(gemm(), three)).certificate is not None


def test_an_mma_before_its_fragment_is_a_wrong_version() -> None:
    placement = Placement(interval=100, starts=(0, 10, 120, 130, 110), copies=COPIES)
    assert "V106" in {finding.code for finding in verify(unroll_bare(gemm(), placement)).errors}


def test_an_epilogue_without_an_op_is_reported() -> None:
    made = unroll_bare(gemm(), Placement(interval=100, starts=(0, 10, 120, 130, 150), copies=COPIES))
    assert "V107" in {f.code for f in verify(replace(made, epilogue=made.epilogue[:-1])).errors}


def carried() -> LoopSpec:
    loop = Loop("scan", waves=4)
    tile = loop.tile("A", size=1024)
    loop.load(tile, moved=1024)
    a = loop.fragment("a", tile, registers=4)
    loop.valu("best", [a, Read(value="best", distance=1)], registers=1, instructions=4)
    return loop.build()


def test_a_carried_value_is_read_from_the_iteration_before() -> None:
    good = Placement(interval=50, starts=(0, 60, 90), copies=(("A", 2),))
    assert repaired(unroll_bare(carried(), good)).certificate is not None
    effects = [entry.effect for entry in unroll_bare(carried(), good).kernel if entry.op.name == "make_best"]
    assert [effect.wants[1][1].iteration for effect in effects] == [-3, -2]
