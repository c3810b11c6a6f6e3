from __future__ import annotations

from dataclasses import replace

import pytest

from rota.errors import Severity
from rota.isa.binary.kernel_facts import FloatMode
from rota.isa.decoded import KernelProgram, load_program
from tests.findings.smallest import raised
from tests.isa.single import DESCRIPTOR, facts, listing


def loaded(**mode: int) -> KernelProgram:
    told = replace(DESCRIPTOR, float_mode=FloatMode(**mode))  # type: ignore[arg-type]  # bits
    return load_program(replace(facts(), descriptor=told), listing("s_nop 0"))


@pytest.mark.parametrize("field", ["round_32", "round_64"])
@pytest.mark.parametrize("rounding", [1, 2, 3])
def test_another_rounding_is_refused(field: str, rounding: int) -> None:
    finding = raised("I132", lambda: loaded(**{field: rounding}))
    assert ("up", "down", "towards zero")[rounding - 1] in {value for _, value in finding.evidence}


@pytest.mark.parametrize(
    ("mode", "part"),
    [
        ({"denormals_32": 1}, "denormals of 32 bits"),
        ({"denormals_32": 2}, "denormals of 32 bits"),
        ({"denormals_64": 2}, "denormals of 16 and 64 bits"),
        ({"fp16_overflow": 1}, "overflow of 16 bits"),
    ],
)
def test_what_rare_values_decide_is_a_warning(mode: dict[str, int], part: str) -> None:
    (finding,) = loaded(**mode).findings
    assert (finding.code, finding.severity) == ("I132", Severity.WARNING)
    assert [name for name, _ in finding.evidence] == [part]


@pytest.mark.parametrize("mode", [{}, {"denormals_32": 0}, {"ieee": 0}, {"dx10_clamp": 0}])
def test_what_the_interpreter_heeds_is_no_finding(mode: dict[str, int]) -> None:
    assert loaded(**mode).findings == ()
