"""Orders one after the other or side by side: takes a launch and its orders, gives the outcome of each in turn.

The first order runs alone; if it took long, the others are shared by processes, or if there are too few of them, its
workgroups are.  What comes out is the same in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np

from rota.errors import IsaError
from rota.isa.launch.forked import PATIENCE, Tell, run_forked
from rota.isa.launch.interleaving import Interleaving
from rota.isa.launch.run import KernelOutcome

Ran = KernelOutcome | IsaError
"""An error is one that ended an order before its end."""


def outcomes(
    dispatch: Callable[..., KernelOutcome], orders: Sequence[Interleaving], count: int, processes: int, told: Tell
) -> Iterator[tuple[Interleaving, Ran]]:
    """Each order with its outcome; none after one that didn't come to its end.

    A launch has `count` workgroups; `told` hears how many have ended, all orders together.
    """
    began = perf_counter()
    first = _ran(dispatch, orders[0], processes, told)
    yield orders[0], first
    if isinstance(first, IsaError):
        return
    rest = orders[1:]
    ready: list[Ran | None] = [None] * len(rest)
    if processes > 1 and len(rest) >= processes and perf_counter() - began > PATIENCE / 2:
        work = [partial(_apart, dispatch, order, first) for order in rest]
        ready = run_forked(work, processes, lambda done: told(count + done))
    for number, (order, found) in enumerate(zip(rest, ready, strict=True), 1):
        if found is None:  # not asked of another process, or one that was killed
            found = _ran(dispatch, order, processes, lambda ended: told(number * count + ended))  # noqa: B023, PLW2901
        if isinstance(found, KernelOutcome) and not found.buffers:
            found = replace(found, buffers=first.buffers)  # noqa: PLW2901
        yield order, found
        if isinstance(found, IsaError):
            return


def _ran(dispatch: Callable[..., KernelOutcome], order: Interleaving, processes: int, told: Tell) -> Ran:
    try:
        return dispatch(interleaving=order, processes=processes, ended=told)
    except IsaError as error:
        return error


def _apart(
    dispatch: Callable[..., KernelOutcome], order: Interleaving, first: KernelOutcome, told: Tell
) -> Ran:  # pragma: no cover  # in another process
    """Without its buffers if they are those of the first order, as they should be: they may be large."""
    found = _ran(dispatch, order, 1, told)
    if isinstance(found, IsaError):
        return IsaError(*found.findings)  # without the frames it came through
    same = all(np.array_equal(a, b) for a, b in zip(found.buffers, first.buffers, strict=True))
    return replace(found, buffers=()) if same else found
