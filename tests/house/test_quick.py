"""`.ci/quick` selects by a marker, which every test has that doesn't say that it takes long; the limit is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quick import LONG, MOST_SECONDS, check_quick, is_quick, seconds_used

ROOT = Path(__file__).parents[2]


def test_the_quick_checks_select_by_marker_alone() -> None:
    (command,) = (line for line in (ROOT / ".ci" / "quick").read_text("utf-8").splitlines() if " pytest " in line)
    assert "-m quick" in command
    assert "tests/" not in command


def test_a_test_without_a_marker_is_quick(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("quick")
    assert is_quick(set())


@pytest.mark.thorough
def test_one_that_is_marked_is_not(request: pytest.FixtureRequest) -> None:
    assert not request.node.get_closest_marker("quick")
    assert not any(is_quick({"parametrize", marker}) for marker in LONG)


def test_one_that_takes_longer_is_noticed() -> None:
    check_quick(MOST_SECONDS)
    with pytest.raises(pytest.fail.Exception, match="thorough"):
        check_quick(MOST_SECONDS + 0.1)


def test_time_of_this_process_counts() -> None:
    before = seconds_used()
    sum(range(3_000_000))
    assert seconds_used() > before
