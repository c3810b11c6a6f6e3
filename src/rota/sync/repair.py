"""Repair: add and strengthen waits and barriers, each with its reason; never reorder data ops.

`repair` mends a program as its author wrote it. `synthesise` fills a bare loop whose barriers and waits have planned
sites.

What to insert is a covering problem: the fewest barriers, then the fewest and weakest waits. OR-Tools CP-SAT solves it,
one aim after the other. This is one of the three modules that import the solver, and only when something has to be
repaired.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, repeat
from operator import itemgetter
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from rota.errors import ProgramError
from rota.printing import WIDTH
from rota.program.entry import BARRIER, MEETS, WORKGROUP, Effect, Entry, Op, barrier_ops, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import LoweredProgram, number_entries
from rota.program.machine import Machine
from rota.solver.cp_sat import make_ready
from rota.solver.limits import solve
from rota.sync.obligation import (
    InsertionPoint,
    Obligation,
    Option,
    WaitSite,
    derive_obligations,
    derive_options,
    describe_moved_obligation,
    describe_obligation,
    find_open_obligations,
)

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

# What a repair can do without.
#
# Leaving out or weakening one change makes no other needless that was needed before, so one look at each is enough.

Change = InsertionPoint | WaitSite
"""A place at which barriers are added, or a wait that is added or strengthened."""


class Trimmed:
    """Fewer barriers, then fewer and weaker waits, as long as every obligation is met.

    `needed_by` gives, for each remaining change, the number of an obligation that any less of it would break.
    """

    def __init__(
        self, barriers: Mapping[InsertionPoint, int], waits: Mapping[WaitSite, int], options: Sequence[Sequence[Option]]
    ) -> None:
        self.options = options
        self.barriers, self.waits = dict(barriers), dict(waits)
        self.needed_by: dict[Change, int] = {}
        self.users: dict[Change, dict[int, None]] = {}
        for number, some in enumerate(options):
            for change in (change for option in some for change in (option.site, *option.gaps)):
                if change is not None:
                    self.users.setdefault(change, {})[number] = None
        for gap in barriers:
            self._trim_barriers(gap)
        for site in waits:
            self._trim_wait(site)

    def _unmet(self, change: Change) -> int | None:
        """An obligation that the change could help to meet and that nothing meets."""
        for number in self.users[change]:
            if not any(option.holds(self.barriers, self.waits) for option in self.options[number]):
                return number
        return None

    def _trim_barriers(self, gap: InsertionPoint) -> None:
        while count := self.barriers.pop(gap, 0):
            self.barriers[gap] = count - 1
            number = self._unmet(gap)
            if number is not None:
                self.barriers[gap], self.needed_by[gap] = count, number
                return

    def _trim_wait(self, site: WaitSite) -> None:
        counts = {option.weakest for n in self.users[site] for option in self.options[n] if option.site == site}
        del self.waits[site]
        number = self._unmet(site)
        for weakest in sorted(counts, reverse=True):
            if number is None:
                return
            self.waits[site], self.needed_by[site] = weakest, number
            number = self._unmet(site)


EFFORT = 4.0
"""How long is searched for all aims together, in the solver's own measure, which is the same on every machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Barriers to add per gap, waits to add or strengthen with their new counts, and one reason for each.

    Nothing in it can be left out, and no count can be larger. If it is `optimal`, no other way to add barriers and to
    add or strengthen waits has fewer barriers; or as many, and fewer such waits; or as many of both, and fewer of them
    in the loop; or as many there, and counts that are larger in sum.
    """

    barriers: dict[InsertionPoint, int]
    waits: dict[WaitSite, int]
    reasons: dict[Change, Obligation]
    optimal: bool


def plan_repairs(obligations: Sequence[Obligation], machine: Machine) -> Plan:
    """The best plan, or the best that was found; in any case one of which nothing can be left out."""
    if not obligations:
        return Plan(barriers={}, waits={}, reasons={}, optimal=True)
    options = derive_options(obligations, machine)
    search = _Search(options, machine)
    optimal = search.run(Trimmed(*_plan_full_drains(obligations), options))
    found = Trimmed(search.barriers, search.waits, options)
    return Plan(
        barriers=found.barriers,
        waits=found.waits,
        reasons={change: obligations[number] for change, number in found.needed_by.items()},
        optimal=optimal,
    )


def _plan_full_drains(obligations: Sequence[Obligation]) -> tuple[dict[InsertionPoint, int], dict[WaitSite, int]]:
    """A full drain, and as many barriers as it takes, before every op that must wait: safe, and far too much."""
    barriers: dict[InsertionPoint, int] = {}
    waits: dict[WaitSite, int] = {}
    for obligation in obligations:
        gap = obligation.timeline.gaps[obligation.later][-1]
        waits[WaitSite(gap, obligation.counter, None)] = 0
        needed = obligation.barriers_needed(obligation.later)
        if needed:
            barriers[gap] = max(barriers.get(gap, 0), needed)
    return barriers, waits


class _Search:
    """The covering problem, and the best known solution.

    A wait has one literal for each count that makes a difference, true if the wait is at least that strong.
    """

    def __init__(self, options: Sequence[Sequence[Option]], machine: Machine) -> None:
        make_ready()
        from ortools.sat.python import cp_model

        self.model = cp_model.CpModel()
        self.machine = machine
        self.barriers: dict[InsertionPoint, int] = {}
        self.waits: dict[WaitSite, int] = {}
        every = [option for some in options for option in some]
        most = max(option.missing for option in every)
        gaps = sorted({gap for option in every for gap in option.gaps}, key=_place)
        self.added = {gap: self.model.new_int_var(0, most, f"barriers at {gap}") for gap in gaps}
        counts: dict[WaitSite, set[int]] = {}
        for option in every:
            if option.site is not None:
                counts.setdefault(option.site, set()).add(option.weakest)
        self.levels = {
            site: {count: self.model.new_bool_var(f"{site.counter} at {site.gap} {count}") for count in sorted(each)}
            for site, each in sorted(counts.items(), key=lambda pair: (_place(pair[0].gap), str(pair[0])))
        }
        for levels in self.levels.values():
            literals = list(levels.values())
            for stronger, weaker in pairwise(literals):
                self.model.add_implication(stronger, weaker)
        for some in options:
            self.model.add_bool_or([self._literal(option) for option in some])

    def _literal(self, option: Option) -> cp_model.IntVar:
        wait = None if option.site is None else self.levels[option.site][option.weakest]
        if wait is not None and not option.missing:
            return wait
        chosen = self.model.new_bool_var("")
        self.model.add(sum(self.added[gap] for gap in option.gaps) >= option.missing).only_enforce_if(chosen)
        if wait is not None:
            self.model.add_implication(chosen, wait)
        return chosen

    def _aims(self) -> list[cp_model.LinearExprT]:
        changed = {site: levels[max(levels)] for site, levels in self.levels.items()}
        in_loop = [count for gap, count in self.added.items() if gap.phase is Phase.KERNEL]
        in_loop += [literal for site, literal in changed.items() if site.gap.phase is Phase.KERNEL]
        lost = [
            (weaker - count) * literal
            for site, levels in self.levels.items()
            for (count, literal), weaker in zip(
                levels.items(), [*list(levels)[1:], site.count_now(self.machine)], strict=True
            )
        ]
        return [sum(self.added.values()), sum(changed.values()), sum(in_loop), sum(lost)]

    def run(self, known: Trimmed) -> bool:
        """Minimise one aim after the other, none at the cost of those before; True if each optimum was proved."""
        make_ready()
        from ortools.sat.python import cp_model

        self.barriers, self.waits = known.barriers, known.waits
        optimal, left = True, EFFORT
        for aim in self._aims():
            self._hint()
            self.model.minimize(aim)
            solver = cp_model.CpSolver()
            solver.parameters.num_workers = 1
            solver.parameters.random_seed = 0
            solver.parameters.linearization_level = 2  # what lies in intervals is nearly solved by its relaxation
            solver.parameters.max_deterministic_time = left
            status = solve(solver, self.model)
            left = max(left - solver.response_proto.deterministic_time, 0.0)
            if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                return False
            optimal = optimal and status == cp_model.OPTIMAL
            self._take(solver)
            self.model.add(aim <= round(solver.objective_value))
        return optimal

    def _hint(self) -> None:
        self.model.clear_hints()  # type: ignore[no-untyped-call]  # OR-Tools 9.15 has no types for it
        for gap, variable in self.added.items():
            self.model.add_hint(variable, self.barriers.get(gap, 0))
        for site, levels in self.levels.items():
            for count, literal in levels.items():
                self.model.add_hint(literal, int(self.waits.get(site, count + 1) <= count))

    def _take(self, solver: cp_model.CpSolver) -> None:
        self.barriers = {gap: solver.value(count) for gap, count in self.added.items() if solver.value(count)}
        self.waits = {
            site: min(strong)
            for site, levels in self.levels.items()
            if (strong := [count for count, literal in levels.items() if solver.boolean_value(literal)])
        }


def _place(gap: InsertionPoint) -> tuple[str, int]:
    return gap.phase.value, gap.slot


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
    """Clamp waits that can't be encoded, then add and strengthen what `rota.sync.repair.Plan` says."""
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
        own = itertools.count()
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
