"""Which waits and barriers to insert: the fewest barriers, then the fewest and weakest waits.

This is a covering problem. OR-Tools CP-SAT solves it, one aim after the other. This is one of the three modules that
import the solver, and only when something has to be repaired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rota.program.kinds import Phase
from rota.program.machine import Machine
from rota.solver.cp_sat import make_ready
from rota.solver.limits import solve
from rota.sync.obligation import InsertionPoint, Obligation, Option, WaitSite, derive_options

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
