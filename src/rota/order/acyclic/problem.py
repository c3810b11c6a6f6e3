"""The ordering problem: the dependency graph of one iteration, budgets, and how an order is measured.

Problem, algorithm and check are separate: this module holds the values and measures an order, `check_ordering` checks
again what a scheduler returned, and each algorithm is a `Scheduler` of its own.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import NamedTuple, Protocol

from rota.check import bad_field, check_elements, check_ints, check_types, expect, is_int
from rota.errors import Concern, GraphError, OrderError, several
from rota.markup import Link, arcs, card
from rota.order.graph import Arc, Cycle, check_ends, longest_starts, strong_components
from rota.printing import WIDTH, NamedMember, Pasted
from rota.program.kinds import OpRole, ResourceKind


class DepKind(NamedMember):
    """Read after write, write after read, write after write."""

    FLOW = "FLOW"
    ANTI = "ANTI"
    OUTPUT = "OUTPUT"


@dataclass(frozen=True, slots=True, repr=False)
class DepEdge(Pasted):
    """`consumer_idx` of iteration i + `loop_distance` must come after `producer_idx` of iteration i."""

    producer_idx: int
    consumer_idx: int
    dep_kind: DepKind = DepKind.FLOW
    loop_distance: int = 0

    def __post_init__(self) -> None:
        for name in ("producer_idx", "consumer_idx", "loop_distance"):
            value = getattr(self, name)
            if type(value) is not int and not is_int(value):
                raise bad_field(self, name, value, "an integer")
        if not isinstance(self.dep_kind, DepKind):
            raise bad_field(self, "dep_kind", self.dep_kind, "a DepKind")

    def __rich_repr__(self) -> Iterable[object]:
        """The two ends, the kind where it isn't FLOW, and the distance."""
        yield from (self.producer_idx, self.consumer_idx)
        yield from ((self.dep_kind,) if self.dep_kind is not DepKind.FLOW else ())
        yield from ((("loop_distance", self.loop_distance),) if self.loop_distance else ())

    def __str__(self) -> str:
        later = f", {several(self.loop_distance, 'iteration')} later" if self.loop_distance else ""
        return f"{self.dep_kind.name} {self.producer_idx} -> {self.consumer_idx}{later}"


class CostedOp:
    """What an order needs of an op: the unit it occupies and for how long, its role, its registers, and its name."""

    __slots__ = ()

    resource: ResourceKind
    latency: int
    role: OpRole
    vgpr_def: int
    vgpr_kill: int

    def concern(self, index: int | None = None, role: str = "") -> Concern:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, repr=False)
class LoopBody:
    """Ops and edges, checked once: indices in range, distances not negative, no cycle within one iteration.

    Pure data: it never schedules itself.  Printed, it lists each op with those that it waits for; a notebook draws the
    edges as arcs.

    >>> compiled = compile_schedule(Pipeline4Wave(KernelGeometry()))
    >>> LoopBody(compiled.body, compiled.edges)
    <LoopBody 24 ops, 64 edges, critical path 256>
    """

    ops: tuple[CostedOp, ...]
    edges: tuple[DepEdge, ...]
    _before: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)

    def __init__(self, ops: Sequence[CostedOp], edges: Sequence[DepEdge]) -> None:
        object.__setattr__(self, "ops", check_elements("a body", ops, CostedOp))
        object.__setattr__(self, "edges", check_elements("an edge list", edges, DepEdge))
        for edge in self.edges:
            ends = edge.producer_idx, edge.consumer_idx
            check_ends("the body", self.ops, ends, edge.loop_distance, edge.dep_kind.value)
            if edge.producer_idx == edge.consumer_idx and edge.loop_distance == 0:
                raise self._report_own_predecessor(edge.producer_idx)
        before: list[dict[int, None]] = [{} for _ in self.ops]
        for edge in self.edges:
            if edge.loop_distance == 0:
                before[edge.consumer_idx][edge.producer_idx] = None
        object.__setattr__(self, "_before", tuple(tuple(producers) for producers in before))
        if all(edge.producer_idx < edge.consumer_idx or edge.loop_distance for edge in self.edges):
            return  # what goes forward closes no cycle
        cycles = [each for each in strong_components(len(self.ops), self._arcs()) if len(each) > 1]
        if cycles:
            raise self._cycle_error(set(min(cycles)))

    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """For each op, the ops that must come before it within one iteration, each once."""
        return self._before

    def compute_asap(self) -> tuple[int, ...]:
        """Earliest starts under the distance-0 edges, resources ignored."""
        return _find_starts(len(self.ops), self._arcs())

    def compute_alap(self, makespan: int) -> tuple[int, ...]:
        """Latest starts under the distance-0 edges for an iteration that ends at `makespan`."""
        back = [Arc(arc.consumer, arc.producer, self.ops[arc.consumer].latency, 0) for arc in self._arcs()]
        after = _find_starts(len(self.ops), back)
        return tuple(makespan - op.latency - late for op, late in zip(self.ops, after, strict=True))

    def _arcs(self) -> list[Arc]:
        """The distance-0 edges, each after its producer's latency."""
        every = ((producer, consumer) for consumer, those in enumerate(self._before) for producer in those)
        return [Arc(producer, consumer, self.ops[producer].latency, 0) for producer, consumer in every]

    def critical_path(self) -> int:
        """Length of the longest chain of distance-0 edges, last op included."""
        return max((start + op.latency for start, op in zip(self.compute_asap(), self.ops, strict=True)), default=0)

    def __repr__(self) -> str:
        counts = f"{several(len(self.ops), 'op')}, {several(len(self.edges), 'edge')}"
        return f"<LoopBody {counts}, critical path {self.critical_path():,}>"

    def __str__(self) -> str:
        after: list[list[str]] = [[] for _ in self.ops]
        for edge in self.edges:
            late = f"(-{edge.loop_distance})" if edge.loop_distance else ""
            after[edge.consumer_idx].append(f"{edge.producer_idx}{late}")
        width = max((len(str(op)) for op in self.ops), default=0)
        lines = [f"{repr(self)[1:-1]}; (-1) is the op of the iteration before"]
        for index, (op, producers) in enumerate(zip(self.ops, after, strict=True)):
            waits = f"after {', '.join(producers)}" if producers else ""
            room = " " * (width + 8)
            lines += wrap(f"  {index:4d}  {op!s:{width}}  {waits}".rstrip(), WIDTH, subsequent_indent=room)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        links = [
            Link(edge.producer_idx, edge.consumer_idx, edge.dep_kind.name, self._title(edge), edge.loop_distance > 0)
            for edge in self.edges
        ]
        return card(repr(self).strip("<>"), arcs([f"{index:3d} {op}" for index, op in enumerate(self.ops)], links))

    def _title(self, edge: DepEdge) -> str:
        return f"{edge}: {self.ops[edge.producer_idx]} before {self.ops[edge.consumer_idx]}"

    def _report_own_predecessor(self, index: int) -> GraphError:
        return GraphError.of(
            "G102",
            f"{self.ops[index]} would have to come before itself",
            concerns=(self.ops[index].concern(index, "comes first"),),
            evidence=(("edge", f"{index} -> {index}"), ("distance", 0)),
            fixes=("loop_distance=1 if the op needs its own result of the iteration before",),
        )

    def _cycle_error(self, stuck: set[int]) -> GraphError:
        """Walk producers inside the stuck set until an op repeats: that walk is a cycle."""
        index, path = min(stuck), []
        while index not in path:
            path.append(index)
            index = next(p for p in self._before[index] if p in stuck)
        cycle = path[path.index(index) :][::-1]
        text = " -> ".join(f"#{i} {self.ops[i]}" for i in [*cycle, cycle[0]])
        return GraphError.of(
            "G103",
            f"{len(cycle)} ops wait for each other within one iteration",
            concerns=tuple(self.ops[i].concern(i) for i in cycle),
            evidence=(("cycle", text), ("loop distance around it", 0)),
            fixes=("give the edge that crosses the loop edge loop_distance=1",),
        )


def _find_starts(count: int, arcs: Sequence[Arc]) -> tuple[int, ...]:
    starts = longest_starts(count, arcs, 0)
    return () if isinstance(starts, Cycle) else tuple(starts)  # construction has excluded cycles


UNLIMITED_VGPR = 999999


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OrderProblem(Pasted):
    """Order the ops of one iteration.

    With several `partitions` the body is cut evenly and no op leaves its part.  `max_globals` bounds the global loads
    between two computes (0: no bound); `max_vgpr` the registers live at any point; `lds_contention_penalty` is the
    least distance between the starts of two ops that use the LDS port.
    """

    body: LoopBody
    partitions: int = 1
    max_globals: int = 0
    lds_contention_penalty: int = 0
    max_vgpr: int = UNLIMITED_VGPR

    def __post_init__(self) -> None:
        check_types(self, {"body": LoopBody})
        check_ints(self, ("partitions",), least=1)
        check_ints(self, ("max_globals", "lds_contention_penalty", "max_vgpr"))

    def partition_of(self, index: int) -> int:
        return ((index + 1) * self.partitions - 1) // len(self.body.ops)


class SchedulingStrategy(NamedMember, enum.StrEnum):
    """The orders that rota ships. Each is looked up by name, as third-party schedulers are."""

    IDENTITY = "IDENTITY"
    GREEDY = "GREEDY"
    CSP = "CSP"


class Proof(NamedMember):
    """What is known about an order's quality."""

    OPTIMAL = "optimal"  # no order has a smaller makespan, and none of that makespan a smaller peak
    FEASIBLE = "feasible"  # the time limit ended the search; `bound` is the best lower bound found
    NONE = "none"  # a heuristic or the body's own order


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OrderCertificate(Pasted):
    """How good an order is, in the model of `evaluate_order`."""

    proof: Proof
    bound: int
    vgpr_bound: int
    by: str
    seconds: float = field(default=0.0, compare=False)  # equal schedules stay equal, however long they took
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Ordering(Pasted):
    """An order of the body's ops, its makespan and register peak, and what is proved about them."""

    order: tuple[int, ...]
    makespan: int
    vgpr_peak: int
    certificate: OrderCertificate

    @property
    def gap(self) -> int:
        """Cycles between the makespan and the proved bound."""
        return self.makespan - self.certificate.bound


class Scheduler(Protocol):
    """Anything that turns an `OrderProblem` into an `Ordering`; found by name through `scheduler_named`."""

    def order(self, problem: OrderProblem) -> Ordering:
        """An order of all ops, or an `OrderError`."""
        ...


# The evaluation model.
#
# An op starts when its distance-0 predecessors have finished. MMA unit and VALU each run one op at a time, beside
# each other. With a penalty p, ops on the LDS port (LDS and global memory) start at least p after the port op
# before them. Registers: live += def, peak, live -= kill, in order.

SERIAL_UNITS = (ResourceKind.MMA_UNIT, ResourceKind.VALU)
LDS_PORT = (ResourceKind.LDS, ResourceKind.GLOBAL_MEM)


class Evaluation(NamedTuple):
    """What an order costs."""

    makespan: int
    vgpr_peak: int


def evaluate_order(body: LoopBody, order: Sequence[int], lds_contention_penalty: int = 0) -> Evaluation:
    """Makespan and register peak of `order`; a predecessor that comes later in the order is ignored."""
    before = expect("the body", body, LoopBody).predecessors()
    if sorted(order) != list(range(len(body.ops))):
        raise OrderError.of(
            "O101",
            f"{list(order)!r} is not an order of {len(body.ops)} ops",
            evidence=(("given", len(order)), ("ops", len(body.ops))),
        )
    finish: dict[int, int] = {}
    unit_free = dict.fromkeys(SERIAL_UNITS, 0)
    port_free = live = peak = makespan = 0
    for index in order:
        op = body.ops[index]
        start = max((finish[p] for p in before[index] if p in finish), default=0)
        if op.resource in unit_free:
            start = max(start, unit_free[op.resource])
            unit_free[op.resource] = start + op.latency
        elif lds_contention_penalty and op.resource in LDS_PORT:
            start = max(start, port_free)
            port_free = start + lds_contention_penalty
        finish[index] = start + op.latency
        makespan = max(makespan, finish[index])
        live += op.vgpr_def
        peak = max(peak, live)
        live -= op.vgpr_kill
    return Evaluation(makespan, peak)


def makespan_lower_bound(body: LoopBody, lds_contention_penalty: int = 0) -> int:
    """No order is shorter than its longest chain, its busiest serial unit, or its port ops one penalty apart.

    The last port op needs only its own latency, not another penalty: counting n penalties would not be a bound.
    """
    asap = expect("the body", body, LoopBody).compute_asap()
    bounds = [start + op.latency for start, op in zip(asap, body.ops, strict=True)]
    for unit in SERIAL_UNITS:
        users = [index for index, op in enumerate(body.ops) if op.resource is unit]
        if users:
            bounds.append(min(asap[i] for i in users) + sum(body.ops[i].latency for i in users))
    port = [op for op in body.ops if op.resource in LDS_PORT]
    if port and lds_contention_penalty:
        bounds.append((len(port) - 1) * lds_contention_penalty + min(op.latency for op in port))
    return max(bounds, default=0)


def ancestors(body: LoopBody) -> tuple[int, ...]:
    """For each op, all ops that must come before it within one iteration, as a bit mask."""
    masks = [0] * len(body.ops)
    growing = True
    while growing:  # twice through when the body lists producers before consumers, as most do
        growing = False
        for index, producers in enumerate(body.predecessors()):
            mask = 0
            for producer in producers:
                mask |= masks[producer] | 1 << producer
            growing = growing or mask != masks[index]
            masks[index] = mask
    return tuple(masks)


def peak_lower_bound(problem: OrderProblem) -> int:
    """The highest of three floors: an empty start, each op with the least that can be live before it, and the end.

    An op may free registers that came in from the iteration before, so the live count may fall below zero and an op's
    own registers alone are no floor.  Before an op stand its ancestors and the earlier partitions; of the ops that may
    are on either side, only those that free more than they define can lower what it meets.
    """
    ops = problem.body.ops
    if not ops:
        return 0
    net = [op.vgpr_def - op.vgpr_kill for op in ops]
    part = [problem.partition_of(index) for index in range(len(ops))]
    masks = ancestors(problem.body)
    floors = [0]
    for index, op in enumerate(ops):
        live = op.vgpr_def
        for other in range(len(ops)):
            if masks[index] >> other & 1 or part[other] < part[index]:
                live += net[other]
            elif other != index and part[other] == part[index] and not masks[other] >> index & 1:
                live += min(net[other], 0)
        floors.append(live)
    has_successor = {producer for producers in problem.body.predecessors() for producer in producers}
    last = [op.vgpr_kill for i, op in enumerate(ops) if i not in has_successor and part[i] == part[-1]]
    floors.append(sum(net) + min(last, default=0))  # none where dependencies point back to an earlier part
    return max(floors)
