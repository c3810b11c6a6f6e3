"""Field-by-field comparison: takes a recorded double-buffer case, gives the deviations it needed and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rota.errors import OrderError
from rota.order.acyclic.greedy import scheduler_named
from rota.order.acyclic.problem import LDS_PORT, DepEdge, LoopBody, OrderProblem, evaluate_order, makespan_lower_bound
from rota.pipeline.block import (
    MMABlockSpec,
    PipelineProgram,
    derive_drain_mask,
    derive_main_wait_vm,
    derive_waits_from_blocks,
    patch_waits,
)
from rota.pipeline.body import simple_greedy_schedule
from rota.pipeline.build import construct_blocks, redistribute_loads, with_drains
from rota.pipeline.compiler import compile_schedule
from rota.pipeline.op import OpDesc, ScheduleEntry
from rota.pipeline.phases import (
    derive_cross_stage_rotation_edges,
    derive_epilogue_blocks,
    derive_epilogue_from_program,
    derive_kernel_deps,
    derive_prologue_from_program,
    partition_entry_bounds,
    stagger_index,
)
from rota.pipeline.rules import derive_edges_from_ops
from tests.conformance.corpus import (
    Case,
    edge_rows,
    entry_rows,
    recorded,
    recorded_entries,
    recorded_ops,
    row,
    rows,
    schedule_of,
)
from tests.conformance.reference_faults import (
    kernel_deps_by_halves,
    lost_by_interleave,
    with_two_slots,
    within_one_trip,
    without_channel,
    without_surplus,
)


@dataclass(slots=True)
class Comparison:
    """What one case needed to be equal."""

    case: Case
    deviations: set[int] = field(default_factory=set)
    different: list[str] = field(default_factory=list)
    fields: int = 0

    def equal(self, name: str, ours: object, theirs: object, deviation: int | None = None) -> bool:
        """Compare one field; a difference is either the named deviation or a real one."""
        self.fields += 1
        if ours == theirs:
            return True
        if deviation is None:
            self.different.append(name)
        else:
            self.deviations.add(deviation)
        return False

    def has(self, name: str) -> bool:
        """Was the field recorded (a crash or time-out ends the record early)?"""
        return name in self.case


@dataclass(frozen=True, slots=True)
class Derivation:
    """Every intermediate value of a double-buffer compilation."""

    constructed: tuple[MMABlockSpec, ...]
    redistributed: tuple[MMABlockSpec, ...]
    program: PipelineProgram
    epilogue_blocks: tuple[MMABlockSpec, ...]
    prologue: tuple[ScheduleEntry, ...]
    kernel: tuple[ScheduleEntry, ...]
    epilogue: tuple[ScheduleEntry, ...]


def derive_steps(schedule: Any, ordered: tuple[OpDesc, ...], body: tuple[OpDesc, ...], *, faulty: bool) -> Derivation:
    """The compiler's steps one by one, with fault 2 put back where asked."""
    config, sched = schedule.config(), schedule.schedule_config()
    constructed = construct_blocks(ordered, config, sched)
    if faulty:
        constructed = with_two_slots(constructed)
    limit = config.block_sizing.max_globals
    moved = redistribute_loads(constructed, limit)
    moved = with_drains(without_surplus(moved, limit) if faulty else moved, sched.drain_lgkm_mask)
    blocks = moved
    if sched.auto_waits:
        blocks = patch_waits(blocks, derive_waits_from_blocks(blocks, config, sched), config, sched)
        if sched.auto_drain:
            blocks = with_drains(blocks, derive_drain_mask(blocks))
    program = PipelineProgram(blocks=blocks, config=config)
    program = program.with_explicit_blocks(tuple(map(tuple, schedule.build_explicit_blocks(body, program))))
    return Derivation(
        constructed=constructed,
        redistributed=moved,
        program=program,
        epilogue_blocks=derive_epilogue_blocks(program, config),
        prologue=derive_prologue_from_program(program, config, sched, schedule.bootstrap_frags()),
        kernel=program.expand_to_list(),
        epilogue=derive_epilogue_from_program(program, config),
    )


def compare_case(case: Case) -> Comparison:
    """Compare everything that was recorded."""
    result = Comparison(case)
    schedule = schedule_of(case)
    _compare_config(result, schedule)
    ours = tuple(schedule.build_body())
    result.equal("logical", rows(schedule.declare_ops()), recorded(case, case["logical"]))
    body = recorded_ops(case, case["body"])
    lost = lost_by_interleave(ours, body)
    if lost is None:
        result.different.append("body")
        return result
    if lost:
        result.deviations.add(3)
    edges = _compare_graph(result, schedule, body)
    graph = LoopBody(body, edges)
    order = _compare_order(result, schedule, graph)
    if order is None:
        return result
    ordered = tuple(body[index] for index in order)
    _compare_program(result, schedule, ordered, body)
    _compare_product(result, schedule, ours, nothing_lost=not lost and result.deviations.isdisjoint({2, 12, 13}))
    return result


def _compare_config(result: Comparison, schedule: Any) -> None:
    config, sched = schedule.config(), schedule.schedule_config()
    theirs = dict(result.case["pipeline_config"])
    ours: dict[str, Any] = {
        name: getattr(config, name)
        for name in theirs
        if name not in {"loop_carried", "block_sizing", "b_before_a", "warp_stagger", "total_edges"}
    }
    ours["loop_carried"] = [config.loop_carried.role.name, config.loop_carried.subtile]
    ours["block_sizing"] = {name: getattr(config.block_sizing, name) for name in ("heavy", "light", "max_globals")}
    ours["b_before_a"] = config.frag_order.b_before_a
    ours["warp_stagger"] = {
        name: getattr(config.warp_stagger, name) for name in ("enabled", "compute_from_body", "fixed_amount")
    }
    total_edges = theirs.pop("total_edges")
    result.equal("pipeline_config", ours, theirs)
    result.equal("total_edges", config.total_edges, total_edges, deviation=24)
    result.equal(
        "schedule_config",
        {name: getattr(sched, name) for name in result.case["schedule_config"]},
        result.case["schedule_config"],
    )


def _compare_graph(result: Comparison, schedule: Any, body: tuple[OpDesc, ...]) -> Any:
    case, config = result.case, schedule.config()
    if result.has("edges_default"):
        _compare_edges(result, "edges_default", derive_edges_from_ops(body, config), body)
        result.equal("edges_cross", edge_rows(derive_cross_stage_rotation_edges(body, config)), case["edges_cross"])
    edges = _compare_edges(result, "edges", schedule.derive_edges(body), body)
    graph = LoopBody(body, edges)
    result.equal("asap", list(graph.compute_asap()), case["asap"])
    result.equal("alap_makespan", graph.critical_path(), case["alap_makespan"])
    result.equal("alap", list(graph.compute_alap(case["alap_makespan"])), case["alap"])
    penalty = schedule.schedule_config().lds_contention_penalty
    result.equal("lower_bound_no_penalty", makespan_lower_bound(graph), case["lower_bound_no_penalty"])
    ports = sum(op.resource in LDS_PORT for op in body)
    invalid = 15 if case["lower_bound"] == ports * penalty else None
    result.equal("lower_bound", makespan_lower_bound(graph, penalty), case["lower_bound"], deviation=invalid)
    for name, order in (
        ("eval_identity", tuple(range(len(body)))),
        ("eval_simple_greedy", simple_greedy_schedule(graph, penalty).order),
    ):
        makespan, peak = evaluate_order(graph, order, penalty)
        result.equal(name, {"order": list(order), "makespan": makespan, "vgpr_peak": peak}, case[name])
    return edges


def _compare_edges(
    result: Comparison, name: str, ours: Sequence[DepEdge], body: tuple[OpDesc, ...]
) -> Sequence[DepEdge]:
    """Our edges, with the reference's distances where a fragment feeds the next trip."""
    if result.equal(name, edge_rows(ours), result.case[name], deviation=10):
        return ours
    theirs = within_one_trip(ours, body)
    result.equal(f"{name} within one trip", edge_rows(theirs), result.case[name])
    return theirs


def _compare_order(result: Comparison, schedule: Any, graph: LoopBody) -> list[int] | None:
    """Our order of the reference's body; None when the reference never got to one."""
    case, config, sched = result.case, schedule.config(), schedule.schedule_config()
    problem = OrderProblem(
        body=graph,
        partitions=config.num_partitions,
        max_globals=config.block_sizing.max_globals,
        lds_contention_penalty=sched.lds_contention_penalty,
        max_vgpr=sched.max_vgpr,
    )
    if case["outcome"] != "ok":  # 12: the search never ended; 16: it only knew four MMAs per half
        deviation = 12 if case["outcome"].startswith("timeout") else 16
        result.deviations.add(deviation)
        try:
            ordering = scheduler_named(sched.scheduling).order(problem)
        except OrderError as error:
            budget = 13 if any(finding.code == "O201" for finding in error.findings) else None
            result.equal("order of a crashed case", "found", str(error), deviation=budget)
            return None
        result.equal("order of a crashed case", sorted(ordering.order), list(range(len(graph.ops))))
        return None
    expected = case["scheduled"]
    try:
        ordering = scheduler_named(sched.scheduling).order(problem)
        ours = {"order": list(ordering.order), "makespan": ordering.makespan, "vgpr_peak": ordering.vgpr_peak}
        better = (ordering.makespan, ordering.vgpr_peak) < (expected["makespan"], expected["vgpr_peak"])
        result.equal("scheduled", ours, expected, deviation=12 if better else None)
    except OrderError as error:
        over_budget = expected["vgpr_peak"] > sched.max_vgpr and error.findings[0].code == "O201"
        result.equal("scheduled", str(error), expected, deviation=13 if over_budget else None)
    return list(expected["order"])


def _compare_program(result: Comparison, schedule: Any, ordered: tuple[OpDesc, ...], body: tuple[OpDesc, ...]) -> None:
    case, config, sched = result.case, schedule.config(), schedule.schedule_config()
    whole = construct_blocks(ordered, config, sched)
    limit = config.block_sizing.max_globals
    moved = redistribute_loads(whole, limit)
    faulty = whole != with_two_slots(whole) or moved != without_surplus(moved, limit)
    if faulty:
        result.deviations.add(2)
    got = derive_steps(schedule, ordered, body, faulty=faulty)
    result.equal("main_wait_vm", derive_main_wait_vm(ordered, config), case["main_wait_vm"])
    final = case["blocks"]
    constructed = final if case["blocks_constructed"] == "same_as_blocks" else case["blocks_constructed"]
    redistributed = case["blocks_redistributed"]
    if isinstance(redistributed, str):
        redistributed = {"same_as_blocks": final, "same_as_constructed": constructed}[redistributed]
    _compare_blocks(result, "blocks_constructed", got.constructed, constructed)
    _compare_blocks(result, "blocks_redistributed", got.redistributed, redistributed)
    _compare_blocks(result, "blocks", got.program.blocks, final)
    _compare_blocks(result, "epilogue_blocks", got.epilogue_blocks, case["epilogue_blocks"])
    result.equal("waits", list(derive_waits_from_blocks(got.program.blocks, config, sched)), case["waits"])
    result.equal("drain_mask", derive_drain_mask(got.program.blocks), case["drain_mask"])
    result.equal(
        "explicit_blocks",
        [rows(ops) for ops in got.program.explicit_blocks],
        [recorded(case, ops) for ops in case["explicit_blocks"]],
    )
    result.equal("block_positions", [list(place) for place in got.program.block_places()], case["block_positions"])
    result.equal("total_entries", got.program.total_entries, case["total_entries"])
    result.equal("bootstrap", rows(schedule.bootstrap_frags()), recorded(case, case["bootstrap"]))
    theirs = recorded_entries(case, "prologue")
    if not result.equal("prologue", entry_rows(got.prologue), theirs, deviation=23):
        forgetful = [(row(without_channel(entry.op)), entry.time_slot, 0) for entry in got.prologue]
        result.equal("prologue without channels", forgetful, theirs)
    result.equal("kernel", entry_rows(got.kernel), recorded_entries(case, "kernel"))
    result.equal("epilogue", entry_rows(got.epilogue), recorded_entries(case, "epilogue"))
    deps = derive_kernel_deps(got.kernel, partition_entry_bounds(got.program))
    if not result.equal("kernel_deps", edge_rows(deps), case["kernel_deps"], deviation=17):
        result.equal("kernel_deps by halves", edge_rows(kernel_deps_by_halves(got.kernel)), case["kernel_deps"])
    result.equal("warp_stagger_index", stagger_index(body, len(got.prologue), config), case["warp_stagger_index"])


def _compare_blocks(result: Comparison, name: str, ours: tuple[MMABlockSpec, ...], theirs: list[list[Any]]) -> None:
    if not result.equal(f"{name} count", len(ours), len(theirs)):
        return
    for index, (block, columns) in enumerate(zip(ours, theirs, strict=True)):
        result.equal(f"{name}[{index}]", _block_columns(block), _recorded_block(result.case, columns))
        entry_count, mma, drain = block.positions()
        result.equal(f"{name}[{index}] sizes", [entry_count, mma], columns[22:24])
        drifts = 18 if block.wrap_waits_with_sched_barrier or block.barrier_before_pre_ops else None
        result.equal(f"{name}[{index}] drain", -1 if drain is None else drain, columns[24], deviation=drifts)


def _block_columns(block: MMABlockSpec) -> list[Any]:
    return [
        row(block.mma),
        rows(block.pre_ops),
        [(row(op), op.is_prefetch_load) for op in block.global_loads],
        row(block.entry_wait),
        row(block.entry_wait_lgkm),
        row(block.pre_sync),
        rows(block.fused_mmas),
        block.pre_mma_barrier,
        block.pre_mma_set_prio,
        block.post_mma_barrier,
        block.post_mma_set_prio,
        block.post_barrier_lgkm,
        block.post_barrier_sched,
        block.trailing_sched_barrier,
        block.drain_lgkm_before_loads,
        block.global_before_frag,
        block.barrier_before_pre_ops,
        block.wrap_waits_with_sched_barrier,
    ]


def _recorded_block(case: Case, columns: list[Any]) -> list[Any]:
    """Filled slots only: the reference has two of each kind, ours are tuples."""
    mma, pre_0, pre_1, load_0, load_1, *waits, fused = recorded(case, columns[:9])
    prefetches = [(op, bool(flag)) for op, flag in zip((load_0, load_1), columns[16:18], strict=True) if op]
    flags = [*columns[9:16], *columns[18:22]]
    return [mma, [op for op in (pre_0, pre_1) if op], prefetches, *waits, [fused] if fused else [], *map(bool, flags)]


def _compare_product(result: Comparison, schedule: Any, body: tuple[OpDesc, ...], *, nothing_lost: bool) -> None:
    """What a user gets from `compile_schedule`: every op kept, and the same entries where the reference kept all."""
    case = result.case
    try:
        compiled = compile_schedule(schedule, sync="as_written")
    except OrderError as error:
        result.equal("compiled", str(error), "", deviation=13 if 13 in result.deviations else None)
        return
    result.equal("every op kept", Counter(e.op for e in compiled.kernel if not e.op.is_framework), Counter(body))
    if nothing_lost:
        result.equal("compiled kernel", entry_rows(compiled.kernel), recorded_entries(case, "kernel"))
        result.equal("compiled epilogue", entry_rows(compiled.epilogue), recorded_entries(case, "epilogue"))
        result.equal("compiled stagger", compiled.warp_stagger_index, case["warp_stagger_index"])
