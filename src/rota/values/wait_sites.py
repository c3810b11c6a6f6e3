"""Where a loop by values waits: takes its placement and unit times, gives slots for barriers and for waits alone.

A wait is free if what it waits for has landed by then.  So each read of LDS opens an interval, from its landing to the
first use of its registers and to the barrier that frees its buffer, in which a wait must stand; the fewest waits that
stab all of these intervals on the cycle of one iteration, each as late as it can, are the slots.  Loads into registers
have such intervals too; loads into LDS are waited for at barriers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rota.order.modulo.handover import Delivery, derive_handovers
from rota.program.kinds import Home
from rota.program.loop_spec import LoopSpec
from rota.program.machine import Machine
from rota.sync.synthesis import Sites
from rota.values.mma_slots import turns_are_scarce
from rota.values.op_times import LoopTimes
from rota.values.unroll import Placement


class Window(NamedTuple):
    """A wait from `opens` to `closes`, in slots of the schedule of one iteration, costs nothing."""

    opens: int
    closes: int


def derive_sites(spec: LoopSpec, placement: Placement, times: LoopTimes, machine: Machine) -> Sites:
    """Barriers as placed, and for each counter the fewest slots for waits; loads into LDS are waited for at barriers.

    A group of waves runs a barrier behind the one before.
    """
    windows: dict[str, list[Window]] = {}
    for reader, window in _until_use(_fillings(spec), placement, times):
        windows.setdefault(machine.counter_of(spec.ops[reader].kind) or "", []).append(window)
    for reader, window in _until_freed(spec, placement, times):
        windows.setdefault(machine.counter_of(spec.ops[reader].kind) or "", []).append(window)
    windows.pop("", None)
    every = 1
    if turns_are_scarce(times, placement.interval):  # a wait where another stands takes no turn of its own
        windows = {counter: [w for w in each if not _at_barrier(w, placement)] for counter, each in windows.items()}
        every = 2 if _every_other(spec, placement, times) else 1
    stabs = {counter: fewest_stabs(each, placement.interval) for counter, each in windows.items()}
    return Sites(barriers=placement.barriers, waits=stabs, every=every)


def _every_other(spec: LoopSpec, placement: Placement, times: LoopTimes) -> bool:
    """Does a barrier in every other period do, with the slack that loads have?  The unrolled loop has whole pairs."""
    if times.groups > 1 or placement.unroll % 2:
        return False
    starts, interval = placement.starts, placement.interval
    for handover in derive_handovers(spec, dict(placement.copies)):
        slack = placement.landing_slack if handover.lands else 0
        opens = max(starts[op] + times.timings[op].latency for op in handover.before) + slack
        closes = min(starts[op] for op in handover.after) + (handover.distance - 1) * interval
        if not _at_barrier(Window(opens, closes), placement):
            return False
    return True


def _at_barrier(window: Window, placement: Placement) -> bool:
    """Does it contain a barrier?"""
    length = window.closes - window.opens
    return any((slot - window.opens) % placement.interval <= length for slot in placement.barriers)


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


def _fillings(spec: LoopSpec) -> Iterator[Delivery]:
    """From each op that fills registers from a memory to each op that uses them."""
    filled = {
        name: index
        for index, op in enumerate(spec.ops)
        if op.kind.asynchronous
        for name in op.writes
        if spec.value(name).home is Home.REGISTERS
    }
    for index, op in enumerate(spec.ops):
        for read in op.reads:
            if read.value in filled:
                yield Delivery(filled[read.value], index, read.distance)


def _until_use(deliveries: Iterable[Delivery], placement: Placement, times: LoopTimes) -> Iterator[tuple[int, Window]]:
    starts, interval = placement.starts, placement.interval
    first_use: dict[int, int] = {}
    for reader, user, distance in deliveries:
        use = starts[user] + distance * interval
        first_use[reader] = min(use, first_use.get(reader, use))
    for reader, use in first_use.items():
        yield reader, Window(starts[reader] + times.timings[reader].latency, use)


def _until_freed(spec: LoopSpec, placement: Placement, times: LoopTimes) -> Iterator[tuple[int, Window]]:
    starts, interval = placement.starts, placement.interval
    for handover in derive_handovers(spec, dict(placement.copies)):
        if handover.lands:
            continue
        overwritten = min(starts[op] + handover.distance * interval for op in handover.after)
        for pivot in _barriers_before(overwritten, placement, times.groups):
            for reader in handover.before:
                yield reader, Window(starts[reader] + times.timings[reader].latency, pivot)


def _barriers_before(moment: int, placement: Placement, number: int) -> Iterator[int]:
    """The time of the `number`-th last barrier that stands at or ahead of a moment, if there are barriers."""
    interval = placement.interval
    past = sorted((moment - slot) % interval + turn * interval for slot in placement.barriers for turn in range(number))
    yield from (moment - ago for ago in past[number - 1 : number])
