"""The solver's side of modulo scheduling: takes a `Core`, gives starts, a refutation, or neither in the time given.

One of the three modules that use the solver.  `ModuloModel` owns the variables, t = II x stage + slot, and knows no
constraint; constraints are functions applied to it, so that barriers, lifetimes and goals can be added beside those of
this module.  The solver is outside the trusted base: starts are checked again by `modulo_check`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import count as iter_count
from itertools import pairwise
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from rota.order.modulo.modulo_model import Contest, Core, Frame, Gap
from rota.solver.cp_sat import make_ready
from rota.solver.effort import spent, units
from rota.solver.outcome import LARGEST_SEED, Outcome
from rota.solver.stopping import most_workers, solve, stopped

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

# A first slice of search in the solver's own, reproducible measure of effort (about a second), and how it grows.
_FIRST_SLICE, _GROWTH = 0.15, 4.0
_LOOK_AROUND = 0.02  # seconds between two looks at whether a race is decided
_LARGEST_COUNT = 400_000  # terms of a counting model; beyond this it costs more to build than it saves


class Encoding(enum.Enum):
    """How a contest is put to the solver."""

    INTERVALS = "cumulative over slots"  # small; the better of the two at finding schedules
    COUNTS = "one literal per op and slot, summed per slot"  # a strong linear relaxation: the better at refuting


class Turn(NamedTuple):
    """One way to search: an encoding with the solver's settings that suit it, and its share of the effort."""

    encoding: Encoding
    linear: int  # level of linear relaxation
    probing: int  # level of probing before the search
    share: float


# Measured on the loops of `benchmarks.loops`.  Detecting symmetries costs more than it saves in either encoding.
_FIND = Turn(Encoding.INTERVALS, linear=1, probing=2, share=2.0)
_REFUTE = Turn(Encoding.COUNTS, linear=2, probing=0, share=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How a search ended, and the starts of the core's ops where it found some.

    `named` are the values of variables that constraints added under a name; `best` if no answer suits the aim better;
    `listed` if no solver was asked.
    """

    outcome: Outcome
    starts: Mapping[int, int] | None = None
    named: Mapping[str, int] = field(default_factory=dict)
    best: bool = False
    listed: bool = False


class ModuloModel:
    """Start, slot and stage of each op at one II, as solver variables; nothing else."""

    def __init__(self, ii: int, frames: Mapping[int, Frame]) -> None:
        make_ready()
        from ortools.sat.python import cp_model

        self.ii = ii
        self.latest = max((frame.latest for frame in frames.values()), default=0)
        self.model = cp_model.CpModel()
        self.start: dict[int, cp_model.IntVar] = {}
        self.slot: dict[int, cp_model.IntVar] = {}
        self.stage: dict[int, cp_model.IntVar] = {}
        self.named: dict[str, cp_model.IntVar] = {}
        self._assumed: dict[int, str] = {}
        self._solver: cp_model.CpSolver | None = None
        self._positions: dict[tuple[int, int], cp_model.IntVar] = {}
        self._literals: dict[tuple[int, int], list[cp_model.IntVar]] = {}
        for op, frame in frames.items():
            self._add(op, frame)

    def apply(self, *constraints: Callable[[ModuloModel], None]) -> ModuloModel:
        """The same model with more constraints."""
        for constraint in constraints:
            constraint(self)
        return self

    def name(self, name: str, low: int, high: int) -> cp_model.IntVar:
        """A variable whose value the decision tells."""
        self.named[name] = self.model.new_int_var(low, high, name)
        return self.named[name]

    def begin_with(self, known: Decision) -> None:
        """Search from an answer of a model with the same variables and fewer constraints."""
        for op, start in (known.starts or {}).items():
            self.model.add_hint(self.start[op], start)
        for name, value in known.named.items():
            self.model.add_hint(self.named[name], value)

    def assume(self, words: str) -> cp_model.IntVar:
        """A literal that switches a constraint on; `smallest_conflict` speaks of it in these words."""
        literal = self.model.new_bool_var(words)
        self._assumed[literal.index] = words
        self.model.add_assumption(literal)
        return literal

    def position(self, op: int, offset: int) -> cp_model.IntVar:
        """(start + offset) modulo II."""
        if offset == 0:
            return self.slot[op]
        if (op, offset) not in self._positions:
            position = self.model.new_int_var(0, self.ii - 1, f"position {op} + {offset}")
            wraps = self.model.new_bool_var(f"{op} + {offset} wraps")
            self.model.add(position == self.slot[op] + offset - self.ii * wraps)
            self._positions[op, offset] = position
        return self._positions[op, offset]

    def literals(self, op: int, offset: int) -> Sequence[cp_model.IntVar]:
        """For each slot, whether it is (start + offset) modulo II."""
        if (op, offset) not in self._literals:
            literals = [self.model.new_bool_var(f"{op} + {offset} at {slot}") for slot in range(self.ii)]
            self.model.add_exactly_one(literals)
            self.model.add(self.position(op, offset) == sum(slot * at for slot, at in enumerate(literals)))
            self._literals[op, offset] = literals
        return self._literals[op, offset]

    def solve(
        self, seconds: float, turn: Turn, *, workers: int = 1, seed: int = 0, effort: float | None = None
    ) -> Decision:
        """One search of so many seconds of `solver.effort`, or of less `effort` in the solver's own measure."""
        make_ready()
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = workers
        solver.parameters.random_seed = seed
        solver.parameters.linearization_level = turn.linear
        solver.parameters.cp_model_probing_level = turn.probing
        solver.parameters.symmetry_level = 0
        solver.parameters.max_deterministic_time = units(seconds) if effort is None else min(effort, units(seconds))
        self._solver = solver
        status = solve(solver, self.model)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Decision(
                outcome=Outcome.FEASIBLE,
                starts={op: solver.value(start) for op, start in self.start.items()},
                named={name: solver.value(variable) for name, variable in self.named.items()},
                best=status == cp_model.OPTIMAL,
            )
        return Decision(outcome=Outcome.INFEASIBLE if status == cp_model.INFEASIBLE else Outcome.OPEN)

    def stop(self) -> None:
        """End a search that is under way in another thread."""
        if self._solver is not None:
            self._solver.stop_search()

    def smallest_conflict(self, seconds: float, *, seed: int = 0) -> tuple[str, ...] | None:
        """Assumed constraints that can't hold together, none of them dispensable as far as the time allowed to show.

        None if they can, or if the time came first.
        """
        make_ready()
        from ortools.sat.python import cp_model

        deadline = spent() + seconds
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = seed

        def refuted(assumed: Sequence[int]) -> list[int] | None:
            self.model.clear_assumptions()
            self.model.add_assumptions([self.model.get_bool_var_from_proto_index(index) for index in assumed])
            solver.parameters.max_deterministic_time = units(deadline - spent())
            if solve(solver, self.model) != cp_model.INFEASIBLE:
                return None
            blamed = set(solver.sufficient_assumptions_for_infeasibility())
            return [index for index in assumed if index in blamed]

        conflict = refuted(tuple(self._assumed))
        if conflict is None:
            return None
        for index in tuple(conflict):
            if index in conflict:
                less = refuted([other for other in conflict if other != index])
                conflict = conflict if less is None else less
        return tuple(self._assumed[index] for index in conflict)

    def _add(self, op: int, frame: Frame) -> None:
        model, ii = self.model, self.ii
        first, last = frame.earliest // ii, frame.latest // ii
        self.start[op] = model.new_int_var(frame.earliest, frame.latest, f"start {op}")
        self.stage[op] = model.new_int_var(first, last, f"stage {op}")
        if first == last:
            low, high = frame.earliest - ii * first, frame.latest - ii * first
        else:
            low, high = 0, ii - 1
        self.slot[op] = model.new_int_var(low, high, f"slot {op}")
        model.add(self.start[op] == self.slot[op] + ii * self.stage[op])


def keep_gaps(gaps: Sequence[Gap]) -> Callable[[ModuloModel], None]:
    """Each second op starts late enough after the first."""

    def constrain(on: ModuloModel) -> None:
        for gap in gaps:
            on.model.add(on.start[gap.second] - on.start[gap.first] >= gap.least)

    return constrain


def keep_order(alike: Sequence[Sequence[int]]) -> Callable[[ModuloModel], None]:
    """Of interchangeable ops an earlier one has the earlier slot: every other solution is a renaming of such a one."""

    def constrain(on: ModuloModel) -> None:
        for group in alike:
            for first, second in pairwise(group):
                on.model.add(on.slot[first] <= on.slot[second])

    return constrain


def share(contest: Contest, encoding: Encoding) -> Callable[[ModuloModel], None]:
    """At most as many holds at once as there are places.

    Three forms need no choice.  Holds of one slot on one place have different slots.  Equal holds that fill a single
    place entirely stand on a grid, whose phase is the only freedom besides their order.  The rest is encoded as asked.
    """
    lengths = {hold.length for hold in contest.holds}

    def constrain(on: ModuloModel) -> None:
        if contest.places == 1 and lengths == {1}:
            on.model.add_all_different([on.position(hold.op, hold.offset) for hold in contest.holds])
        elif contest.places == 1 and len(lengths) == 1 and len(contest.holds) * min(lengths) == on.ii:
            _on_a_grid(on, contest, min(lengths))
        elif encoding is Encoding.COUNTS:
            count(contest)(on)
        else:
            _cumulative(on, contest, lengths)

    return constrain


def count(contest: Contest, words: str | None = None) -> Callable[[ModuloModel], None]:
    """The counting form, in force only under an assumption if `words` are given."""

    def constrain(on: ModuloModel) -> None:
        here: list[list[cp_model.IntVar]] = [[] for _ in range(on.ii)]
        for hold in contest.holds:
            for slot, at in enumerate(on.literals(hold.op, hold.offset)):
                for position in range(hold.length):
                    here[(slot + position) % on.ii].append(at)
        under = [] if words is None else [on.assume(words)]
        for holders in here:
            on.model.add(sum(holders) <= contest.places).only_enforce_if(under)

    return constrain


def _on_a_grid(on: ModuloModel, contest: Contest, length: int) -> None:
    phase = on.model.new_int_var(0, length - 1, f"phase of {contest.resource}")
    ranks = []
    for hold in contest.holds:
        rank = on.model.new_int_var(0, on.ii // length - 1, f"rank of {hold.op} on {contest.resource}")
        on.model.add(on.position(hold.op, hold.offset) == phase + length * rank)
        ranks.append(rank)
    on.model.add_all_different(ranks)


def _cumulative(on: ModuloModel, contest: Contest, lengths: set[int]) -> None:
    """What wraps around the end of the loop meets the copies, one II later, of what stands at its beginning."""
    copies = (0,) if lengths == {1} else (0, on.ii)
    intervals = [
        on.model.new_fixed_size_interval_var(on.position(hold.op, hold.offset) + shift, hold.length, contest.resource)
        for hold in contest.holds
        for shift in copies
    ]
    if contest.places == 1:
        on.model.add_no_overlap(intervals)
    else:
        on.model.add_cumulative(intervals, [1] * len(intervals), contest.places)


def build_model(core: Core, encoding: Encoding) -> ModuloModel:
    """All of a core's constraints."""
    return ModuloModel(core.ii, core.frames).apply(
        keep_gaps(core.gaps), keep_order(core.alike), *(share(contest, encoding) for contest in core.contests)
    )


def decide(core: Core, seconds: float, *, workers: int = 1, seed: int = 0) -> Decision:
    """Is there a schedule?  OPEN when the time came first.

    With one worker two encodings take turns, one that finds and one that refutes, in slices of growing effort: which of
    the two will be fast can't be told beforehand, and they differ by two orders of magnitude.  Search times have a
    heavy tail (Gomes et al. 2000), so every round starts afresh with another seed.  Slices are measured in the solver's
    own unit, and so is the time, so that the answer doesn't depend on the machine.  With several workers both run at
    once.
    """
    if any(contest.places < 1 for contest in core.contests):
        return Decision(outcome=Outcome.INFEASIBLE)
    if not core.contests and not core.gaps:
        return Decision(outcome=Outcome.FEASIBLE, starts={op: frame.earliest for op, frame in core.frames.items()})
    search, workers = _Search(core, spent() + seconds, seed), most_workers(workers)
    terms = sum(hold.length for contest in core.contests for hold in contest.holds) * core.ii
    turns = (_FIND, _REFUTE) if terms <= _LARGEST_COUNT else (_FIND,)
    return search.alternate(turns, workers) if workers == 1 or len(turns) == 1 else search.race(turns, workers)


class _Search:
    """Slices of search on one core until one of them decides or the time is over."""

    def __init__(self, core: Core, deadline: float, seed: int) -> None:
        self._core, self._deadline, self._seed = core, deadline, seed
        self._models: dict[Encoding, ModuloModel] = {}

    def alternate(self, turns: Sequence[Turn], workers: int) -> Decision:
        """One after the other."""
        numbers = iter_count()
        while True:
            number = next(numbers)
            for turn in turns:
                decision = self._slice(turn, number, workers)
                if decision is not None:
                    return decision

    def race(self, turns: Sequence[Turn], workers: int) -> Decision:
        """All at once, each with its share of the workers; the first to decide stops the others."""
        decided = Event()

        def run(turn: Turn, share: int) -> Decision:
            numbers = iter_count()
            while not decided.is_set():
                decision = self._slice(turn, next(numbers), share)
                if decision is not None:
                    if decision.outcome is not Outcome.OPEN:
                        decided.set()
                    return decision
            return Decision(outcome=Outcome.OPEN)

        with ThreadPoolExecutor(len(turns)) as pool:
            shares = [(workers + place) // len(turns) for place in range(len(turns))]
            running = [
                pool.submit(copy_context().run, run, turn, share) for turn, share in zip(turns, shares, strict=True)
            ]
            while wait(running, timeout=_LOOK_AROUND).not_done:
                if decided.is_set():
                    for model in tuple(self._models.values()):
                        model.stop()
        decisions = [future.result() for future in running]
        return next((d for d in decisions if d.outcome is not Outcome.OPEN), decisions[0])

    def _slice(self, turn: Turn, number: int, workers: int) -> Decision | None:
        """One slice of growing effort; None if it decides nothing and time is left."""
        if spent() < self._deadline and turn.encoding not in self._models:
            self._models[turn.encoding] = build_model(self._core, turn.encoding)
        left = self._deadline - spent()
        if left <= 0 or stopped():
            return Decision(outcome=Outcome.OPEN)
        effort = _FIRST_SLICE * _GROWTH**number * turn.share
        seed = (self._seed + number) % (LARGEST_SEED + 1)
        found = self._models[turn.encoding].solve(left, turn, workers=workers, seed=seed, effort=effort)
        return None if found.outcome is Outcome.OPEN else found
