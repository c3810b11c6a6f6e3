"""The notebook runs, and what it keeps is what its cells give now."""

from __future__ import annotations

import pytest

from tests.examples.notebook import outputs_of, read_notebook, run_cells, shown

pytestmark = pytest.mark.no_cover  # what examples run counts as covered where it is tested by itself


def test_every_output_is_up_to_date() -> None:
    stale = []
    for number, (cell, value) in enumerate(run_cells(read_notebook()), 1):
        kept = [{**each, "execution_count": None} for each in cell["outputs"]]
        if shown(kept) != shown(outputs_of(value)):
            stale.append(number)
    assert stale == [], "python -m tests.examples.notebook"


def test_a_changed_value_is_noticed() -> None:
    assert shown(outputs_of(1)) != shown(outputs_of(2))
