"""Prologue and epilogue of a double buffer: takes the finalized program, gives what runs before and after the loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rota.check import check_elements, expect
from rota.errors import Finding, ProgramError
from rota.pipeline.block import MMABlockSpec
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc, numbers_of
from rota.pipeline.pipeline_program import PipelineProgram
from rota.pipeline.schedule_config import ScheduleConfig
from rota.pipeline.schedule_entry import ScheduleEntry, entries_of
from rota.program.phase import Phase

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
            raise ProgramError(
                Finding(
                    code="P110",
                    message=f"bootstrap fragment {index} has no prefetch to wait for: the prologue has {len(flat)}",
                    concerns=(fragment.concern(index),),
                    evidence=(("bootstrap fragments", len(bootstrap)), ("prologue prefetches", len(flat))),
                )
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
    """Stripped and fused blocks of the epilogue."""
    expect("the program", program, PipelineProgram)
    prefetches = (op for block in program.blocks for op in block.data_ops if op.is_prefetch_load)
    landed = OpDesc.wait_vm(0).made_by("what the loop prefetched has landed", ops=numbers_of(prefetches))
    blocks: list[MMABlockSpec] = []
    for partition in range(expect("the pipeline config", config, PipelineConfig).num_partitions):
        blocks += _fused(_stripped(program.partition_blocks(partition), landed))
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


def _stripped(part: Sequence[MMABlockSpec], landed: OpDesc) -> list[MMABlockSpec]:
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
                entry_wait_lgkm=_drained(block),
                pre_sync=landed if drains else None,
                trailing_sched_barrier=False,
                drain_lgkm_before_loads=False,
                global_before_frag=False,
                barrier_before_pre_ops=False,
                wrap_waits_with_sched_barrier=False,
            )
        )
    return stripped


def _drained(block: MMABlockSpec) -> OpDesc:
    """Every block of the epilogue begins with all LDS reads over."""
    ops = (*block.pre_ops, *_without_prefetches(block.global_loads), block.mma, *block.trailing_ops)
    return OpDesc.wait_lgkm(0).made_by("every block of the epilogue waits for LDS reads", ops=numbers_of(ops))


def _without_prefetches(ops: Iterable[OpDesc]) -> tuple[OpDesc, ...]:
    return tuple(op for op in ops if not op.is_prefetch_load)


def _fused(part: Sequence[MMABlockSpec]) -> list[MMABlockSpec]:
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
