"""What could meet an obligation: takes open obligations, gives for each the waits that would, and where barriers must.

Of all places for a wait only some matter.  A new wait can slide back, op by op, and its count grows by the tokens that
it passes, until it reaches an op that must wait, a barrier, or the end of its phase; a new barrier can slide back to an
op that must wait for it, or to the end of its phase.  Neither loses anything on the way, so these places are all that a
best repair needs, and each of them is offered to every obligation in which it lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.machine import Machine
from rota.sync.obligation import Obligation
from rota.sync.unrolled import InsertionPoint


class WaitSite(NamedTuple):
    """Where a wait stands or could stand; `existing` is the wait there now."""

    gap: InsertionPoint
    counter: str
    existing: Entry | None

    def count_now(self, machine: Machine) -> int:
        """The count of the wait there, or one that is as good as none."""
        largest = machine.largest_wait(self.counter)
        return largest if self.existing is None else min(self.existing.effect.wait_value, largest)


class Option(NamedTuple):
    """A wait of an obligation: how weak it may be, and how many barriers must be added where behind it.

    Without a site it is a wait that stands there already and is strong enough, the author's or the compiler's.
    """

    site: WaitSite | None
    weakest: int
    missing: int
    gaps: tuple[InsertionPoint, ...]

    def holds(self, barriers: Mapping[InsertionPoint, int], waits: Mapping[WaitSite, int]) -> bool:
        """Do these barriers and waits, added and strengthened, make it good?"""
        if self.site is not None and waits.get(self.site, self.weakest + 1) > self.weakest:
            return False
        return not self.missing or sum(barriers.get(gap, 0) for gap in self.gaps) >= self.missing


class Places(NamedTuple):
    """Gaps worth a new barrier, and gaps worth a new wait on each counter."""

    barriers: frozenset[InsertionPoint]
    waits: Mapping[str, frozenset[InsertionPoint]]


def derive_options(obligations: Sequence[Obligation], machine: Machine) -> list[tuple[Option, ...]]:
    """Every way to meet each obligation that a best repair may need."""
    places = _places(obligations)
    return [tuple(_best(_offers(obligation, places, machine))) for obligation in obligations]


def _places(obligations: Sequence[Obligation]) -> Places:
    barriers: set[InsertionPoint] = set()
    waits: dict[str, set[InsertionPoint]] = {}
    ends: set[InsertionPoint] = set()
    for obligation in obligations:
        timeline = obligation.timeline
        here = timeline.gaps[obligation.later][-1]
        waits.setdefault(obligation.counter, set()).add(here)
        if obligation.crosses:
            barriers.add(here)
        for moment in range(obligation.earlier + 1, obligation.later + 1):
            # The ends of phases stand in front of the gap that each moment opens with.
            ends.update(timeline.gaps[moment][:-1])
            if obligation.crosses and timeline.steps[moment].effect.awaits is not None:
                waits[obligation.counter].add(timeline.gaps[moment][-1])
    if barriers:
        barriers |= ends
    return Places(frozenset(barriers), {counter: frozenset(gaps | barriers | ends) for counter, gaps in waits.items()})


def _offers(obligation: Obligation, places: Places, machine: Machine) -> Iterator[Option]:
    """A wait at every moment at which one stands or is worth adding, the last first."""
    timeline, counter = obligation.timeline, obligation.counter
    largest = machine.largest_wait(counter)

    def offer(site: WaitSite | None, moment: int) -> Option:
        missing = max(obligation.barriers_needed(moment) - obligation.barriers_after(moment), 0)
        weakest = min(obligation.younger_tokens(moment), largest)
        return Option(site, weakest, missing, tuple(behind) if missing else ())

    behind: list[InsertionPoint] = []
    for moment in range(obligation.later, obligation.earlier, -1):
        step = timeline.steps[moment]
        if moment == obligation.compiler_covers:
            yield offer(None, moment)
        stands = step.effect.kind is OpKind.WAIT and step.effect.counter == counter and step.roles is None
        if stands:
            site = WaitSite(timeline.gaps[moment][-1], counter, step)
            enough = site.count_now(machine) <= min(obligation.younger_tokens(moment), largest)
            yield offer(None if enough else site, moment)
        for gap in reversed(timeline.gaps[moment]):
            if gap in places.barriers:
                behind.append(gap)
            if gap in places.waits[counter]:
                yield offer(WaitSite(gap, counter, None), moment)


def _best(offers: Iterator[Option]) -> Iterator[Option]:
    """Without what another offer of the same wait, in another trip, makes needless.

    What comes later here stands earlier in the program: it waits for no less, and has more room for barriers behind it.
    """
    kept: dict[WaitSite | None, list[Option]] = {}
    for option in offers:
        rivals = kept.setdefault(option.site, [])
        if option.site is None:
            rivals[:] = [option]
        elif not any(rival.missing == 0 for rival in rivals):
            rivals[:] = [*(rival for rival in rivals if rival.weakest > option.weakest), option]
    return (option for rivals in kept.values() for option in rivals)
