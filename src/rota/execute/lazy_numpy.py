"""NumPy, loaded when something is first computed: importing the executor stays cheap."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__all__ = ["Bools", "Floats", "Ints", "np"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.intp]
    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
else:

    class _Numpy:
        def __getattr__(self, name: str) -> object:
            value = getattr(importlib.import_module("numpy"), name)
            setattr(self, name, value)  # the next look-up finds it at once
            return value

    np = _Numpy()
    Ints = Floats = Bools = None  # annotations alone name them
