"""The body of one iteration: its builder, structural reorders, and ordering as free functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import overload

from rota.check import author_line, bad_field, check_elements, expect, is_int
from rota.errors import OrderError, several
from rota.order.acyclic.greedy import GreedyScheduler, scheduler_named
from rota.order.acyclic.problem import (
    UNLIMITED_VGPR,
    DepEdge,
    LoopBody,
    Ordering,
    OrderProblem,
    Scheduler,
    SchedulingStrategy,
    evaluate_order,
    makespan_lower_bound,
    peak_lower_bound,
)
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import CHANNEL_A, CHANNEL_B, KOffsetKind, OpDesc
from rota.printing import WrappedTuple
from rota.program.kinds import OpRole
from rota.program.loop_spec import MOST_OPS, check_count


class PipelineBody(Sequence[OpDesc]):
    """Collects logical ops (no costs yet); a sequence of them, which every function and hook takes as it is.

    Every call appends at once, so nothing is lost by forgetting a return value; calls can be chained.  `build()` gives
    the ops as a tuple, which later calls don't change.

    >>> body = PipelineBody().load(DoubleBufferTag.LOAD_A, k_offset=KOffsetKind.K0).frag(DoubleBufferTag.MMA_LOAD_A)
    >>> print(body)
    PipelineBody: 2 ops
         0  load_a s0 t0 k0
         1  mma_load_a s0 t0
    >>> annotate_ops(body, mi355x_target().cost_model)
    (<load_a s0 t0 k0>, <mma_load_a s0 t0>)
    """

    def __init__(self) -> None:
        self._ops: list[OpDesc] = []

    def load(
        self,
        tag: int,
        *,
        channel: int = CHANNEL_A,
        stage: int = 0,
        subtile: int = 0,
        k_offset: KOffsetKind = KOffsetKind.NONE,
    ) -> PipelineBody:
        """A global load into LDS tile (channel, stage, subtile)."""
        return self._append(OpDesc.logical(tag, stage=stage, subtile=subtile, k_offset=k_offset, channel=channel))

    def store(self, tag: int, *, channel: int = CHANNEL_A, stage: int = 0, subtile: int = 0) -> PipelineBody:
        """A store of staged registers into LDS."""
        return self._append(OpDesc.logical(tag, stage=stage, subtile=subtile, channel=channel))

    def barrier(self) -> PipelineBody:
        """A workgroup barrier."""
        return self._append(OpDesc.barrier())

    def frag(self, tag: int, *, channel: int = CHANNEL_A, stage: int = 0, subtile: int = 0) -> PipelineBody:
        """A fragment load from LDS tile (channel, stage, subtile) into registers."""
        return self._append(OpDesc.logical(tag, stage=stage, subtile=subtile, channel=channel))

    def compute(self, tag: int, *, row: int = 0, column: int = 0) -> PipelineBody:
        """A compute at grid position (row, column)."""
        return self._append(OpDesc.logical(tag, stage=row, subtile=column))

    def fan(self, count: int, declare: Callable[[PipelineBody, int], object]) -> PipelineBody:
        """`declare(body, i)` for i = 0 .. count - 1: one op, or a group of ops, per subtile."""
        for index in range(_count(self, "fan", count)):
            declare(self, index)
        return self

    def grid(self, tag: int, rows: int, columns: int) -> PipelineBody:
        """Computes at every (row, column), row by row."""
        for row in range(_count(self, "rows", rows)):
            for column in range(_count(self, "columns", columns)):
                self.compute(tag, row=row, column=column)
        return self

    def build(self) -> tuple[OpDesc, ...]:
        """The ops in the order they were declared."""
        return WrappedTuple(self._ops)

    def __len__(self) -> int:
        return len(self._ops)

    @overload
    def __getitem__(self, index: int) -> OpDesc: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[OpDesc, ...]: ...
    def __getitem__(self, index: int | slice) -> OpDesc | tuple[OpDesc, ...]:
        found = self._ops[index]
        return WrappedTuple(found) if isinstance(found, list) else found

    def __repr__(self) -> str:
        return f"<PipelineBody {several(len(self), 'op')}>"

    def __str__(self) -> str:
        return "\n".join([repr(self)[1:-1].replace(" ", ": ", 1), *(f"  {n:4d}  {op}" for n, op in enumerate(self))])

    def _append(self, op: OpDesc) -> PipelineBody:
        if len(self._ops) == MOST_OPS:  # told where it happens: a loop that never ends would not come to build()
            check_count("the body", "ops or more", MOST_OPS + 1, MOST_OPS, author_line())
        self._ops.append(op)
        return self


def _count(owner: object, name: str, value: int) -> int:
    if not is_int(value) or value < 0:
        raise bad_field(owner, name, value, "an integer, at least 0")
    return value


def mma_block_interleave_list(ops: Iterable[OpDesc], config: PipelineConfig) -> tuple[OpDesc, ...]:
    """Before each MMA: the fragments of a row or column it is the first to use, then loads while the block has room.

    Loads and fragments for which no block had room are in front of the last MMA.
    """
    waiting = list(check_elements("a body", ops, OpDesc))
    mmas = [op for op in waiting if op.role is OpRole.COMPUTE]
    waiting = [op for op in waiting if op.role is not OpRole.COMPUTE]
    sizing = expect("the pipeline config", config, PipelineConfig).block_sizing
    first_two = (CHANNEL_B, CHANNEL_A) if config.frag_order.b_before_a else (CHANNEL_A, CHANNEL_B)
    channels = (*first_two, *config.channels[2:])
    seen: set[tuple[int, int]] = set()
    placed: list[OpDesc] = []
    for number, mma in enumerate(mmas):
        new_row = (CHANNEL_A, config.compute_match_key(CHANNEL_A, mma)) not in seen
        fragments: list[OpDesc] = []
        for channel in channels:
            key = (channel, config.compute_match_key(channel, mma))
            if key not in seen:
                seen.add(key)
                fragments += [
                    op for op in waiting if op.role is OpRole.FRAGMENT_LOAD and (op.channel, op.subtile) == key
                ]
        waiting = [op for op in waiting if op not in fragments]
        room = (sizing.heavy if new_row else sizing.light) - len(fragments) - 1
        if sizing.max_globals:
            room = min(max(room, 1), sizing.max_globals)
        loads = [op for op in waiting if op.role is OpRole.GLOBAL_LOAD][: max(room, 0)]
        waiting = [op for op in waiting if op not in loads]
        placed += [*fragments, *loads]
        if number == len(mmas) - 1:
            placed += waiting
            waiting = []
        placed.append(mma)
    return WrappedTuple((*placed, *waiting))


def double_buffer_reorder(ops: Sequence[OpDesc], config: PipelineConfig) -> tuple[OpDesc, ...]:
    """Cut the body into its partitions and interleave each."""
    body = check_elements("a body", ops, OpDesc)
    expect("the pipeline config", config, PipelineConfig)
    cuts = [len(body) * part // config.num_partitions for part in range(config.num_partitions + 1)]
    return WrappedTuple(
        op for start, stop in pairwise(cuts) for op in mma_block_interleave_list(body[start:stop], config)
    )


def single_buffer_reorder(ops: Iterable[OpDesc], config: PipelineConfig) -> tuple[OpDesc, ...]:
    """Reads of this tile, a barrier, the store of the next one beside the computes, a barrier, the carried read.

    The author's own barriers are replaced by these two.
    """
    body = check_elements("a body", ops, OpDesc)
    carried = expect("the pipeline config", config, PipelineConfig).loop_carried.carries
    fragments = [op for op in body if op.role is OpRole.FRAGMENT_LOAD]
    computes = [op for op in body if op.role is OpRole.COMPUTE]
    stores = [op for op in body if op.role is OpRole.SHARED_STORE]
    loads = [op for op in body if op.role is OpRole.GLOBAL_LOAD]
    known = {OpRole.FRAGMENT_LOAD, OpRole.COMPUTE, OpRole.SHARED_STORE, OpRole.GLOBAL_LOAD, OpRole.SYNC}
    others = [op for op in body if op.role not in known]
    return WrappedTuple(
        (
            *(op for op in fragments if not carried(op)),
            *(op for op in computes if carried(op)),
            OpDesc.barrier(),
            *stores,
            *loads,
            *(op for op in computes if not carried(op)),
            *others,
            OpDesc.barrier(),
            *(op for op in fragments if carried(op)),
        )
    )


def optimal_schedule(body: LoopBody, max_vgpr: int = UNLIMITED_VGPR, scheduler: Scheduler | None = None) -> Ordering:
    """Least makespan, then least register peak, over all orders within the budget."""
    return (scheduler or scheduler_named(SchedulingStrategy.CSP)).order(OrderProblem(body=body, max_vgpr=max_vgpr))


def optimal_schedule_with_halves(
    body: LoopBody,
    *,
    partitions: int = 2,
    max_globals: int = 0,
    lds_contention_penalty: int = 0,
    max_vgpr: int = UNLIMITED_VGPR,
) -> Ordering:
    """The same with the partitions kept apart, at most `max_globals` loads between two computes, and port conflicts."""
    return scheduler_named(SchedulingStrategy.CSP).order(
        OrderProblem(
            body=body,
            partitions=partitions,
            max_globals=max_globals,
            lds_contention_penalty=lds_contention_penalty,
            max_vgpr=max_vgpr,
        )
    )


def greedy_schedule(body: LoopBody, partitions: int = 2, lds_contention_penalty: int = 0) -> Ordering:
    """Partition by partition, always the lowest-index ready op."""
    return GreedyScheduler().order(
        OrderProblem(body=body, partitions=partitions, lds_contention_penalty=lds_contention_penalty)
    )


def simple_greedy_schedule(body: LoopBody, lds_contention_penalty: int = 0) -> Ordering:
    """Always the lowest-index ready op of the whole body."""
    return greedy_schedule(body, 1, lds_contention_penalty)


def optimize_within_barriers(ops: Sequence[OpDesc], edges: Sequence[DepEdge]) -> tuple[OpDesc, ...]:
    """Order the ops between two barriers optimally; the barriers stay, and no op crosses one.

    A segment that is already as short and needs as few registers as any order of it is kept as it is.
    """
    graph = LoopBody(ops, edges)
    given = tuple(ops)
    cuts = [index for index, op in enumerate(given) if op.role is OpRole.SYNC]
    bounds = [-1, *cuts, len(given)]
    _check_barriers_kept(graph, cuts)
    result: list[OpDesc] = []
    for before, after in pairwise(bounds):
        members = range(before + 1, after)
        result += [given[members[place]] for place in _best_order(_segment(graph, members))]
        result += given[after : after + 1]
    return WrappedTuple(result)


def _segment(graph: LoopBody, members: range) -> LoopBody:
    """The ops of one segment with the dependencies among them."""
    first = members.start
    edges = [
        DepEdge(edge.producer_idx - first, edge.consumer_idx - first, edge.dep_kind)
        for edge in graph.edges
        if edge.loop_distance == 0 and edge.producer_idx in members and edge.consumer_idx in members
    ]
    return LoopBody(graph.ops[first : members.stop], edges)


def _best_order(segment: LoopBody) -> tuple[int, ...]:
    problem = OrderProblem(body=segment)
    given = tuple(range(len(segment.ops)))
    if any(producer > index for index, producers in enumerate(segment.predecessors()) for producer in producers):
        return scheduler_named(SchedulingStrategy.CSP).order(problem).order
    cost = evaluate_order(segment, given)
    if cost == (makespan_lower_bound(segment), peak_lower_bound(problem)):
        return given
    best = scheduler_named(SchedulingStrategy.CSP).order(problem)
    return given if cost == (best.makespan, best.vgpr_peak) else best.order


def _check_barriers_kept(graph: LoopBody, cuts: Sequence[int]) -> None:
    """A barrier stays where it is, so no dependency may point backward across one."""
    for edge in graph.edges:
        producer, consumer = edge.producer_idx, edge.consumer_idx
        if edge.loop_distance or producer < consumer:
            continue
        crossed = next((cut for cut in cuts if consumer <= cut <= producer), None)
        if crossed is not None:
            ops = graph.ops
            raise OrderError.of(
                "O103",
                f"{ops[consumer]} is before a barrier and depends on {ops[producer]} after it",
                concerns=(
                    ops[producer].concern(producer, "must come first"),
                    ops[crossed].concern(crossed, "the barrier between them"),
                    ops[consumer].concern(consumer, "must come later"),
                ),
                evidence=(("edge", f"{edge.dep_kind.value} distance 0"), ("barriers", len(cuts))),
                fixes=("loop_distance=1 if the result of the iteration before is meant",),
            )
