"""Comparison of single-buffer and generic cases: takes a recorded case, gives deviations and differences."""

from __future__ import annotations

from typing import Any

from rota.errors import GraphError, OrderError
from rota.kernels.single_buffer import SchedGroupHints, SingleBufferSchedule
from rota.order.acyclic.greedy import scheduler_named
from rota.order.acyclic.problem import LDS_PORT, LoopBody, Ordering, OrderProblem, evaluate_order, makespan_lower_bound
from rota.pipeline.body import (
    greedy_schedule,
    optimal_schedule,
    optimal_schedule_with_halves,
    simple_greedy_schedule,
    single_buffer_reorder,
)
from rota.pipeline.compiler import compile_schedule
from rota.pipeline.config import annotate_ops
from rota.pipeline.op import OpDesc, SingleBufferTag
from rota.pipeline.phases import derive_single_buffer_phases
from rota.program.kinds import OpRole, ResourceKind
from tests.conformance.compare import Comparison
from tests.conformance.corpus import (
    Case,
    edge_rows,
    edges_from_rows,
    entry_rows,
    op_from_row,
    recorded,
    recorded_entries,
    rows,
)

_HINT_FIELDS = ("m_mmas", "n_mmas", "k_mmas", "mma_m", "mma_n", "a_loads_per_thread", "b_loads_per_thread")


def compare_single_buffer(case: Case) -> Comparison:
    """A single-buffer schedule, every recorded field."""
    result = Comparison(case)
    schedule = single_buffer_of(case)
    config = schedule.config()
    result.equal("total_edges", config.total_edges, case["pipeline_config"]["total_edges"], deviation=24)
    result.equal("depth", config.depth, case["pipeline_config"]["depth"])
    result.equal("partitions", config.num_partitions, case["pipeline_config"]["num_partitions"])
    result.equal("logical", rows(schedule.declare_ops()), recorded(case, case["logical"]))
    reordered = single_buffer_reorder(annotate_ops(schedule.declare_ops(), schedule.target.cost_model), config)
    result.equal("reordered", rows(reordered), recorded(case, case["reordered"]))
    compiled = compile_schedule(schedule, sync="as_written")
    body = compiled.body
    result.equal("body", rows(body), recorded(case, case["body"]))
    result.equal("edges", edge_rows(compiled.edges), case["edges"])
    graph = LoopBody(body, compiled.edges)
    _compare_starts(result, graph)
    result.equal("eval_simple_greedy", _summary(simple_greedy_schedule(graph)), case["eval_simple_greedy"])
    plain = derive_single_buffer_phases(body, config).kernel
    result.equal("kernel_no_hints", entry_rows(plain), recorded_entries(case, "kernel_no_hints"))
    for phase in ("prologue", "kernel", "epilogue"):
        result.equal(phase, entry_rows(getattr(compiled, phase)), recorded_entries(case, phase))
    result.equal("kernel_deps", edge_rows(compiled.kernel_deps), case["kernel_deps"])
    result.equal("warp_stagger_index", compiled.warp_stagger_index, case["warp_stagger_index"])
    return result


def single_buffer_of(case: Case) -> SingleBufferSchedule:
    """The case's input as a schedule of ours."""
    given = case["input"]
    hints = SchedGroupHints(**{name: given[name] for name in _HINT_FIELDS})
    return SingleBufferSchedule(given["num_k_tiles"], hints)


def compare_optimal(case: Case) -> Comparison:
    """`optimal_schedule` on a random graph: as good as our own enumeration, or refused where nothing fits."""
    result, graph = Comparison(case), graph_of(case)
    _compare_starts(result, graph)
    result.equal("simple_greedy", _summary(simple_greedy_schedule(graph)), case["simple_greedy"])
    theirs = [case["optimal"]["makespan"], case["optimal"]["vgpr_peak"]]
    exhaustive = case.get("exhaustive", {})  # larger graphs were not enumerated
    best = exhaustive.get("best_in_budget", exhaustive.get("best"))
    try:
        ours = optimal_schedule(graph, max_vgpr=case["max_vgpr"])
    except OrderError as error:
        result.equal("refused with O201", error.findings[0].code, "O201")
        result.equal("nothing fits", best, None)
        result.deviations.add(13)
        return result
    if exhaustive:
        result.equal("exhaustive best", [ours.makespan, ours.vgpr_peak], best)
    over = theirs[1] > case["max_vgpr"]
    better = [ours.makespan, ours.vgpr_peak] < theirs
    result.equal("optimal", [ours.makespan, ours.vgpr_peak], theirs, deviation=13 if over else 14 if better else None)
    return result


def compare_penalty(case: Case) -> Comparison:
    """The penalty in evaluation and bound; the reference's own search runs without it, ours with it."""
    result, graph = Comparison(case), graph_of(case)
    _compare_starts(result, graph)
    penalty = case["lds_contention_penalty"]
    result.equal("simple_greedy", _summary(simple_greedy_schedule(graph, penalty)), case["simple_greedy"])
    makespan, peak = evaluate_order(graph, case["optimal"]["order"], penalty)
    result.equal("evaluation", [makespan, peak], [case["optimal"]["makespan"], case["optimal"]["vgpr_peak"]])
    ports = sum(op.resource in LDS_PORT for op in graph.ops)
    ours, theirs = makespan_lower_bound(graph, penalty), case["lower_bound_penalty"]
    result.equal("lower_bound_penalty", ours, theirs, deviation=15 if theirs == ports * penalty else None)
    best = case["exhaustive"]["best"]
    result.equal("bound is valid", ours <= best[0], True)
    found = optimal_schedule_with_halves(graph, partitions=1, lds_contention_penalty=penalty)
    result.equal("exhaustive best", [found.makespan, found.vgpr_peak], best)
    return result


def compare_halves(case: Case) -> Comparison:
    """Greedy and exact orders of two-half bodies."""
    result, graph = Comparison(case), graph_of(case)
    _compare_starts(result, graph)
    penalty = case["lds_contention_penalty"]
    greedy = greedy_schedule(graph, 2, penalty)
    if case["greedy_outcome"] == "ok":
        result.equal("greedy", _summary(greedy), case["greedy"])
    else:  # 16: the reference only knows four MMAs per half
        result.deviations.add(16)
        result.equal("greedy order", sorted(greedy.order), list(range(len(graph.ops))))
    exhaustive = case.get("exhaustive")
    best = exhaustive and exhaustive.get("best_in_budget", exhaustive["best"])
    try:
        ours = optimal_schedule_with_halves(
            graph, max_globals=case["max_globals_per_block"], lds_contention_penalty=penalty, max_vgpr=case["max_vgpr"]
        )
    except OrderError as error:
        result.equal("refused", error.findings[0].code in {"O201", "O202", "O203"}, True)
        result.equal("nothing fits", best, None)
        result.deviations.add(13)
        return result
    if exhaustive:
        result.equal("exhaustive best", [ours.makespan, ours.vgpr_peak], best)
    if "with_halves" in case:
        theirs = case["with_halves"]
        over = theirs["vgpr_peak"] > case["max_vgpr"]
        summary = [theirs["makespan"], theirs["vgpr_peak"]]
        better = [ours.makespan, ours.vgpr_peak] < summary
        deviation = 13 if over else 14 if better else None
        result.equal("with_halves", [ours.makespan, ours.vgpr_peak], summary, deviation=deviation)
    return result


def compare_odd(case: Case) -> Comparison:
    """Malformed and degenerate graphs: refused with a code, or scheduled as recorded."""
    result = Comparison(case)
    theirs = case["optimal_schedule"]
    try:
        graph = graph_of(case)
    except GraphError as error:
        result.equal("code family", error.findings[0].code[0], "G")
        result.equal("validate", "refused", "refused" if case["validate"]["outcome"] == "crash" else "ok", deviation=26)
        return result
    result.equal("asap", list(graph.compute_asap()), theirs["asap"])
    result.equal("simple_greedy", _summary(simple_greedy_schedule(graph)), theirs["simple_greedy"])
    result.equal("optimal", _summary(optimal_schedule(graph)), theirs["optimal"])
    if case["greedy_schedule"]["outcome"] != "ok":
        result.deviations.add(16)
    try:
        result.equal("greedy length", len(greedy_schedule(graph).order), len(graph.ops))
    except OrderError as error:  # an edge from the second half back to the first
        result.equal("greedy refused", error.findings[0].code, "O103")
    return result


def compare_four_wave_scheduler(case: Case) -> Comparison:
    """Schedulers on the 4-wave graph, whose wrap-around ANTI edges point from half 1 back to half 0."""
    result = Comparison(case)
    graph = scheduler_graph(case)
    result.equal("asap", list(graph.compute_asap()), case["asap"])
    result.equal("lower_bound", makespan_lower_bound(graph), case["lower_bound"])
    if case["input"]["scheduler"] == "simple_greedy_schedule":
        result.equal("scheduled", _summary(simple_greedy_schedule(graph)), case["scheduled"])
        return result
    try:
        scheduler_named(strategy_of(case)).order(OrderProblem(body=graph, partitions=2))
    except OrderError as error:
        result.equal("refused with O103", error.findings[0].code, "O103")
    else:
        result.different.append("an order was found")
    result.equal("outcome", "crash", case["outcome"])
    return result


def scheduler_graph(case: Case) -> LoopBody:
    """The 4-wave graph as recorded."""
    return LoopBody([op_from_row(case["ops"][index]) for index in case["body"]], edges_from_rows(case["edges"]))


def strategy_of(case: Case) -> str:
    """Our name for the scheduler that was recorded."""
    return "GREEDY" if case["input"]["scheduler"] == "greedy_schedule" else "CSP"


def graph_of(case: Case) -> LoopBody:
    """A generic case's ops and edges."""
    ops = [
        OpDesc(
            tag=SingleBufferTag.COMPUTE,
            role=OpRole[role],
            resource=ResourceKind[resource],
            latency=latency,
            vgpr_def=vgpr_def,
            vgpr_kill=vgpr_kill,
            subtile=index,
        )
        for index, (role, resource, latency, vgpr_def, vgpr_kill) in enumerate(
            case["body"] if "body" in case else case["ops"]
        )
    ]
    return LoopBody(ops, edges_from_rows(case["edges"]))


def _compare_starts(result: Comparison, graph: LoopBody) -> None:
    case = result.case
    result.equal("asap", list(graph.compute_asap()), case["asap"])
    result.equal("alap_makespan", graph.critical_path(), case["alap_makespan"])
    result.equal("alap", list(graph.compute_alap(case["alap_makespan"])), case["alap"])
    penalty = case.get("lds_contention_penalty", 0) if "greedy_outcome" in case else 0
    ports = sum(op.resource in LDS_PORT for op in graph.ops)
    invalid = 15 if penalty and case["lower_bound"] == ports * penalty else None
    result.equal("lower_bound", makespan_lower_bound(graph, penalty), case["lower_bound"], deviation=invalid)


def _summary(ordering: Ordering) -> dict[str, Any]:
    return {"order": list(ordering.order), "makespan": ordering.makespan, "vgpr_peak": ordering.vgpr_peak}
