"""The reference's faults, put back on purpose: takes our blocks, gives what the reference would have kept of them.

Where rota deviates from the reference by intention, the comparison re-introduces exactly that fault and then demands
equality, so that a deviation can't hide another difference.  Numbers are those of the corpus' list of findings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rota.order.acyclic.problem import DepEdge
from rota.pipeline.block import MMABlockSpec
from rota.pipeline.op import NO_CHANNEL, FrameworkTag, KOffsetKind, OpDesc, ScheduleEntry
from rota.program.kinds import OpRole

REFERENCE_SLOTS = 2


def with_two_slots(blocks: Sequence[MMABlockSpec]) -> tuple[MMABlockSpec, ...]:
    """Fault 2: a block keeps two fragments and two loads; the rest, and ops after the last MMA, are dropped."""
    return tuple(
        block.but(
            pre_ops=block.pre_ops[:REFERENCE_SLOTS], global_loads=block.global_loads[:REFERENCE_SLOTS], trailing_ops=()
        )
        for block in blocks
    )


def without_surplus(blocks: Sequence[MMABlockSpec], max_globals: int) -> tuple[MMABlockSpec, ...]:
    """Fault 2 again: surplus loads for which redistribution finds no room are dropped."""
    if max_globals == 0:
        return tuple(blocks)
    return tuple(block.but(global_loads=block.global_loads[:max_globals]) for block in blocks)


def within_one_trip(edges: Sequence[DepEdge], body: Sequence[OpDesc]) -> list[DepEdge]:
    """Fault 10: a load and a fragment of one stage are as far apart as if no fragment fed the next trip."""

    def distance(edge: DepEdge) -> int:
        producer, consumer = body[edge.producer_idx], body[edge.consumer_idx]
        if (producer.role, consumer.role) == (OpRole.FRAGMENT_LOAD, OpRole.GLOBAL_LOAD):
            return 0
        if (producer.role, consumer.role) == (OpRole.GLOBAL_LOAD, OpRole.FRAGMENT_LOAD):
            return 0 if producer.k_offset is KOffsetKind.K_PREV else 1
        return edge.loop_distance

    return [replace(edge, loop_distance=distance(edge)) for edge in edges]


def kernel_deps_by_halves(kernel: Sequence[ScheduleEntry]) -> list[DepEdge]:
    """Fault 17: the kernel is split at n // 2 of its entries, wherever the partitions really meet."""
    middle = len(kernel) // 2
    deps: list[DepEdge] = []
    for start, stop in ((0, middle), (middle, len(kernel))):
        ops = [(index, kernel[index].op) for index in range(start, stop)]
        mmas = [index for index, op in ops if op.role is OpRole.COMPUTE]
        syncs = [index for index, op in ops if op.role is OpRole.SYNC]
        waits = [index for index, op in ops if op.tag == FrameworkTag.WAIT_LGKM]
        if not mmas:
            continue
        if syncs and syncs[0] < mmas[0]:
            deps.append(DepEdge(syncs[0], mmas[0]))
        if waits:
            deps.append(DepEdge(waits[0], mmas[0]))
        if len(mmas) > 2:
            deps += [DepEdge(mmas[0], mmas[1]), DepEdge(mmas[1], mmas[2])]
    return deps


def without_channel(op: OpDesc) -> OpDesc:
    """Fault 23: a prologue load forgets its channel and registers."""
    if op.role is not OpRole.GLOBAL_LOAD:
        return op
    return op.but(channel=NO_CHANNEL, vgpr_def=0, vgpr_kill=0)


def lost_by_interleave(ours: Sequence[OpDesc], theirs: Sequence[OpDesc]) -> list[OpDesc] | None:
    """Fault 3: the ops of ours that theirs lacks, if theirs is ours with some ops left out; else None."""
    lost: list[OpDesc] = []
    remaining = list(theirs)
    for op in ours:
        if remaining and op == remaining[0]:
            remaining.pop(0)
        else:
            lost.append(op)
    return None if remaining else lost
