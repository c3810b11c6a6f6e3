"""Iterative modulo scheduling: takes a `ModuloProblem` and an II, gives starts, or none within its budget.

Rau (1996): ops by height, each in the first slot of the next II that its scheduled producers and the resources allow;
where there is none, it is placed by force and what it collides with is taken out again.  A heuristic: that it finds
nothing says nothing.

One addition: equal holds that fill a unit entirely leave no gap unless all of them stand on one grid, so they are
placed on that of the first.
"""

from __future__ import annotations

import heapq
from collections import Counter

from rota.order.modulo.longest import Arc, longest_starts
from rota.order.modulo.modulo_problem import ModuloOp, ModuloProblem
from rota.solver.effort import spend, spent

PLACEMENTS_PER_OP = 6  # Rau found 2 to suffice for most loops; what fails here goes to the exact search
_LOOK_AT_CLOCK = 64  # placements between two looks at what is spent
_SECONDS_PER_PLACEMENT = 2e-5


def iterative_starts(problem: ModuloProblem, ii: int, deadline: float | None = None) -> tuple[int, ...] | None:
    """Starts at this II, which is not below the MII; None when the budget or the deadline comes first."""
    backwards = [Arc(b, a, delay, distance) for a, b, delay, distance in problem.arcs]
    heights = longest_starts(len(problem.ops), backwards, ii)
    if not isinstance(heights, list):
        return None
    table = _Table(problem, ii)
    if not table.each_fits_alone():
        return None
    return _Search(problem, ii, heights, table).run(deadline)


class _Table:
    """The reservation table: who holds each resource in each slot modulo II."""

    def __init__(self, problem: ModuloProblem, ii: int) -> None:
        self._ii = ii
        self._capacities = problem.capacities
        self._holders: dict[tuple[str, int], list[int]] = {}
        shapes: dict[ModuloOp, tuple[tuple[str, int, int], ...]] = {}
        for op in problem.ops:
            if op not in shapes:
                shapes[op] = _shape(op, ii)
        self._shapes = [shapes[op] for op in problem.ops]
        self._different = tuple(shapes.values())
        self._grids = _grids(problem, ii)
        self._phases: dict[str, int] = {}  # of a resource's grid, once its first op is placed
        self._gridded = [next((use for use in op.uses if use.resource in self._grids), None) for op in problem.ops]

    def each_fits_alone(self) -> bool:
        """No op overfills a resource by itself."""
        return all(held <= self._capacities[name] for shape in self._different for name, _, held in shape)

    def fits(self, op: int, start: int) -> bool:
        """There is room for all uses."""
        for name, place, held in self._shapes[op]:
            holders = self._holders.get((name, (start + place) % self._ii))
            if holders and len(holders) + held > self._capacities[name]:
                return False
        return True

    def first_fit(self, op: int, earliest: int) -> int | None:
        """The first start of the next II at which there is room, on the grid if there is one."""
        use = self._gridded[op]
        step = self._grids[use.resource] if use is not None and use.resource in self._phases else 1
        starts = range(self.aligned(op, earliest), earliest + self._ii, step)
        return next((start for start in starts if self.fits(op, start)), None)

    def aligned(self, op: int, earliest: int) -> int:
        """The first start on the op's grid; any will do as long as there is none."""
        use = self._gridded[op]
        if use is None or use.resource not in self._phases:
            return earliest
        return earliest + (self._phases[use.resource] - earliest - use.offset) % self._grids[use.resource]

    def colliding(self, op: int, start: int) -> set[int]:
        """All holders of the cells in which there is no room."""
        out: set[int] = set()
        for name, place, held in self._shapes[op]:
            holders = self._holders.get((name, (start + place) % self._ii), ())
            if len(holders) + held > self._capacities[name]:
                out.update(holders)
        return out

    def enter(self, op: int, start: int) -> None:
        """Take the places."""
        use = self._gridded[op]
        if use is not None:
            self._phases.setdefault(use.resource, (start + use.offset) % self._grids[use.resource])
        for name, place, held in self._shapes[op]:
            self._holders.setdefault((name, (start + place) % self._ii), []).extend([op] * held)

    def leave(self, op: int, start: int) -> None:
        """Give them back."""
        for name, place, held in self._shapes[op]:
            holders = self._holders[name, (start + place) % self._ii]
            for _ in range(held):
                holders.remove(op)


def _grids(problem: ModuloProblem, ii: int) -> dict[str, int]:
    """The holds' length, for each resource of one place that equal holds of several slots fill entirely."""
    lengths: dict[str, list[int]] = {resource.name: [] for resource in problem.resources if resource.capacity == 1}
    for op in problem.ops:
        for use in op.uses:
            if use.resource in lengths:
                lengths[use.resource].append(use.occupancy)
    return {name: held[0] for name, held in lengths.items() if sum(held) == ii and len(set(held)) == 1 and held[0] > 1}


def _shape(op: ModuloOp, ii: int) -> tuple[tuple[str, int, int], ...]:
    """(resource, slots after the start, places held) for every slot modulo II in which the op holds anything."""
    held: Counter[tuple[str, int]] = Counter()
    for use in op.uses:
        throughout, rest = divmod(use.occupancy, ii)
        for position in range(ii if throughout else rest):
            held[use.resource, (use.offset + position) % ii] += throughout + (position < rest)
    return tuple((name, place, count) for (name, place), count in held.items())


class _Search:
    def __init__(self, problem: ModuloProblem, ii: int, heights: list[int], table: _Table) -> None:
        self._ii, self._heights, self._table = ii, heights, table
        self._free = [not op.uses for op in problem.ops]
        self._into: list[list[tuple[int, int]]] = [[] for _ in problem.ops]
        self._out_of: list[list[tuple[int, int]]] = [[] for _ in problem.ops]
        for producer, consumer, delay, distance in problem.arcs:
            if producer != consumer:  # an op's own cycle holds at every start once II is at least the MII
                self._into[consumer].append((producer, delay - distance * ii))
                self._out_of[producer].append((consumer, delay - distance * ii))
        self._starts: list[int | None] = [None] * len(problem.ops)
        self._last = [-1] * len(problem.ops)
        self._queue = [(-height, op) for op, height in enumerate(heights)]
        heapq.heapify(self._queue)

    def run(self, deadline: float | None) -> tuple[int, ...] | None:
        budget = PLACEMENTS_PER_OP * len(self._starts)
        while self._queue:
            if budget == 0:
                return None
            if budget % _LOOK_AT_CLOCK == 0:
                spend(_LOOK_AT_CLOCK * _SECONDS_PER_PLACEMENT)
                if deadline is not None and spent() >= deadline:
                    return None
            budget -= 1
            _, op = heapq.heappop(self._queue)
            self._place(op)
        starts = [start for start in self._starts if start is not None]
        shift = min(starts, default=0) // self._ii * self._ii
        return tuple(start - shift for start in starts)

    def _place(self, op: int) -> None:
        starts, table = self._starts, self._table
        earliest = 0
        for producer, weight in self._into[op]:
            start = starts[producer]
            if start is not None and start + weight > earliest:
                earliest = start + weight
        if self._free[op]:
            chosen = earliest
        else:
            fitting = table.first_fit(op, earliest)
            # By force it is placed later than the last time, or it would loop forever.
            chosen = table.aligned(op, max(earliest, self._last[op] + 1)) if fitting is None else fitting
            if fitting is None:
                for other in table.colliding(op, chosen):
                    self._remove(other)
            table.enter(op, chosen)
        starts[op] = self._last[op] = chosen
        for consumer, weight in self._out_of[op]:
            start = starts[consumer]
            if start is not None and start < chosen + weight:
                self._remove(consumer)

    def _remove(self, op: int) -> None:
        start = self._starts[op]
        if start is not None:
            if not self._free[op]:
                self._table.leave(op, start)
            self._starts[op] = None
            heapq.heappush(self._queue, (-self._heights[op], op))
