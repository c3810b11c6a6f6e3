"""Lower bounds of the initiation interval: takes a `ModuloProblem`, gives the `MII` and what binds it, in words."""

from __future__ import annotations

from dataclasses import dataclass

from rota.order.modulo.longest import Cycle, longest_starts
from rota.order.modulo.modulo_problem import ModuloProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceBound:
    """`resource` is held for `busy` slots per iteration and has `capacity` places, so II is at least `ii`."""

    ii: int
    resource: str
    busy: int
    capacity: int

    def __str__(self) -> str:
        return f"{self.resource} busy {self.busy:,} of {self.capacity * self.ii:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrenceBound:
    """The ops of `cycle` take `delay` slots within `distance` iterations, so II is at least `ii`."""

    ii: int
    cycle: tuple[int, ...]
    delay: int
    distance: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        around = " -> ".join((*self.names, self.names[0]))
        iterations = "1 iteration" if self.distance == 1 else f"{self.distance:,} iterations"
        return f"cycle {around} takes {self.delay:,} slots within {iterations}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MII:
    """The larger of both bounds, at least 1; a bound is None where nothing is shared, or nothing goes in cycles."""

    resource: ResourceBound | None
    recurrence: RecurrenceBound | None

    @property
    def ii(self) -> int:
        """No schedule has a smaller initiation interval."""
        return max([1, *(bound.ii for bound in (self.resource, self.recurrence) if bound is not None)])

    @property
    def binding(self) -> tuple[ResourceBound | RecurrenceBound, ...]:
        """The bounds that reach the MII."""
        return tuple(bound for bound in (self.resource, self.recurrence) if bound is not None and bound.ii == self.ii)

    def __str__(self) -> str:
        return f"MII {self.ii:,}: " + ("; ".join(map(str, self.binding)) or "nothing binds")


def resource_loads(problem: ModuloProblem) -> dict[str, int]:
    """Slots per iteration for which each resource is held, all places together."""
    busy = dict.fromkeys(problem.capacities, 0)
    for op in problem.ops:
        for use in op.uses:
            busy[use.resource] += use.occupancy
    return busy


def resource_mii(problem: ModuloProblem) -> ResourceBound | None:
    """The fullest resource: held for b slots on c places, it needs an II of at least b / c, rounded up.

    Of two equally tight ones the fuller, then the first declared.
    """
    capacities = problem.capacities
    loads = {name: busy for name, busy in resource_loads(problem).items() if busy}
    if not loads:
        return None
    fullest = max(loads, key=lambda name: (-(-loads[name] // capacities[name]), loads[name] / capacities[name]))
    busy, capacity = loads[fullest], capacities[fullest]
    return ResourceBound(ii=-(-busy // capacity), resource=fullest, busy=busy, capacity=capacity)


def recurrence_mii(problem: ModuloProblem) -> RecurrenceBound | None:
    """The least II at which no cycle asks for more slots than its iterations have; None where none ever does.

    Every cycle that is too long at some II gives the next II to try, its delay over its distance, so that the last
    cycle found is the proof that no smaller II will do.  Construction has excluded cycles of distance 0.
    """
    critical: Cycle | None = None
    ii = 0
    while isinstance(cycle := longest_starts(len(problem.ops), problem.arcs, ii), Cycle):
        critical = cycle
        ii = -(-cycle.delay // cycle.distance)
    if critical is None:
        return None
    return RecurrenceBound(
        ii=ii,
        cycle=critical.ops,
        delay=critical.delay,
        distance=critical.distance,
        names=tuple(problem.ops[op].name for op in critical.ops),
    )


def derive_mii(problem: ModuloProblem) -> MII:
    """Both bounds."""
    return MII(resource=resource_mii(problem), recurrence=recurrence_mii(problem))
