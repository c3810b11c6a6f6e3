"""When things happen: takes the traces of all roles and a policy, gives the times of steps and of landings.

Any interleaving that keeps to the barriers is some assignment of times, so no wave is stepped: each gets times of its
own within an epoch, and a barrier lets a wave go when the last of those that it waits for has arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rota.execute.barrier_order import BarrierOrder, barrier_order
from rota.execute.policy import Pace, Policy
from rota.execute.wave_trace import Line, Trace
from rota.execute.workgroup import Workgroup

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]


class Clock(NamedTuple):
    """Times by [run, wave, step] and [run, wave, memory op]; a last, further column holds a time that never comes."""

    steps: Floats
    issue: Floats
    land: Floats


def run_clock(group: Workgroup, policy: Policy, order: BarrierOrder | None = None) -> Clock:
    """Issue times from the policy's pace and the barriers, then landing times between issue and cover.

    `order` is the group's `barrier_order`, where the caller knows it already; no role may be stuck in it.
    """
    import numpy as np

    order = barrier_order(group) if order is None else order
    paces = policy.paces(group)
    local = [_local_times(trace, pace) for trace, pace in zip(group.traces, paces, strict=True)]
    starts = _all_at_once(group, local) if order is None else _one_by_one(group, local, order)
    for trace, times, begun in zip(group.traces, local, starts, strict=True):
        np.add(times, begun[:, :, _epochs(trace)], out=times)
    runs = local[0].shape[0]
    # Per run, so that a run doesn't depend on which others it is computed with.
    end = np.max([times.max(axis=(1, 2), initial=0.0) for times in local], axis=0) + 1.0
    clock = Clock(
        steps=_never(runs, group, [len(trace.steps) for trace in group.traces]),
        issue=_never(runs, group, [len(trace.memory) for trace in group.traces]),
        land=_never(runs, group, [len(trace.memory) for trace in group.traces]),
    )
    for number, (trace, pace, times) in enumerate(zip(group.traces, paces, local, strict=True)):
        waves = group.waves_of(number)
        clock.steps[:, waves, : len(trace.steps)] = times
        issue, land = _landings(trace, pace, times, end)
        clock.issue[:, waves, : len(trace.memory)] = issue
        clock.land[:, waves, : len(trace.memory)] = land
    return clock


def _all_at_once(group: Workgroup, local: Sequence[Floats]) -> list[Floats]:
    """When epochs start, by [run, 1, epoch], where the n-th barrier of all roles is one and the same."""
    import numpy as np

    arrival = np.concatenate(
        [times[:, :, trace.barriers] for trace, times in zip(group.traces, local, strict=True)], axis=1
    )
    release = np.zeros((arrival.shape[0], arrival.shape[2] + 1))
    np.cumsum(arrival.max(axis=1), axis=1, out=release[:, 1:])
    return [release[:, np.newaxis]] * len(local)


def _one_by_one(group: Workgroup, local: Sequence[Floats], order: BarrierOrder) -> list[Floats]:
    """When epochs start, by [run, wave, epoch]: a wave continues when the last that it waits for has arrived."""
    import numpy as np

    starts = [
        np.zeros((*times.shape[:2], len(trace.barriers) + 1)) for trace, times in zip(group.traces, local, strict=True)
    ]
    for (role, number), arrivals in order.passages:
        goes_on = _reached(group, local, starts, role, number)
        for other, barrier in arrivals:
            last = _reached(group, local, starts, other, barrier).max(axis=1)
            goes_on = np.maximum(goes_on, last[:, np.newaxis])
        starts[role][:, :, number + 1] = goes_on
    return starts


def _reached(group: Workgroup, local: Sequence[Floats], starts: Sequence[Floats], role: int, number: int) -> Floats:
    """When the waves of a role are at a barrier, by [run, wave]."""
    reached: Floats = starts[role][:, :, number] + local[role][:, :, group.traces[role].barriers[number]]
    return reached


def _never(runs: int, group: Workgroup, lengths: list[int]) -> Floats:
    import numpy as np

    return np.full((runs, group.size, max(lengths) + 1), np.inf)


def _epochs(trace: Trace) -> Ints:
    """The epoch of each step; a barrier belongs to the epoch that it ends."""
    import numpy as np

    return np.searchsorted(np.array(trace.barriers, dtype=np.intp), np.arange(len(trace.steps)))


def _local_times(trace: Trace, pace: Pace) -> Floats:
    """Times of a group's steps since the barrier before them.  Gaps are positive, so times strictly increase."""
    import numpy as np

    epochs = _epochs(trace)
    times = np.cumsum(pace.gaps, axis=2)
    starts = np.zeros(pace.pause.shape)
    starts[:, :, 1:] = times[:, :, trace.barriers]
    times -= starts[:, :, epochs]
    times *= pace.slowness[:, :, epochs]
    times += pace.pause[:, :, epochs]
    return times


def _landings(trace: Trace, pace: Pace, times: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Issue and landing times of memory ops; those of an orderly line never overtake each other."""
    import numpy as np

    last = np.broadcast_to(end[:, np.newaxis, np.newaxis], (*times.shape[:2], 1))
    with_end = np.concatenate([times, last], axis=2)
    issue = times[:, :, [op.step for op in trace.memory]]
    covers, lines = _covers(trace)
    cover = with_end[:, :, covers]
    land = np.minimum(issue + pace.lateness * (cover - issue), cover)  # rounding must not carry it past its cover
    for ops in lines:
        land[:, :, ops] = np.maximum.accumulate(land[:, :, ops], axis=2)
    return issue, land


def _covers(trace: Trace) -> tuple[list[int], list[list[int]]]:
    """The step by which each op has landed, and the ops that land in order, line by line.

    What lands in front of another op has landed when that one is covered, whichever counter either is on; so an op that
    is held up by older ones still lands by its own cover.
    """
    lines: dict[object, list[int]] = {}
    for index, op in enumerate(trace.memory):
        if op.line is not Line.ANY:
            lines.setdefault(op.line if op.line is Line.DS else (op.line, op.counter), []).append(index)
    covers = [op.cover for op in trace.memory]
    for ops in lines.values():
        least = len(trace.steps)
        for index in reversed(ops):
            covers[index] = least = min(least, covers[index])
    return covers, list(lines.values())
