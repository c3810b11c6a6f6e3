"""Why a mutant is right, or that it isn't: takes the record of a launch and an edit, gives an argument, or a conflict.

Written without the engine's rules and tables: the waits and barriers of the edited kernel are counted off along the
recorded instructions; an access lasts from the epoch (barriers so far) of its issue to the epoch of the wait that
covers it; two accesses of different waves conflict if they share a byte and an epoch and one of them writes.  If the
edited kernel has no conflict, and no register or byte of a wave's own is used too early, all orders that mattered are
kept: it computes what the unmodified one does, along the same path, so that the record is its record too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeVar

from rota.isa.wave.wave import Step
from tests.campaigns.machine_code.race_trace import Op, WaveTrace

T = TypeVar("T")
NEVER = 1 << 30
SLACK = "nothing more is outstanding there than the weaker wait lets through"
LATER = "a later wait of the same epoch covers it before anything uses it"
ENDS = "nothing uses it before the wave ends"
APART = "every two accesses that conflict still have a wait and a barrier between them"
MOST = {"vm": 63, "ds": 15}  # what the counters of gfx942 and gfx950 hold; at that, issuing stalls
IN_ORDER = {"vm", "ds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An edit, by instruction numbers: waits with other counts, what is gone, and one that moved after another."""

    waits: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    gone: frozenset[int] = frozenset()
    moved: tuple[int, int] | None = None  # from where, to where: those between make room


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of each instruction: counts of waits, the numbers of barriers, steps."""

    waits: Mapping[int, Mapping[str, int]]
    barriers: frozenset[int]
    steps: Sequence[Step]
    keeps: frozenset[int]  # loads that read what their registers held


@dataclass(slots=True, eq=False)
class _Lasting:
    op: Op
    epoch: int
    covered: int = NEVER
    place: int = NEVER  # of the wait that covers it
    left: set[str] = field(default_factory=lambda: {"vm", "ds"})  # a flat op's counters


@dataclass(slots=True)
class _Replayed:
    lasting: list[_Lasting] = field(default_factory=list)
    early: str = ""  # what a wave uses too early
    barriers: int = 0


def argument(traces: Sequence[WaveTrace], facts: Facts, change: Change) -> tuple[bool, str]:
    """Whether the edit is harmless in this launch, and why, or what it breaks."""
    reason = SLACK
    groups: dict[tuple[int, int, int], list[tuple[WaveTrace, _Replayed]]] = defaultdict(list)
    for trace in traces:
        now, before = _replay(trace, facts, change), _replay(trace, facts, Change())
        assert not before.early, before.early
        if now.early:
            return False, now.early
        groups[trace.group].append((trace, now))
        reason = max(reason, _difference(before, now), key=(SLACK, LATER, ENDS, APART).index)
    for waves in groups.values():
        if conflict := _conflict(waves):
            return False, conflict
    return True, reason


def _difference(before: _Replayed, now: _Replayed) -> str:
    """The weakest thing that has to be said of the ops whose wait is another one."""
    if before.barriers != now.barriers:
        return APART
    reason = SLACK
    old = {id(each.op): each for each in before.lasting}
    for each in now.lasting:
        was = old[id(each.op)]
        if each.epoch != was.epoch or each.covered not in {was.covered, NEVER}:
            return APART
        if each.covered == NEVER != was.covered:
            reason = ENDS
        elif each.place != was.place and reason is SLACK:
            reason = LATER
    return reason


class _Count:
    """What one wave has in flight: counted off instruction by instruction."""

    def __init__(self, facts: Facts) -> None:
        self.epoch = 0
        self.holders: dict[int, _Lasting] = {}  # by row
        self._facts = facts
        self._queues: dict[str, list[_Lasting]] = {"vm": [], "ds": [], "sm": [], "flat": []}

    def wait(self, counts: Mapping[str, int], place: int) -> None:
        """Vector memory and LDS come back in order; scalar loads are back at zero, flat ops when both are."""
        for counter, name in (("vm", "vmcnt"), ("ds", "lgkmcnt")):
            if (most := counts.get(name)) is not None:
                while len(self._queues[counter]) > most:
                    self._cover(self._queues[counter].pop(0), place)
                if most == 0:
                    self._drained(counter, place)

    def _drained(self, counter: str, place: int) -> None:
        while counter == "ds" and self._queues["sm"]:
            self._cover(self._queues["sm"].pop(), place)
        for each in [*self._queues["flat"]]:
            each.left.discard(counter)
            if not each.left:
                self._queues["flat"].remove(each)
                self._cover(each, place)

    def issue(self, op: Op, place: int) -> _Lasting:
        """A memory op is in flight from now on; a full counter stalls until its oldest is back."""
        each = _Lasting(op, self.epoch)
        queue = self._queues[op.counter]
        queue.append(each)
        self.holders.update(dict.fromkeys(op.rows, each))
        if len(queue) > MOST.get(op.counter, NEVER):
            self._cover(queue.pop(0), place)
        return each

    def _cover(self, each: _Lasting, place: int) -> None:
        each.covered, each.place = self.epoch, place
        for row in each.op.rows:
            if self.holders.get(row) is each:
                del self.holders[row]

    def too_early(self, pc: int, op: Op | None) -> str:
        """What an instruction uses that is still in flight: registers, or the wave's own bytes of LDS."""
        if self.holders and (row := _held(self._facts, pc, op, self.holders)) is not None:
            return f"{self._text(pc)} uses row {row} of {self._text(self.holders[row].op.pc)}"
        if op is not None and (clash := self._own(op)) is not None:
            return f"{self._text(pc)} and {self._text(clash.pc)} of one wave use the same bytes of LDS"
        return ""

    def _own(self, op: Op) -> Op | None:
        """Another op of the wave in flight with the same bytes of LDS, where one of the two is a DMA."""
        mine = op.uses("lds")
        for queue in (self._queues["vm"], self._queues["ds"] if op.dma else ()):
            for each in queue if mine else ():
                if (each.op.dma or op.dma) and each.op.uses("lds") & mine:
                    return each.op
        return None

    def _text(self, pc: int) -> str:
        return self._facts.steps[pc].instruction.text


def _replay(trace: WaveTrace, facts: Facts, change: Change) -> _Replayed:
    """Counts waits and barriers along the record; stops at the first thing that is used too early."""
    found, count = _Replayed(), _Count(facts)
    for place in _order(trace.pcs, change.moved):
        pc = trace.pcs[place]
        if pc in change.gone:
            continue
        op = trace.ops.get(place)
        found.early = count.too_early(pc, op)
        if found.early:
            return found
        if pc in facts.barriers:
            count.epoch += 1
        elif pc in facts.waits:
            count.wait(change.waits.get(pc, facts.waits[pc]), place)
        if op is not None:
            found.lasting.append(count.issue(op, place))
    found.barriers = count.epoch
    return found


def _order(pcs: Sequence[int], moved: tuple[int, int] | None) -> Sequence[int]:
    """Places in the record, in the order of the edited kernel."""
    places = [*range(len(pcs))]
    if moved is not None:
        low, high = min(moved), max(moved)
        run = [*range(low, high + 1)]
        for place in [place for place, pc in enumerate(pcs) if pc == low]:
            part = slice(place, place + len(run))
            assert [*pcs[part]] == run
            places[part] = rotated(places[part], down=moved[0] == low)
    return places


def rotated(items: list[T], *, down: bool) -> list[T]:
    """The first becomes the last, or the last the first."""
    return [*items[1:], items[0]] if down else [items[-1], *items[:-1]]


def _held(facts: Facts, pc: int, op: Op | None, holders: Mapping[int, _Lasting]) -> int | None:
    """A register that it uses while an op in flight holds it; a load may follow another that is back before it."""
    step = facts.steps[pc]
    for row in step.sources:
        if row in holders:
            return row
    for row in step.results:
        if row in holders:
            behind = op is not None and op.counter in IN_ORDER and holders[row].op.counter == op.counter
            if not behind or pc in facts.keeps:
                return row
    return None


def _conflict(waves: Sequence[tuple[WaveTrace, _Replayed]]) -> str:
    """Bytes that two waves use in one epoch, and one writes."""
    last = max(replayed.barriers for _, replayed in waves)
    for space in ("lds", "global"):
        # By wave and epoch: bytes read, written, changed atomically.
        used = [[[0, 0, 0] for _ in range(last + 1)] for _ in waves]
        for number, (_, replayed) in enumerate(waves):
            for each in replayed.lasting:
                parts = [kind.get(space, 0) for kind in (each.op.reads, each.op.writes, each.op.atomics)]
                if any(parts):
                    for epoch in range(each.epoch, min(each.covered, last) + 1):
                        for kind, part in enumerate(parts):
                            used[number][epoch][kind] |= part
        for (one, mine), (two, others) in combinations(enumerate(used), 2):
            for epoch, ((r, w, a), (s, x, b)) in enumerate(zip(mine, others, strict=True)):
                if w & (s | x | b) or x & (r | a) or r & b or s & a:
                    return f"waves {waves[one][0].number} and {waves[two][0].number} conflict in epoch {epoch}, {space}"
    return ""
