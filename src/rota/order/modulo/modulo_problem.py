"""The modulo-scheduling problem, its lower bounds, and its answer.

Iteration n of a loop starts op i at t(i) + n x II. A schedule for one initiation interval II keeps every edge,
t(consumer) + distance x II >= t(producer) + delay, and never has more uses of a resource in flight in one slot modulo
II than the resource has places. Times are whole slots of whatever length the caller means.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from rota.check import bad_field, check_elements, check_ints, check_types, is_int
from rota.errors import Concern, GraphError, did_you_mean, several
from rota.order.graph import Arc, Cycle, check_ends, longest_starts

LONGEST = 1_000_000  # slots; far above any loop, and a table with a place for each still fits in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A unit, port or issue slot that takes at most `capacity` uses at once.

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

    The occupancy may exceed II: the op then holds several places at once, one for each iteration in flight.
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
    """One op: its result is ready `latency` slots after its start; `uses` are what it holds meanwhile.

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
            check_ends("the problem", self.ops, (edge.producer, edge.consumer), edge.distance)
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
                    raise GraphError.of(
                        "G105",
                        f"{op.name} uses {use.resource!r}, a resource that the problem doesn't have",
                        concerns=(op.concern(index, f"holds it for {use.occupancy} slots"),),
                        evidence=(("resource", use.resource), ("resources", len(known))),
                        fixes=did_you_mean(use.resource, known),
                    )

    def _cycle_error(self, cycle: Cycle) -> GraphError:
        alone = len(cycle.arcs) == 1
        first = self.ops[cycle.ops[0]].name
        who = f"{first} waits for itself" if alone else f"{len(cycle.arcs)} ops wait for each other"
        return GraphError.of(
            "G102" if alone else "G103",
            f"{who} within one iteration",
            concerns=tuple(self.ops[op].concern(op) for op in cycle.ops),
            evidence=(
                ("cycle", self.describe(cycle)),
                ("delay around it", cycle.delay),
                ("loop distance around it", 0),
            ),
            fixes=("give the edge that crosses the loop edge distance=1",),
        )


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
    """The least II at which no cycle needs more slots than its iterations have; None if no cycle ever does.

    Every cycle that is too long at some II gives the next II to try, its delay over its distance, so the last cycle
    found proves that no smaller II will do. Construction has excluded cycles of distance 0.
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
    return MII(resource=resource_mii(problem), recurrence=recurrence_mii(problem))


ANY_HORIZON = "schedules of any length"


class ModuloProof(enum.Enum):
    """What is known about a schedule's initiation interval."""

    MEETS_BOUND = "II = MII"  # the bound itself is the proof
    REFUTED = "every smaller II is infeasible"  # each from MII on was refuted, under the certificate's horizon
    OPEN = "open"  # some II from `lower` on was neither met nor refuted


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloCertificate:
    """What is proved: no schedule has an II below `lower`, by `mii` and by a refutation of each II in `refuted`.

    `horizon` says which schedules the refutations are about, `limits`, in words, which of a loop's schedules the whole
    is about: "at most 16 copies of X".  Without limits it is about all.  A time-out refutes nothing: it leaves a proof
    open.
    """

    proof: ModuloProof
    mii: MII
    lower: int
    refuted: tuple[int, ...] = ()
    horizon: str = ANY_HORIZON
    by: str = ""
    limits: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)  # equal schedules stay equal, however long they took

    @property
    def optimal(self) -> bool:
        """No schedule within the limits has a smaller II."""
        return self.proof is not ModuloProof.OPEN

    @property
    def scope(self) -> str:
        """The limits as the end of a claim; nothing where there are none."""
        return f" with {', '.join(self.limits)}" if self.limits else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloSchedule:
    """Op i of iteration n starts at starts[i] + n x ii; the earliest op is in stage 0.

    `about` is what the certificate was derived for; without it, as in a document, these are only the terms of a claim.
    """

    ii: int
    starts: tuple[int, ...]
    certificate: ModuloCertificate
    about: object = field(default=None, compare=False, repr=False)

    @property
    def slots(self) -> tuple[int, ...]:
        """Each op's start modulo II."""
        return tuple(start % self.ii for start in self.starts)

    @property
    def stages(self) -> tuple[int, ...]:
        """How many periods after the start of its iteration each op runs."""
        return tuple(start // self.ii for start in self.starts)

    @property
    def stage_count(self) -> int:
        """How many iterations are in flight at once."""
        return max(self.stages, default=0) + 1

    def __str__(self) -> str:
        certificate = self.certificate
        text = f"II {self.ii:,}, {several(self.stage_count, 'stage')}, "
        if certificate.optimal and certificate.lower != self.ii:
            return text + f"not shown: its certificate is about II {certificate.lower:,}"
        if certificate.proof is ModuloProof.MEETS_BOUND:
            return text + f"least possible{certificate.scope}: {certificate.mii}"
        if certificate.proof is ModuloProof.REFUTED:
            first, last = certificate.refuted[0], certificate.refuted[-1]
            span = f"{first:,}" if first == last else f"{first:,}..{last:,}"
            why = f"II {span} refuted for {certificate.horizon}; {certificate.mii}"
            return text + f"least possible{certificate.scope}: {why}"
        between = f"the least II{certificate.scope} lies in {certificate.lower:,}..{self.ii:,}"
        return text + f"open: {between}; {certificate.mii}"
