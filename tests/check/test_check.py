"""The helpers that check fields."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rota.check import check_types
from tests.findings.smallest import raised


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    name: str | int


def test_the_field_and_all_kinds_it_may_have_are_named() -> None:
    check_types(Named(name=1), {"name": (str, int)})
    finding = raised("D102", lambda: check_types(Named(name=b""), {"name": (str, int)}))  # type: ignore[arg-type]
    assert "Named.name" in finding.message


def test_a_check_of_no_field_is_not_passed_over() -> None:
    """It was, so that a misspelt name checked nothing."""
    with pytest.raises(AttributeError, match="nmae"):
        check_types(Named(name=""), {"nmae": str})
