"""What a read sees: takes the times of all LDS accesses, gives what each read found in each slice of a tile.

A slice is poison from the issue of a write to its landing, and then holds what landed last.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from rota.execute.clock import Clock
from rota.execute.wave_trace import GARBAGE, UNWRITTEN, Line
from rota.execute.workgroup import Workgroup, writer_of_slices
from rota.program.effects import Place, Space

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.intp]

_MOST_COMPARISONS = 1 << 18  # per batch of runs: keeps the temporaries in cache, and memory bounded


def tiles_seen(group: Workgroup, clock: Clock) -> Ints:
    """K-tiles by [run, wave, memory op, slice]; GARBAGE where a read met poison, and for everything but reads."""
    import numpy as np

    runs, waves, columns = clock.issue.shape
    written = _tiles_written(group, clock)
    seen = np.full((runs, waves, columns, waves), GARBAGE, dtype=np.intp)
    for place in _places_read(group):
        reads, found = _found(group, clock, place, written)
        np.put_along_axis(seen, reads[np.newaxis, :, :, np.newaxis], np.maximum(found, GARBAGE), axis=2)
    seen[:, :, -1] = GARBAGE  # where short rows were filled up
    return seen


def writes_seen(group: Workgroup, clock: Clock) -> dict[Place, Ints]:
    """Per place the write that each read of it found, by [run, wave, read, slice].

    GARBAGE where it met poison, UNWRITTEN where no write had begun.
    Reads and writes of a place are numbered per wave, in program order.
    """
    import numpy as np

    runs, _, columns = clock.issue.shape
    seen: dict[Place, Ints] = {}
    for place in _places_read(group):
        numbers = [dict(zip(trace.writes.get(place, ()), itertools.count(), strict=False)) for trace in group.traces]
        rows = [[number.get(index, GARBAGE) for index in range(columns)] for number in numbers]
        written = group.per_wave(rows, GARBAGE)
        _, seen[place] = _found(group, clock, place, np.broadcast_to(written, (runs, *written.shape)))
    return seen


def _places_read(group: Workgroup) -> set[Place]:
    return {place for trace in group.traces for place in trace.reads if place.space is Space.LDS}


def _found(group: Workgroup, clock: Clock, place: Place, written: Ints) -> tuple[Ints, Ints]:
    """The reads of a place by [wave, read], and what `written` says of the write that each found in each slice."""
    import numpy as np

    runs, waves, columns = clock.issue.shape
    reads = group.per_wave([trace.reads.get(place, ()) for trace in group.traces], columns - 1)
    # Youngest first: of writes that land at the same time, the youngest is found.
    writes = group.per_wave([trace.writes.get(place, ())[::-1] for trace in group.traces], columns - 1)
    found = np.full((runs, *reads.shape, waves), UNWRITTEN, dtype=np.intp)
    if writes.size == 0:
        return reads, found
    unseen = _younger_own_writes(group, place, reads, writes)
    batch = max(1, _MOST_COMPARISONS // (reads.size * writes.size))
    for start in range(0, runs, batch):
        part = slice(start, start + batch)
        found[part] = _resolve(Clock(*(times[part] for times in clock)), written[part], reads, writes, unseen)
    writers = group.writers(place)
    if len(writers) < waves:
        found = found[..., writer_of_slices(writers, waves)]
    return reads, found


def _tiles_written(group: Workgroup, clock: Clock) -> Ints:
    """K-tiles by [run, wave, memory op] that loads fetch and stores pass on, if their registers had landed by then."""
    import numpy as np

    runs, _, columns = clock.issue.shape
    fetched = group.per_wave([[op.tile for op in trace.memory] for trace in group.traces], GARBAGE)
    written = np.full((runs, group.size, columns), GARBAGE, dtype=np.intp)
    written[:, :, : fetched.shape[1]] = fetched
    for number, trace in enumerate(group.traces):
        waves = group.waves_of(number)
        for store, op in enumerate(trace.memory):
            if op.source is not None:
                ready = clock.land[:, waves, op.source] <= clock.issue[:, waves, store]
                written[:, waves, store] = np.where(ready, written[:, waves, op.source], GARBAGE)
    return written


def _younger_own_writes(group: Workgroup, place: Place, reads: Ints, writes: Ints) -> NDArray[np.bool_] | None:
    """[wave, read, slice, write]: LDS writes behind a read of the same wave, where the ds order keeps them."""
    import numpy as np

    if not any(trace.memory[index].line is Line.DS for trace in group.traces for index in trace.writes.get(place, ())):
        return None
    waves = np.arange(group.size)
    own: NDArray[np.bool_] = waves[:, np.newaxis, np.newaxis, np.newaxis] == waves[:, np.newaxis]
    younger = writes > reads[:, :, np.newaxis, np.newaxis]
    ds = [[op.line is Line.DS for op in trace.memory] for trace in group.traces]
    in_order = np.take_along_axis(_with_padding(group, ds), writes, axis=1)
    return own & younger & in_order


def _with_padding(group: Workgroup, rows: list[list[bool]]) -> NDArray[np.bool_]:
    table = group.per_wave([[*row, 0] for row in rows], 0)
    return table.astype(bool)


def _resolve(clock: Clock, written: Ints, reads: Ints, writes: Ints, unseen: NDArray[np.bool_] | None) -> Ints:
    """K-tiles by [run, wave, read, slice]."""
    import numpy as np

    wave = np.arange(reads.shape[0])
    at = clock.land[:, wave[:, np.newaxis], reads][:, :, :, np.newaxis, np.newaxis]
    issue = clock.issue[:, wave[:, np.newaxis], writes][:, np.newaxis, np.newaxis]
    land = clock.land[:, wave[:, np.newaxis], writes][:, np.newaxis, np.newaxis]
    landed = land <= at
    under_way = (issue <= at) & ~landed
    if unseen is not None:
        landed &= ~unseen
        under_way &= ~unseen
    last = np.where(landed, land, -np.inf).argmax(axis=4)
    defined = np.take_along_axis(landed, last[..., np.newaxis], axis=4)[..., 0] & ~under_way.any(axis=4)
    run = np.arange(at.shape[0])[:, np.newaxis, np.newaxis, np.newaxis]
    tile = written[run, wave, writes[wave, last]]
    begun = (landed | under_way).any(axis=4)
    return np.where(defined, tile, np.where(begun, GARBAGE, UNWRITTEN))
