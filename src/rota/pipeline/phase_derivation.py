"""What phases are derived from besides blocks: edges of rotating fragments, and dependencies of the kernel's entries.

A rotating fragment has subtile 0 and reads a stage that is not its own partition's: it fills, while this partition
still computes, the registers that a later partition starts with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from rota.check import check_elements, expect
from rota.order.acyclic.edge import DepEdge, DepKind
from rota.order.acyclic.loop_body import LoopBody
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc
from rota.pipeline.pipeline_program import PipelineProgram
from rota.pipeline.schedule_entry import ScheduleEntry
from rota.pipeline.vocabulary import FrameworkTag
from rota.printing import WrappedTuple
from rota.program.kinds import OpRole

_CHAINED_MMAS = 3
"""The reference links a partition's first three MMAs."""


def filter_spurious_cross_stage_flow(
    edges: Iterable[DepEdge], body: Sequence[OpDesc], config: PipelineConfig
) -> tuple[DepEdge, ...]:
    """Drop the FLOW edges that connect a rotating fragment with computes of its own partition."""
    ops, part = _partitioned(body, config)
    return WrappedTuple(
        edge
        for edge in LoopBody(ops, tuple(edges)).edges
        if not (
            edge.dep_kind is DepKind.FLOW
            and ops[edge.consumer_idx].role is OpRole.COMPUTE
            and part[edge.producer_idx] == part[edge.consumer_idx]
            and config.rotates(ops[edge.producer_idx], part[edge.producer_idx])
        )
    )


def derive_cross_stage_rotation_edges(body: Sequence[OpDesc], config: PipelineConfig) -> tuple[DepEdge, ...]:
    """FLOW from each rotating fragment to the computes it feeds, ANTI from the computes whose registers it takes."""
    ops, part = _partitioned(body, config)
    computes = [index for index, op in enumerate(ops) if op.role is OpRole.COMPUTE]
    edges: list[DepEdge] = []
    for index, op in enumerate(ops):
        if not config.rotates(op, part[index]):
            continue
        fed, distance = config.partition_fed(op, part[index])
        for compute in computes:
            if config.compute_match_key(op.channel, ops[compute]) != op.subtile:
                continue
            if part[compute] == part[index]:
                edges.append(DepEdge(compute, index, DepKind.ANTI, 0))
            elif part[compute] == fed:
                edges.append(DepEdge(index, compute, DepKind.FLOW, distance))
    return WrappedTuple(edges)


def derive_kernel_deps(kernel: Sequence[ScheduleEntry], bounds: Sequence[int]) -> tuple[DepEdge, ...]:
    """Per partition [bounds[p], bounds[p + 1]): first sync and first lgkm wait before the first MMA, then its chain."""
    deps: list[DepEdge] = []
    for start, stop in pairwise(bounds):
        part = kernel[start:stop]
        mmas = [start + i for i, entry in enumerate(part) if entry.op.role is OpRole.COMPUTE]
        if not mmas:
            continue
        syncs = [start + i for i, entry in enumerate(part) if entry.op.role is OpRole.SYNC]
        waits = [i for i in syncs if kernel[i].op.tag == FrameworkTag.WAIT_LGKM]
        deps += [DepEdge(found[0], mmas[0]) for found in (syncs, waits) if found and found[0] < mmas[0]]
        if len(mmas) >= _CHAINED_MMAS:
            deps += [DepEdge(first, second) for first, second in pairwise(mmas[:_CHAINED_MMAS])]
    return tuple(deps)


def partition_entry_bounds(program: PipelineProgram) -> tuple[int, ...]:
    """Where each partition starts among the kernel's entries, and where the last one ends."""
    starts = [0, *accumulate(len(program.block_ops(index)) for index in range(len(program.blocks)))]
    return tuple(starts[:: program.blocks_per_partition])


def _partitioned(body: Sequence[OpDesc], config: PipelineConfig) -> tuple[tuple[OpDesc, ...], list[int]]:
    expect("the pipeline config", config, PipelineConfig)
    ops = check_elements("a body", body, OpDesc)
    return ops, [config.partition_of_index(index, len(ops)) for index in range(len(ops))]
