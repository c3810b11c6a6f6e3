"""The kernel program: takes a body, its config and knobs, gives ordered blocks with waits, and the ordering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rota.check import check_elements, expect
from rota.errors import DeclarationError, Finding, ProgramError, Severity
from rota.order.acyclic.check_ordering import check_ordering
from rota.order.acyclic.edge import DepEdge
from rota.order.acyclic.loop_body import LoopBody
from rota.order.acyclic.problem import Ordering, OrderProblem
from rota.order.acyclic.registry import BUILT_IN, scheduler_named
from rota.pipeline.checks import check_described, verify_schedule
from rota.pipeline.config import LEAST_BLOCK_DEPTH, PipelineConfig
from rota.pipeline.edges import derive_edges_from_ops
from rota.pipeline.group import construct_blocks, redistribute_loads, with_drains
from rota.pipeline.op import OpDesc, numbered_ops
from rota.pipeline.pipeline_program import PipelineProgram
from rota.pipeline.schedule_config import ScheduleConfig
from rota.pipeline.waits import derive_drain_mask, derive_waits_from_blocks, patch_waits


class OrderedProgram(NamedTuple):
    """A program and the ordering it was cut from."""

    program: PipelineProgram
    ordering: Ordering


def build_kernel_program(
    body: Sequence[OpDesc],
    config: PipelineConfig,
    sched: ScheduleConfig = ScheduleConfig(),
    edges: Sequence[DepEdge] = (),
) -> PipelineProgram:
    """Order the body, cut it into blocks, redistribute loads, derive waits and drains, and check the structure.

    Without `edges` the default rules apply.  What `verify_schedule` calls an error is raised; `compile_schedule`
    proves the whole loop besides.
    """
    if not expect("the pipeline config", config, PipelineConfig).has_blocks:
        raise DeclarationError(
            Finding(
                code="D106",
                message="build_kernel_program() builds the blocks of a double buffer; a single buffer has none",
                evidence=(("depth", config.depth), ("least depth with blocks", LEAST_BLOCK_DEPTH)),
                fixes=("compile_schedule(schedule) compiles a single buffer: its kernel is its body",),
            )
        )
    check_described("the body", check_elements("a body", body, OpDesc))
    ops = numbered_ops(body)
    program = build_ordered_program(ops, config, sched, edges or derive_edges_from_ops(ops, config)).program
    if wrong := [each for each in verify_schedule(program, sched) if each.severity is Severity.ERROR]:
        raise ProgramError(*wrong)
    return program


def build_ordered_program(
    body: Sequence[OpDesc], config: PipelineConfig, sched: ScheduleConfig, edges: Sequence[DepEdge]
) -> OrderedProgram:
    """The same, with the ordering and its certificate."""
    expect("the pipeline config", config, PipelineConfig)
    expect("the schedule config", sched, ScheduleConfig)
    problem = order_problem(body, config, sched, edges)
    ordering = scheduler_named(sched.scheduling).order(problem)
    if sched.scheduling not in BUILT_IN:  # a third party's answer is re-checked like a solver's
        check_ordering(problem, ordering)
    given = tuple(body)
    ordered = [given[index] for index in ordering.order]
    return OrderedProgram(derive_program(ordered, config, sched), ordering)


def order_problem(
    body: Sequence[OpDesc], config: PipelineConfig, sched: ScheduleConfig, edges: Sequence[DepEdge]
) -> OrderProblem:
    """What a scheduler is asked, once body and edges are sound."""
    graph = LoopBody(body, edges)
    for index, op in enumerate(body):
        config.check_stage(op, index)
    return OrderProblem(
        body=graph,
        partitions=config.num_partitions,
        max_globals=config.block_sizing.max_globals,
        lds_contention_penalty=sched.lds_contention_penalty,
        max_vgpr=sched.max_vgpr,
    )


def derive_program(ordered: Sequence[OpDesc], config: PipelineConfig, sched: ScheduleConfig) -> PipelineProgram:
    """The blocks of ops that are in order."""
    blocks = construct_blocks(ordered, config, sched)
    blocks = with_drains(redistribute_loads(blocks, config.block_sizing.max_globals), sched.drain_lgkm_mask)
    if sched.auto_waits:
        blocks = patch_waits(blocks, derive_waits_from_blocks(blocks, config, sched), config, sched)
        if sched.auto_drain:
            blocks = with_drains(blocks, derive_drain_mask(blocks))
    return PipelineProgram(blocks=blocks, config=config)
