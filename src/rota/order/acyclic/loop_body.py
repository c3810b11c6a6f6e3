"""The dependency graph of one iteration: takes ops and edges, gives a checked `LoopBody` with ASAP and ALAP starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from rota.check import check_elements
from rota.errors import Concern, Finding, GraphError, several
from rota.markup import Link, arcs, card
from rota.order.acyclic.edge import DepEdge
from rota.printing import WIDTH
from rota.program.kinds import OpRole, ResourceKind


class CostedOp:
    """What an order needs of an op: the unit it occupies and for how long, its role, its registers, and its name."""

    __slots__ = ()

    resource: ResourceKind
    latency: int
    role: OpRole
    vgpr_def: int
    vgpr_kill: int

    def concern(self, index: int | None = None, role: str = "") -> Concern:
        """This op as one end of a finding."""
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
    _topological: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __init__(self, ops: Sequence[CostedOp], edges: Sequence[DepEdge]) -> None:
        object.__setattr__(self, "ops", check_elements("a body", ops, CostedOp))
        object.__setattr__(self, "edges", check_elements("an edge list", edges, DepEdge))
        for edge in self.edges:
            self._check_edge(edge)
        before: list[dict[int, None]] = [{} for _ in self.ops]
        for edge in self.edges:
            if edge.loop_distance == 0:
                before[edge.consumer_idx][edge.producer_idx] = None
        object.__setattr__(self, "_before", tuple(tuple(producers) for producers in before))
        object.__setattr__(self, "_topological", self._topological_order())

    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """For each op, the ops that must come before it within one iteration, each once."""
        return self._before

    def compute_asap(self) -> tuple[int, ...]:
        """Earliest starts under the distance-0 edges, resources ignored."""
        before = self._before
        start = [0] * len(self.ops)
        for index in self._topological:
            start[index] = max((start[p] + self.ops[p].latency for p in before[index]), default=0)
        return tuple(start)

    def compute_alap(self, makespan: int) -> tuple[int, ...]:
        """Latest starts under the distance-0 edges for an iteration that ends at `makespan`."""
        before = self._before
        start = [makespan - op.latency for op in self.ops]
        for index in reversed(self._topological):
            for producer in before[index]:
                start[producer] = min(start[producer], start[index] - self.ops[producer].latency)
        return tuple(start)

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

    def _check_edge(self, edge: DepEdge) -> None:
        for role, index in (("producer", edge.producer_idx), ("consumer", edge.consumer_idx)):
            if not 0 <= index < len(self.ops):
                raise GraphError(
                    Finding(
                        code="G101",
                        message=f"the edge's {role} is op {index}, but the body has ops 0..{len(self.ops) - 1}",
                        concerns=(Concern(label=f"{edge.producer_idx} -> {edge.consumer_idx} {edge.dep_kind.value}"),),
                        evidence=((f"{role} index", index), ("ops", len(self.ops))),
                    )
                )
        if edge.loop_distance < 0:
            raise GraphError(
                Finding(
                    code="G104",
                    message=f"an edge can't reach {several(-edge.loop_distance, 'iteration')} back in time",
                    concerns=self._ends(edge),
                    evidence=(("distance", edge.loop_distance), ("least", 0)),
                )
            )
        if edge.producer_idx == edge.consumer_idx and edge.loop_distance == 0:
            raise GraphError(
                Finding(
                    code="G102",
                    message=f"{self.ops[edge.producer_idx]} would have to come before itself",
                    concerns=self._ends(edge)[:1],
                    evidence=(("edge", f"{edge.producer_idx} -> {edge.consumer_idx}"), ("distance", 0)),
                    fixes=("loop_distance=1 if the op needs its own result of the iteration before",),
                )
            )

    def _ends(self, edge: DepEdge) -> tuple[Concern, Concern]:
        return (
            self.ops[edge.producer_idx].concern(edge.producer_idx, "comes first"),
            self.ops[edge.consumer_idx].concern(edge.consumer_idx, "comes later"),
        )

    def _topological_order(self) -> tuple[int, ...]:
        before = self._before
        waiting = [len(p) for p in before]
        after: list[list[int]] = [[] for _ in self.ops]
        for index, producers in enumerate(before):
            for producer in producers:
                after[producer].append(index)
        order = [index for index, count in enumerate(waiting) if count == 0]
        for index in order:  # grows while it is walked
            for consumer in after[index]:
                waiting[consumer] -= 1
                if waiting[consumer] == 0:
                    order.append(consumer)
        if len(order) < len(self.ops):
            raise self._cycle_error({i for i, count in enumerate(waiting) if count > 0})
        return tuple(order)

    def _cycle_error(self, stuck: set[int]) -> GraphError:
        """Walk producers inside the stuck set until an op repeats: that walk is a cycle."""
        index, path = min(stuck), []
        while index not in path:
            path.append(index)
            index = next(p for p in self._before[index] if p in stuck)
        cycle = path[path.index(index) :][::-1]
        text = " -> ".join(f"#{i} {self.ops[i]}" for i in [*cycle, cycle[0]])
        return GraphError(
            Finding(
                code="G103",
                message=f"{len(cycle)} ops wait for each other within one iteration",
                concerns=tuple(self.ops[i].concern(i) for i in cycle),
                evidence=(("cycle", text), ("loop distance around it", 0)),
                fixes=("give the edge that crosses the loop edge loop_distance=1",),
            )
        )
