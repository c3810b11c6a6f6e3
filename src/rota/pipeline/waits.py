"""Wait derivation: takes ordered ops or finished blocks, gives the counts that the reference's rules derive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rota.check import check_elements, expect
from rota.pipeline.block import MMABlockSpec
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc
from rota.pipeline.schedule_config import ScheduleConfig
from rota.program.kinds import OpRole


class DerivedWaits(NamedTuple):
    """The lgkm wait of a partition's first block and the vm wait of its last."""

    lgkm: int
    vm: int


def derive_main_wait_vm(ordered: Iterable[OpDesc], config: PipelineConfig) -> int:
    """How many tokens an entry wait leaves in flight: all prefetches but one partition's share."""
    total = sum(config.vm_tokens(op) for op in ordered if op.is_prefetch_load)
    return total - total // config.num_partitions


def derive_waits_from_blocks(
    blocks: Sequence[MMABlockSpec], config: PipelineConfig, sched: ScheduleConfig
) -> DerivedWaits:
    """The waits of a partition's first and last block, equal for all partitions.

    First-block lgkm: the most that the loads of a partition's first block cost.  Last-block vm: the least, over the
    partitions, that is left of a partition's loads without those that complete another partition's stage.
    Counting loads without looking at their order is the reference's rule, reproduced for `as_written`.
    """
    check_elements("the blocks", blocks, MMABlockSpec)
    expect("the schedule config", sched, ScheduleConfig)
    size = expect("the pipeline config", config, PipelineConfig).blocks_per_partition
    lgkm: list[int] = []
    vm: list[int] = []
    for partition in range(config.num_partitions):
        part = blocks[partition * size : (partition + 1) * size]
        own = config.stage_of_partition(partition)
        lgkm.append(sum(lgkm_cost(op, config, sched) for op in part[0].global_loads))
        vm.append(sum(config.vm_tokens(op) for b in part for op in b.global_loads if op.stage == own))
    return DerivedWaits(lgkm=max(lgkm), vm=min(vm))


def derive_drain_mask(blocks: Sequence[MMABlockSpec]) -> int:
    """Bit i: block i has a fragment on a channel other than its first load's, so both queue on the LDS port."""
    return sum(
        1 << index
        for index, block in enumerate(check_elements("the blocks", blocks, MMABlockSpec))
        if block.global_loads
        and any(op.role is OpRole.FRAGMENT_LOAD and op.channel != block.global_loads[0].channel for op in block.pre_ops)
    )


def patch_waits(
    blocks: Sequence[MMABlockSpec], waits: DerivedWaits, config: PipelineConfig, sched: ScheduleConfig
) -> tuple[MMABlockSpec, ...]:
    """Put the derived waits into every partition's first and last block."""
    size = config.blocks_per_partition
    lgkm = OpDesc.wait_lgkm(0 if sched.barrier_before_pre_ops else waits.lgkm)
    vm = OpDesc.wait_vm(waits.vm).made_by(
        "a partition's last block leaves its own prefetches in flight", knobs=("auto_waits", "wait_vm_last")
    )
    knobs = ("auto_waits", "wait_lgkm_first", *drains_otherwise(sched))
    patched = list(blocks)
    for partition in range(config.num_partitions):
        first, last = partition * size, (partition + 1) * size - 1
        entry = patched[first].entry_wait
        if sched.minimal_barriers and entry is not None:
            rule = "LDS reads are over before the entry wait's barrier, but for as many as the block's loads cost"
            wait = lgkm.made_by(rule, ops=entry.body_ops, knobs=knobs)
            patched[first] = patched[first].but(entry_wait_lgkm=wait, pre_sync=None)
        else:
            rule = "a partition's first block waits for its fragments"
            readers = entry.body_ops if entry else ()
            patched[first] = patched[first].but(pre_sync=lgkm.made_by(rule, ops=readers, knobs=knobs))
        patched[last] = patched[last].but(pre_sync=vm)
    return tuple(patched)


def drains_otherwise(sched: ScheduleConfig) -> tuple[str, ...]:
    """The knob that drains lgkmcnt at the entry of a block that has no other wait."""
    return ("inter_block_lgkm_drain",) if sched.inter_block_lgkm_drain else ()


def lgkm_cost(op: OpDesc, config: PipelineConfig, sched: ScheduleConfig) -> int:
    """lgkmcnt tokens of one load: its own count, else the pipeline config's, else the schedule config's."""
    return config.lgkm_tokens(op, sched.lgkm_per_load_a, sched.lgkm_per_load_b)
