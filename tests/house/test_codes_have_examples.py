"""Every finding code has its smallest failing example in tests/findings, and every example a code."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.errors import CODES

FINDINGS = Path(__file__).parents[1] / "findings"


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_code_has_an_example(code: str) -> None:
    example = FINDINGS / f"test_{code}.py"
    assert example.is_file(), f"write the smallest input that ends in {code} as tests/findings/{example.name}"
    assert code in example.read_text(encoding="utf-8"), f"tests/findings/{example.name} never names {code}"


def test_an_example_has_a_code() -> None:
    named = {file.stem.removeprefix("test_") for file in FINDINGS.glob("test_*.py")}
    assert named - set(CODES) == set()
