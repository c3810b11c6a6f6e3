"""Two groups of waves, one a barrier behind: takes the entries of a loop that all waves run alike, gives both roles'.

Group 1 executes one more barrier inside the prologue, every wave one after it, and group 0 one more at the very end, so
that group 1 stays one barrier behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.program.effects import WORKGROUP
from rota.program.entry import Entry, barrier_ops
from rota.program.lowered import Barrier, Role
from rota.program.phase import Phase

_LEADING, _TRAILING = (0,), (1,)


def groups_of(waves: int | None, *, staggered: bool) -> tuple[Role, ...]:
    """All waves as one role, or two groups of as many waves each."""
    count = 2 if staggered else 1
    each = [None if waves is None else waves // count + (number < waves % count) for number in range(count)]
    return tuple(Role(f"group {number}", size) for number, size in enumerate(each))


def meeting_of(roles: Sequence[Role]) -> tuple[Barrier, ...]:
    """The one barrier at which all roles meet."""
    everyone = tuple(range(len(roles)))
    return (Barrier(WORKGROUP, everyone, everyone),)


def fall_back(prologue: Sequence[Entry], index: int, *, split: bool) -> Iterator[Entry]:
    """Group 1 falls back after `index` entries of the prologue."""
    for slot, entry in enumerate(prologue):
        if slot == index:
            yield from _extra_barrier(Phase.PROLOGUE, slot, _TRAILING, split=split)
        yield entry
    if index == len(prologue):
        yield from _extra_barrier(Phase.PROLOGUE, len(prologue), _TRAILING, split=split)
    yield from _extra_barrier(Phase.PROLOGUE, len(prologue), None, split=split)


def catch_up(epilogue: Sequence[Entry], *, split: bool) -> Iterator[Entry]:
    """Group 0 waits for group 1 at the very end."""
    yield from epilogue
    yield from _extra_barrier(Phase.EPILOGUE, len(epilogue), _LEADING, split=split)


def falls_back_at(prologue: Sequence[Entry]) -> int:
    """After how many entries of the schedule's own group 1 falls back."""
    first = next((number for number, entry in enumerate(prologue) if not entry.listed), len(prologue))
    return sum(entry.listed for entry in prologue[:first])


def _extra_barrier(phase: Phase, slot: int, roles: tuple[int, ...] | None, *, split: bool) -> Iterator[Entry]:
    for op, effect in barrier_ops(split=split):
        yield Entry(op=op, effect=effect, time_slot=slot, phase=phase, roles=roles, listed=False)
