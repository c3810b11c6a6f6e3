"""Why an II is impossible: takes a `ModuloProblem` and a refuted II, gives a smallest set of limits and carried edges.

Separate from the search, and without a goal.  Resources first, by assumption literals on one model: they leave the core
as it is.  Then carried edges, by deletion: a problem without some of them has other components and frames, and is
decided afresh.  What can't be decided in time stays in the set, which is then not called the smallest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rota.errors import OrderError
from rota.order.modulo.cpsat_modulo import ModuloModel, count, decide, keep_gaps, keep_order
from rota.order.modulo.longest import Arc
from rota.order.modulo.modulo_findings import cannot_pipeline
from rota.order.modulo.modulo_model import derive_core, derive_structure
from rota.order.modulo.modulo_problem import ModuloProblem
from rota.solver.effort import spent
from rota.solver.outcome import Outcome

_LARGEST_MODEL = 200_000  # literals


def explain(problem: ModuloProblem, ii: int, seconds: float, *, seed: int = 0) -> OrderError:
    """The O301 error for an II that a search refuted."""
    return _Deletion(problem, ii, seconds, seed).run()


class _Deletion:
    def __init__(self, problem: ModuloProblem, ii: int, seconds: float, seed: int) -> None:
        self._problem, self._ii, self._seed = problem, ii, seed
        self._deadline = spent() + seconds
        self._decided = True  # no question was left open by the clock

    def run(self) -> OrderError:
        problem = self._problem
        resources = self._resources_to_blame()
        inner = {arc for component in derive_structure(problem).components for arc in component.arcs}
        limited = _keeping(problem, resources, inner)
        carried = self._shrink(limited, [arc for arc in dict.fromkeys(limited.arcs) if arc.distance > 0])
        kept = {arc for arc in inner if arc.distance == 0} | set(carried)
        for name in tuple(resources):  # a resource may have been blamed for what the carried edges alone leave out
            fewer = [other for other in resources if other != name]
            if self._refuted(_keeping(problem, fewer, kept)):
                resources = fewer
        return cannot_pipeline(problem, self._ii, resources, carried, minimal=self._decided)

    def _resources_to_blame(self) -> list[str]:
        core = derive_core(derive_structure(self._problem), self._ii)
        named = [contest.resource for contest in core.contests]
        if sum(len(contest.holds) for contest in core.contests) * self._ii > _LARGEST_MODEL:
            return named
        model = ModuloModel(core.ii, core.frames).apply(
            keep_gaps(core.gaps),
            keep_order(core.alike),
            *(count(contest, words=contest.resource) for contest in core.contests),
        )
        conflict = model.smallest_conflict(self._left() / 2, seed=self._seed)
        return named if conflict is None else [name for name in named if name in conflict]

    def _shrink(self, problem: ModuloProblem, items: list[Arc]) -> list[Arc]:
        """Drop what isn't needed, in chunks that get smaller: most isn't."""
        names = [resource.name for resource in problem.resources]
        within = {arc for arc in problem.arcs if arc.distance == 0}
        size = len(items)
        while size:
            for first in range(0, len(items), size)[::-1]:
                fewer = items[:first] + items[first + size :]
                if self._refuted(_keeping(problem, names, within | set(fewer))):
                    items = fewer
            size //= 2
        return items

    def _refuted(self, problem: ModuloProblem) -> bool:
        if self._left() <= 0:
            self._decided = False
            return False
        core = derive_core(derive_structure(problem), self._ii)
        outcome = decide(core, self._left() / 4, seed=self._seed).outcome
        self._decided = self._decided and outcome is not Outcome.OPEN
        return outcome is Outcome.INFEASIBLE

    def _left(self) -> float:
        return self._deadline - spent()


def _keeping(problem: ModuloProblem, resources: Iterable[str], arcs: set[Arc]) -> ModuloProblem:
    """The problem with these resources and arcs only."""
    names = set(resources)
    return ModuloProblem(
        ops=tuple(replace(op, uses=tuple(use for use in op.uses if use.resource in names)) for op in problem.ops),
        edges=tuple(edge for edge, arc in zip(problem.edges, problem.arcs, strict=True) if arc in arcs),
        resources=tuple(resource for resource in problem.resources if resource.name in names),
    )
