from __future__ import annotations

import pytest

from rota.predict.calibrate import MeasuredGemm, calibrate
from rota.predict.predict_problem import GemmProblem, predict_problem
from tests.findings.smallest import raised
from tests.predict.kernels import kernel

PROBLEM = GemmProblem(m=4096, n=4096, k=4096)


@pytest.mark.parametrize(("unit", "words"), [(1e3, "nanoseconds"), (1e-3, "milliseconds"), (1e-6, "seconds")])
def test_times_in_another_unit_are_refused(unit: float, words: str) -> None:
    true = predict_problem(kernel(), PROBLEM).us
    runs = [MeasuredGemm(PROBLEM, true * unit, (), "", line) for line in range(3)]
    assert words in raised("M202", lambda: calibrate(kernel(), runs, "lab")).message
    slow = [MeasuredGemm(PROBLEM, true * 5, (), "", line) for line in range(3)]
    assert calibrate(kernel(), slow, "lab").bias == pytest.approx(5)
