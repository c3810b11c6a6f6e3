"""The debug listing: takes a phase's entries, gives text, one entry a line, with wait, barrier and fence counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rota.declare.vocabulary import FrameworkTag, OpRole
from rota.program.entry import ScheduleEntry

_WAITS = (FrameworkTag.WAIT_VM, FrameworkTag.WAIT_LGKM)


class SyncCounts(NamedTuple):
    """How much synchronisation a phase holds."""

    waits: int
    barriers: int
    fences: int


def count_sync(entries: Sequence[ScheduleEntry]) -> SyncCounts:
    """Waits, barriers and compiler fences among the entries."""
    return SyncCounts(
        waits=sum(entry.op.tag in _WAITS for entry in entries),
        barriers=sum(entry.op.tag == FrameworkTag.BARRIER for entry in entries),
        fences=sum(entry.op.role is OpRole.FENCE for entry in entries),
    )


def listing(title: str, entries: Sequence[ScheduleEntry]) -> str:
    """The phase as text; synchronisation is indented, so that the data ops stand out."""
    counts = count_sync(entries)
    head = f"{title}: {len(entries)} entries, {counts.waits} waits, {counts.barriers} barriers, {counts.fences} fences"
    lines = [head]
    for entry in entries:
        indent = "    " if entry.op.role in (OpRole.SYNC, OpRole.FENCE) else ""
        mark = "  prefetch" if entry.is_prefetch else ""
        lines.append(f"  {entry.time_slot:4d}  {indent}{entry.op}{mark}")
    return "\n".join(lines)
