"""The formula, for many at once: takes shapes and proved kernels, gives predicted microseconds as an array.

It is `rota.predict.predict_problem`'s figure, which a test compares: the same model, with arrays for numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.predict.predict_problem import ABOVE_BEST, Correction, parameters_of, type_facts_of
from rota.predict.tiled_gemm import TiledGemm
from rota.predict.time_model import ModelParameters, times_of, work_of_problem
from rota.tune.shapes import ProblemShape

Floats = NDArray[np.float64]

CHUNK = 1 << 18
"""Points that are evaluated at once, which fit a cache better than all."""
_RESULT_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}


class Candidate(NamedTuple):
    """A kernel as the formula sees it: its loop, how K is split, K-tiles outside the loop, and what was measured."""

    gemm: TiledGemm
    split_k: int
    tiles_outside: int
    correction: Correction | None = None


def predicted(candidates: Sequence[Candidate], shapes: Sequence[ProblemShape]) -> Floats:
    """Microseconds by shape and candidate; infinite where K is too short to be split so."""
    found = np.empty((len(shapes), len(candidates)))
    rows = max(1, CHUNK // max(1, len(candidates)))
    kernels = _Kernels(candidates)
    for first in range(0, len(shapes), rows):
        found[first : first + rows] = kernels.times(shapes[first : first + rows])
    return found


class _Kernels:
    """The candidates' columns."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        gemms = [each.gemm for each in candidates]
        self.tile = tuple(_row(gemm.tile[side] for gemm in gemms) for side in range(3))
        self.mma, self.loop = _row(gemm.matrix_clocks for gemm in gemms), _row(gemm.loop_clocks for gemm in gemms)
        self.size, self.split = _row(gemm.element_bytes for gemm in gemms), _row(each.split_k for each in candidates)
        self.units = _row(gemm.device.timing.compute_units.value for gemm in gemms)
        self.outside = _row(each.tiles_outside for each in candidates)
        facts = [type_facts_of(gemm) for gemm in gemms]
        self.best = _row(np.inf if own.best is None else own.best.value for own in facts)
        each_has = [
            parameters_of(each.gemm.device, own, each.correction) for each, own in zip(candidates, facts, strict=True)
        ]
        columns: Any = [_row(values) for values in zip(*each_has, strict=True)]  # arrays stand for numbers
        self.at = ModelParameters(*columns)

    def times(self, shapes: Sequence[ProblemShape]) -> Floats:
        """Some shapes by all candidates."""
        m, n, k = (np.array([shape[side] for shape in shapes], float)[:, None] for side in range(3))
        arrays: Any = work_of_problem  # takes arrays as it takes numbers
        work = arrays(
            sides=(m, n, k),
            tile=self.tile,
            split_k=self.split,
            units=self.units,
            element_bytes=self.size,
            result_bytes=np.array([_RESULT_BYTES[shape.result] for shape in shapes])[:, None],
            mma=self.mma,
            loop=self.loop,
        )
        fastest = 2 * m * n * k / (ABOVE_BEST * self.best) / 1e6
        us = np.maximum(np.asarray(times_of(work, self.at).total), fastest)
        # As the emitted launcher has it: loops that are filled and drained once each need K enough.
        long_enough = (self.split == 1) | ((k // self.tile[2]) // self.split >= 2 * np.maximum(self.outside, 1))
        found: Floats = np.where(long_enough, us, np.inf)
        return found


def _row(values: Any) -> Floats:  # noqa: ANN401  # any numbers
    return np.array(list(values), float)[None, :]
