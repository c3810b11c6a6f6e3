"""The debug listing: a schedule, a program or a phase as text, one entry a line, and how much of it synchronises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, overload, runtime_checkable

from rota.check import check_elements
from rota.program.kinds import OpKind


class ListedOp(Protocol):
    """An op as a listing needs it."""

    @property
    def kind(self) -> OpKind:
        """What it is."""
        ...


@runtime_checkable
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


@runtime_checkable
class Listable(Protocol):
    """What lists itself: a compiled schedule, or a program of blocks."""

    def listing(self) -> str:
        """Its text."""
        ...


class SyncCounts(NamedTuple):
    """How much synchronisation a phase holds."""

    waits: int
    barriers: int
    fences: int


_FENCES = (OpKind.FENCE, OpKind.HINT, OpKind.PRIORITY)


def count_sync(entries: Sequence[ListedEntry]) -> SyncCounts:
    """Waits, barriers and compiler fences among the entries.

    >>> count_sync(compile_schedule(Pipeline4Wave(KernelGeometry())).prologue)
    SyncCounts(waits=2, barriers=2, fences=0)
    """
    kinds = [entry.op.kind for entry in entries]
    return SyncCounts(
        waits=kinds.count(OpKind.WAIT),
        barriers=kinds.count(OpKind.BARRIER),
        fences=sum(kind in _FENCES for kind in kinds),
    )


@overload
def listing(title: str, entries: Sequence[ListedEntry]) -> str: ...
@overload
def listing(title: Listable | Sequence[ListedEntry]) -> str: ...


def listing(title: str | Listable | Sequence[ListedEntry], entries: Sequence[ListedEntry] | None = None) -> str:
    """A compiled schedule, a program, or the entries of a phase as text; entries may have a title of their own.

    Synchronisation is indented, so that the data ops stand out.

    >>> print(listing("the first entries", compile_schedule(Pipeline4Wave(KernelGeometry())).prologue[7:10]))
    the first entries: 3 entries, 1 waits, 1 barriers, 0 fences
         7  load_a s1 t1 k1
         8      wait_vm(28)
         9      barrier
    """
    if isinstance(title, Listable) and entries is None:
        return title.listing()
    named = isinstance(title, str)
    listed: Sequence[ListedEntry] = check_elements("what is listed", entries if named else title, ListedEntry)  # type: ignore[type-abstract]
    return "\n".join([f"{f'{title}: ' if named else ''}{count_text(listed)}", *entry_lines(listed)])


def count_text(entries: Sequence[ListedEntry]) -> str:
    """How many entries there are, and how much synchronisation is among them."""
    counts = count_sync(entries)
    return f"{len(entries)} entries, {counts.waits} waits, {counts.barriers} barriers, {counts.fences} fences"


def entry_lines(entries: Iterable[ListedEntry], marks: Mapping[int, str] = MappingProxyType({})) -> list[str]:
    """One line for each entry, with what `marks` says about its slot."""
    lines: list[str] = []
    for entry in entries:
        indent = "    " if entry.op.kind.synchronises else ""
        prefetch = "  prefetch" if entry.is_prefetch else ""
        mark = f"  {marks[entry.time_slot]}" if entry.time_slot in marks else ""
        lines.append(f"  {entry.time_slot:4d}  {indent}{entry.op}{prefetch}{mark}")
    return lines
