"""Modulo scheduling by constraint search: starts, a refutation, or neither within the limit.

One of the three modules that use the solver. `ModuloModel` owns the variables, t = II x stage + slot, and knows no
constraint; constraints are functions applied to it, so that barriers, lifetimes and goals can be added beside those of
this module. The solver is outside the trusted base: starts are checked again by `modulo_check`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import count as iter_count, pairwise
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from rota.order.graph import Arc, Cycle, Gaps, longest_gaps, longest_starts, strong_components
from rota.order.modulo.modulo_problem import ModuloOp, ModuloProblem, Use
from rota.solver.cp_sat import make_ready
from rota.solver.limits import LARGEST_SEED, Outcome, most_workers, solve, spent, stopped, units

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


# What an exact modulo search must decide.
#
# The core is exact, for schedules of any length. Three facts make it small:
#
# 1. An edge between two strongly connected components restrains nothing. Move a component and all after it to later
# stages: slots modulo II, and with them the resources, stay as they are, and every such edge has room. So only
# edges within a component count, and no horizon has to be guessed: the recurrences themselves bound how far apart
# the ops of a component lie. 2. An op without uses can stand wherever the longest paths put it: it is replaced by
# the gaps that it passes on. 3. An op in no cycle whose only use takes one slot fits wherever a place is left, and
# the bound on II says there is enough: it is left out and takes what remains.
#
# Fact 2 is the usual reduction to resource-constrained ops (Oppermann et al. 2016); fact 1 is why scheduling
# components first (Rau 1996) can be exact and not merely a heuristic, as long as a component is not frozen before
# the others.


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Ops that depend on each other in cycles, the edges among them, and those of its ops that use a resource."""

    ops: tuple[int, ...]
    arcs: tuple[Arc, ...]
    users: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """What holds at every II: components in topological order, and how ops outside of cycles are treated.

    `packed` ops are in no cycle but need the search, since they hold a resource for long or several at once. `fillers`
    take what is left.
    """

    problem: ModuloProblem
    components: tuple[Component, ...]
    packed: tuple[int, ...]
    fillers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The earliest and latest start of an op, relative to its component."""

    earliest: int
    latest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """`second` starts at least `least` slots after `first`; may be negative."""

    first: int
    second: int
    least: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One op's part of a resource, from `offset` after its start: `length` slots, shorter than or equal to II."""

    op: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Holds that may collide: at most `places` at once, in any slot modulo II."""

    resource: str
    places: int
    holds: tuple[Hold, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """What a search at one II decides: starts within frames, gaps and contests obeyed; alike ops ascend."""

    ii: int
    frames: Mapping[int, Frame]
    gaps: tuple[Gap, ...]
    contests: tuple[Contest, ...]
    alike: tuple[tuple[int, ...], ...]


def derive_structure(problem: ModuloProblem) -> Structure:
    sets = strong_components(len(problem.ops), problem.arcs)
    number = {op: place for place, members in enumerate(sets) for op in members}
    inner: list[list[Arc]] = [[] for _ in sets]
    for arc in problem.arcs:
        if number[arc.producer] == number[arc.consumer]:
            inner[number[arc.producer]].append(arc)
    components = tuple(
        Component(ops=ops, arcs=tuple(arcs), users=tuple(op for op in ops if problem.ops[op].uses))
        for ops, arcs in zip(sets, inner, strict=True)
    )
    alone = [component.users[0] for component in components if len(component.ops) == 1 and component.users]
    return Structure(
        problem=problem,
        components=components,
        packed=tuple(sorted(op for op in alone if not is_filler(problem.ops[op]))),
        fillers=tuple(sorted(op for op in alone if is_filler(problem.ops[op]))),
    )


def is_filler(op: ModuloOp) -> bool:
    """True for one use of one slot: any remaining place will do."""
    return len(op.uses) == 1 and op.uses[0].occupancy == 1


def derive_core(structure: Structure, ii: int) -> Core:
    """The core at an II that is not below the MII."""
    frames: dict[int, Frame] = {}
    gaps: list[Gap] = []
    cycles = [c for c in structure.components if len(c.ops) > 1 and c.users]
    # Turning the whole table of slots changes nothing, so one op may be nailed down: in the largest component.
    pinned = max(cycles, key=lambda c: len(c.users), default=None)
    for component in cycles:
        within = _find_gaps(component, ii)
        frames |= _find_frames(within.least, 0 if component is pinned else ii - 1)
        gaps += [Gap(first=first, second=second, least=least) for first, second, least in within.direct]
    alike: dict[tuple[Use, ...], list[int]] = {}
    for op in structure.packed:
        frames[op] = Frame(earliest=0, latest=ii - 1)
        alike.setdefault(structure.problem.ops[op].uses, []).append(op)
    if pinned is None and alike:
        first = max(alike.values(), key=len)[0]
        frames[first] = Frame(earliest=0, latest=0)
    return Core(
        ii=ii,
        frames=frames,
        gaps=tuple(gaps),
        contests=_find_contests(structure.problem, frames, ii),
        alike=tuple(tuple(group) for group in alike.values() if len(group) > 1),
    )


def _find_gaps(component: Component, ii: int) -> Gaps:
    """The longest path between every two users of a component."""
    place = {op: number for number, op in enumerate(component.ops)}
    local = [Arc(place[a], place[b], delay, distance) for a, b, delay, distance in component.arcs]
    starts = longest_starts(len(place), local, ii)
    if isinstance(starts, Cycle):
        raise AssertionError(f"II {ii} is below the recurrence bound: derive the MII first")  # noqa: TRY004 -- a mistake of ours
    return longest_gaps(component.users, component.arcs, ii, dict(zip(component.ops, starts, strict=True)))


def _find_frames(gaps: Mapping[int, Mapping[int, int]], room: int) -> dict[int, Frame]:
    """Frames around the op that leaves the others the least freedom, itself within 0..room."""
    anchor = min(gaps, key=lambda op: (sum(-gaps[other][op] - least for other, least in gaps[op].items()), op))
    frames = {anchor: Frame(earliest=0, latest=room)}
    for op, least in gaps[anchor].items():
        frames[op] = Frame(earliest=least, latest=room - gaps[op][anchor])
    return frames


def _find_contests(problem: ModuloProblem, members: Mapping[int, Frame], ii: int) -> tuple[Contest, ...]:
    """The resources that the members could overfill.

    A use of q x II + r slots holds q places throughout and one more for r slots; places held throughout are subtracted.
    """
    contests: list[Contest] = []
    holds: dict[str, list[Hold]] = {resource.name: [] for resource in problem.resources}
    places = problem.capacities
    for op in members:
        for use in problem.ops[op].uses:
            throughout, rest = divmod(use.occupancy, ii)
            places[use.resource] -= throughout
            if rest:
                holds[use.resource].append(Hold(op=op, offset=use.offset % ii, length=rest))
    for resource, held in holds.items():
        if len(held) > places[resource]:
            contests.append(Contest(resource=resource, places=places[resource], holds=tuple(held)))
    return tuple(contests)


def derive_starts(structure: Structure, ii: int, core_starts: Mapping[int, int]) -> tuple[int, ...]:
    """All ops' starts from those of the core: component after component, as early as producers allow.

    Only the slots of `core_starts` are kept. Within a component the earliest starts on given slots are again a longest
    path, rounded up to the slots. Ops outside of cycles take the next free place; among ops with equal uses the first
    one ready takes the next slot.
    """
    problem = structure.problem
    slots = {op: start % ii for op, start in core_starts.items()}
    pools = _Pools(structure, ii, slots)
    before: dict[int, list[Arc]] = {}
    for arc in problem.arcs:
        before.setdefault(arc.consumer, []).append(arc)
    starts: dict[int, int] = {}
    for component in structure.components:
        ready = {op: _ready(before.get(op, ()), starts, ii) for op in component.ops}
        if len(component.ops) == 1:
            op = component.ops[0]
            starts[op] = pools.next_start(op, ready[op])
        else:
            starts |= _settle(component, ii, ready, slots)
    earliest = min(starts.values(), default=0)
    shift = earliest // ii * ii
    return tuple(starts[op] - shift for op in range(len(problem.ops)))


def _ready(arcs: Sequence[Arc], starts: Mapping[int, int], ii: int) -> int:
    return max(
        (starts[arc.producer] + arc.delay - arc.distance * ii for arc in arcs if arc.producer in starts), default=0
    )


def _settle(component: Component, ii: int, ready: Mapping[int, int], slots: Mapping[int, int]) -> dict[int, int]:
    def round_up(op: int, earliest: int) -> int:
        return earliest if op not in slots else earliest + (slots[op] - earliest) % ii

    starts = {op: round_up(op, earliest) for op, earliest in ready.items()}
    changed, rounds = True, 0
    while changed:
        changed, rounds = False, rounds + 1
        if rounds > len(component.ops) + 1:
            raise AssertionError("slots that satisfy all gaps have starts")
        for producer, consumer, delay, distance in component.arcs:
            earliest = starts[producer] + delay - distance * ii
            if earliest > starts[consumer]:
                starts[consumer], changed = round_up(consumer, earliest), True
    return starts


class _Pools:
    """Slots for the ops outside of cycles: those that the search chose, by uses, and what is left, by resource."""

    def __init__(self, structure: Structure, ii: int, slots: Mapping[int, int]) -> None:
        self._ops, self._ii = structure.problem.ops, ii
        self._packed: dict[tuple[Use, ...], list[int]] = {}
        for op in structure.packed:
            self._packed.setdefault(self._ops[op].uses, []).append(slots[op])
        capacities = structure.problem.capacities
        wanted = {self._ops[op].uses[0].resource for op in structure.fillers}
        room = {resource: [capacities[resource]] * ii for resource in wanted}
        for op, slot in slots.items():
            for use in self._ops[op].uses:
                if use.resource in wanted:
                    throughout, rest = divmod(use.occupancy, ii)
                    for position in range(ii if throughout else rest):
                        held = throughout + (position < rest)
                        room[use.resource][(slot + use.offset + position) % ii] -= held
        self._room = room

    def next_start(self, op: int, ready: int) -> int:
        uses, ii = self._ops[op].uses, self._ii
        if not uses:
            return ready
        if uses in self._packed:
            pool = self._packed[uses]
            slot = min(pool, key=lambda slot: (slot - ready) % ii)
            pool.remove(slot)
            return ready + (slot - ready) % ii
        room = self._room[uses[0].resource]
        wait = next(wait for wait in range(ii) if room[(ready + uses[0].offset + wait) % ii] > 0)
        room[(ready + uses[0].offset + wait) % ii] -= 1
        return ready + wait


# A first slice of search in the solver's own, reproducible measure of effort (about a second), and how it grows.
_FIRST_SLICE, _GROWTH = 0.15, 4.0
_LOOK_AROUND = 0.02  # seconds between two looks at whether a race is decided
_LARGEST_COUNT = 400_000  # terms of a counting model; beyond this it costs more to build than it saves


class Encoding(enum.Enum):
    """How a contest is given to the solver."""

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
    """How a search ended, and the starts of the core's ops if it found some.

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
        for constraint in constraints:
            constraint(self)
        return self

    def name(self, name: str, low: int, high: int) -> cp_model.IntVar:
        """Name a variable whose value the decision reports."""
        self.named[name] = self.model.new_int_var(low, high, name)
        return self.named[name]

    def begin_with(self, known: Decision) -> None:
        """Start the search from an answer of a model with the same variables and fewer constraints."""
        for op, start in (known.starts or {}).items():
            self.model.add_hint(self.start[op], start)
        for name, value in known.named.items():
            self.model.add_hint(self.named[name], value)

    def assume(self, words: str) -> cp_model.IntVar:
        """A literal that switches a constraint on; `smallest_conflict` describes it in these words."""
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
        """One search of this many seconds of work, or of less `effort` in the solver's own measure."""
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
        if self._solver is not None:
            self._solver.stop_search()

    def smallest_conflict(self, seconds: float, *, seed: int = 0) -> tuple[str, ...] | None:
        """Assumed constraints that can't hold together, none dispensable as far as the limit allowed to show.

        None if they can hold together, or if the limit came first.
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
    """Order interchangeable ops by slot: every other solution is a renaming of such a one."""

    def constrain(on: ModuloModel) -> None:
        for group in alike:
            for first, second in pairwise(group):
                on.model.add(on.slot[first] <= on.slot[second])

    return constrain


def share(contest: Contest, encoding: Encoding) -> Callable[[ModuloModel], None]:
    """At most as many holds at once as there are places.

    Three forms need no choice. Holds of one slot on one place have different slots. Equal holds that fill a single
    place entirely lie on a grid, whose phase is the only freedom besides their order. The rest is encoded as asked.
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
    """A hold that wraps around the loop's end collides with copies, one II later, of holds at its beginning."""
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
    """Slices of search on one core until one of them decides or the limit is reached."""

    def __init__(self, core: Core, deadline: float, seed: int) -> None:
        self._core, self._deadline, self._seed = core, deadline, seed
        self._models: dict[Encoding, ModuloModel] = {}

    def alternate(self, turns: Sequence[Turn], workers: int) -> Decision:
        numbers = iter_count()
        while True:
            number = next(numbers)
            for turn in turns:
                decision = self._slice(turn, number, workers)
                if decision is not None:
                    return decision

    def race(self, turns: Sequence[Turn], workers: int) -> Decision:
        """Run all at once, each with its share of the workers; the first to decide stops the others."""
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
        """Run one slice of growing effort; None if it decides nothing and time is left."""
        if spent() < self._deadline and turn.encoding not in self._models:
            self._models[turn.encoding] = build_model(self._core, turn.encoding)
        left = self._deadline - spent()
        if left <= 0 or stopped():
            return Decision(outcome=Outcome.OPEN)
        effort = _FIRST_SLICE * _GROWTH**number * turn.share
        seed = (self._seed + number) % (LARGEST_SEED + 1)
        found = self._models[turn.encoding].solve(left, turn, workers=workers, seed=seed, effort=effort)
        return None if found.outcome is Outcome.OPEN else found
