"""Tests that say so are not traced, in worker processes either; without coverage there is nothing to see."""

from __future__ import annotations

import sys

import pytest


@pytest.mark.no_cover  # which is what is tested
def test_a_test_marked_so_is_not_traced() -> None:
    assert sys.gettrace() is None


def test_the_others_are_if_anything_is(request: pytest.FixtureRequest) -> None:
    asked = request.config.pluginmanager.hasplugin("_cov") and not request.config.getoption("no_cov")
    assert (sys.gettrace() is not None) == asked
