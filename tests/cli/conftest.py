"""What tests of commands share."""

from __future__ import annotations

import pytest

from rota.audit.toolchain import find_toolchain
from rota.errors import ToolchainError


@pytest.fixture
def _toolchain() -> None:
    try:
        find_toolchain()
    except ToolchainError:
        pytest.skip("no compiler for AMD GPUs")
