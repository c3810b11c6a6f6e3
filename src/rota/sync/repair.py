"""Repair: add and strengthen waits and barriers, each with its reason; never reorder data ops.

`repair` mends a program as its author wrote it. `synthesise` fills a bare loop whose barriers and waits have planned
sites.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, repeat
from operator import itemgetter
from textwrap import wrap
from typing import NamedTuple

from rota.errors import ProgramError
from rota.printing import WIDTH
from rota.program.entry import BARRIER, MEETS, WORKGROUP, Effect, Entry, Op, barrier_ops, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import LoweredProgram, number_entries
from rota.program.machine import Machine
from rota.sync.obligation import (
    InsertionPoint,
    Obligation,
    WaitSite,
    derive_obligations,
    describe_moved_obligation,
    describe_obligation,
    find_open_obligations,
)
from rota.sync.plan import Plan, plan_repairs


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Repair:
    """One change: what is now at `slot` of `phase`, what was there before, and its reason.

    `before` is a wait that was made stronger, with its old count in `count_before`.
    """

    phase: Phase
    slot: int
    op: Op
    before: Op | None
    reason: str
    count_before: int = 0

    @property
    def change(self) -> str:
        """What was done and where, without the reason."""
        what = f"{self.before} became {self.op}" if self.before else f"added {self.op}"
        return f"{self.phase.at(self.slot)} {what}"

    def taken_back(self, entry: Entry) -> Entry:
        """The entry as it was before."""
        return replace(entry, op=self.before or self.op, effect=replace(entry.effect, wait_value=self.count_before))

    @property
    def sentence(self) -> str:
        """What was done, where, and why."""
        return f"{self.change}: {self.reason}"

    def __repr__(self) -> str:
        return f"<{self.change}>"

    def __str__(self) -> str:
        kept = self.sentence.replace(" #", "\0#")  # no line ends before a number
        return "\n".join(wrap(kept, WIDTH - 2, subsequent_indent="    ")).replace("\0", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """The repaired phases, each entry's old place (None if it is new), and every change.

    `cut_short` if the search for the least repair ended before it was proved least.
    """

    phases: Mapping[Phase, tuple[Entry, ...]]
    origins: Mapping[Phase, tuple[int | None, ...]]
    repairs: tuple[Repair, ...]
    cut_short: bool


def renumber(each: Repair, phase: Phase, places: Mapping[int, int]) -> Repair:
    """A repair whose entries have moved from their old places to new ones."""
    reason = describe_moved_obligation(each.reason, phase, places)
    return replace(each, slot=places[each.slot] if each.phase is phase else each.slot, reason=reason)


def repair(program: LoweredProgram) -> Repaired:
    """Clamp waits that can't be encoded, then add and strengthen what `rota.sync.plan.Plan` says."""
    _check_one_meeting(program)
    machine = program.machine
    clamped = {phase: tuple(_clamp(entry, machine) for entry in program.phase(phase)) for phase in Phase}
    mended = program.with_phases(clamped)
    plan = plan_repairs(find_open_obligations(mended), machine)
    writers = {phase: _PhaseWriter(program, phase, plan) for phase in Phase}
    for phase, writer in writers.items():
        writer.write(clamped[phase])
    return Repaired(
        phases={phase: writer.number_entries() for phase, writer in writers.items()},
        origins={phase: tuple(written.origin for written in writer.entries) for phase, writer in writers.items()},
        repairs=tuple(
            replace(each, reason=_renumber_reason(each.reason, writers))
            for writer in writers.values()
            for each in writer.repairs()
        ),
        cut_short=not plan.optimal,
    )


def _renumber_reason(reason: str, writers: Mapping[Phase, _PhaseWriter]) -> str:
    """A reason that names its ends by their new slots."""
    for phase, writer in writers.items():
        reason = describe_moved_obligation(reason, phase, writer.places())
    return reason


def _check_one_meeting(program: LoweredProgram) -> None:
    """Refuse programs whose roles differ or meet at several barriers: what to add there is their author's decision."""
    alone = [
        entry
        for entry in program.entries
        if (entry.roles is not None and not entry.op.is_framework)
        or not {entry.effect.arrives, entry.effect.awaits} <= {None, WORKGROUP}
    ]
    if alone:
        raise ProgramError.of(
            "W103",
            f"{program.name} can't be repaired: its roles differ in more than waits and barriers, "
            "or meet at barriers of their own",
            concerns=tuple(entry.concern() for entry in alone[:2]),
            evidence=(("roles", ", ".join(role.name for role in program.roles)),),
            fixes=("add the waits and barriers that the proof asks for",),
        )


def _clamp(entry: Entry, machine: Machine) -> Entry:
    """The weakest wait that can be encoded, in place of one that can't."""
    effect = entry.effect
    if effect.kind is not OpKind.WAIT or effect.counter is None:
        return entry
    largest = machine.largest_wait(effect.counter)
    return entry if effect.wait_value <= largest else _with_count(entry, effect.counter, largest)


def _with_count(entry: Entry, counter: str, count: int) -> Entry:
    return replace(entry, op=wait_op(counter, count), effect=replace(entry.effect, wait_value=count))


class _Written(NamedTuple):
    """An entry of the repaired phase, its old place, and what changed for which reason."""

    entry: Entry
    origin: int | None
    before: Entry | None
    reason: str


class _PhaseWriter:
    """Rewrites one phase and records every change."""

    def __init__(self, program: LoweredProgram, phase: Phase, plan: Plan) -> None:
        self.split = program.machine.split_barrier
        self.phase = phase
        self.plan = plan
        self.before = program.phase(phase)
        self.entries: list[_Written] = []

    def write(self, clamped: tuple[Entry, ...]) -> None:
        for index, (written, kept) in enumerate(zip(self.before, clamped, strict=True)):
            self._fill(InsertionPoint(self.phase, index))
            self._keep(index, written, kept)
        self._fill(InsertionPoint(self.phase, len(self.before)))

    def repairs(self) -> list[Repair]:
        """Every change, numbered as the schedule lists its entries."""
        return [
            Repair(
                phase=self.phase,
                slot=entry.time_slot,
                op=entry.op,
                before=None if before is None else before.op,
                reason=reason,
                count_before=0 if before is None else before.effect.wait_value,
            )
            for entry, (_, _, before, reason) in zip(self.number_entries(), self.entries, strict=True)
            if reason
        ]

    def places(self) -> dict[int, int]:
        kept = [(each.origin, new) for each, new in zip(self.entries, self.number_entries(), strict=True)]
        return {self.before[old].time_slot: new.time_slot for old, new in kept if old is not None and new.listed}

    def number_entries(self) -> tuple[Entry, ...]:
        return number_entries([written.entry for written in self.entries])

    def _fill(self, gap: InsertionPoint) -> None:
        """Put new waits, then new barriers into a gap."""
        for site, number in self.plan.waits.items():
            if site.existing is None and site.gap == gap:
                self._add(wait_op(site.counter, number), wait_effect(site.counter, number), site)
        for _ in range(self.plan.barriers.get(gap, 0)):
            for op, effect in barrier_ops(split=self.split):
                self._add(op, effect, gap)

    def _keep(self, index: int, written: Entry, clamped: Entry) -> None:
        """Keep an entry, with a stronger count where the plan asks for one."""
        entry, reason = clamped, "a larger count would be encoded as no wait"
        for site, number in self.plan.waits.items():
            if site.existing is not None and site.gap == InsertionPoint(self.phase, index):
                entry, reason = _with_count(written, site.counter, number), self._reason(site)
        changed = entry.op != written.op
        self.entries.append(_Written(entry, index, written if changed else None, reason if changed else ""))

    def _add(self, op: Op, effect: Effect, where: InsertionPoint | WaitSite) -> None:
        entry = Entry(op=op, effect=effect, time_slot=0, phase=self.phase)
        self.entries.append(_Written(entry, None, None, self._reason(where)))

    def _reason(self, where: InsertionPoint | WaitSite) -> str:
        return str(self.plan.reasons[where])


# Synchronisation from scratch.
#
# Every obligation is met at the last site that can meet it, which is the cheapest in time and asks for the weakest
# count; a site that is in the timelines of several trip counts takes the strongest of what it is asked for.
# Then whatever no obligation needs is left out, and every wait is weakened as far as the others allow: in the end
# none can be left out or weakened alone. With other sites there might be fewer waits, or weaker ones.


class Sites(NamedTuple):
    """Slots of one iteration: for barriers, each with room for a wait on every counter, and for single waits.

    Barriers appear in one of `every` periods, the kernel's first among them; the other periods have waits only.
    """

    barriers: tuple[int, ...]
    waits: Mapping[str, tuple[int, ...]]
    every: int = 1


@dataclass(slots=True, eq=False)
class _Site:
    """A barrier (no counter) or a wait that may be needed somewhere; `count` is what obligations allow it."""

    entry: Entry
    counter: str | None
    count: int
    reason: Obligation | None = None

    def written(self, *, split: bool) -> tuple[tuple[Op, Effect], ...]:
        if self.counter is None:
            return barrier_ops(split=split)
        return ((wait_op(self.counter, self.count), wait_effect(self.counter, self.count)),)


def synthesise(
    bare: LoweredProgram, times: Mapping[Phase, tuple[int, ...]], interval: int, sites: Sites
) -> Repaired | None:
    """The loop with its sites filled; None if an obligation has no site, and a repair must find one."""
    offer = _Offer(bare.machine, interval, sites, staggered=len(bare.roles) > 1)
    offered = bare.with_phases({phase: offer.phase(phase, bare.phase(phase), times) for phase in Phase})
    obligations = tuple(derive_obligations(offered))
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
    """All sites of a loop and what obligations ask of them."""

    def __init__(self, machine: Machine, interval: int, sites: Sites, *, staggered: bool) -> None:
        self.machine, self.interval, self.slots, self.staggered = machine, interval, sites, staggered
        self.sites: dict[int, _Site] = {}
        self.filled: list[tuple[Entry, _Site]] = []
        self.moved: dict[int, Entry] = {}
        self.own: dict[int, int] = {}  # the place of a loop's own entry among them

    def phase(
        self, phase: Phase, entries: tuple[Entry, ...], times: Mapping[Phase, tuple[int, ...]]
    ) -> tuple[Entry, ...]:
        """The entries with each site in front of the first entry at or after its slot, in every period."""
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
        """Number the entries as a program would; sites and the loop's own are known by these numbers."""
        own = count()
        for entry, placed in zip(found, number_entries(found), strict=True):
            site = self.sites.pop(id(entry), None)
            if site is None:
                self.own[id(placed)] = next(own)
            else:
                site.entry = placed
                self.sites[id(placed)] = site
            yield placed

    def _due(self, kind: str | None, period: int) -> tuple[str | None, ...]:
        """What belongs at a site in a period: where a barrier is left out, waits still fit."""
        if kind is None and period % self.slots.every:
            return tuple(counter.name for counter in self.machine.counters)
        return (kind,)

    def met(self, obligation: Obligation) -> bool:
        """True if the sites that are needed anyway meet it."""
        line = obligation.timeline
        for moment in line.waits_between(obligation.counter, obligation.earlier, obligation.later):
            site = self.sites[id(line.steps[moment])]
            if site.reason and site.count <= obligation.younger_tokens(moment):
                fences = line.barriers_between(moment, obligation.later)
                standing = sum(self.staggered or self.sites[id(line.steps[at])].reason is not None for at in fences)
                if standing >= obligation.barriers_needed(moment):
                    return True
        return False

    def meet(self, obligation: Obligation) -> bool:
        """Take the last wait that has enough barriers after it, and the last of these barriers."""
        line = obligation.timeline
        for moment in reversed(line.waits_between(obligation.counter, obligation.earlier, obligation.later)):
            fences = line.barriers_between(moment, obligation.later)
            needed = obligation.barriers_needed(moment)
            if len(fences) >= needed:
                used = (moment, *fences[len(fences) - needed :])
                for at in used:
                    site = self.sites.get(id(line.steps[at]))
                    if site is not None:
                        self._ask(site, obligation, at)
                return True
        return False

    def trim(self, obligations: tuple[Obligation, ...]) -> None:
        """Remove and weaken what later sites made unnecessary; a site's reason is the obligation it would break."""
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
        """An obligation that the sites don't meet, searched where it is likely first."""
        likely = () if first is None else (first,)
        return next((each for each in (*likely, *obligations) if not self.met(each)), None)

    def written(self, entries: tuple[Entry, ...]) -> Iterator[tuple[Entry, Entry]]:
        """The entries of a phase: the loop's own and the needed sites."""
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
        return describe_obligation(first, second)

    def _ask(self, site: _Site, obligation: Obligation, moment: int) -> None:
        weakest = obligation.younger_tokens(moment)
        if not site.reason or (site.counter is not None and weakest < site.count):
            site.reason = obligation
        if site.counter is not None:
            site.count = min(site.count, weakest)

    def _at_gap(self, phase: Phase, kinds: list[str | None]) -> Iterator[Entry]:
        """Waits, then a barrier; in lockstep a second barrier or wait right there adds nothing."""
        barriers = kinds.count(None) if self.staggered else min(kinds.count(None), 1)
        counters = [counter.name for counter in self.machine.counters]
        for _ in range(barriers):
            for counter in (*counters, None):
                yield self._site(phase, counter)
        for counter in counters if not barriers else ():
            if counter in kinds:
                yield self._site(phase, counter)

    def _site(self, phase: Phase, counter: str | None) -> Entry:
        """While obligations are checked, a barrier is one entry at which a wave both arrives and waits."""
        count = 0 if counter is None else self.machine.largest_wait(counter)
        op, effect = (BARRIER, MEETS) if counter is None else (wait_op(counter, count), wait_effect(counter, count))
        entry = Entry(op=op, effect=effect, time_slot=0, phase=phase)
        self.sites[id(entry)] = _Site(entry=entry, counter=counter, count=count)
        return entry
