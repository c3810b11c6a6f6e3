"""Launches of GEMMs whose machine code is a stand-in: what is compared, and how far results may be off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from rota import KernelGeometry
from rota.audit import gemm_launch as launch
from rota.audit.gemm_launch import GemmProgram, Numbers, pack
from rota.isa.decoded import KernelProgram
from rota.isa.launch.interleaving import Interleaving
from rota.isa.launch.run import KernelOutcome
from tests.wording.golden import mentions, worded

Matrix = NDArray[np.float32]
READERS: dict[str, Callable[[NDArray[Any]], Matrix]] = {
    "bf16": lambda bits: (bits.astype(np.uint32) << 16).view(np.float32),
    "f16": lambda halves: halves.astype(np.float32),
}


def gemm(monkeypatch: pytest.MonkeyPatch, multiply: Callable[[Matrix, Matrix], Matrix], element: str) -> GemmProgram:
    """A program whose run is a function of A and B."""

    def run(
        program: KernelProgram,
        *,
        args: Sequence[Any],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        dynamic_lds: int,
        interleaving: Interleaving,
    ) -> KernelOutcome:
        assert dynamic_lds == 0
        a, b, c, columns, depth = args
        assert np.isnan(c).all()
        assert a.shape == (16 * grid[0], depth)
        assert b.shape == (columns, depth) == (32 * grid[1], depth)
        assert block == (256, 1, 1)
        read = READERS[element]
        return KernelOutcome(buffers=(a, b, multiply(read(a), read(b))), findings=(), instructions=0)

    monkeypatch.setattr(launch, "run_kernel", run)
    return GemmProgram(
        program=cast("KernelProgram", SimpleNamespace(facts=SimpleNamespace(arguments=()))),
        geometry=KernelGeometry(BM=16, BN=32, BK=64),
        element=element,
        waves=4,
        tiles_outside=2,
        tiles_per_trip=3,
    )


def product(a: Matrix, b: Matrix) -> Matrix:
    """Summed one by one in fp32, as far from pairwise as can be."""
    total = np.zeros((len(a), len(b)), np.float32)
    for k in range(a.shape[1]):
        total += np.outer(a[:, k], b[:, k])
    return total


@pytest.mark.parametrize("element", READERS)
@pytest.mark.parametrize("numbers", Numbers)
def test_the_product_is_right(element: str, numbers: Numbers, monkeypatch: pytest.MonkeyPatch) -> None:
    result = gemm(monkeypatch, product, element).launch(2, grid=(2, 1), numbers=numbers)
    assert result.right
    assert np.any(result.got != result.due) == (numbers is Numbers.FULL)


@pytest.mark.parametrize("numbers", Numbers)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda a, b: product(a, b) + np.eye(16, 32, dtype=np.float32),
        lambda a, b: product(a[:, :-1], b[:, :-1]),
        lambda a, b: product(np.roll(a, 1, axis=1), b),
        lambda a, b: np.full((16, 32), np.nan, np.float32),
        lambda a, b: product(a.astype(np.float32) * np.float32(1 + 2**-9), b),
    ],
)
def test_another_result_is_wrong(
    wrong: Callable[[Matrix, Matrix], Matrix], numbers: Numbers, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = gemm(monkeypatch, wrong, "bf16").launch(1, numbers=numbers)
    assert not result.right
    assert [finding.code for finding in result.findings] == ["I110"]


def test_low_bits_of_the_factors_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers don't use them: a kernel that loses them is found by full precision alone."""

    def rounded(a: Matrix, b: Matrix) -> Matrix:
        return product((a.view(np.uint32) & np.uint32(0xFFFE0000)).view(np.float32), b)

    program = gemm(monkeypatch, rounded, "bf16")
    assert program.launch(1).right
    assert not program.launch(1, numbers=Numbers.FULL).right


def test_trips_count_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    program = gemm(monkeypatch, product, "f16")
    assert [program.depth(trips) for trips in (0, 1, 5)] == [128, 320, 1088]
    assert mentions(worded(str(program.run_trips(1, 2))), "320", "12")


def test_the_first_finding_of_each_kind_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    done = gemm(monkeypatch, lambda a, b: product(a, b) + 1, "f16").run_trips(0, 0)
    assert (done.runs, done.right) == (10, 0)
    assert [finding.code for finding in done.findings] == ["I110"]
    assert dict(done.findings[0].evidence)["interleaving"] == "latest"
    assert mentions(worded(str(done)), "128", "10")


def test_eight_bit_floats_are_ocps() -> None:
    """OCP 8-bit Floating Point Specification, table 1: e4m3's largest, least normal and least subnormal number."""
    known = {0: 0x00, 1: 0x38, 2: 0x40, 3: 0x44, 4: 0x48, 448: 0x7E, 2.0**-6: 0x08, 2.0**-9: 0x01, 7 * 2.0**-9: 0x07}
    assert pack(np.array(list(known), np.float64), "f8f6f4").tolist() == list(known.values())
    assert pack(-np.array([1.0, 448.0]), "f8f6f4").tolist() == [0xB8, 0xFE]


@pytest.mark.parametrize("element", ["bf16", "f16", "f8f6f4"])
def test_numbers_of_full_precision_are_elements(element: str) -> None:
    drawn = launch._draw(np.random.default_rng(0), (50, 50), Numbers.FULL, element)
    bits = pack(drawn, element)
    if element == "f8f6f4":
        code = bits.astype(np.int64)
        power, mantissa = code >> 3 & 15, code & 7
        size = np.where(power > 0, np.ldexp(8.0 + mantissa, power - 10), np.ldexp(mantissa * 1.0, -9))
        read = np.where(code & 0x80, -size, size)
    else:
        read = READERS[element](bits).astype(np.float64)
    assert np.array_equal(read, drawn)
    assert len(np.unique(drawn)) > 2 ** {"bf16": 8, "f16": 9, "f8f6f4": 4}[element]
