from __future__ import annotations

import pytest

from rota.predict.calibrate import MeasuredGemm, calibrate
from rota.predict.predict_problem import GemmProblem
from tests.findings.smallest import raised
from tests.predict.kernels import kernel

PROBLEM = GemmProblem(m=4096, n=4096, k=4096)


def test_two_runs_are_too_few() -> None:
    runs = [MeasuredGemm(PROBLEM, 104.0, (), "", line) for line in (2, 3)]
    assert ("needed", 3) in raised("M204", lambda: calibrate(kernel(), runs, "lab")).evidence


@pytest.mark.parametrize(("tile", "element"), [((128, 128, 64), "bf16"), ((256, 256, 64), "fp8")])
def test_a_row_of_another_kernel_is_refused(tile: tuple[int, ...], element: str) -> None:
    runs = [MeasuredGemm(PROBLEM, 104.0, (256, 256, 64), "bf16", line) for line in (2, 3)]
    runs.append(MeasuredGemm(PROBLEM, 104.0, tile, element, 4))
    assert "line 4" in raised("M204", lambda: calibrate(kernel(), runs, "lab")).message
