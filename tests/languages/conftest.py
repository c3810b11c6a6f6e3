"""The tests of this folder need the compilers of other languages; where the checks run, they are installed."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

_HAS = {
    "test_gluon.py": find_spec("triton") is not None,
    "test_flydsl.py": find_spec("flydsl") is not None and find_spec("torch") is not None,
    "test_mojo.py": shutil.which("mojo") is not None or Path(sys.executable).with_name("mojo").exists(),
}

if "CI" not in os.environ:
    collect_ignore = [name for name, has in _HAS.items() if not has]
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # or Triton warns, and a warning is an error here
