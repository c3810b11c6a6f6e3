"""The formula for many at once is the model's figure for each."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rota.predict.predict_problem import Correction, GemmProblem, predict_problem
from rota.tune.space import ProblemShape
from rota.tune.tune_library import CHUNK, Candidate, predict_times
from tests.predict.kernels import kernel

CORRECTIONS = (None, Correction("lab", 3, 1.2, 0.9, 1.1))


@pytest.mark.parametrize(("device", "element"), [("mi355x", "bf16"), ("mi355x", "fp8"), ("mi300x", "bf16")])
def test_equal_to_predict_problem(device: str, element: str) -> None:
    drawn = random.Random(7)
    tiles = [(256, 256, 64), (128, 64, 64), (32, 128, 128)]
    candidates = [
        Candidate(kernel(device, element, tile, loop=drawn.uniform(500, 4000)), split, 1, correction)
        for tile in tiles
        for split in (1, 2, 8)
        for correction in CORRECTIONS
    ]
    shapes = [
        ProblemShape(drawn.randint(1, 20000), drawn.randint(1, 20000), drawn.randint(1, 20000), "", result)
        for result in ("bf16", "fp32")
        for _ in range(40)
    ]
    found = predict_times(candidates, shapes)
    refused = 0
    for row, shape in enumerate(shapes):
        for column, each in enumerate(candidates):
            if each.split_k > 1 and shape.k // each.gemm.tile[2] // each.split_k < 2:
                assert found[row, column] == np.inf  # as the launcher would not split it either
                refused += 1
                continue
            problem = GemmProblem(m=shape.m, n=shape.n, k=shape.k, result=shape.result, split_k=each.split_k)
            assert found[row, column] == pytest.approx(
                predict_problem(each.gemm, problem, each.correction).us, rel=1e-12
            )
    assert refused


def test_chunks_don_t_show() -> None:
    candidates = [Candidate(kernel(loop=500 + number), 1, 1) for number in range(300)]
    shapes = [ProblemShape(m, 4096, 4096) for m in range(1, 2 * CHUNK // 300)]
    whole = predict_times(candidates, shapes)
    assert np.array_equal(whole[-5:], predict_times(candidates, shapes[-5:]))
    assert np.array_equal(whole[:, :1], predict_times(candidates[:1], shapes))
