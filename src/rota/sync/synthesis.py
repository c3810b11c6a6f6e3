"""Synchronisation from scratch: takes a bare loop and sites for barriers and waits, gives it with the sites filled.

Every obligation is met at the last site that can meet it, which is the cheapest in time and asks for the weakest count;
a site that stands in the timelines of several trip counts takes the strongest of what it is asked for.  Then whatever
no obligation needs is left out, and every wait is weakened as far as the others allow: in the end none can be left out
or weakened alone.  With other sites there might be fewer waits, or weaker ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, repeat
from operator import itemgetter
from typing import NamedTuple

from rota.program.effects import Effect
from rota.program.entry import BARRIER, MEETS, Entry, Op, barrier_ops, wait_effect, wait_op
from rota.program.lowered import LoweredProgram, numbered
from rota.program.machine import Machine
from rota.program.phase import Phase
from rota.sync.obligation import Obligation, all_obligations, in_words
from rota.sync.repair import Repair, Repaired


class Sites(NamedTuple):
    """Slots of one iteration: of barriers, each with room for a wait on every counter, and of waits for one alone.

    Barriers stand in one of `every` so many periods, the kernel's first among them; in the others there are the waits.
    """

    barriers: tuple[int, ...]
    waits: Mapping[str, tuple[int, ...]]
    every: int = 1


@dataclass(slots=True, eq=False)
class _Site:
    """A barrier (no counter) or a wait that may come to stand somewhere; `count` is what obligations leave of it."""

    entry: Entry
    counter: str | None
    count: int
    reason: Obligation | None = None

    def written(self, *, split: bool) -> tuple[tuple[Op, Effect], ...]:
        """What is issued there."""
        if self.counter is None:
            return barrier_ops(split=split)
        return ((wait_op(self.counter, self.count), wait_effect(self.counter, self.count)),)


def synthesise(
    bare: LoweredProgram, times: Mapping[Phase, tuple[int, ...]], interval: int, sites: Sites
) -> Repaired | None:
    """The loop with its sites filled; None if an obligation has no site, and a repair must find it one."""
    offer = _Offer(bare.machine, interval, sites, staggered=len(bare.roles) > 1)
    offered = replace(
        bare,
        prologue=offer.phase(Phase.PROLOGUE, bare.prologue, times),
        kernel=offer.phase(Phase.KERNEL, bare.kernel, times),
        epilogue=offer.phase(Phase.EPILOGUE, bare.epilogue, times),
    )
    obligations = tuple(all_obligations(offered))
    for obligation in obligations:
        if not offer.met(obligation) and not offer.meet(obligation):
            return None
    offer.trim(obligations)
    written = {phase: tuple(offer.written(offered.phase(phase))) for phase in Phase}
    return Repaired(
        phases={phase: tuple(entry for entry, _ in entries) for phase, entries in written.items()},
        origins={
            phase: tuple(offer.own.get(id(before)) for _, before in entries) for phase, entries in written.items()
        },
        repairs=tuple(
            Repair(phase=entry.phase, slot=entry.time_slot, op=entry.op, before=None, reason=offer.reason(site))
            for entry, site in offer.filled
        ),
        cut_short=False,
    )


class _Offer:
    """All sites of a loop and what they have been asked for."""

    def __init__(self, machine: Machine, interval: int, sites: Sites, *, staggered: bool) -> None:
        self.machine, self.interval, self.slots, self.staggered = machine, interval, sites, staggered
        self.sites: dict[int, _Site] = {}
        self.filled: list[tuple[Entry, _Site]] = []
        self.moved: dict[int, Entry] = {}
        self.own: dict[int, int] = {}  # the place of a loop's own entry among them

    def phase(
        self, phase: Phase, entries: tuple[Entry, ...], times: Mapping[Phase, tuple[int, ...]]
    ) -> tuple[Entry, ...]:
        """The entries with a site in front of the first one at or after each site's slot, in every period."""
        kinds: list[tuple[str | None, tuple[int, ...]]] = [(None, self.slots.barriers), *self.slots.waits.items()]
        places = sorted(((slot, kind) for kind, slots in kinds for slot in slots), key=itemgetter(0))
        periods = (times[phase][-1] // self.interval + 1) if times[phase] else 0
        ahead = -periods if phase is Phase.PROLOGUE else 0  # of the kernel's first
        due = [
            (period * self.interval + slot, each)
            for period in range(periods)
            for slot, kind in places
            for each in self._due(kind, ahead + period)
        ]
        found: list[Entry] = []
        for entry, time in zip(entries, chain(times[phase], repeat(periods * self.interval)), strict=False):
            here = [kind for at, kind in due if at <= time]
            due = due[len(here) :]
            found += self._at_gap(phase, here)
            found.append(entry)
        found += self._at_gap(phase, [kind for _, kind in due])
        return tuple(self._in_place(found))

    def _in_place(self, found: Sequence[Entry]) -> Iterator[Entry]:
        """The entries with the numbers that a program gives them; sites and the loop's own are known by theirs."""
        own = count()
        for entry, placed in zip(found, numbered(found), strict=True):
            site = self.sites.pop(id(entry), None)
            if site is None:
                self.own[id(placed)] = next(own)
            else:
                site.entry = placed
                self.sites[id(placed)] = site
            yield placed

    def _due(self, kind: str | None, period: int) -> tuple[str | None, ...]:
        """What stands at a site in a period: where a barrier is left out, there is still room for waits."""
        if kind is None and period % self.slots.every:
            return tuple(counter.name for counter in self.machine.counters)
        return (kind,)

    def met(self, obligation: Obligation) -> bool:
        """Do the sites that are needed anyway meet it?"""
        line = obligation.timeline
        for moment in line.waits_between(obligation.counter, obligation.earlier, obligation.later):
            site = self.sites[id(line.steps[moment])]
            if site.reason and site.count <= obligation.younger_tokens(moment):
                behind = line.barriers_between(moment, obligation.later)
                standing = sum(self.staggered or self.sites[id(line.steps[at])].reason is not None for at in behind)
                if standing >= obligation.barriers_needed(moment):
                    return True
        return False

    def meet(self, obligation: Obligation) -> bool:
        """Take the last wait that has enough barriers behind it, and the last of these barriers."""
        line = obligation.timeline
        for moment in reversed(line.waits_between(obligation.counter, obligation.earlier, obligation.later)):
            behind = line.barriers_between(moment, obligation.later)
            needed = obligation.barriers_needed(moment)
            if len(behind) >= needed:
                used = (moment, *behind[len(behind) - needed :])
                for at in used:
                    site = self.sites.get(id(line.steps[at]))
                    if site is not None:
                        self._ask(site, obligation, at)
                return True
        return False

    def trim(self, obligations: tuple[Obligation, ...]) -> None:
        """Leave out and weaken what later sites have made needless; a site's reason is what would be unmet then."""
        needed = [site for site in self.sites.values() if site.reason and not (self.staggered and site.counter is None)]
        for site in needed:
            first, site.reason = site.reason, None
            site.reason = self._unmet(first, obligations)
        for site in needed:
            while site.reason and site.counter is not None and site.count < self.machine.largest_wait(site.counter):
                site.count += 1
                unmet = self._unmet(site.reason, obligations)
                if unmet is not None:
                    site.count, site.reason = site.count - 1, unmet
                    break

    def _unmet(self, first: Obligation | None, obligations: tuple[Obligation, ...]) -> Obligation | None:
        """One that the sites don't meet, looked for where it is likely first."""
        likely = () if first is None else (first,)
        return next((each for each in (*likely, *obligations) if not self.met(each)), None)

    def written(self, entries: tuple[Entry, ...]) -> Iterator[tuple[Entry, Entry]]:
        """The entries of a phase with what they were: the loop's own and the sites that are needed."""
        place = 0
        for entry in entries:
            site = self.sites.get(id(entry))
            if site is None:
                self.moved[id(entry)] = kept = replace(entry, time_slot=place)
                yield kept, entry
                place += entry.listed
            elif site.reason or (self.staggered and site.counter is None):
                for op, effect in site.written(split=self.machine.split_barrier):
                    added = replace(site.entry, op=op, effect=effect, time_slot=place)
                    self.filled.append((added, site))
                    yield added, site.entry
                    place += 1

    def reason(self, site: _Site) -> str:
        """Why a site is needed, with the entries' new numbers."""
        if site.reason is None:
            return "keeps the wave groups one barrier apart"
        first, second = (self.moved.get(id(entry), entry) for entry in site.reason.ends)
        return in_words(first, second)

    def _ask(self, site: _Site, obligation: Obligation, moment: int) -> None:
        weakest = obligation.younger_tokens(moment)
        if not site.reason or (site.counter is not None and weakest < site.count):
            site.reason = obligation
        if site.counter is not None:
            site.count = min(site.count, weakest)

    def _at_gap(self, phase: Phase, kinds: list[str | None]) -> Iterator[Entry]:
        """Waits, then a barrier; in lockstep a second barrier at once, or a wait beside a barrier's, adds nothing."""
        barriers = kinds.count(None) if self.staggered else min(kinds.count(None), 1)
        counters = [counter.name for counter in self.machine.counters]
        for _ in range(barriers):
            for counter in (*counters, None):
                yield self._site(phase, counter)
        for counter in counters if not barriers else ():
            if counter in kinds:
                yield self._site(phase, counter)

    def _site(self, phase: Phase, counter: str | None) -> Entry:
        """While obligations are met a barrier is one entry, at which a wave both arrives and waits."""
        count = 0 if counter is None else self.machine.largest_wait(counter)
        op, effect = (BARRIER, MEETS) if counter is None else (wait_op(counter, count), wait_effect(counter, count))
        entry = Entry(op=op, effect=effect, time_slot=0, phase=phase)
        self.sites[id(entry)] = _Site(entry=entry, counter=counter, count=count)
        return entry
