"""When a run has settled: takes the states seen at the loop's edge, gives the trips after which they repeat."""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST = 4
_TIMES = 3


def period_of(seen: Sequence[object]) -> int:
    """The least period that the last states went through three times in a row; 0 if there is none.

    The first trip still follows on the prologue and never counts.
    """
    for period in range(1, _LONGEST + 1):
        rounds = [tuple(seen[len(seen) - period * (n + 1) : len(seen) - period * n]) for n in range(_TIMES)]
        if len(seen) > _TIMES * period and len(set(rounds)) == 1:
            return period
    return 0
