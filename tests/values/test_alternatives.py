from __future__ import annotations

from rota import verify
from rota.cycles.predict import predict, rank
from rota.kernels.gemm import GEMM_SHAPES
from rota.values.compile_loop import top_k
from tests.findings.smallest import raised


def test_alternatives_differ_and_are_proved_and_can_be_ranked() -> None:
    found = top_k(GEMM_SHAPES[2].loop(instructions=False), k=2)
    first, second = found
    assert first.kernel != second.kernel
    assert all(verify(each).clean for each in found)
    assert {each.modulo.ii for each in found if each.modulo} == {128}
    best, *_ = rank(found)
    assert predict(best.schedule, band=False).cycles == min(predict(each, band=False).cycles for each in found)


def test_no_alternative_is_no_request() -> None:
    raised("D102", lambda: top_k(GEMM_SHAPES[2].loop(instructions=False), k=0))
