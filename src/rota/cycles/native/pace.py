"""A loop's pace by the compiled core: takes the loop's steps, gives the clocks of a trip as `WavePace` has them."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from rota.cycles.paced_loop import IssueRun, IssueStep, PacedLoop
from rota.native_library import load

_POINTER: Final = ctypes.c_void_p
_TAKES = (*(_POINTER,) * 7, ctypes.c_int64, ctypes.c_int64, _POINTER, _POINTER)
_EDGE = -1  # in an order
_FAULTS: dict[int, type[Exception]] = {-(1 << 63): IndexError, 1 - (1 << 63): MemoryError, 2 - (1 << 63): IndexError}


@cache
def library() -> ctypes.CDLL | None:
    """The core that was built into the package, if any."""
    built = Path(__file__).parent / "lib" / "librota_pace.so"  # beside modules it would pass for one of them
    return load(built, {"rota_pace": (ctypes.c_int64, _TAKES)})


class NativePace:
    """Trips through one loop."""

    def __init__(self, core: ctypes.CDLL, loop: PacedLoop) -> None:
        self._run = core.rota_pace
        pool: list[int] = []
        steps, first = list[int](), [0]
        for entry in loop.entries:
            for step in entry:
                steps += _fields(step, pool)
            first.append(first[-1] + len(entry))
        head = (loop.turn, loop.latency, loop.edge, loop.fused_waits, loop.turns_are_scarce, loop.registers)
        # Addresses alone go to the core: the arrays must stay.
        self._arrays = [
            array("q", each)
            for each in ((*head, len(loop.holds), len(loop.entries)), steps, first, pool, loop.holds, loop.pending)
        ]
        self._addresses = [each.buffer_info()[0] for each in self._arrays]

    def clocks(self, order: Sequence[int], ahead: Iterable[Sequence[int]]) -> int:
        """Clocks of a trip, behind other trips."""
        return self._trip(order, ahead, None, None)

    def trip(
        self, order: Sequence[int], ahead: Iterable[Sequence[int]]
    ) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Clocks of a trip, the entries that are late, and for how long the matrix unit is busy yet before each."""
        late, margins = array("b", bytes(len(order) + 1)), array("q", bytes(8 * (len(order) + 1)))
        clocks = self._trip(order, ahead, late, margins)
        return clocks, tuple(entry for entry, is_late in zip(order, late, strict=False) if is_late), tuple(margins[:-1])

    def _trip(
        self, order: Sequence[int], ahead: Iterable[Sequence[int]], late: array[int] | None, margins: array[int] | None
    ) -> int:
        whole = array("q")
        for each in (*ahead, order):
            whole.extend(each)
            whole.append(_EDGE)
        out = (None if each is None else each.buffer_info()[0] for each in (late, margins))
        clocks: int = self._run(*self._addresses, whole.buffer_info()[0], len(whole), len(order) + 1, *out)
        if clocks in _FAULTS:
            raise _FAULTS[clocks]
        return clocks


def _fields(step: IssueStep | IssueRun, pool: list[int]) -> tuple[int, ...]:
    """As `Step` in pace.c; registers go to the pool."""
    first, rest, every = (step.first, step.rest, step.every) if isinstance(step, IssueRun) else (step, 0, 0)
    needs_at = len(pool)
    pool += [number for need in first.needs for number in need]
    makes_at = len(pool)
    pool += step.makes
    operands = needs_at, len(first.needs), makes_at, len(step.makes)
    return step.form, step.lead, first.held, first.after, first.place, *operands, rest, every
