"""Dependencies inside the expanded kernel: takes its entries and partition bounds, gives the edges a back end keeps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from rota.order.acyclic.edge import DepEdge
from rota.pipeline.pipeline_program import PipelineProgram
from rota.pipeline.schedule_entry import ScheduleEntry
from rota.pipeline.vocabulary import FrameworkTag
from rota.program.kinds import OpRole

_CHAINED_MMAS = 3
"""The reference links a partition's first three MMAs."""


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
