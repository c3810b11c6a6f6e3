"""What tests of commands share."""

from __future__ import annotations

import pytest

from rota.errors import ToolchainError
from rota.isa.binary.toolchain import find_toolchain


@pytest.fixture
def _toolchain() -> None:
    try:
        find_toolchain()
    except ToolchainError:
        pytest.skip("no compiler for AMD GPUs")
