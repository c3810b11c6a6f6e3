"""In which order a table's loop issues: takes a `ScheduleTable`, a code path and a tile, gives its instructions.

Behind each matrix instruction, and at the head of the loop, come the instructions that name it, stream by stream in the
order of the table.  The loop computes a tile while it loads the second next.  The last two tiles are computed behind
it, with what has no use any more left out: the loads, and in the last tile the reads for a next one.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NamedTuple

from rota.lift.schedule_table import ScheduleTable, SyncOp

MFMA = "MFMA"
"""The name that matrix instructions have beside those of the streams."""


class Body(enum.Enum):
    """Which tile is computed: one of the loop, the last but one, or the last."""

    LOOP = "loop"
    NO_LOADS = "no loads"
    LAST = "last"


class TableInstruction(NamedTuple):
    """Instruction `number` of a stream, behind matrix instruction `after`; a wait or barrier has its `sync`."""

    stream: str
    number: int
    after: int
    sync: SyncOp | None = None


def issued(table: ScheduleTable, path: int, body: Body) -> Iterator[TableInstruction]:
    """What one code path issues for a tile; behind the loop all waves take the first."""
    if body is not Body.LOOP:
        path = 0
    left_out = _left_out(table, body)
    behind: dict[int, list[TableInstruction]] = {}
    for stream in table.streams:
        if stream.name in left_out:
            continue
        for index, after in enumerate(stream.of(path)):
            sync = _shifted(table.syncs[index], table, body) if stream.name == "SYNC" else None
            behind.setdefault(after, []).append(TableInstruction(stream.name, index, after, sync))
    yield from behind.get(-1, ())
    for number in range(table.mfmas):
        yield TableInstruction(MFMA, number, number)
        yield from behind.get(number, ())


def _left_out(table: ScheduleTable, body: Body) -> frozenset[str]:
    if body is Body.LOOP:
        return frozenset()
    loads = {"GRA", "GRB", "GRIncA", "GRIncB", "LWSA", "LWSB", "LCC"}
    last = table.prefetched
    return frozenset(loads if body is Body.NO_LOADS else loads | {f"LRA{last}", f"LRB{last}", "LRSA", "LRSB"})


def _shifted(sync: SyncOp, table: ScheduleTable, body: Body) -> SyncOp:
    if sync.memory is None or body is Body.LOOP:
        return sync
    shift = table.no_load_shift if body is Body.NO_LOADS else table.last_shift
    return sync._replace(memory=max(sync.memory - shift, 0))
