"""One test per intended deviation (docs/deviations.md), independent of the corpus replay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rota import (
    BlockSizing,
    DeclarativeSchedule,
    DepEdge,
    DepKind,
    FrameworkTag,
    KernelGeometry,
    LoopBody,
    OpDesc,
    OpRole,
    OrderError,
    OrderProblem,
    Pipeline4Wave,
    PipelineConfig,
    ResourceKind,
    RotaError,
    ScheduleConfig,
    annotate_ops,
    compile_schedule,
    double_buffer_reorder,
    evaluate_order,
    greedy_schedule,
    makespan_lower_bound,
    mi355x_target,
    optimal_schedule,
    scheduler_named,
)
from rota.pipeline.build import construct_blocks
from tests.conformance.replays import INTENDED
from tests.findings.smallest import Small, two_tiles


def op(resource: ResourceKind, latency: int, vgpr_def: int = 0, vgpr_kill: int = 0) -> OpDesc:
    role = OpRole.COMPUTE if resource is ResourceKind.MMA_UNIT else OpRole.FRAGMENT_LOAD
    return OpDesc(tag=1, resource=resource, latency=latency, role=role, vgpr_def=vgpr_def, vgpr_kill=vgpr_kill)


def data_ops(entries: object) -> Counter[OpDesc]:
    return Counter(entry.op for entry in entries if not entry.op.is_framework)  # type: ignore[attr-defined]


def test_2_blocks_keep_any_number_of_ops() -> None:
    schedule = DeclarativeSchedule(ScheduleConfig(scheduling="GREEDY"), mi355x_target(max_globals=2))
    compiled = compile_schedule(schedule, sync="as_written")
    assert data_ops(compiled.kernel) == Counter(compiled.body)
    assert sum(entry.op.role is OpRole.GLOBAL_LOAD for entry in compiled.prologue) == 7


def test_2_ops_behind_the_last_mma_trail_its_block() -> None:
    *others, mma = two_tiles()
    last_load = others.pop()
    compiled = compile_schedule(Small(ops=(*others, mma, last_load)))
    assert data_ops(compiled.kernel) == Counter(compiled.body)
    assert compiled.kernel[-1].op == last_load


def test_3_interleaving_keeps_loads_without_room() -> None:
    config = mi355x_target().pipeline.but(block_sizing=BlockSizing.uniform(2))
    ops = annotate_ops(DeclarativeSchedule().declare_ops(), mi355x_target().cost_model)
    assert Counter(double_buffer_reorder(ops, config)) == Counter(ops)


def test_12_a_penalty_that_needs_a_search_is_solved() -> None:
    knobs = ScheduleConfig(scheduling="CSP", lds_contention_penalty=8, lgkm_per_load_a=8, lgkm_per_load_b=4)
    ordering = compile_schedule(DeclarativeSchedule(knobs)).ordering
    assert ordering is not None
    assert ordering.gap == 0


def test_13_a_budget_below_every_order_is_refused() -> None:
    with pytest.raises(OrderError) as caught:
        compile_schedule(DeclarativeSchedule(ScheduleConfig(scheduling="CSP", max_vgpr=64)))
    assert caught.value.findings[0].code == "O201"


def test_14_the_lower_peak_wins_among_equal_makespans() -> None:
    body = LoopBody([op(ResourceKind.LDS, 8, 8, 0), op(ResourceKind.LDS, 8, 4, 4), op(ResourceKind.LDS, 8, 0, 0)], [])
    assert evaluate_order(body, (0, 1, 2)).vgpr_peak == 12
    assert optimal_schedule(body).vgpr_peak == 8


def test_15_the_penalty_bound_is_one_that_an_order_reaches() -> None:
    body = LoopBody([op(ResourceKind.LDS, 4), op(ResourceKind.LDS, 4)], [])
    assert makespan_lower_bound(body, 10) == evaluate_order(body, (0, 1), 10).makespan == 14


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 3), (3, 2), (4, 4)])
def test_16_greedy_knows_any_grid(rows: int, columns: int) -> None:
    mmas = [op(ResourceKind.MMA_UNIT, 16) for _ in range(2 * rows * columns)]
    assert greedy_schedule(LoopBody(mmas, [])).order == tuple(range(len(mmas)))


def test_17_kernel_deps_stay_inside_their_partition_and_point_forwards() -> None:
    knobs = ScheduleConfig(scheduling="GREEDY", drain_lgkm_mask=0b1111, sched_barrier_mask=0b1111)
    compiled = compile_schedule(DeclarativeSchedule(knobs, mi355x_target(max_globals=0)))
    assert compiled.program is not None
    second = compiled.program.block_places()[4].first
    assert second != len(compiled.kernel) // 2, "the case must have unequal halves"
    for dep in compiled.kernel_deps:
        assert dep.producer_idx < dep.consumer_idx
        assert (dep.producer_idx < second) == (dep.consumer_idx < second)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("barrier_first", [False, True])
@pytest.mark.parametrize("entry_wait", [False, True])
def test_18_positions_point_at_what_they_name(wrap: bool, barrier_first: bool, entry_wait: bool) -> None:
    knobs = ScheduleConfig(wrap_waits_with_sched_barrier=wrap, barrier_before_pre_ops=barrier_first)
    (block, _) = construct_blocks(two_tiles(), PipelineConfig(m_mmas=1, n_mmas=1), knobs)
    block = block.but(entry_wait=OpDesc.wait_vm(3) if entry_wait else None)
    ops, positions = block.expand(), block.positions()
    assert positions.entry_count == len(ops)
    assert ops[positions.mma] == block.mma
    assert positions.post_barrier_lgkm is not None
    assert ops[positions.post_barrier_lgkm] == OpDesc.wait_lgkm(0)
    assert ops[positions.post_barrier_lgkm - 1].tag == FrameworkTag.BARRIER


def test_23_prologue_loads_keep_their_channel() -> None:
    compiled = compile_schedule(DeclarativeSchedule())
    loads = [entry.op for entry in compiled.prologue if entry.op.role is OpRole.GLOBAL_LOAD]
    assert {load.channel for load in loads} == {0, 1}
    assert all(load.vm_cost == 4 for load in loads)


@pytest.mark.parametrize("strategy", ["GREEDY", "CSP"])
def test_10_fragments_that_feed_the_next_trip_leave_an_order(strategy: str) -> None:
    schedule = Pipeline4Wave(KernelGeometry())
    body = schedule.build_body()
    edges = {(e.producer_idx, e.consumer_idx): e for e in schedule.derive_edges(body)}
    load, fragment = 0, 19  # load_a s0 of partition 0, mma_load_a s0 t0 of partition 1
    assert (edges[fragment, load].dep_kind, edges[fragment, load].loop_distance) == (DepKind.ANTI, 1)
    assert (edges[load, fragment].dep_kind, edges[load, fragment].loop_distance) == (DepKind.FLOW, 0)
    ordering = scheduler_named(strategy).order(
        OrderProblem(body=LoopBody(body, tuple(edges.values())), partitions=2, max_globals=1)
    )
    assert sorted(ordering.order) == list(range(24))


def test_24_total_edges_is_what_the_rules_derive() -> None:
    for schedule in (Pipeline4Wave(KernelGeometry()), DeclarativeSchedule()):
        compiled = compile_schedule(schedule)
        assert compiled.config.total_edges == len(compiled.edges)
    assert compile_schedule(Pipeline4Wave(KernelGeometry())).config.total_edges == 64


@pytest.mark.parametrize("edges", [[(0, 1), (1, 0)], [(0, 0)], [(0, 9)], [(-1, 0)]])
def test_26_malformed_graphs_are_refused(edges: list[tuple[int, int]]) -> None:
    with pytest.raises(RotaError) as caught:
        LoopBody([op(ResourceKind.LDS, 1)] * 2, [DepEdge(*edge) for edge in edges])
    assert caught.value.findings[0].code.startswith("G")


def test_every_intended_deviation_is_documented_and_tested() -> None:
    documented = {
        int(line.split("|")[1])
        for line in Path(__file__).parents[2].joinpath("docs", "deviations.md").read_text("utf-8").splitlines()
        if line.startswith("| ") and line.split("|")[1].strip().isdigit()
    }
    tested = {
        int(name.split("_")[1]) for name in globals() if name.startswith("test_") and name.split("_")[1].isdigit()
    }
    assert documented == tested == INTENDED
