"""The exact modulo scheduler: takes a `ModuloProblem`, gives a `ModuloSchedule` of least II with its certificate.

Initiation intervals are tried from the MII up.  Iterative modulo scheduling (Rau 1996) meets the bound on most loops at
once; where it doesn't, the core of the problem (`modulo_model`) goes to the solver, which finds or refutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from rota.check import bad_field, check_ints, check_seconds, expect, is_int
from rota.order.modulo.cpsat_modulo import decide
from rota.order.modulo.ims import iterative_starts
from rota.order.modulo.longest import strong_components
from rota.order.modulo.mii import MII, derive_mii
from rota.order.modulo.modulo_check import check_modulo_schedule
from rota.order.modulo.modulo_explain import explain
from rota.order.modulo.modulo_findings import below_bound, never_fits, unscheduled
from rota.order.modulo.modulo_model import Structure, derive_core, derive_starts, derive_structure
from rota.order.modulo.modulo_problem import LONGEST, ModuloProblem
from rota.order.modulo.modulo_schedule import ModuloCertificate, ModuloProof, ModuloSchedule
from rota.solver.effort import spent
from rota.solver.outcome import LARGEST_SEED, Outcome
from rota.solver.stopping import stopped

_GRACE = 10.0  # seconds for the heuristic once the time limit has come
_STRIDE = 16  # of the II, by a part of which it grows then


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloScheduler:
    """Least initiation interval by constraint search, or the best found in `time_limit` seconds.

    Seconds are counted by the work done (`rota.solver.effort`), not by a clock: with one worker the answer depends on
    the problem, on `seed` and on `time_limit` alone, on whatever machine, busy or not.  With a time limit of 0 only the
    heuristic runs.  `time_limit` bounds the search, and once more an explanation of why
    there is no schedule; the heuristic gets a few seconds beyond it.  More workers than processors are not used.
    """

    time_limit: float = 60.0
    workers: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_ints(self, ("workers",), least=1)
        check_ints(self, ("seed",), most=LARGEST_SEED)
        check_seconds(self, "time_limit", zero=True)

    def schedule(self, problem: ModuloProblem, *, lower: int = 1) -> ModuloSchedule:
        """A schedule of the least II that was found, or an `OrderError` if there is none at any II.

        The caller knows that there is none below `lower`, of this problem or one that asks for less.
        """
        started = perf_counter()
        mii = derive_mii(expect("the problem", problem, ModuloProblem))
        lower = max(mii.ii, lower)
        starts = iterative_starts(problem, lower)
        if starts is not None:
            return _certified(problem, mii, lower, starts, lower=lower, by="ims", started=started)
        return self._climb(derive_structure(problem), mii, lower, started)

    def least_possible(self, problem: ModuloProblem, *, lower: int = 1) -> int:
        """No schedule has a smaller II; the search begins at `lower`, and ends where it can't decide."""
        ii = max(derive_mii(expect("the problem", problem, ModuloProblem)).ii, lower)
        if iterative_starts(problem, ii) is not None:
            return ii
        structure, deadline = derive_structure(problem), spent() + self.time_limit
        if _may_never_fit(problem):
            self._check_ever_fits(structure, deadline)
        while (left := deadline - spent()) > 0 and not stopped():
            if self._search(structure, ii, left / 2) is not Outcome.INFEASIBLE:
                break
            ii += 1
        return ii

    def schedule_at(self, problem: ModuloProblem, ii: int) -> ModuloSchedule:
        """A schedule of exactly this II, or an `OrderError` that names the constraints which leave none."""
        started = perf_counter()
        mii = derive_mii(expect("the problem", problem, ModuloProblem))
        if not is_int(ii) or not 1 <= ii <= LONGEST:
            raise bad_field(self, "ii", ii, f"an integer, from 1 to {LONGEST}")
        if ii < mii.ii:
            raise below_bound(problem, ii, mii)
        starts = iterative_starts(problem, ii)
        if starts is not None:
            return _certified(problem, mii, ii, starts, lower=mii.ii, by="ims", started=started)
        found = self.starts_at(problem, ii)
        if found is Outcome.INFEASIBLE:
            raise explain(problem, ii, self.time_limit, seed=self.seed)
        if isinstance(found, Outcome):
            raise unscheduled(problem, ii, self.time_limit)
        return _certified(problem, mii, ii, found, lower=mii.ii, by="cpsat", started=started)

    def starts_at(self, problem: ModuloProblem, ii: int) -> tuple[int, ...] | Outcome:
        """Starts at exactly this II by search alone; or that there are none, or that the time came first."""
        return self._search(derive_structure(problem), ii, self.time_limit)

    def _climb(self, structure: Structure, mii: MII, lower: int, started: float) -> ModuloSchedule:
        """From `lower` up; an II that is left open ends the refutations, and the search goes on for any schedule."""
        problem, deadline = structure.problem, spent() + self.time_limit
        if _may_never_fit(problem):
            self._check_ever_fits(structure, deadline)
        ii, undecided = lower, False
        while (left := deadline - spent()) > 0 and not stopped():
            # Half of what is left: an II that can't be decided must not cost the schedule of a larger one.
            starts = self._search(structure, ii, left / 2)
            by = "cpsat"
            if starts is Outcome.OPEN:
                undecided = True
                found = iterative_starts(problem, ii, deadline)
                starts, by = (found, "ims") if found is not None else (Outcome.OPEN, "")
            if not isinstance(starts, Outcome):
                return _certified(problem, mii, ii, starts, lower=lower, by=by, started=started)
            ii += 1
            lower = lower if undecided else ii
        return self._fall_back(problem, mii, lower, started)

    def _search(self, structure: Structure, ii: int, seconds: float) -> tuple[int, ...] | Outcome:
        found = decide(derive_core(structure, ii), seconds, workers=self.workers, seed=self.seed)
        return found.outcome if found.starts is None else derive_starts(structure, ii, found.starts)

    def _check_ever_fits(self, structure: Structure, deadline: float) -> None:
        ceiling = _ceiling(structure.problem)
        seconds = (deadline - spent()) / 4
        found = decide(derive_core(structure, ceiling), seconds, workers=self.workers, seed=self.seed)
        if found.outcome is Outcome.INFEASIBLE:
            raise never_fits(structure.problem, ceiling)

    def _fall_back(self, problem: ModuloProblem, mii: MII, lower: int, started: float) -> ModuloSchedule:
        """No time is left: the heuristic at growing II, and one op after the other if even that fails."""
        ceiling, step, deadline = _ceiling(problem), 0, spent() + _GRACE
        while lower + step < ceiling and spent() < deadline:
            starts = iterative_starts(problem, lower + step, deadline)
            if starts is not None:
                return _certified(problem, mii, lower + step, starts, lower=lower, by="ims", started=started)
            step = 2 * step + max(1, lower // _STRIDE)
        if _may_never_fit(problem):
            raise unscheduled(problem, None, self.time_limit)
        in_turn = strong_components(len(problem.ops), [arc for arc in problem.arcs if arc.distance == 0])
        rank = {component[0]: place for place, component in enumerate(in_turn)}
        serial = tuple(rank[op] * (ceiling // len(rank)) for op in range(len(rank)))
        return _certified(problem, mii, ceiling, serial, lower=lower, by="one after the other", started=started)


def _may_never_fit(problem: ModuloProblem) -> bool:
    """Ops held close together within one iteration, or one op that meets itself, may overfill a resource at any II."""
    together = strong_components(len(problem.ops), [arc for arc in problem.arcs if arc.distance == 0])
    return len(together) < len(problem.ops) or any(
        len({use.resource for use in op.uses}) < len(op.uses) for op in problem.ops
    )


def _ceiling(problem: ModuloProblem) -> int:
    """An II at which there is a schedule if there is one at any.

    Let G be the longest delay or hold.  Take a schedule of any II and shorten every pause of more than G between two
    successive starts to G: edges of distance 0 and resources still hold, and n ops start within (n - 1) x G slots.  So
    at an II of n x G iterations don't overlap and the carried edges hold by themselves.
    """
    longest = max((abs(arc.delay) for arc in problem.arcs), default=1)
    held = max((use.offset + use.occupancy for op in problem.ops for use in op.uses), default=1)
    return len(problem.ops) * max(1, longest, held)


def _certified(
    problem: ModuloProblem, mii: MII, ii: int, starts: tuple[int, ...], *, lower: int, by: str, started: float
) -> ModuloSchedule:
    proof = ModuloProof.REFUTED if ii == lower else ModuloProof.OPEN
    if ii == mii.ii:
        proof = ModuloProof.MEETS_BOUND
    certificate = ModuloCertificate(
        proof=proof,
        mii=mii,
        lower=lower,
        refuted=tuple(range(mii.ii, lower)),
        by=by,
        seconds=perf_counter() - started,
    )
    schedule = ModuloSchedule(ii=ii, starts=starts, certificate=certificate)
    check_modulo_schedule(problem, schedule)
    return schedule
