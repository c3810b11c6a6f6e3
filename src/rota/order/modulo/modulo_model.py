"""What an exact modulo search must decide: takes a `ModuloProblem` and an II, gives its `Core`, free of the solver.

The core is exact, for schedules of any length.  Three facts make it small:

1. An edge between two strongly connected components restrains nothing.  Move a component and all after it to later
   stages: slots modulo II, and with them the resources, stay as they are, and every such edge has room.  So only edges
   within a component count, and no horizon has to be guessed: the recurrences themselves bound how far apart the ops
   of a component lie.
2. An op without uses can stand wherever the longest paths put it: it is replaced by the gaps that it passes on.
3. An op in no cycle whose only use takes one slot fits wherever a place is left, and the bound on II says there is
   enough: it is left out and takes what remains.

Fact 2 is the usual reduction to resource-constrained ops (Oppermann et al. 2016); fact 1 is why scheduling components
first (Rau 1996) can be exact and not merely a heuristic, as long as a component is not frozen before the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rota.order.modulo.longest import Arc, Cycle, Gaps, longest_gaps, longest_starts, strong_components
from rota.order.modulo.modulo_problem import ModuloOp, ModuloProblem, Use


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Ops that depend on each other in cycles, the edges among them, and those of its ops that use a resource."""

    ops: tuple[int, ...]
    arcs: tuple[Arc, ...]
    users: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """What holds at every II: components in topological order, and how ops outside of cycles are treated.

    `packed` ops stand in no cycle but need the search, since they hold a resource for long or several at once.
    `fillers` take what is left.
    """

    problem: ModuloProblem
    components: tuple[Component, ...]
    packed: tuple[int, ...]
    fillers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """From when to when an op may start, relative to its component."""

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
    """Holds that may meet: at most `places` at once, in any slot modulo II."""

    resource: str
    places: int
    holds: tuple[Hold, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """What a search at one II decides: starts within frames, gaps kept, contests won; alike ops in ascending order."""

    ii: int
    frames: Mapping[int, Frame]
    gaps: tuple[Gap, ...]
    contests: tuple[Contest, ...]
    alike: tuple[tuple[int, ...], ...]


def derive_structure(problem: ModuloProblem) -> Structure:
    """Components and the treatment of the other ops."""
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
    """One use, of one slot: any place that is left will do."""
    return len(op.uses) == 1 and op.uses[0].occupancy == 1


def derive_core(structure: Structure, ii: int) -> Core:
    """The core at an II that is not below the MII."""
    frames: dict[int, Frame] = {}
    gaps: list[Gap] = []
    cycles = [c for c in structure.components if len(c.ops) > 1 and c.users]
    # Turning the whole table of slots changes nothing, so one op may be nailed down: in the largest component.
    pinned = max(cycles, key=lambda c: len(c.users), default=None)
    for component in cycles:
        within = _gaps_within(component, ii)
        frames |= _frames_within(within.least, 0 if component is pinned else ii - 1)
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
        contests=_contests(structure.problem, frames, ii),
        alike=tuple(tuple(group) for group in alike.values() if len(group) > 1),
    )


def _gaps_within(component: Component, ii: int) -> Gaps:
    """The longest path between every two users of a component."""
    place = {op: number for number, op in enumerate(component.ops)}
    local = [Arc(place[a], place[b], delay, distance) for a, b, delay, distance in component.arcs]
    starts = longest_starts(len(place), local, ii)
    if isinstance(starts, Cycle):
        raise AssertionError(f"II {ii} is below the recurrence bound: derive the MII first")  # noqa: TRY004 -- a mistake of ours
    return longest_gaps(component.users, component.arcs, ii, dict(zip(component.ops, starts, strict=True)))


def _frames_within(gaps: Mapping[int, Mapping[int, int]], room: int) -> dict[int, Frame]:
    """Frames around the op that leaves the least freedom to the others, itself within 0..room."""
    anchor = min(gaps, key=lambda op: (sum(-gaps[other][op] - least for other, least in gaps[op].items()), op))
    frames = {anchor: Frame(earliest=0, latest=room)}
    for op, least in gaps[anchor].items():
        frames[op] = Frame(earliest=least, latest=room - gaps[op][anchor])
    return frames


def _contests(problem: ModuloProblem, members: Mapping[int, Frame], ii: int) -> tuple[Contest, ...]:
    """The resources that the members could overfill.

    A use of q x II + r slots holds q places throughout and one more for r slots; places held throughout are taken off.
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
    """All ops' starts from those of the core: component after component, as early as its producers allow.

    Only the slots of `core_starts` are kept.  Within a component the earliest starts on given slots are a longest path
    once more, now rounded up to the slots.  Ops outside of cycles take the next place that is left, and of ops with
    equal uses the first one ready takes the slot that comes next.
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
    def rounded(op: int, earliest: int) -> int:
        return earliest if op not in slots else earliest + (slots[op] - earliest) % ii

    starts = {op: rounded(op, earliest) for op, earliest in ready.items()}
    changed, rounds = True, 0
    while changed:
        changed, rounds = False, rounds + 1
        if rounds > len(component.ops) + 1:
            raise AssertionError("slots that satisfy all gaps have starts")
        for producer, consumer, delay, distance in component.arcs:
            earliest = starts[producer] + delay - distance * ii
            if earliest > starts[consumer]:
                starts[consumer], changed = rounded(consumer, earliest), True
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
        """The first start from `ready` on that is still to be had."""
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
