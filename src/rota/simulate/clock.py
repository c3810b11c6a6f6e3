"""When things happen: takes the traces of all wave groups and a policy, gives the times of steps and of landings.

Any interleaving that keeps to the barriers is some assignment of times, so no wave is stepped: each gets times of its
own within an epoch, and a barrier lets all waves go when the last of them has arrived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.simulate.pace import Pace, Policy
from rota.simulate.trace import Line, Trace, Workgroup

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


def run_clock(group: Workgroup, policy: Policy) -> Clock:
    """Issue times from the policy's pace and the barriers, then landing times between issue and cover."""
    import numpy as np

    paces = policy.paces(group)
    local = [_local_times(trace, pace) for trace, pace in zip(group.traces, paces, strict=True)]
    # All groups have as many barriers, so the n-th releases when the slowest wave of any group arrives at it.
    arrival = np.concatenate(
        [times[:, :, trace.barriers] for trace, times in zip(group.traces, local, strict=True)], axis=1
    )
    release = np.zeros((arrival.shape[0], arrival.shape[2] + 1))
    np.cumsum(arrival.max(axis=1), axis=1, out=release[:, 1:])
    for trace, times in zip(group.traces, local, strict=True):
        np.add(times, release[:, np.newaxis, _epochs(trace)], out=times)
    # Per run, so that a run doesn't depend on which others it is computed with.
    end = np.max([times.max(axis=(1, 2), initial=0.0) for times in local], axis=0) + 1.0
    clock = Clock(
        steps=_never(arrival.shape[0], group, [len(trace.steps) for trace in group.traces]),
        issue=_never(arrival.shape[0], group, [len(trace.memory) for trace in group.traces]),
        land=_never(arrival.shape[0], group, [len(trace.memory) for trace in group.traces]),
    )
    for number, (trace, pace, times) in enumerate(zip(group.traces, paces, local, strict=True)):
        waves = group.waves_of(number)
        clock.steps[:, waves, : len(trace.steps)] = times
        issue, land = _landings(trace, pace, times, end)
        clock.issue[:, waves, : len(trace.memory)] = issue
        clock.land[:, waves, : len(trace.memory)] = land
    return clock


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
    """Issue and landing times of memory ops; those of an orderly line never overtake each other.

    A line's covers come in program order, so an op held up by an older one still lands by its own cover.
    """
    import numpy as np

    last = np.broadcast_to(end[:, np.newaxis, np.newaxis], (*times.shape[:2], 1))
    with_end = np.concatenate([times, last], axis=2)
    issue = times[:, :, [op.step for op in trace.memory]]
    cover = with_end[:, :, [op.cover for op in trace.memory]]
    land = np.minimum(issue + pace.lateness * (cover - issue), cover)  # rounding must not carry it past its cover
    for line in (Line.DS, Line.REGISTER):
        ops = [index for index, op in enumerate(trace.memory) if op.line is line]
        land[:, :, ops] = np.maximum.accumulate(land[:, :, ops], axis=2)
    return issue, land
