"""The oracle of the modulo tests: takes a tiny `ModuloProblem` and an II, and tries every choice of slots.

It knows nothing of components, cores or bounds: stages are raised until every edge holds, or for ever.
"""

from __future__ import annotations

from itertools import product

from rota.order.modulo.modulo_problem import ModuloProblem


def keeps(problem: ModuloProblem, ii: int, starts: tuple[int, ...]) -> bool:
    """All edges and capacities, counted unit by unit."""
    for edge in problem.edges:
        delay = problem.ops[edge.producer].latency if edge.delay is None else edge.delay
        if starts[edge.consumer] + edge.distance * ii < starts[edge.producer] + delay:
            return False
    held: dict[tuple[str, int], int] = {}
    for op, start in zip(problem.ops, starts, strict=True):
        for use in op.uses:
            for slot in range(start + use.offset, start + use.offset + use.occupancy):
                held[use.resource, slot % ii] = held.get((use.resource, slot % ii), 0) + 1
    capacity = {resource.name: resource.capacity for resource in problem.resources}
    return all(count <= capacity[name] for (name, _), count in held.items())


def feasible(problem: ModuloProblem, ii: int) -> bool:
    """Is there any schedule?  Slots are tried one by one; for each choice the stages are a matter of edges alone."""
    count = len(problem.ops)
    for slots in product(range(ii), repeat=count):
        starts = _earliest(problem, ii, slots)
        if starts is not None and keeps(problem, ii, starts):
            return True
    return False


def least_ii(problem: ModuloProblem, most: int) -> int | None:
    """The least feasible II up to `most`."""
    return next((ii for ii in range(1, most + 1) if feasible(problem, ii)), None)


def _earliest(problem: ModuloProblem, ii: int, slots: tuple[int, ...]) -> tuple[int, ...] | None:
    """Raise stages until every edge holds; None when an op is pushed beyond what any chain can ask for."""
    starts = list(slots)
    beyond = sum(abs(edge.delay or 0) + problem.ops[edge.producer].latency + ii for edge in problem.edges) + ii
    moved = True
    while moved:
        moved = False
        for edge in problem.edges:
            delay = problem.ops[edge.producer].latency if edge.delay is None else edge.delay
            while starts[edge.consumer] + edge.distance * ii < starts[edge.producer] + delay:
                starts[edge.consumer] += ii
                moved = True
                if starts[edge.consumer] > beyond:
                    return None
    return tuple(starts)
