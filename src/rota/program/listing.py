"""The debug listing: takes a phase's entries, gives text, one entry a line, with wait, barrier and fence counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from rota.program.kinds import OpKind


class ListedOp(Protocol):
    """An op as a listing needs it."""

    @property
    def kind(self) -> OpKind:
        """What it is."""
        ...


class ListedEntry(Protocol):
    """An entry of a front end's lists, or of a lowered program."""

    @property
    def op(self) -> ListedOp:
        """What is issued."""
        ...

    @property
    def time_slot(self) -> int:
        """Its ordinal in its phase."""
        ...

    @property
    def is_prefetch(self) -> bool:
        """May it be left out when no tile is left to fetch?"""
        ...


class SyncCounts(NamedTuple):
    """How much synchronisation a phase holds."""

    waits: int
    barriers: int
    fences: int


_FENCES = (OpKind.FENCE, OpKind.HINT, OpKind.PRIORITY)


def count_sync(entries: Sequence[ListedEntry]) -> SyncCounts:
    """Waits, barriers and compiler fences among the entries."""
    kinds = [entry.op.kind for entry in entries]
    return SyncCounts(
        waits=kinds.count(OpKind.WAIT),
        barriers=kinds.count(OpKind.BARRIER),
        fences=sum(kind in _FENCES for kind in kinds),
    )


def listing(title: str, entries: Sequence[ListedEntry]) -> str:
    """The phase as text; synchronisation is indented, so that the data ops stand out."""
    counts = count_sync(entries)
    head = f"{title}: {len(entries)} entries, {counts.waits} waits, {counts.barriers} barriers, {counts.fences} fences"
    lines = [head]
    for entry in entries:
        indent = "    " if entry.op.kind.synchronises else ""
        mark = "  prefetch" if entry.is_prefetch else ""
        lines.append(f"  {entry.time_slot:4d}  {indent}{entry.op}{mark}")
    return "\n".join(lines)
