"""Structural reorders of a body: takes annotated ops, gives the same ops placed around the MMAs; none is ever lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from rota.check import check_elements, expect
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc
from rota.pipeline.vocabulary import CHANNEL_A, CHANNEL_B
from rota.printing import WrappedTuple
from rota.program.kinds import OpRole


def mma_block_interleave_list(ops: Iterable[OpDesc], config: PipelineConfig) -> tuple[OpDesc, ...]:
    """Before each MMA: the fragments of a row or column it is the first to use, then loads while the block has room.

    Loads and fragments for which no block had room stand in front of the last MMA.
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
