"""Block building: takes the ordered ops and the knobs, gives one `MMABlockSpec` per compute with its planned waits.

A block is the run of ops that ends with a compute.  It has one class, tested in this order: first of its partition,
first block with a cross-stage fragment, last of its partition, other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rota.errors import Finding, ProgramError
from rota.pipeline.block import MMABlockSpec
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc, numbers_of
from rota.pipeline.schedule_config import NO_FIRST_WAIT, ScheduleConfig
from rota.pipeline.waits import derive_main_wait_vm, drains_otherwise
from rota.program.kinds import OpRole


class _Run(NamedTuple):
    """The ops of one block."""

    pre_ops: tuple[OpDesc, ...]
    global_loads: tuple[OpDesc, ...]
    mma: OpDesc


def construct_blocks(
    ordered: Sequence[OpDesc], config: PipelineConfig, sched: ScheduleConfig
) -> tuple[MMABlockSpec, ...]:
    """Cut the ordered ops after each compute and plan every block's waits and flags."""
    runs, trailing = _cut(ordered)
    if len(runs) != config.total_blocks:
        raise ProgramError(
            Finding(
                code="P101",
                message=(
                    f"the body has {len(runs)} computes, but {config.num_partitions} partitions of a "
                    f"{config.m_mmas}x{config.n_mmas} grid need {config.total_blocks}"
                ),
                evidence=(("computes", len(runs)), ("blocks", config.total_blocks)),
                fixes=("m_mmas, n_mmas and num_partitions must describe the computes that build_body() declares",),
            )
        )
    main_wait = derive_main_wait_vm(ordered, config)
    size = config.blocks_per_partition
    cross = [_reads_other_stage(run.pre_ops, index // size, config) for index, run in enumerate(runs)]
    blocks: list[MMABlockSpec] = []
    for index, run in enumerate(runs):
        partition, place = divmod(index, size)
        in_partition = cross[partition * size : (partition + 1) * size]
        part = runs[index : index + 1] if place else runs[partition * size : (partition + 1) * size]
        first_cross = in_partition[place] and not any(in_partition[:place])
        waits_at_entry = first_cross or (place == 0 and any(in_partition))
        plain = MMABlockSpec(
            mma=run.mma,
            pre_ops=run.pre_ops,
            global_loads=run.global_loads,
            trailing_ops=trailing if index == len(runs) - 1 else (),
            entry_wait=_entry_wait(main_wait, part, partition, config) if waits_at_entry else None,
            trailing_sched_barrier=bool(sched.sched_barrier_mask >> index & 1),
            global_before_frag=sched.global_before_frag,
            barrier_before_pre_ops=sched.barrier_before_pre_ops,
            wrap_waits_with_sched_barrier=sched.wrap_waits_with_sched_barrier,
        )
        blocks.append(_synchronised(plain, place=place, size=size, first_cross=first_cross, sched=sched))
    return with_drains(blocks, sched.drain_lgkm_mask)


def with_drains(blocks: Iterable[MMABlockSpec], mask: int) -> tuple[MMABlockSpec, ...]:
    """Set each block's drain flag from its mask bit; a drain needs fragments and loads to stand between."""
    return tuple(
        block.but(drain_lgkm_before_loads=drains) if drains != block.drain_lgkm_before_loads else block
        for index, block in enumerate(blocks)
        for drains in [bool(mask >> index & 1 and block.pre_ops and block.global_loads)]
    )


def redistribute_loads(blocks: Sequence[MMABlockSpec], max_globals: int) -> tuple[MMABlockSpec, ...]:
    """Move surplus loads out of over-full blocks, last one first, into under-full ones in block order.

    One queue spans all partitions, and dependencies are not looked at: that is the reference's rule, reproduced for
    `as_written`; the proof reports what it breaks.  Loads for which no block has room stay where they were.
    """
    if max_globals == 0:
        return tuple(blocks)
    loads = [list(block.global_loads) for block in blocks]
    surplus = [(held, held.pop()) for held in loads for _ in range(len(held) - max_globals)]
    for held in loads:
        while len(held) < max_globals and surplus:
            held.append(surplus.pop(0)[1])
    for held, op in reversed(surplus):
        held.append(op)
    return tuple(
        block if tuple(held) == block.global_loads else block.but(global_loads=tuple(held))
        for block, held in zip(blocks, loads, strict=True)
    )


def _cut(ordered: Sequence[OpDesc]) -> tuple[list[_Run], tuple[OpDesc, ...]]:
    runs: list[_Run] = []
    pre_ops: list[OpDesc] = []
    loads: list[OpDesc] = []
    for op in ordered:
        if op.role is OpRole.COMPUTE:
            runs.append(_Run(tuple(pre_ops), tuple(loads), op))
            pre_ops, loads = [], []
        elif op.role is OpRole.GLOBAL_LOAD:
            loads.append(op)
        else:
            pre_ops.append(op)
    return runs, (*pre_ops, *loads)


def _reads_other_stage(pre_ops: Iterable[OpDesc], partition: int, config: PipelineConfig) -> bool:
    own = config.stage_of_partition(partition)
    return any(op.role is OpRole.FRAGMENT_LOAD and op.stage != own for op in pre_ops)


def _entry_wait(left: int, runs: Sequence[_Run], partition: int, config: PipelineConfig) -> OpDesc:
    """What a block waits for before it, or a later one of its partition, reads another stage."""
    own = config.stage_of_partition(partition)
    fragments = (op for run in runs for op in run.pre_ops if op.role is OpRole.FRAGMENT_LOAD and op.stage != own)
    rule = "another stage is read here or later in the partition: one partition's share may stay in flight"
    return OpDesc.wait_vm(left).made_by(rule, ops=numbers_of(fragments))


def _synchronised(
    block: MMABlockSpec, *, place: int, size: int, first_cross: bool, sched: ScheduleConfig
) -> MMABlockSpec:
    """The waits and template flags of a block's class."""
    first = place == 0 and sched.wait_lgkm_first != NO_FIRST_WAIT
    top = place == 0
    minimal = sched.minimal_barriers
    entry_lgkm = pre_sync = None
    readers = block.entry_wait.body_ops if block.entry_wait else ()
    otherwise = drains_otherwise(sched)
    drains_after_barrier = not minimal
    if first or first_cross:
        if minimal and block.entry_wait is not None:
            rule = "LDS reads are over before the entry wait's barrier"
            knobs = ("wait_lgkm_first", *otherwise) if first else otherwise
            entry_lgkm = OpDesc.wait_lgkm(0).made_by(rule, ops=readers, knobs=knobs)
        elif first:
            wait = OpDesc.wait_lgkm(sched.wait_lgkm_first)
            rule, knobs = "a partition's first block waits for its fragments", ("wait_lgkm_first", *otherwise)
            pre_sync = wait.made_by(rule, ops=readers if first_cross else (), knobs=knobs)
        else:
            rule = "the first block that reads another stage waits"
            pre_sync = OpDesc.wait_lgkm(0).made_by(rule, ops=readers, knobs=otherwise)
    elif place == size - 1:
        wait = OpDesc.wait_vm(sched.wait_vm_last)
        pre_sync = wait.made_by("a partition's last block waits for what the next one reads", knobs=("wait_vm_last",))
        drains_after_barrier = drains_after_barrier and sched.lgkm_after_last
    elif sched.inter_block_lgkm_drain:
        entry_lgkm = OpDesc.wait_lgkm(0).made_by("LDS reads are over between blocks", knobs=("inter_block_lgkm_drain",))
    raises_prio = not minimal or ((top or first_cross) and not sched.omit_mma_set_prio)
    return block.but(
        entry_wait_lgkm=entry_lgkm,
        pre_sync=pre_sync,
        pre_mma_barrier=not minimal,
        pre_mma_set_prio=raises_prio,
        post_mma_barrier=not minimal,
        post_mma_set_prio=not minimal,
        post_barrier_lgkm=drains_after_barrier,
    )
