"""Cross-stage rotation: takes a body whose leading fragments are read a partition ahead, gives the edges that fit it.

A rotating fragment has subtile 0 and reads a stage that is not its own partition's: it fills, while this partition
still computes, the registers that a later partition starts with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rota.check import check_elements, expect
from rota.order.acyclic.edge import DepEdge, DepKind
from rota.order.acyclic.loop_body import LoopBody
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc
from rota.program.kinds import OpRole


def is_rotating_fragment(op: OpDesc, partition: int, config: PipelineConfig) -> bool:
    """A subtile-0 fragment of another partition's stage."""
    return op.role is OpRole.FRAGMENT_LOAD and op.subtile == 0 and op.stage != config.stage_of_partition(partition)


def filter_spurious_cross_stage_flow(
    edges: Iterable[DepEdge], body: Sequence[OpDesc], config: PipelineConfig
) -> tuple[DepEdge, ...]:
    """Drop the FLOW edges that connect a rotating fragment with computes of its own partition."""
    ops, part = _partitioned(body, config)
    return tuple(
        edge
        for edge in LoopBody(ops, tuple(edges)).edges
        if not (
            edge.dep_kind is DepKind.FLOW
            and ops[edge.consumer_idx].role is OpRole.COMPUTE
            and part[edge.producer_idx] == part[edge.consumer_idx]
            and is_rotating_fragment(ops[edge.producer_idx], part[edge.producer_idx], config)
        )
    )


def derive_cross_stage_rotation_edges(body: Sequence[OpDesc], config: PipelineConfig) -> tuple[DepEdge, ...]:
    """FLOW from each rotating fragment to the computes it feeds, ANTI from the computes whose registers it takes."""
    ops, part = _partitioned(body, config)
    computes = [index for index, op in enumerate(ops) if op.role is OpRole.COMPUTE]
    edges: list[DepEdge] = []
    for index, op in enumerate(ops):
        if not is_rotating_fragment(op, part[index], config):
            continue
        fed, distance = _partition_fed(part[index], op.stage, config)
        for compute in computes:
            if config.compute_match_key(op.channel, ops[compute]) != op.subtile:
                continue
            if part[compute] == part[index]:
                edges.append(DepEdge(compute, index, DepKind.ANTI, 0))
            elif part[compute] == fed:
                edges.append(DepEdge(index, compute, DepKind.FLOW, distance))
    return tuple(edges)


def _partitioned(body: Sequence[OpDesc], config: PipelineConfig) -> tuple[tuple[OpDesc, ...], list[int]]:
    expect("the pipeline config", config, PipelineConfig)
    ops = check_elements("a body", body, OpDesc)
    return ops, [config.partition_of_index(index, len(ops)) for index in range(len(ops))]


def _partition_fed(partition: int, stage: int, config: PipelineConfig) -> tuple[int, int]:
    """The next partition, going round, that computes from `stage`, and the loop distance to it."""
    for step in range(1, config.num_partitions + 1):
        fed = partition + step
        if config.stage_of_partition(fed) == stage:
            return fed % config.num_partitions, fed // config.num_partitions
    return partition, 1
