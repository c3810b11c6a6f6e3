"""What to insert: takes open obligations, gives the fewest barriers, then the fewest and weakest waits that meet them.

The choice is a covering problem and goes to OR-Tools CP-SAT; this module is the second door to it, opened only when
something has to be repaired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rota.declare.effects import Action, Counter
from rota.declare.vocabulary import Phase
from rota.order.stopping import solve
from rota.program.loop import Step
from rota.sync.obligation import Obligation
from rota.sync.timeline import Gap
from rota.targets.machine import Machine

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

# One barrier outweighs any number of waits; one wait, added or strengthened, any choice of place outside or inside the
# loop; that any loss of strength.
_BARRIER, _WAIT, _IN_LOOP = 10**9, 10**6, 10**4
TIME_LIMIT = 30.0
"""Seconds that the choice may take."""


class WaitSite(NamedTuple):
    """Where a wait stands or could stand; `existing` is the wait there now."""

    gap: Gap
    counter: Counter
    existing: Step | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Barriers to add per gap; waits to add or to strengthen with their new counts; one reason for each."""

    barriers: dict[Gap, int]
    waits: dict[WaitSite, int]
    reasons: dict[Gap | WaitSite, Obligation]
    optimal: bool


class _Option(NamedTuple):
    """A wait of an obligation: how weak it may be, and how many barriers must be added where behind it."""

    site: WaitSite
    weakest: int
    missing: int
    gaps: tuple[Gap, ...]


def plan_repairs(obligations: Sequence[Obligation], machine: Machine) -> Plan:
    """The best plan, or one that is merely safe if the time limit comes before any other."""
    if not obligations:
        return Plan(barriers={}, waits={}, reasons={}, optimal=True)
    places = _barrier_gaps(obligations)
    options = [_options(obligation, places, machine) for obligation in obligations]
    return _solve(obligations, options, machine) or _safe(obligations)


def _safe(obligations: Sequence[Obligation]) -> Plan:
    """A full drain, and as many barriers as it takes, in front of every op that must wait."""
    barriers: dict[Gap, int] = {}
    waits: dict[WaitSite, int] = {}
    reasons: dict[Gap | WaitSite, Obligation] = {}
    for obligation in obligations:
        gap = obligation.timeline.gaps[obligation.later][-1]
        needed = obligation.barriers_needed(obligation.later)
        waits[WaitSite(gap, obligation.counter, None)] = 0
        reasons.setdefault(WaitSite(gap, obligation.counter, None), obligation)
        if needed:
            barriers[gap] = max(barriers.get(gap, 0), needed)
            reasons.setdefault(gap, obligation)
    return Plan(barriers=barriers, waits=waits, reasons=reasons, optimal=False)


def _barrier_gaps(obligations: Sequence[Obligation]) -> frozenset[Gap]:
    """Gaps worth a barrier: any barrier can slide back to the next op that must wait for it, or to its phase's end."""
    places: set[Gap] = set()
    for obligation in obligations:
        if not obligation.crosses:
            continue
        timeline = obligation.timeline
        places.add(timeline.gaps[obligation.later][-1])
        # The ends of phases stand in front of the gap that each moment opens with.
        places.update(*(timeline.gaps[moment][:-1] for moment in range(obligation.earlier + 1, obligation.later + 1)))
    return frozenset(places)


def _options(obligation: Obligation, places: frozenset[Gap], machine: Machine) -> list[_Option]:
    """Every wait that could cover the earlier op: one that stands there, or a new one in front of a barrier."""
    timeline, counter = obligation.timeline, obligation.counter
    largest = machine.largest_wait(counter)
    between = list(timeline.gaps_between(obligation.earlier, obligation.later))
    found: dict[WaitSite, _Option] = {}

    def offer(site: WaitSite, moment: int, behind: tuple[Gap, ...]) -> None:
        weakest = min(obligation.younger_tokens(moment), largest)
        missing = max(obligation.barriers_needed(moment) - obligation.barriers_after(moment), 0)
        if missing and not behind:
            return
        known = found.get(site)
        if known is None or (known.missing, -known.weakest) > (missing, -weakest):
            found[site] = _Option(site, weakest, missing, behind)

    for number, (moment, gap) in enumerate(between):
        step = timeline.steps[moment]
        here = timeline.gaps[moment][-1] == gap
        behind = tuple(later for _, later in between[number:] if later in places)
        before_barrier = here and step.effect.action is Action.BARRIER
        if gap in places or before_barrier or moment == obligation.later:
            offer(WaitSite(gap, counter, None), moment, behind)
        stands = here and moment < obligation.later and step.effect.action is Action.WAIT and step.group is None
        if stands and step.effect.counter is counter:
            offer(
                WaitSite(gap, counter, step),
                moment,
                tuple(later for _, later in between[number + 1 :] if later in places),
            )
    if obligation.compiler_covers is not None:
        moment = obligation.compiler_covers
        behind = tuple(gap for at, gap in between if at > moment and gap in places)
        offer(WaitSite(timeline.gaps[moment][-1], counter, timeline.steps[moment]), moment, behind)
    return list(found.values())


def _solve(obligations: Sequence[Obligation], options: Sequence[Sequence[_Option]], machine: Machine) -> Plan | None:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    most = max(o.timeline.spread[o.later] for o in obligations) + 1
    gaps = sorted({gap for some in options for option in some for gap in option.gaps}, key=_place)
    barriers = {gap: model.new_int_var(0, most, f"barriers at {gap}") for gap in gaps}
    sites = sorted({option.site for some in options for option in some}, key=lambda site: (_place(site.gap), str(site)))
    counts: dict[WaitSite, cp_model.IntVar] = {}
    changed: dict[WaitSite, cp_model.IntVar] = {}
    cost: list[cp_model.LinearExprT] = [(_BARRIER + _IN_LOOP * _loops(gap)) * barriers[gap] for gap in gaps]
    for site in sites:
        if _is_compilers(site):
            continue
        largest = machine.largest_wait(site.counter)
        now = min(site.existing.effect.wait_value, largest) if site.existing else largest
        counts[site] = model.new_int_var(0, now, f"count at {site.gap}")
        changed[site] = model.new_bool_var(f"wait at {site.gap}")
        model.add(counts[site] == now).only_enforce_if(~changed[site])
        cost.append(now - counts[site])
        cost.append((_WAIT + _IN_LOOP * _loops(site.gap)) * changed[site])
    for some in options:
        chosen = []
        for number, option in enumerate(some):
            choice = model.new_bool_var(f"choice {number}")
            chosen.append(choice)
            if option.site in counts:
                model.add(counts[option.site] <= option.weakest).only_enforce_if(choice)
            if option.site in counts and option.site.existing is None:
                model.add_implication(choice, changed[option.site])
            if option.missing:
                model.add(sum(barriers[gap] for gap in option.gaps) >= option.missing).only_enforce_if(choice)
        model.add_bool_or(chosen)
    model.minimize(sum(cost))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_time_in_seconds = TIME_LIMIT
    status = solve(solver, model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    added = {gap: solver.value(number) for gap, number in barriers.items() if solver.value(number)}
    waits = {site: solver.value(counts[site]) for site, change in changed.items() if solver.boolean_value(change)}
    reasons = _reasons(obligations, options, added, waits)
    return Plan(  # a search that was ended early may have left in what helps nobody
        barriers={gap: count for gap, count in added.items() if gap in reasons},
        waits={site: count for site, count in waits.items() if site in reasons},
        reasons=reasons,
        optimal=status == cp_model.OPTIMAL,
    )


def _reasons(
    obligations: Sequence[Obligation],
    options: Sequence[Sequence[_Option]],
    barriers: dict[Gap, int],
    waits: dict[WaitSite, int],
) -> dict[Gap | WaitSite, Obligation]:
    """For each change, the first obligation that it helps to meet."""
    reasons: dict[Gap | WaitSite, Obligation] = {}
    for obligation, some in zip(obligations, options, strict=True):
        for option in some:
            if option.site in waits and waits[option.site] <= option.weakest:
                reasons.setdefault(option.site, obligation)
            for gap in option.gaps if option.missing else ():
                if gap in barriers:
                    reasons.setdefault(gap, obligation)
    return reasons


def _is_compilers(site: WaitSite) -> bool:
    return site.existing is not None and site.existing.effect.action is not Action.WAIT


def _loops(gap: Gap) -> int:
    return int(gap.phase is Phase.KERNEL)


def _place(gap: Gap) -> tuple[str, int]:
    return gap.phase.value, gap.slot
