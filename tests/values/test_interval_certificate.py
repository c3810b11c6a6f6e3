"""What is proved about an interval is about one loop on one machine, and goes with no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rota import GFX942, Loop, LoopSpec, Severity, compile_loop
from tests.wording.golden import worded

MFMA = "v_mfma_f32_16x16x32_bf16"


def gemm(instructions: int = 32) -> LoopSpec:
    loop = Loop("gemm", waves=4)
    for name in "AB":
        loop.load(loop.tile(name, size=16384), instructions=4, moved=16384)
    a, b = (loop.fragment(name.lower(), name, registers=32, instructions=8) for name in "AB")
    loop.mma(loop.accumulator("c", registers=64), a, b, instruction=MFMA, instructions=instructions)
    return loop.build()


FOUND = compile_loop(gemm())
OTHERS: dict[str, dict[str, Any]] = {
    "a heavier loop": {"loop": gemm(64)},
    "another machine": {"machine": GFX942},
    "another interval": {"placement": replace(FOUND.placement, interval=1000)},
    "other starts": {"placement": replace(FOUND.placement, starts=tuple(each + 1 for each in FOUND.placement.starts))},
    "an interval by hand": {"modulo": FOUND.modulo and replace(FOUND.modulo, ii=1)},
}


def test_the_interval_of_the_loop_itself_is_proved() -> None:
    assert FOUND.modulo is not None
    assert FOUND.modulo.certificate.optimal
    assert "proven least" in FOUND.quality
    assert "proven least" in FOUND.headline[0]
    assert replace(FOUND, name="again").modulo == FOUND.modulo


@pytest.mark.parametrize("name", OTHERS)
def test_no_other_loop_has_it(name: str) -> None:
    other = replace(FOUND, **OTHERS[name])
    assert other.modulo is None
    assert ("V108", Severity.WARNING) in {(each.code, each.severity) for each in other.findings}
    assert "proven" not in other.quality
    assert not other.headline


def test_a_claim_about_no_loop_is_not_called_proved() -> None:
    assert FOUND.modulo is not None
    claimed = replace(FOUND, modulo=replace(FOUND.modulo, about=None))
    assert "proven least" not in claimed.quality
    assert "not proven least" in claimed.headline[0]


def test_an_interval_that_its_certificate_is_not_about_is_not_called_least() -> None:
    assert FOUND.modulo is not None
    worded(str(FOUND.modulo))
    worded(str(replace(FOUND.modulo, ii=FOUND.modulo.ii + 1)))
