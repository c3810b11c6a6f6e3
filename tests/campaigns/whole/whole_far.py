"""Rows far from a matrix's first, without the memory between: takes a built kernel, gives what is wrong with them.

A row of the third tile lies more than 2 GiB after the first; only it is there, and pointers are set back by as much.
What the tiles before it read and write is nobody's memory, and said to be so; the far row itself must be right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rota.audit.gemm_launch import pack
from rota.emit.whole.whole_options import PARAMETERS, Output
from rota.isa.launch.kernarg import Pointer, Value
from rota.isa.launch.run import run_dispatch
from tests.campaigns.whole.whole_kernels import Built

_STRIDE = (1 << 23) + 16  # bytes: 128 rows take just over 1 GiB, 256 more than an int counts
_K = 40
_PLACES = ("A", "B", "D")


def wrong_far_row(built: Built, far: str) -> list[str]:
    """What is wrong if the rows of A, B or D are far apart; `built` is a kernel of fp32 sums without an epilogue."""
    rows = 2 * built.tile.geometry.BM + 1
    m, n = (1, rows) if far == "B" else (rows, 1)
    random = np.random.default_rng(5)
    a, b = (random.integers(-4, 4, (size, _K), endpoint=True).astype(np.float64) for size in (m, n))
    element = built.tile.element.value
    size = built.tile.element.bytes if far != "D" else built.asked.output.bytes
    strides = {"A": _K, "B": _K, "D": n} | {far: _STRIDE // size}
    held: dict[str, NDArray[np.generic]] = {"A": pack(a, element), "B": pack(b, element)}
    held["D"] = np.full((m, n), np.nan, np.float32)
    if far != "D":
        held[far] = held[far][-1:]
    else:
        held["D"] = held["D"][-1:]
    back = {name: (rows - 1) * _STRIDE if name == far else 0 for name in _PLACES}
    numbers = {"M": m, "N": n, "K": _K, "splits": 1, "workgroups": 3, "alpha": 1.0}
    numbers |= {f"{name.lower()}_stride": stride for name, stride in strides.items()}
    values: list[Value] = []
    for each in PARAMETERS:
        if each.name in _PLACES:
            values.append(Pointer(buffer=_PLACES.index(each.name), offset=-back[each.name]))
        else:
            values.append(numbers.get(each.name, 0))
    outcome = run_dispatch(
        built.kernel.program,
        buffers=[np.ascontiguousarray(held[name]).view(np.uint8).reshape(-1) for name in _PLACES],
        values=values,
        grid=(3, 1, 1),
        block=(built.tile.waves * built.tile.lanes, 1, 1),
    )
    assert built.asked.output is Output.F32
    got = outcome.buffers[2].view(np.float32).reshape(-1)[-1]
    due = float(a[-1] @ b[-1])
    return [] if got == due else [f"the far row of {far} is {got}, due {due}"]
