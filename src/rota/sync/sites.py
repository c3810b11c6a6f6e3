"""Where a loop by values waits: takes its placement and unit times, gives slots for barriers and for waits alone.

A wait is free if what it waits for has landed by then.  So each read of LDS opens an interval, from its landing to the
first use of its registers and to the barrier that frees its buffer, in which a wait must stand; the fewest waits that
stab all of these intervals on the circle of one iteration, each as late as it can, are the slots.  Loads into registers
have such intervals too; loads into LDS are waited for at barriers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rota.declare.values import Home, LoopSpec, Work
from rota.graph.handover import Delivery, derive_deliveries, derive_handovers
from rota.graph.timing import LoopTimes
from rota.program.unroll import Placement


class Sites(NamedTuple):
    """Slots of one iteration: of barriers, each with room for a wait on either counter, and of waits for one alone."""

    barriers: tuple[int, ...]
    reads: tuple[int, ...]
    loads: tuple[int, ...] = ()


class Window(NamedTuple):
    """A wait from `opens` to `closes`, in slots of the schedule of one iteration, costs nothing."""

    opens: int
    closes: int


def derive_sites(spec: LoopSpec, placement: Placement, times: LoopTimes) -> Sites:
    """Barriers as placed, and the fewest slots for waits; a group of waves runs a barrier behind the one before."""
    used = _until_use(derive_deliveries(spec), placement, times)
    reads = fewest_stabs([*used, *_until_freed(spec, placement, times)], placement.interval)
    loads = fewest_stabs(list(_until_use(_register_loads(spec), placement, times)), placement.interval)
    return Sites(barriers=placement.barriers, reads=reads, loads=loads)


def fewest_stabs(windows: Sequence[Window], interval: int) -> tuple[int, ...]:
    """Slots, modulo the interval, of which every window contains one: the best of the greedy tours from each start."""
    tours = [_tour(windows, first.closes % interval, interval) for first in windows]
    return min(tours, key=len, default=())


def _tour(windows: Sequence[Window], start: int, interval: int) -> tuple[int, ...]:
    """Stab at `start`; then always as late as the window that closes next allows, once around."""
    stabs = [start]
    by_close = sorted(windows, key=lambda w: (w.closes - start) % interval)
    for window in by_close:
        if not any((slot - window.opens) % interval <= window.closes - window.opens for slot in stabs):
            stabs.append(window.closes % interval)
    return tuple(sorted(stabs))


def _register_loads(spec: LoopSpec) -> Iterator[Delivery]:
    """From each load of registers from global memory to each op that uses them."""
    loaded = {name: index for index, op in enumerate(spec.ops) if op.work is Work.LOAD for name in op.writes}
    for index, op in enumerate(spec.ops):
        for read in op.reads:
            if read.value in loaded and spec.value(read.value).home is Home.REGISTERS:
                yield Delivery(loaded[read.value], index, read.distance)


def _until_use(deliveries: Iterable[Delivery], placement: Placement, times: LoopTimes) -> Iterator[Window]:
    starts, interval = placement.starts, placement.interval
    first_use: dict[int, int] = {}
    for reader, user, distance in deliveries:
        use = starts[user] + distance * interval
        first_use[reader] = min(use, first_use.get(reader, use))
    for reader, use in first_use.items():
        yield Window(starts[reader] + times.timings[reader].latency, use)


def _until_freed(spec: LoopSpec, placement: Placement, times: LoopTimes) -> Iterator[Window]:
    starts, interval = placement.starts, placement.interval
    for handover in derive_handovers(spec, dict(placement.copies)):
        if handover.lands:
            continue
        overwritten = min(starts[op] + handover.distance * interval for op in handover.after)
        for pivot in _barriers_before(overwritten, placement, times.groups):
            for reader in handover.before:
                yield Window(starts[reader] + times.timings[reader].latency, pivot)


def _barriers_before(moment: int, placement: Placement, number: int) -> Iterator[int]:
    """The time of the `number`-th last barrier that stands at or ahead of a moment, if there are barriers."""
    interval = placement.interval
    past = sorted((moment - slot) % interval + turn * interval for slot in placement.barriers for turn in range(number))
    yield from (moment - ago for ago in past[number - 1 : number])
