"""No drawn command ends in an internal error; `tests/cli/fuzz.py` draws them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.fuzz import INTERNAL, tried

pytestmark = pytest.mark.no_cover  # drawn command lines run over the same lines thousands of times


@pytest.mark.parametrize("seed", range(100, 200, 25))
def test_no_drawn_command_ends_in_an_internal_error(seed: int, tmp_path: Path) -> None:
    for each in range(seed, seed + 25):
        line, status, told = tried(each, tmp_path)
        assert status < INTERNAL, f"seed {each}: {line}\n{told}"
