"""What a user gets, beside what was recorded, with nothing reinstated: each recorded field equal or not, in groups.

The comparisons in `compare.py` put the reference's faults back and then demand equality of every field.  This one puts
nothing back: it compiles the case as a user would and says field by field whether the two are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rota.errors import GraphError, OrderError
from rota.order.acyclic.greedy import scheduler_named
from rota.order.acyclic.problem import LoopBody, Ordering, OrderProblem, evaluate_order, makespan_lower_bound
from rota.pipeline.block import MMABlockSpec, derive_drain_mask, derive_main_wait_vm, derive_waits_from_blocks
from rota.pipeline.body import greedy_schedule, optimal_schedule, optimal_schedule_with_halves, simple_greedy_schedule
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.pipeline.compiler import compile_schedule
from rota.pipeline.op import ScheduleEntry
from rota.pipeline.phases import derive_epilogue_blocks
from tests.conformance.compare_generic import graph_of, scheduler_graph, single_buffer_of, strategy_of
from tests.conformance.corpus import Case, Row, edge_rows, entry_rows, recorded, recorded_entries, rows, schedule_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Something recorded, its group, and the deviations (docs/deviations.md) for which it may differ."""

    group: str
    what: str
    deviations: tuple[int, ...] = ()


FIELDS = {
    "prologue": Field(group="entries", what="ops and waits that the prologue issues", deviations=(2, 3, 13)),
    "kernel": Field(group="entries", what="ops and waits that the kernel issues", deviations=(2, 3, 13)),
    "epilogue": Field(group="entries", what="ops and waits that the epilogue issues", deviations=(2, 3, 13)),
    "waits": Field(group="waits", what="waits and barriers of the phases, with counts", deviations=(2, 3, 13)),
    "counts": Field(group="waits", what="the derived counts and the drain mask", deviations=(2, 3, 13)),
    "channels": Field(group="metadata", what="channel and registers of issued ops", deviations=(23, 2, 3, 13)),
    "slots": Field(group="metadata", what="time slots and prefetch flags", deviations=(2, 3, 13)),
    "positions": Field(group="metadata", what="positions of blocks, MMAs and drains", deviations=(18, 2, 3, 13)),
    "deps": Field(group="metadata", what="dependencies between kernel entries", deviations=(17, 2, 3, 13)),
    "stagger": Field(group="metadata", what="where the second wave group falls back", deviations=(2, 3, 13)),
    "total_edges": Field(group="metadata", what="`total_edges`", deviations=(24,)),
    "body": Field(group="graph", what="the ops that the schedule hands over", deviations=(3,)),
    "edges": Field(group="graph", what="dependency edges", deviations=(3, 10)),
    "times": Field(group="graph", what="start times, lower bounds, evaluated orders", deviations=(3, 10, 15)),
    "order": Field(group="order", what="order or its quality: makespan, registers", deviations=(3, 10, 13, 14)),
    "end": Field(group="end", what="answered, or refused", deviations=(12, 13, 16, 26)),
}
BY_THEIR_NATURE = ("channels", "total_edges")
"""Metadata that the reference drops, or states as one number for every shape."""
GROUPS = tuple(dict.fromkeys(field.group for field in FIELDS.values()))

_PHASES = ("prologue", "kernel", "epilogue")
_SAID = slice(10, 13)  # columns of a row that say something about an op, and change nothing that is issued
_WAITING = ("WAIT_VM", "WAIT_LGKM", "BARRIER")

Found = Iterator[tuple[str, bool]]
Entries = Sequence[tuple[Row | None, int, int]]


def compare_as_recorded(name: str, case: Case) -> dict[str, bool]:
    """Every recorded field of a case in this file: equal as recorded, or not."""
    if name == "single_buffer":
        found = _single_buffer(case)
    elif name == "four_wave_schedulers":
        found = _scheduler(case)
    elif name.startswith("generic_"):
        found = _GENERIC[name](case)
    else:
        found = _double_buffer(case)
    equal: dict[str, bool] = {}
    for field, same in found:
        equal[field] = equal.get(field, True) and same
    return equal


def _double_buffer(case: Case) -> Found:
    schedule = schedule_of(case)
    body = tuple(schedule.build_body())
    edges = schedule.derive_edges(body)
    graph = LoopBody(body, edges)
    penalty = schedule.schedule_config().lds_contention_penalty
    yield "total_edges", schedule.config().total_edges == case["pipeline_config"]["total_edges"]
    yield "body", rows(body) == recorded(case, case["body"])
    yield "edges", edge_rows(edges) == case["edges"]
    yield from _times(case, graph, penalty)
    yield "end", case["outcome"] == "ok"
    if case["outcome"] != "ok":
        return
    try:
        compiled = compile_schedule(schedule, sync="as_written")
    except OrderError:
        yield from ((field, False) for field, said in FIELDS.items() if 13 in said.deviations)
        return
    assert compiled.program is not None
    assert compiled.ordering is not None
    yield "order", _summary(compiled.ordering) == case["scheduled"]
    yield from _phases(case, compiled)
    ordered = [body[index] for index in compiled.ordering.order]
    blocks, config = compiled.program.blocks, compiled.config
    counts = list(derive_waits_from_blocks(blocks, config, compiled.schedule_config))
    yield "counts", derive_main_wait_vm(ordered, config) == case["main_wait_vm"]
    yield "counts", counts == case["waits"]
    yield "counts", derive_drain_mask(blocks) == case["drain_mask"]
    yield "positions", [list(place) for place in compiled.program.block_places()] == case["block_positions"]
    yield "positions", compiled.program.total_entries == case["total_entries"]
    yield "positions", _places(blocks) == [columns[22:25] for columns in case["blocks"]]
    tail = derive_epilogue_blocks(compiled.program, config)
    yield "positions", _places(tail) == [columns[22:25] for columns in case["epilogue_blocks"]]


def _single_buffer(case: Case) -> Found:
    schedule = single_buffer_of(case)
    compiled = compile_schedule(schedule, sync="as_written")
    graph = LoopBody(compiled.body, compiled.edges)
    yield "end", case["outcome"] == "ok"
    yield "total_edges", compiled.config.total_edges == case["pipeline_config"]["total_edges"]
    yield "body", rows(compiled.body) == recorded(case, case["body"])
    yield "edges", edge_rows(compiled.edges) == case["edges"]
    yield from _times(case, graph, 0)
    yield from _phases(case, compiled)


def _phases(case: Case, compiled: CompiledPipeline) -> Found:
    for phase in _PHASES:
        entries: tuple[ScheduleEntry, ...] = getattr(compiled, phase)
        ours, theirs = entry_rows(entries), recorded_entries(case, phase)
        yield phase, _issued(ours) == _issued(theirs)
        yield "waits", _waits(ours) == _waits(theirs)
        yield "channels", [op and op[_SAID] for op, *_ in ours] == [op and op[_SAID] for op, *_ in theirs]
        yield "slots", [said for _, *said in ours] == [said for _, *said in theirs]
    yield "deps", edge_rows(compiled.kernel_deps) == case["kernel_deps"]
    yield "stagger", compiled.warp_stagger_index == case["warp_stagger_index"]


def _issued(entries: Entries) -> list[Row]:
    """Tag, stage, subtile, K offset, counter costs, wait count, resource, latency, role: in their order."""
    return [op[: _SAID.start] for op, *_ in entries if op is not None]


def _waits(entries: Entries) -> list[Row]:
    return [op for op in _issued(entries) if op[0] in _WAITING]


def _places(blocks: Sequence[MMABlockSpec]) -> list[list[int]]:
    return [[-1 if place is None else place for place in block.positions()] for block in blocks]


def _times(case: Case, graph: LoopBody, penalty: int) -> Found:
    yield "times", list(graph.compute_asap()) == case["asap"]
    yield "times", graph.critical_path() == case["alap_makespan"]
    yield "times", list(graph.compute_alap(case["alap_makespan"])) == case["alap"]
    yield "times", makespan_lower_bound(graph, penalty) == case["lower_bound"]
    if "lower_bound_no_penalty" in case:
        yield "times", makespan_lower_bound(graph) == case["lower_bound_no_penalty"]
    if "eval_identity" in case:
        evaluated = evaluate_order(graph, tuple(range(len(graph.ops))), penalty)
        yield "times", list(evaluated) == [case["eval_identity"][name] for name in ("makespan", "vgpr_peak")]
    if "eval_simple_greedy" in case:
        yield "times", _summary(simple_greedy_schedule(graph, penalty)) == case["eval_simple_greedy"]


def _scheduler(case: Case) -> Found:
    graph = scheduler_graph(case)
    yield "times", list(graph.compute_asap()) == case["asap"]
    yield "times", makespan_lower_bound(graph) == case["lower_bound"]
    name = case["input"]["scheduler"]
    if name == "simple_greedy_schedule":
        yield "order", _summary(simple_greedy_schedule(graph)) == case["scheduled"]
    try:
        if name != "simple_greedy_schedule":
            scheduler_named(strategy_of(case)).order(OrderProblem(body=graph, partitions=2))
    except OrderError:
        yield "end", case["outcome"] == "crash"
    else:
        yield "end", case["outcome"] == "ok"


def _optimal(case: Case) -> Found:
    graph = graph_of(case)
    yield from _times(case, graph, 0)
    yield "order", _summary(simple_greedy_schedule(graph)) == case["simple_greedy"]
    yield from _answered(case["optimal"], lambda: optimal_schedule(graph, max_vgpr=case["max_vgpr"]))


def _penalty(case: Case) -> Found:
    graph, penalty = graph_of(case), case["lds_contention_penalty"]
    yield from _times(case, graph, 0)
    yield "times", makespan_lower_bound(graph, penalty) == case["lower_bound_penalty"]
    yield "order", _summary(simple_greedy_schedule(graph, penalty)) == case["simple_greedy"]
    yield "end", True


def _halves(case: Case) -> Found:
    graph, penalty = graph_of(case), case["lds_contention_penalty"]
    yield from _times(case, graph, penalty)
    greedy = greedy_schedule(graph, 2, penalty)
    yield "end", case["greedy_outcome"] == "ok"
    if case["greedy_outcome"] == "ok":
        yield "order", _summary(greedy) == case["greedy"]
    if "with_halves" in case:
        yield from _answered(
            case["with_halves"],
            lambda: optimal_schedule_with_halves(
                graph,
                max_globals=case["max_globals_per_block"],
                lds_contention_penalty=penalty,
                max_vgpr=case["max_vgpr"],
            ),
        )


def _odd(case: Case) -> Found:
    theirs = case["optimal_schedule"]
    try:
        graph = graph_of(case)
    except GraphError:
        yield "end", case["validate"]["outcome"] == "crash"
        return
    yield "times", list(graph.compute_asap()) == theirs["asap"]
    yield "order", _summary(simple_greedy_schedule(graph)) == theirs["simple_greedy"]
    yield "order", _summary(optimal_schedule(graph)) == theirs["optimal"]
    yield "end", case["greedy_schedule"]["outcome"] == "ok"


def _answered(theirs: dict[str, Any], ask: Callable[[], Ordering]) -> Found:
    """Among orders of equal quality the reference's is one of several: makespan and registers are compared."""
    try:
        ours = ask()
    except OrderError:
        yield from (("order", False), ("end", False))
        return
    yield "order", [ours.makespan, ours.vgpr_peak] == [theirs["makespan"], theirs["vgpr_peak"]]
    yield "end", True


def _summary(ordering: Ordering) -> dict[str, Any]:
    return {"order": list(ordering.order), "makespan": ordering.makespan, "vgpr_peak": ordering.vgpr_peak}


_GENERIC = {"generic_optimal": _optimal, "generic_penalty": _penalty, "generic_halves": _halves, "generic_odd": _odd}
