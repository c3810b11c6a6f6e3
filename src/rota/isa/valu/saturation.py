"""The clamp modifier on integers: takes a function, gives its exact result limited to what its kind holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.wave.operand import unknown

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.valu.integer import Function
    from rota.isa.wave.wave import Wave

_RANGES: dict[str, tuple[int, int, Any]] = {
    "u": (0, 2**32 - 1, np.uint32),
    "i": (-(2**31), 2**31 - 1, np.int32),
    "w": (0, 2**16 - 1, np.uint16),
    "s": (-(2**15), 2**15 - 1, np.int16),
}


def saturated(instruction: Instruction, function: Function) -> Callable[[Wave, list[Any]], Any]:
    """Computes and clamps; a function whose exact result isn't known is an error."""
    exact = function.exact
    if exact is None or function.result not in _RANGES:
        raise unknown(instruction, "modifier clamp")
    low, high, kind = _RANGES[function.result]
    return lambda _, values: np.clip(exact(*values), low, high).astype(kind)
