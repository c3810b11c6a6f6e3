from __future__ import annotations

from dataclasses import replace

from rota.predict.predict_problem import GemmProblem, element_of, predict_problem
from tests.cycles.timed_loops import only_mfmas
from tests.findings.smallest import raised
from tests.predict.kernels import kernel


def test_a_device_has_no_facts_about_a_type_that_it_lacks() -> None:
    finding = raised("M102", lambda: predict_problem(kernel("mi300x", "fp4"), GemmProblem(m=64, n=64, k=64)))
    assert ("types with facts", "fp8, int8, bf16, fp16, bf8") in finding.evidence


def test_a_program_of_two_types_has_none() -> None:
    one, other = (only_mfmas(f"v_mfma_f32_16x16x32_{name}").lowered for name in ("bf16", "f16"))
    both = replace(one, kernel=(*one.kernel, *other.kernel))
    finding = raised("M102", lambda: element_of(both))
    assert ("types", "bf16, fp16") in finding.evidence
