"""Derive prologue and epilogue, of a double buffer and of a single one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from rota.check import check_elements, expect
from rota.errors import ProgramError
from rota.order.acyclic.problem import DepEdge, DepKind, LoopBody
from rota.pipeline.block import MMABlockSpec, PipelineProgram
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import FrameworkTag, OpDesc, ScheduleEntry, entries_of, numbers_of
from rota.pipeline.schedule_config import ScheduleConfig
from rota.printing import WrappedTuple
from rota.program.kinds import OpRole, Phase

_STAGE_LANDED = OpDesc.wait_vm(0).made_by("a stage lands before the loop", knobs=("partial_prologue_drain",))
_BETWEEN_STAGES = OpDesc.barrier().made_by("a barrier between stages", knobs=("partial_prologue_drain",))
_CLOSING_BARRIER = OpDesc.barrier().made_by("closes the epilogue of a double buffer", knobs=("depth",))


def derive_prologue_from_program(
    program: PipelineProgram,
    config: PipelineConfig,
    sched: ScheduleConfig = ScheduleConfig(),
    bootstrap: Sequence[OpDesc] = (),
) -> tuple[ScheduleEntry, ...]:
    """Fill every stage with its first tile, stage by stage.

    Normally each stage is drained (`wait_vm(0)`) before the next one's loads follow a barrier.  With
    `partial_prologue_drain` all prefetches stay in flight, and each bootstrap fragment waits for just the prefetch
    of the same ordinal.
    """
    expect("the program", program, PipelineProgram)
    expect("the pipeline config", config, PipelineConfig)
    expect("the schedule config", sched, ScheduleConfig)
    prefetches = _prefetches_by_stage(program.blocks, config)
    if not sched.partial_prologue_drain:
        ops: list[OpDesc] = []
        for stage, loads in enumerate(prefetches):
            ops += [_BETWEEN_STAGES] if stage else []
            ops += [*loads, _STAGE_LANDED]
        return entries_of(ops, Phase.PROLOGUE)
    flat = [op for loads in prefetches for op in loads]
    in_flight = sum(op.vm_cost for op in flat)
    ops = list(flat)
    for index, fragment in enumerate(check_elements("bootstrap_frags()", bootstrap, OpDesc)):
        if index >= len(flat):
            raise ProgramError.of(
                "P110",
                f"bootstrap fragment {index} has no prefetch to wait for: the prologue has {len(flat)}",
                concerns=(fragment.concern(index),),
                evidence=(("bootstrap fragments", len(bootstrap)), ("prologue prefetches", len(flat))),
            )
        in_flight -= flat[index].vm_cost
        hook = "bootstrap_frags"
        wait = OpDesc.wait_vm(in_flight).made_by(f"prefetch {index} has landed, later ones may not", hook=hook)
        barrier = OpDesc.barrier().made_by("every wave's part of the prefetch has landed", hook=hook)
        ops += [wait, barrier, fragment.made_by("the loop reads this fragment a partition ahead", hook=hook)]
    return entries_of(ops, Phase.PROLOGUE)


def derive_epilogue_from_program(program: PipelineProgram, config: PipelineConfig) -> tuple[ScheduleEntry, ...]:
    """The last partitions without their prefetches, every wait a full drain, closed by a barrier."""
    ops = [op for block in derive_epilogue_blocks(program, config) for op in block.expand()]
    return entries_of([*ops, _CLOSING_BARRIER], Phase.EPILOGUE)


def derive_epilogue_blocks(program: PipelineProgram, config: PipelineConfig) -> tuple[MMABlockSpec, ...]:
    expect("the program", program, PipelineProgram)
    prefetches = (op for block in program.blocks for op in block.data_ops if op.is_prefetch_load)
    landed = OpDesc.wait_vm(0).made_by("what the loop prefetched has landed", ops=numbers_of(prefetches))
    blocks: list[MMABlockSpec] = []
    for partition in range(expect("the pipeline config", config, PipelineConfig).num_partitions):
        blocks += _fuse(_strip_prefetches(program.partition_blocks(partition), landed))
    if blocks:
        blocks[-1] = blocks[-1].but(pre_sync=None)
    return tuple(blocks)


def stagger_index(body: Iterable[OpDesc], prologue_length: int, config: PipelineConfig) -> int:
    """After how many prologue entries the second wave group executes its extra barrier."""
    rule = config.warp_stagger
    if not rule.enabled:
        return prologue_length + 1
    if rule.compute_from_body:
        return sum(op.is_prefetch_load and op.stage == 0 for op in body)
    return rule.fixed_amount


def _prefetches_by_stage(blocks: Sequence[MMABlockSpec], config: PipelineConfig) -> list[list[OpDesc]]:
    """Each stage's prefetch loads in block and slot order, at the offset that fills it first, with their vm cost."""
    stages: list[list[OpDesc]] = [[] for _ in range(config.depth)]
    for block in blocks:
        for op in (*block.global_loads, *block.trailing_ops):
            if op.is_prefetch_load:
                first = config.stage_k_offset(op.stage)
                fills = op.origin and op.origin.because(f"fills stage {op.stage} before the loop")
                stages[op.stage].append(op.but(k_offset=first, vm_cost=config.vm_tokens(op), origin=fills))
    return stages


def _strip_prefetches(part: Sequence[MMABlockSpec], landed: OpDesc) -> list[MMABlockSpec]:
    """Blocks of one partition without prefetches; from the first that had one, vmcnt is drained."""
    drains = False
    stripped: list[MMABlockSpec] = []
    for block in part:
        drains = drains or any(op.is_prefetch_load for op in block.global_loads)
        stripped.append(
            block.but(
                global_loads=_without_prefetches(block.global_loads),
                trailing_ops=_without_prefetches(block.trailing_ops),
                entry_wait=None,
                entry_wait_lgkm=_drain(block),
                pre_sync=landed if drains else None,
                trailing_sched_barrier=False,
                drain_lgkm_before_loads=False,
                global_before_frag=False,
                barrier_before_pre_ops=False,
                wrap_waits_with_sched_barrier=False,
            )
        )
    return stripped


def _drain(block: MMABlockSpec) -> OpDesc:
    """Every block of the epilogue begins with all LDS reads over."""
    ops = (*block.pre_ops, *_without_prefetches(block.global_loads), block.mma, *block.trailing_ops)
    return OpDesc.wait_lgkm(0).made_by("every block of the epilogue waits for LDS reads", ops=numbers_of(ops))


def _without_prefetches(ops: Iterable[OpDesc]) -> tuple[OpDesc, ...]:
    return tuple(op for op in ops if not op.is_prefetch_load)


def _fuse(part: Sequence[MMABlockSpec]) -> list[MMABlockSpec]:
    """Left to right in pairs: a block that only computes joins the one before it."""
    fused: list[MMABlockSpec] = []
    index = 0
    while index < len(part):
        block = part[index]
        follower = part[index + 1] if index + 1 < len(part) else None
        if follower is not None and not follower.pre_ops and not follower.global_loads:
            block = block.but(
                entry_wait_lgkm=block.entry_wait_lgkm and block.entry_wait_lgkm.and_because_of(follower.mma),
                fused_mmas=(follower.mma,),
                trailing_ops=(*block.trailing_ops, *follower.trailing_ops),
            )
            index += 1
        fused.append(block)
        index += 1
    return fused


class SingleBufferPhases(NamedTuple):
    """The three parts of the pipelined loop."""

    prologue: tuple[ScheduleEntry, ...]
    kernel: tuple[ScheduleEntry, ...]
    epilogue: tuple[ScheduleEntry, ...]


def derive_single_buffer_phases(body: Sequence[OpDesc], config: PipelineConfig) -> SingleBufferPhases:
    """One tile in LDS, one in registers: the prologue stages two tiles, the epilogue computes the last two."""
    loads = [op for op in body if op.role is OpRole.GLOBAL_LOAD]
    stores = [op for op in body if op.role is OpRole.SHARED_STORE]
    fragments = [op for op in body if op.role is OpRole.FRAGMENT_LOAD]
    computes = [op for op in body if op.role is OpRole.COMPUTE]
    for name, found in (
        ("global load", loads),
        ("shared store", stores),
        ("fragment load", fragments),
        ("compute", computes),
    ):
        if not found:
            raise ProgramError.of(
                "P112",
                f"a single-buffer body needs a {name}; this one has none",
                evidence=((f"{name}s", 0), ("ops in the body", len(body))),
            )
    for load in loads:
        if all(store.channel != load.channel for store in stores):
            raise ProgramError.of(
                "P116",
                f"{load} fills the staging registers of channel {load.channel}; no store takes them to LDS",
                concerns=(load.concern(list(body).index(load)), *(store.concern() for store in stores)),
                evidence=(
                    ("channel of the load", load.channel),
                    ("channels of the stores", ", ".join(sorted({str(store.channel) for store in stores}))),
                ),
                fixes=(f"a store with channel={load.channel}", "leave the load out"),
            )
    carried = [op for op in fragments if config.loop_carried.carries(op)]
    others = [op for op in fragments if not config.loop_carried.carries(op)]
    fence = OpDesc.schedule_barrier().made_by("a fence for the compiler between phases", knobs=("depth",))
    barrier = OpDesc.barrier().made_by("a barrier between the store and the reads of one buffer", knobs=("depth",))
    prologue = [*loads, *stores, barrier, *loads, *carried, fence]
    epilogue = [fence, *others, barrier, *stores, *computes, fence, barrier, *fragments, *computes, fence]
    return SingleBufferPhases(
        prologue=entries_of(prologue, Phase.PROLOGUE),
        kernel=entries_of(body, Phase.KERNEL),
        epilogue=entries_of(epilogue, Phase.EPILOGUE),
    )


# What phases are derived from besides blocks.
#
# A rotating fragment has subtile 0 and reads a stage that is not its own partition's: it fills, while this
# partition still computes, the registers that a later partition starts with.

_CHAINED_MMAS = 3
"""The reference links a partition's first three MMAs."""


def filter_spurious_cross_stage_flow(
    edges: Iterable[DepEdge], body: Sequence[OpDesc], config: PipelineConfig
) -> tuple[DepEdge, ...]:
    """Drop the FLOW edges that connect a rotating fragment with computes of its own partition."""
    ops, part = _partition(body, config)
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
    ops, part = _partition(body, config)
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


def _partition(body: Sequence[OpDesc], config: PipelineConfig) -> tuple[tuple[OpDesc, ...], list[int]]:
    expect("the pipeline config", config, PipelineConfig)
    ops = check_elements("a body", body, OpDesc)
    return ops, [config.partition_of_index(index, len(ops)) for index in range(len(ops))]
