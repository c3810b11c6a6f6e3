"""Kernels that others compiled: takes a name, gives the file in the folder `shared` beside the checkout.

`ROTA_SHARED` names another folder.  Where it is set, as the checks set it, a missing file fails the test; elsewhere the
tests that need it are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.campaigns.shared_folder import SETTING, shared_folder


def shared(name: str) -> Path:
    """A file or folder that is not part of the project."""
    path = shared_folder(name)
    if not path.exists():
        message = f"{name} is not there; {SETTING} names the folder that has it"
        if os.environ.get(SETTING):
            pytest.fail(message)
        pytest.skip(message)
    return path
