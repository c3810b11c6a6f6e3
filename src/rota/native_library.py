"""The compiled parts of the package."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

_SWITCH = "ROTA_NATIVE"  # "0" asks for Python and NumPy, a folder for other builds of the libraries


def load(built: Path, signatures: Mapping[str, tuple[object, Sequence[object]]]) -> ctypes.CDLL | None:
    """The library that was built into the package, or its namesake in the folder that ROTA_NATIVE names.

    None where there is no such file, or where ROTA_NATIVE=0. A function's types are its result and its arguments.
    """
    asked = os.environ.get(_SWITCH, "")
    path = Path(asked, built.name) if os.sep in asked else built
    if asked == "0" or not path.exists():
        return None
    core = ctypes.CDLL(os.fspath(path))
    for name, (gives, takes) in signatures.items():
        function = getattr(core, name)
        function.restype, function.argtypes = gives, list(takes)
    return core
