"""One line makes the tests of this folder run without a GPU; on one, take it away."""

from __future__ import annotations

import os
from importlib.util import find_spec

import rota.triton

DEVICE = os.environ.get("ROTA_DEVICE", "gfx950")

if "CI" not in os.environ and (find_spec("triton") is None or find_spec("torch") is None):
    collect_ignore_glob = ["test_*.py"]
else:
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # or Triton warns, and a warning is an error here
    rota.triton.use(DEVICE)
