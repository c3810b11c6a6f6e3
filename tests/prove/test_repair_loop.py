"""A share of the mutants that the documented loop repairs; `benchmarks.repair_loop` has them all."""

from __future__ import annotations

import pytest

from tests.campaigns.machine_code.repair_loop import run

pytestmark = pytest.mark.thorough  # compiles, proves and executes


def test_the_script_of_the_page_repairs_mutants_and_says_where_it_stops() -> None:
    outcomes = list(run(3, seed=1))
    assert [each.said for each in outcomes if not each.honest] == []
    assert sum(each.repaired for each in outcomes) >= 2
