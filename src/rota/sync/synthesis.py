"""Synchronisation from nothing: takes a bare loop and sites for barriers and waits, gives it with the sites filled.

Every obligation is met at the last site that can meet it, which is the cheapest in time and asks for the weakest count;
a site that stands in the timelines of several trip counts takes the strongest of what it is asked for.  Then whatever
no obligation needs is left out, and every wait is weakened as far as the others allow: in the end none can be left out
or weakened alone.  With other sites there might be fewer waits, or weaker ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, repeat
from operator import itemgetter

from rota.declare.effects import Action, Counter, Effect
from rota.declare.op import OpDesc
from rota.declare.vocabulary import Phase
from rota.program.entry import ScheduleEntry
from rota.program.loop import ScheduledLoop, Step, steps_of
from rota.sync.obligation import Obligation, all_obligations, in_words
from rota.sync.repair import WAITS, Repair, Repaired
from rota.sync.sites import Sites
from rota.targets.machine import Machine


@dataclass(slots=True, eq=False)
class _Site:
    """A barrier (no counter) or a wait that may come to stand somewhere; `count` is what obligations leave of it."""

    entry: ScheduleEntry
    counter: Counter | None
    count: int
    reason: Obligation | None = None

    @property
    def op(self) -> OpDesc:
        return OpDesc.barrier() if self.counter is None else WAITS[self.counter](self.count)


def synthesise(
    loop: ScheduledLoop, times: Mapping[Phase, tuple[int, ...]], interval: int, sites: Sites, machine: Machine
) -> Repaired | None:
    """The loop with its sites filled; None if an obligation has no site, and a repair must find it one."""
    bare = steps_of(loop)
    offer = _Offer(machine, interval, sites, staggered=bare.groups > 1)
    steps = replace(
        bare,
        prologue=offer.phase(Phase.PROLOGUE, bare.prologue, times),
        kernel=offer.phase(Phase.KERNEL, bare.kernel, times),
        epilogue=offer.phase(Phase.EPILOGUE, bare.epilogue, times),
    )
    obligations = tuple(all_obligations(steps, compiler_waits=False))
    for obligation in obligations:
        if not offer.met(obligation) and not offer.meet(obligation):
            return None
    offer.trim(obligations)
    own = {id(entry) for entry in (*loop.prologue, *loop.kernel, *loop.epilogue)}
    written = {phase: tuple(offer.written(steps.phase(phase), own)) for phase in Phase}
    prologue = written[Phase.PROLOGUE]
    return Repaired(
        prologue=prologue,
        kernel=written[Phase.KERNEL],
        epilogue=written[Phase.EPILOGUE],
        warp_stagger_index=len(prologue) + (bare.groups == 1),
        kernel_slots=tuple(slot for slot, entry in enumerate(written[Phase.KERNEL]) if not entry.op.is_framework),
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
        self.filled: list[tuple[ScheduleEntry, _Site]] = []
        self.moved: dict[int, ScheduleEntry] = {}

    def phase(self, phase: Phase, steps: tuple[Step, ...], times: Mapping[Phase, tuple[int, ...]]) -> tuple[Step, ...]:
        """The steps with a site in front of the first one at or after each site's slot, in every period."""
        kinds = ((None, self.slots.barriers), (Counter.VM, self.slots.loads), (Counter.LGKM, self.slots.reads))
        places = sorted(((slot, kind) for kind, slots in kinds for slot in slots), key=itemgetter(0))
        periods = (times[phase][-1] // self.interval + 1) if times[phase] else 0
        due = [(period * self.interval + slot, kind) for period in range(periods) for slot, kind in places]
        found: list[Step] = []
        for step, time in zip(steps, chain(times[phase], repeat(periods * self.interval)), strict=False):
            here = [kind for at, kind in due if at <= time]
            due = due[len(here) :]
            found += self._at_gap(phase, here)
            found.append(step)
        return (*found, *self._at_gap(phase, [kind for _, kind in due]))

    def met(self, obligation: Obligation) -> bool:
        """Do the sites that are needed anyway meet it?"""
        line = obligation.timeline
        for moment in line.waits_between(obligation.counter, obligation.earlier, obligation.later):
            site = self.sites[id(line.steps[moment].entry)]
            if site.reason and site.count <= obligation.younger_tokens(moment):
                behind = line.barriers_between(moment, obligation.later)
                standing = sum(
                    self.staggered or self.sites[id(line.steps[at].entry)].reason is not None for at in behind
                )
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
                    site = self.sites.get(id(line.steps[at].entry))
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

    def written(self, steps: tuple[Step, ...], own: set[int]) -> Iterator[ScheduleEntry]:
        """The entries of a phase: the loop's own and the sites that are needed."""
        place = 0
        for step in steps:
            site = self.sites.get(id(step.entry))
            if site is None and id(step.entry) in own:
                self.moved[id(step.entry)] = entry = replace(step.entry, time_slot=place)
                yield entry
                place += 1
            elif site is not None and (site.reason or (self.staggered and site.counter is None)):
                entry = replace(site.entry, op=site.op, time_slot=place, effect=None)
                self.filled.append((entry, site))
                yield entry
                place += 1

    def reason(self, site: _Site) -> str:
        """Why a site is needed, with the entries' new numbers."""
        if site.reason is None:
            return "keeps the wave groups one barrier apart"
        first, second = (self.moved.get(id(step.entry), step.entry) for step in site.reason.ends)
        return in_words(first, second)

    def _ask(self, site: _Site, obligation: Obligation, moment: int) -> None:
        weakest = obligation.younger_tokens(moment)
        if not site.reason or (site.counter is not None and weakest < site.count):
            site.reason = obligation
        if site.counter is not None:
            site.count = min(site.count, weakest)

    def _at_gap(self, phase: Phase, kinds: list[Counter | None]) -> Iterator[Step]:
        """Waits, then a barrier; in lockstep a second barrier at once, or a wait beside a barrier's, adds nothing."""
        barriers = kinds.count(None) if self.staggered else min(kinds.count(None), 1)
        for _ in range(barriers):
            for counter in (*Counter, None):
                yield self._site(phase, counter)
        for counter in Counter if not barriers else ():
            if counter in kinds:
                yield self._site(phase, counter)

    def _site(self, phase: Phase, counter: Counter | None) -> Step:
        count = 0 if counter is None else self.machine.largest_wait(counter)
        op = OpDesc.barrier() if counter is None else WAITS[counter](count)
        action = Action.BARRIER if counter is None else Action.WAIT
        effect = Effect(action=action, counter=counter, wait_value=count)
        entry = ScheduleEntry(op=op, time_slot=0, phase=phase, effect=effect)
        self.sites[id(entry)] = _Site(entry=entry, counter=counter, count=count)
        return Step(entry, effect, None)
