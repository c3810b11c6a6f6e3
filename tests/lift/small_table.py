"""The smallest table that makes sense: takes changes, gives it as the JSON value that hipBLASLt's tables are kept in.

A wave multiplies 2 x 2 fragments in two steps of K: eight matrix instructions.  The first four use what the trip before
has read.  Each operand is two loads of four kilobytes.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, TypeVar

from rota.lift.schedule_table import ScheduleTable

T = TypeVar("T")
Document = dict[str, Any]

_WAIT = {"op": "s_waitcnt", "dscnt": -1, "vlcnt": -1, "vscnt": -1, "comment": ""}
BARRIER = {"op": "s_barrier", "comment": ""}


def wait(*, lds: int = -1, memory: int = -1) -> Document:
    """A wait as a table has it."""
    return {**_WAIT, "dscnt": lds, "vlcnt": memory}


_SMALL: Document = {
    "name": "_get_schedule_64x64x64_16bit",
    "layout": "TN",
    "useLDSTr": False,
    "TLDS": 1,
    "tile": [64, 64, 64],
    "mfma": [16, 16, 32, 1],
    "waves": [2, 2],
    "pgr": 2,
    "plr": 1,
    "dtl": 1,
    "num_mfma": 8,
    "code_paths": 1,
    "streams": {
        "SYNC": [[-1, 2, 2, 6, 6]],
        "GRIncA": [[0] * 9],
        "GRIncB": [[0] * 9],
        "LRA0": [[0, 0]],
        "LRB0": [[1, 1]],
        "GRA": [[3, 3, 3, 3]],
        "GRB": [[4, 4, 4, 4]],
        "LRSA": [[5]],
        "LRSB": [[5]],
        "LWSA": [[5]],
        "LWSB": [[5]],
        "LRA1": [[6, 6]],
        "LRB1": [[6, 7]],
        "LCC": [[7, 7]],
    },
    "sync": [wait(lds=0), wait(lds=0), BARRIER, wait(memory=4), BARRIER],
    "nglshift": 4,
    "nllshift": 4,
    "mfma_reorder": [],
    "swap_gr": False,
    "vw": [1, 1],
}


def small(streams: Document | None = None, **changes: object) -> Document:
    """The table with some of its fields, and of its streams, replaced; None takes one away."""
    document = copy.deepcopy(_SMALL)
    document |= changes
    document["streams"] |= streams or {}
    for fields in (document, document["streams"]):
        for name in [name for name, value in fields.items() if value is None]:
            del fields[name]
    return document


def tf32(*, packs: int = 10, width: int = 1) -> Document:
    """Single precision in one step of K, multiplied in four blocks, by so many packs a fragment.

    A stream's reads fill one fragment, two reads each; with a width of 2 they fill two at once, and swaps follow.
    """
    fragments, reads = width, 2 if width == 1 else 8
    converted = packs * fragments + 4 * (width - 1)
    mfmas = 3 * (2 * fragments) ** 2
    loads = 2 * fragments  # of four kilobytes, of each operand
    last = mfmas - 1
    return small(
        {
            "SYNC": [[1, 1, last - 2, last - 2, last]],
            "LRA0": [[0] * reads],
            "LRB0": [[0] * reads],
            "PackA0": [[1] * converted],
            "PackB0": [[1] * converted],
            "GRA": [[2] * 2 * loads],
            "GRB": [[2] * 2 * loads],
            "LRSA": [[2]],
            "LRSB": [[2]],
            "LWSA": [[2]],
            "LWSB": [[2]],
            "LRA1": None,
            "LRB1": None,
            "LRA3": [[last - 1] * reads],
            "LRB3": [[last - 1] * reads],
            "PackA3": [[last] * converted],
            "PackB3": [[last] * converted],
            "LCC": [[last, last]],
        },
        name="_get_schedule_64x64x32_TF32",
        layout="TN" if width == 1 else "NT",
        vw=[width, width],
        tile=[64 * fragments, 64 * fragments, 32],
        num_mfma=mfmas,
        sync=[wait(lds=0), BARRIER, wait(memory=2 * loads), BARRIER, wait(lds=0)],
        nglshift=2 * loads,
        nllshift=2 * loads,
    )


def remove_sync(table: ScheduleTable, number: int) -> ScheduleTable:
    """The table without one of its waits and barriers."""

    def drop(values: tuple[T, ...]) -> tuple[T, ...]:
        return (*values[:number], *values[number + 1 :])

    streams = (each._replace(paths=(drop(each.paths[0]),)) if each.name == "SYNC" else each for each in table.streams)
    return replace(table, streams=tuple(streams), syncs=drop(table.syncs))
