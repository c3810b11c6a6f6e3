"""What is not part of the project: takes a name, gives where it is in the folder `shared` beside the checkout.

`ROTA_SHARED` names another folder; this is the only place that asks for it.
"""

from __future__ import annotations

import os
from pathlib import Path

SETTING = "ROTA_SHARED"


def shared_folder(name: str) -> Path:
    """A file or folder, which need not exist."""
    return Path(os.environ.get(SETTING) or Path(__file__).parents[3] / "shared") / name
