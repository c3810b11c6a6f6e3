"""Numbers and their nouns."""

from __future__ import annotations

import pytest

from rota.errors import several


@pytest.mark.parametrize(
    ("count", "word", "said"),
    [(1, "barrier", "1 barrier"), (0, "wait", "0 waits"), (2, "entry", "2 entries"), (1, "entry", "1 entry")],
)
def test_a_noun_has_its_number(count: int, word: str, said: str) -> None:
    assert several(count, word) == said
