"""Two schedules side by side, with their entries aligned and what changed in numbers.

Entries are aligned by what they do; a wait keeps its place when only its count changes.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from rota.program.entry import Entry
from rota.program.kinds import Phase
from rota.program.lowered import Lowerable, count_sync
from rota.view.scene import PREDICTED, a_tile, tile_word


class Change(enum.Enum):
    """What became of an entry; the value is its sign in a listing."""

    SAME = " "
    CHANGED = "~"  # the same kind of wait or hint, with another count
    MOVED = ">"
    REMOVED = "-"
    ADDED = "+"


class Row(NamedTuple):
    """An entry before and after; one of both is missing where it was added or removed."""

    change: Change
    before: Entry | None
    after: Entry | None

    @property
    def cause(self) -> str:
        """What made or had made a wait, barrier or fence that differs, where its front end says so."""
        entry = self.after or self.before
        if entry is None or entry.origin is None or not entry.op.is_framework or self.change is Change.SAME:
            return ""
        return entry.origin.cause

    def __str__(self) -> str:
        if self.before is None or self.after is None:
            return f"{self.change.value} {self.before or self.after}"
        if self.change is Change.CHANGED:
            return f"{self.change.value} {self.before} -> {self.after}"
        if self.change is Change.MOVED:
            return f"{self.change.value} {self.before.phase.at(self.before.time_slot)} -> {self.after}"
        return f"{self.change.value} {self.after}"


class Figure(NamedTuple):
    name: str
    before: float
    after: float

    @property
    def difference(self) -> str:
        """How much more or less, with the share where that says more; nothing if equal."""
        more = self.after - self.before
        if not more:
            return ""
        share = f" ({100 * more / self.before:+.1f} %)" if self.before and PREDICTED in self.name else ""
        return f"{more:+,.0f}{share}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDiff:
    """The names, the figures, and the rows of every phase in the order of the listing after."""

    before: str
    after: str
    figures: tuple[Figure, ...]
    phases: tuple[tuple[Phase, tuple[Row, ...]], ...]

    @property
    def same(self) -> bool:
        return all(row.change is Change.SAME for _, rows in self.phases for row in rows)

    def __str__(self) -> str:
        wide = max(len(figure.name) for figure in self.figures)
        lines = [f"{self.before} -> {self.after}"]
        for figure in self.figures:
            line = f"  {figure.name:{wide}}  {figure.before:>8,.0f}  {figure.after:>8,.0f}  {figure.difference}"
            lines.append(line.rstrip())
        if self.same:
            lines.append("the entries are the same")
        for phase, rows in self.phases:
            lines += _listing(phase, rows)
        return "\n".join(lines)


def diff(before: Lowerable, after: Lowerable, cycles: tuple[float, float] | None = None) -> ScheduleDiff:
    """Compare two schedules; `cycles` are the clocks a K-tile that were predicted for them."""
    figures, phases = [], []
    for phase in Phase:
        # As a schedule's own listing, without barriers that only its roles add.
        one, other = ([entry for entry in each.lowered.phase(phase) if entry.listed] for each in (before, after))
        counts = zip(("entries", "waits", "barriers"), _counts(one), _counts(other), strict=True)
        figures += [Figure(f"{phase.value.lower()} {name}", *pair) for name, *pair in counts]
        phases.append((phase, tuple(_with_moves(_align(one, other)))))
    if cycles is not None:
        words = dict.fromkeys(a_tile(tile_word(each)) for each in (before, after))
        figures.insert(0, Figure(f"clk {', '.join(words)}, {PREDICTED}", *cycles))
    return ScheduleDiff(
        before=before.lowered.name, after=after.lowered.name, figures=tuple(figures), phases=tuple(phases)
    )


def _counts(entries: Sequence[Entry]) -> tuple[int, int, int]:
    sync = count_sync(entries)
    return len(entries), sync.waits, sync.barriers


_Done = tuple[str, tuple[int, ...] | None]


def _key(entry: Entry) -> _Done:
    """What an entry does and who executes it, without a wait's count."""
    return (entry.op.name.partition("(")[0] if entry.op.is_framework else str(entry.op)), entry.roles


def _align(before: Sequence[Entry], after: Sequence[Entry]) -> Iterator[Row]:
    """Data ops first, as they are what a schedule orders; then the waits and hints between two that match."""
    data = [[n for n, entry in enumerate(entries) if not entry.op.is_framework] for entries in (before, after)]
    keys = [[_key(entries[n]) for n in numbers] for entries, numbers in zip((before, after), data, strict=True)]
    start = start_after = 0
    for block in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            one, other = data[0][block.a + offset], data[1][block.b + offset]
            yield from _align_gap(before[start:one], after[start_after:other])
            yield Row(Change.SAME, before[one], after[other])
            start, start_after = one + 1, other + 1
    yield from _align_gap(before[start:], after[start_after:])


def _align_gap(before: Sequence[Entry], after: Sequence[Entry]) -> Iterator[Row]:
    matcher = SequenceMatcher(None, [*map(_key, before)], [*map(_key, after)], autojunk=False)
    for tag, start, end, start_after, end_after in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(before[start:end], after[start_after:end_after], strict=True):
                yield Row(Change.SAME if str(one.op) == str(other.op) else Change.CHANGED, one, other)
        else:
            yield from (Row(Change.REMOVED, entry, None) for entry in before[start:end])
            yield from (Row(Change.ADDED, None, entry) for entry in after[start_after:end_after])


def _with_moves(rows: Iterator[Row]) -> list[Row]:
    """A data op that disappeared in one place and appeared in another has moved; it is shown where it is now."""
    every = list(rows)
    gone: defaultdict[_Done, list[int]] = defaultdict(list)
    for number, row in enumerate(every):
        if row.change is Change.REMOVED and row.before is not None and not row.before.op.is_framework:
            gone[_key(row.before)].append(number)
    left_out = set()
    for number, row in enumerate(every):
        if row.change is Change.ADDED and row.after is not None and gone[_key(row.after)]:
            source = gone[_key(row.after)].pop(0)
            left_out.add(source)
            every[number] = Row(Change.MOVED, every[source].before, row.after)
    return [row for number, row in enumerate(every) if number not in left_out]


def _listing(phase: Phase, rows: Sequence[Row]) -> list[str]:
    """The rows that changed, with how many equal ones lie between; nothing for a phase without a change."""
    if all(row.change is Change.SAME for row in rows):
        return []
    lines = [f"{phase.value.lower()}:"]
    for same, run in groupby(rows, key=lambda row: row.change is Change.SAME):
        part = list(run)
        changed = (f"  {row!s:40}  {row.cause}" if row.cause else f"  {row}" for row in part)
        lines += [f"      {len(part)} the same"] if same else changed
    return lines
