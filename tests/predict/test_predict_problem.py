"""Whole problems: physical, below what was ever measured, and honest about what was not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX950, KernelGeometry, compile_schedule
from rota.errors import DeclarationError, MeasureError
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.gemm import BF16
from rota.pipeline.geometry import TileShape
from rota.predict.predict_problem import (
    GemmProblem,
    KernelWork,
    ModelParameters,
    predict_problem,
    problem_named,
    tiled_gemm,
    times_of,
)
from tests.cycles.timed_loops import timed
from tests.predict.kernels import kernel
from tests.wording.golden import mentions, worded

SQUARE = GemmProblem(m=8192, n=8192, k=8192)
TILES = {"bf16": (256, 256, 64), "fp8": (256, 256, 128), "fp4": (256, 256, 256), "int8": (256, 256, 128)}


def test_the_model_by_hand() -> None:
    """One round, no overlap to speak of: every part is a division that can be done on paper."""
    work = KernelWork(
        rounds=2,
        turns=1,
        fill=1.0,
        k_tiles=10,
        mma=800.0,
        loop=800.0,
        feed_bytes=6000,
        operand_bytes=0,
        result_bytes=4e6,
        partial_bytes=2e6,
    )
    at = ModelParameters(
        start=3.0,
        share=1.0,
        feed=10.0,
        trip=0.0,
        f_busy=1.0,
        f_max=9.0,
        hbm=2.0,
        store=4.0,
        split_start=1.5,
        split_traffic=2.0,
    )
    parts = times_of(work, at)
    assert parts.clocks_per_tile == pytest.approx(1000)  # 600, 800 and 1000 are sides of a triangle
    assert parts.busy == pytest.approx(0.8)
    assert parts.clock == pytest.approx(0.8 ** (-1 / 3))
    assert parts.fed == pytest.approx(2 * 10 * 1000 / 0.8 ** (-1 / 3) / 1000)
    assert parts.store == pytest.approx(1.0)
    assert parts.split == pytest.approx(1.5 + 2.0)
    assert parts.total == pytest.approx(3.0 + parts.fed + 1.0 + 3.5)
    late = times_of(work, at._replace(trip=9000.0))
    assert late.arrival == pytest.approx(10.0)  # ten K-tiles, a microsecond each
    assert late.total - late.streamed == pytest.approx(parts.total - parts.streamed)
    assert late.streamed**2 == pytest.approx(parts.fed**2 + 100)


def test_parts_add_up_to_the_whole() -> None:
    for problem in (SQUARE, GemmProblem(m=17, n=4096, k=7168), GemmProblem(m=512, n=512, k=65536, split_k=8)):
        found = predict_problem(kernel(), problem)
        assert sum(part.us for part in found.parts) == pytest.approx(found.us)
        assert all(part.us >= 0 for part in found.parts)
        assert found.us_range.low < found.us < found.us_range.high
        assert found.tflops_range.low < found.tflops <= found.tflops_range.high


@pytest.mark.parametrize("element", TILES)
@pytest.mark.parametrize("loop", [2048.0, 1.0])
def test_nothing_is_predicted_far_above_the_best_ever_measured(element: str, loop: float) -> None:
    """Not even for a loop that takes no time at all."""
    mine = kernel(element=element, tile=TILES[element], loop=loop)
    for m in (256, 4096, 16384, 65536):
        found = predict_problem(mine, GemmProblem(m=m, n=16384, k=65536))
        assert found.best_measured is not None
        assert found.tflops <= 1.1 * found.best_measured * 1.0001
        assert found.tflops_range.high <= 1.1 * found.best_measured * 1.0001
    assert found.held == (loop == 1.0)
    assert ("held" in [part.name for part in found.parts]) == found.held


@pytest.mark.parametrize(("m", "n"), [(1, 1), (64, 4096), (300, 5000), (8192, 8192)])
def test_time_grows_with_k(m: int, n: int) -> None:
    times = [predict_problem(kernel(), GemmProblem(m=m, n=n, k=64 * tiles)).us for tiles in range(1, 200)]
    assert times == sorted(times)
    assert len(set(times)) == len(times)


def test_one_tile_past_a_full_round_of_the_device_adds_a_step() -> None:
    full, over, two = (predict_problem(kernel(), GemmProblem(m=m, n=4096, k=8192)) for m in (4096, 4097, 8192))
    assert (full.workgroups, full.rounds, full.full) == (256, 1, 1.0)
    assert (over.workgroups, over.rounds) == (272, 2)
    assert over.us > 1.4 * full.us
    assert over.us < two.us  # the clock is higher while half of the units are idle
    assert {part.name: part.us for part in over.parts}["tile quantisation"] > 0.3 * over.us


def test_a_device_without_facts_is_refused() -> None:
    bare = replace(kernel(), device=replace(GFX950, problems=None, name="bare"))
    with pytest.raises(DeclarationError) as caught:
        predict_problem(bare, SQUARE)
    assert [each.code for each in worded(caught.value).findings] == ["D114"]
    assert mentions(caught.value, "gfx950")


def test_a_type_that_the_device_lacks_is_refused() -> None:
    with pytest.raises(MeasureError) as caught:
        predict_problem(kernel("mi300x", "fp4"), SQUARE)
    assert [each.code for each in worded(caught.value).findings] == ["M102"]
    assert mentions(caught.value, "fp4", "MI300X")


@pytest.mark.parametrize(
    ("device", "element"),
    [("mi355x", "fp16"), ("mi300x", "bf16"), ("mi300x", "int8"), ("mi350x", "bf16"), ("mi325x", "fp8")],
)
def test_what_was_not_measured_has_a_wider_band_and_is_called_so(device: str, element: str) -> None:
    found = predict_problem(kernel(device, element), SQUARE)
    known = predict_problem(kernel("mi355x", "bf16"), SQUARE)
    assert not found.calibrated
    assert found.basis.startswith("not calibrated: ")
    assert known.calibrated
    assert "not calibrated" not in known.basis
    assert found.us_range.high / found.us_range.low > known.us_range.high / known.us_range.low


def test_the_published_rate_of_mi300x_lies_in_the_band_of_what_is_not_calibrated() -> None:
    """AMD's own hipBLASLt run reached 708 TFLOP/s; it is no row of the table."""
    found = predict_problem(kernel("mi300x", "bf16", loop=2059), SQUARE)
    assert found.tflops_range.low < 708 < found.tflops_range.high


def test_a_kernel_gives_its_tile_type_and_clocks() -> None:
    compiled = compile_schedule(Pipeline4Wave(KernelGeometry()))
    found = tiled_gemm(compiled, (256, 256, 64), TileShape(geometry=KernelGeometry(), waves=4, instruction=BF16))
    assert (found.element, found.tile, found.matrix_clocks) == ("bf16", (256, 256, 64), 2048)
    assert found.loop_clocks > 2048


@pytest.mark.parametrize("wrong", [{"element": "fp64"}, {"tile": (256, 256, 0)}, {"tile": (256, 1.5, 64)}])
def test_a_tiled_gemm_is_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(DeclarationError, match="D102"):
        replace(kernel(), **wrong)  # type: ignore[arg-type]


def test_attention_is_refused_because_nothing_was_measured() -> None:
    with pytest.raises(MeasureError, match="M101") as raised:
        tiled_gemm(timed("attention")[0], (256, 256, 64))
    assert ("measured runs of other kernels, attention among them", "none") in raised.value.findings[0].evidence


@pytest.mark.parametrize("text", ["8192", "8192x8192", "0x1x1", "axbxc", "1x1x1x1", "-1x2x3", "99999999999x1x1"])
def test_a_problem_is_three_sides(text: str) -> None:
    with pytest.raises(DeclarationError, match="D102"):
        problem_named(text)


def test_a_problem_may_be_typed_in_several_ways() -> None:
    assert problem_named(" 16X32x64 ") == problem_named("16,32,64") == GemmProblem(m=16, n=32, k=64)


@pytest.mark.parametrize("wrong", [{"split_k": 65}, {"result": "fp4"}, {"m": 1.5}])
def test_wrong_problems_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(DeclarationError, match="D102"):
        GemmProblem(**{"m": 64, "n": 64, "k": 64, **wrong})  # type: ignore[arg-type]
