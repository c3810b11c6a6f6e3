"""The modulo-scheduling problem: takes ops, edges with distances and shared resources, gives a checked `ModuloProblem`.

Iteration n of a loop starts op i at t(i) + n x II.  A schedule for one initiation interval II keeps every edge,
t(consumer) + distance x II >= t(producer) + delay, and never has more uses of a resource under way in one slot modulo
II than the resource has places.  Times are whole slots of whatever length the caller means.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rota.check import bad_field, check_elements, check_ints, check_types, is_int
from rota.errors import Concern, Finding, GraphError, did_you_mean, several
from rota.order.modulo.longest import Arc, Cycle, longest_starts

LONGEST = 1_000_000  # slots; far above any loop, and a table with a place for each still fits in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A unit, port or issue slot of which `capacity` uses may be under way at once.

    Uses are counted, not assigned to one of the places: what holds a place longer than one slot may continue in another
    place in the next iteration.
    """

    name: str
    capacity: int = 1

    def __post_init__(self) -> None:
        check_types(self, {"name": str})
        check_ints(self, ("capacity",), least=1, most=LONGEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """An op holds one place of `resource` for `occupancy` slots, from `offset` slots after its start.

    The occupancy may exceed II: the op then holds several places at once, one for each iteration under way.
    """

    resource: str
    occupancy: int = 1
    offset: int = 0

    def __post_init__(self) -> None:
        check_types(self, {"resource": str})
        check_ints(self, ("occupancy",), least=1, most=LONGEST)
        check_ints(self, ("offset",), most=LONGEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloOp:
    """One op: its result is ready `latency` slots after its start; what it holds meanwhile stands in `uses`.

    Issue slots are a resource like any other: an op that takes two turns to issue has a use of occupancy 2 on it.
    """

    name: str
    latency: int = 0
    uses: tuple[Use, ...] = ()

    def __post_init__(self) -> None:
        check_types(self, {"name": str})
        check_ints(self, ("latency",), most=LONGEST)
        object.__setattr__(self, "uses", check_elements("an op's uses", self.uses, Use))

    def concern(self, index: int, role: str = "") -> Concern:
        """This op as one end of a finding."""
        return Concern(label=self.name, index=index, role=role)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloEdge:
    """`consumer`, `distance` iterations later, starts at least `delay` slots after `producer`.

    Without a delay it is the producer's latency.  It may be negative, for "at most that much earlier".
    """

    producer: int
    consumer: int
    delay: int | None = None
    distance: int = 0

    def __post_init__(self) -> None:
        for name in ("producer", "consumer", "distance"):
            if not is_int(getattr(self, name)):
                raise bad_field(self, name, getattr(self, name), "an integer")
        if self.distance > LONGEST:
            raise bad_field(self, "distance", self.distance, f"an integer, at most {LONGEST}")
        if self.delay is not None and (not is_int(self.delay) or abs(self.delay) > LONGEST):
            raise bad_field(self, "delay", self.delay, f"None or an integer, from {-LONGEST} to {LONGEST}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloProblem:
    """Ops, edges and resources, checked once; `arcs` are the edges with their delays filled in."""

    ops: tuple[ModuloOp, ...]
    edges: tuple[ModuloEdge, ...] = ()
    resources: tuple[Resource, ...] = ()
    arcs: tuple[Arc, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ops", check_elements("the ops", self.ops, ModuloOp))
        object.__setattr__(self, "edges", check_elements("the edges", self.edges, ModuloEdge))
        object.__setattr__(self, "resources", check_elements("the resources", self.resources, Resource))
        self._check_resources()
        for edge in self.edges:
            self._check_edge(edge)
        object.__setattr__(self, "arcs", tuple(self._arc(edge) for edge in self.edges))
        cycle = longest_starts(len(self.ops), [arc for arc in self.arcs if arc.distance == 0], 0)
        if isinstance(cycle, Cycle):
            raise self._cycle_error(cycle)

    @property
    def capacities(self) -> dict[str, int]:
        """How many uses each resource takes at once."""
        return {resource.name: resource.capacity for resource in self.resources}

    def describe(self, cycle: Cycle) -> str:
        """A cycle as the names of its ops."""
        return " -> ".join(f"#{op} {self.ops[op].name}" for op in (*cycle.ops, cycle.ops[0]))

    def _arc(self, edge: ModuloEdge) -> Arc:
        delay = self.ops[edge.producer].latency if edge.delay is None else edge.delay
        return Arc(edge.producer, edge.consumer, delay, edge.distance)

    def _check_resources(self) -> None:
        known = self.capacities
        if len(known) < len(self.resources):
            names = [resource.name for resource in self.resources]
            twice = next(name for name in names if names.count(name) > 1)
            raise bad_field(self, "resources", twice, "each resource once")
        for index, op in enumerate(self.ops):
            for use in op.uses:
                if use.resource not in known:
                    raise GraphError(
                        Finding(
                            code="G105",
                            message=f"{op.name} uses {use.resource!r}, a resource that the problem doesn't have",
                            concerns=(op.concern(index, f"holds it for {use.occupancy} slots"),),
                            evidence=(("resource", use.resource), ("resources", len(known))),
                            fixes=did_you_mean(use.resource, known),
                        )
                    )

    def _check_edge(self, edge: ModuloEdge) -> None:
        for role, index in (("producer", edge.producer), ("consumer", edge.consumer)):
            if not 0 <= index < len(self.ops):
                raise GraphError(
                    Finding(
                        code="G101",
                        message=f"the edge's {role} is op {index}, but the problem has {len(self.ops)} ops, from 0 on",
                        concerns=(Concern(label=f"{edge.producer} -> {edge.consumer}"),),
                        evidence=((f"{role} index", index), ("ops", len(self.ops))),
                    )
                )
        if edge.distance < 0:
            raise GraphError(
                Finding(
                    code="G104",
                    message=f"an edge can't reach {several(-edge.distance, 'iteration')} back in time",
                    concerns=(
                        self.ops[edge.producer].concern(edge.producer, "comes first"),
                        self.ops[edge.consumer].concern(edge.consumer, "comes later"),
                    ),
                    evidence=(("distance", edge.distance), ("least", 0)),
                )
            )

    def _cycle_error(self, cycle: Cycle) -> GraphError:
        alone = len(cycle.arcs) == 1
        first = self.ops[cycle.ops[0]].name
        who = f"{first} waits for itself" if alone else f"{len(cycle.arcs)} ops wait for each other"
        return GraphError(
            Finding(
                code="G102" if alone else "G103",
                message=f"{who} within one iteration",
                concerns=tuple(self.ops[op].concern(op) for op in cycle.ops),
                evidence=(
                    ("cycle", self.describe(cycle)),
                    ("delay around it", cycle.delay),
                    ("loop distance around it", 0),
                ),
                fixes=("give the edge that crosses the loop edge distance=1",),
            )
        )
