"""Structural checks of a program: takes finished blocks, gives findings; no flag turns one off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rota.check import bad_field, check_elements, expect
from rota.errors import DeclarationError, Finding, ProgramError, Severity, several
from rota.order.acyclic.edge import DepEdge
from rota.pipeline.op import OpDesc
from rota.pipeline.pipeline_program import PipelineProgram
from rota.pipeline.schedule_config import ScheduleConfig
from rota.pipeline.schedule_entry import ScheduleEntry
from rota.pipeline.vocabulary import FrameworkTag
from rota.pipeline.waits import lgkm_cost
from rota.program.kinds import OpRole, ResourceKind
from rota.program.phase import Phase

_MOST_SHOWN = 3
_SILENT = (OpRole.NONE, OpRole.VALU_COMPUTE)


def verify_schedule(program: PipelineProgram, sched: ScheduleConfig) -> tuple[Finding, ...]:
    """All structural findings of a double-buffer program."""
    expect("the program", program, PipelineProgram)
    expect("the schedule config", sched, ScheduleConfig)
    return (
        *_prefetch_coverage(program),
        *_completion_coverage(program),
        *_lgkm_bounds(program, sched),
        *_stage_consistency(program),
        *_uniform_distribution(program),
        *_overwrites(program),
    )


def check_described(owner: str, ops: Sequence[OpDesc]) -> None:
    """Every op of a body has a role: one that was never annotated would be taken for an op that does nothing."""
    bare = [
        (index, op)
        for index, op in enumerate(ops)
        if op.role is OpRole.NONE and op.resource is ResourceKind.NONE and not op.is_framework
    ]
    if bare:
        whole = "all its ops" if len(bare) == len(ops) else f"{len(bare)} of its {len(ops)} ops"
        raise DeclarationError(
            Finding(
                code="D115",
                message=f"{owner}: nothing says what {whole} do; an op from OpDesc.logical() has no role yet",
                concerns=tuple(op.concern(index, "no role") for index, op in bare[:_MOST_SHOWN]),
                evidence=(("without a role", len(bare)), ("ops", len(ops))),
                fixes=(f"return annotate_ops(ops, cost_model) from {owner}", "OpDesc.op(tag, role=..., ...) states it"),
            )
        )


def check_bootstrap(ops: Sequence[OpDesc]) -> None:
    """What the prologue reads last are fragments."""
    check_described("bootstrap_frags()", ops)
    for op in ops:
        if op.role is not OpRole.FRAGMENT_LOAD:
            raise bad_field(op, "role", op.role, "OpRole.FRAGMENT_LOAD in what bootstrap_frags() returns", op.source)


def check_explicit_blocks(
    explicit: Sequence[Sequence[OpDesc]], program: PipelineProgram
) -> tuple[tuple[OpDesc, ...], ...]:
    """The author's block listings as tuples: one per block, or none at all."""
    blocks = tuple(
        check_elements(f"block {index} of build_explicit_blocks()", ops, OpDesc)
        for index, ops in enumerate(check_elements("build_explicit_blocks()", explicit, object))
    )
    if blocks and len(blocks) != len(program.blocks):
        raise ProgramError(
            Finding(
                code="P111",
                message=f"build_explicit_blocks() gave {several(len(blocks), 'listing')} for "
                f"{several(len(program.blocks), 'block')}",
                evidence=(("listings", len(blocks)), ("blocks", len(program.blocks))),
                fixes=("give one listing per block, empty where the template should stand, or none at all",),
            )
        )
    return blocks


def check_nothing_lost(body: Sequence[OpDesc], kernel: Sequence[ScheduleEntry]) -> Iterator[Finding]:
    """Every declared op is issued exactly once per iteration."""
    # Most kernels issue the very values that the body declared, and identity is far cheaper than equality.
    if sorted(map(id, body)) == sorted(id(entry.op) for entry in kernel if not entry.op.is_framework):
        return
    declared = Counter(op for op in body if not op.is_framework)
    issued = Counter(entry.op for entry in kernel if not entry.op.is_framework)
    if declared == issued:
        return
    lost, extra = declared - issued, issued - declared
    yield Finding(
        code="P102",
        message=f"the kernel loses {several(lost.total(), 'declared op')} and issues "
        f"{several(extra.total(), 'op')} that were not declared",
        concerns=(
            *(op.concern(role="declared, not issued") for op in lost.elements()),
            *(op.concern(role="issued, not declared") for op in extra.elements()),
        ),
        evidence=(("declared", declared.total()), ("issued", issued.total())),
        fixes=("explicit blocks and transform_kernel() must keep every data op of the program's blocks",),
    )


def check_silent_ops(
    body: Sequence[OpDesc], edges: Sequence[DepEdge], kernel: Sequence[ScheduleEntry]
) -> Iterator[Finding]:
    """An op without memory, matrix or LDS access has no effect for a proof to follow, so its edges are checked here.

    An address computed by the VALU is one: a load that is issued before it would use the address of the trip before.
    """
    silent = {number for number, op in enumerate(body) if op.role in _SILENT}
    slots = {number: entry.time_slot for entry in kernel for number in entry.op.body_ops if not entry.op.is_framework}
    for edge in edges:
        ends = edge.producer_idx, edge.consumer_idx
        if edge.loop_distance or silent.isdisjoint(ends) or not slots.keys() >= set(ends):
            continue
        first, second = (slots[end] for end in ends)
        if first > second:
            yield Finding(
                code="P118",
                message=f"{body[ends[0]]} must come before {body[ends[1]]}, and the kernel issues it after it",
                concerns=(
                    body[ends[0]].concern(ends[0], f"issued at {Phase.KERNEL.at(first)}"),
                    body[ends[1]].concern(ends[1], f"issued at {Phase.KERNEL.at(second)}"),
                ),
                evidence=(("edge", f"{edge.dep_kind.value} distance 0"),),
                fixes=("declare it earlier in the body", "scheduling=SchedulingStrategy.GREEDY keeps every edge"),
            )


def _prefetch_coverage(program: PipelineProgram) -> Iterator[Finding]:
    loads = [op for block in program.blocks for op in block.data_ops if op.role is OpRole.GLOBAL_LOAD]
    if not any(op.is_prefetch_load for op in loads):
        yield Finding(
            code="P104",
            message="no load fetches a tile ahead: every stage would be read before it was ever filled",
            concerns=tuple(op.concern() for op in loads),
            evidence=(("loads", len(loads)), ("prefetches", 0)),
            fixes=("declare loads with k_offset K0, K1 or K_NEXT",),
        )


def _completion_coverage(program: PipelineProgram) -> Iterator[Finding]:
    """Where one partition completes another's stage, the derived last vm wait expects that all of them do."""
    config = program.config
    completing: dict[int, list[OpDesc]] = {}
    for partition in range(config.num_partitions):
        own = config.stage_of_partition(partition)
        loads = [op for block in program.partition_blocks(partition) for op in block.global_loads]
        completing[partition] = [op for op in loads if op.stage != own]
    used = [op for ops in completing.values() for op in ops]
    for partition, ops in completing.items():
        if used and not ops:
            yield Finding(
                code="P105",
                severity=Severity.WARNING,
                message=f"partition {partition} completes no other stage, though other partitions do",
                concerns=tuple(op.concern(role="completes another partition's stage") for op in used),
                evidence=(("completion loads of the partition", 0), ("of all partitions", len(used))),
            )


def _lgkm_bounds(program: PipelineProgram, sched: ScheduleConfig) -> Iterator[Finding]:
    """The wait may leave in flight what the loads behind the fragments cost on lgkmcnt, and nothing more."""
    for partition in range(program.config.num_partitions):
        block = program.partition_blocks(partition)[0]
        limit = sum(lgkm_cost(op, program.config, sched) for op in block.global_loads)
        wait = block.pre_sync if block.entry_wait_lgkm is None else block.entry_wait_lgkm
        if wait is None or wait.tag != FrameworkTag.WAIT_LGKM or wait.wait_value <= limit:
            continue
        yield Finding(
            code="W101",
            severity=Severity.WARNING,
            message=(
                f"{wait} in partition {partition}'s first block may leave fragments in flight: "
                f"the loads behind them cost {limit} tokens"
            ),
            concerns=tuple(op.concern(role="may be in flight at the MMA") for op in block.pre_ops),
            evidence=(("wait", wait.wait_value), ("limit", limit)),
            fixes=(f"auto_waits=False, wait_lgkm_first={limit}",),
        )


def _stage_consistency(program: PipelineProgram) -> Iterator[Finding]:
    config = program.config
    for index, block in enumerate(program.blocks):
        own = config.stage_of_partition(program.partition_of_block(index))
        for op in block.pre_ops:
            rotates = config.cross_stage_rotation and op.subtile == 0
            if op.role is OpRole.FRAGMENT_LOAD and op.stage != own and not rotates:
                yield Finding(
                    code="P103",
                    message=f"block {index} computes from stage {own} but reads a fragment of stage {op.stage}",
                    concerns=(op.concern(role=f"reads stage {op.stage}"), block.mma.concern(role=f"stage {own}")),
                    evidence=(("stage", op.stage), ("expected", own)),
                    fixes=("cross_stage_rotation=True if subtile 0 is meant to be read a partition ahead",),
                )


def _uniform_distribution(program: PipelineProgram) -> Iterator[Finding]:
    limit = program.config.block_sizing.max_globals
    for index, block in enumerate(program.blocks):
        if limit and len(block.global_loads) > limit:
            yield Finding(
                code="P106",
                severity=Severity.WARNING,
                message=f"block {index} holds {len(block.global_loads)} loads; max_globals allows {limit}",
                concerns=tuple(op.concern() for op in block.global_loads),
                evidence=(("loads", len(block.global_loads)), ("max_globals", limit)),
                fixes=("a larger max_globals, or 0 for no limit",),
            )


def _overwrites(program: PipelineProgram) -> Iterator[Finding]:
    """Within a partition, a tile of its own stage is read before the load of the next K-tile goes into it."""
    size = program.blocks_per_partition
    for partition in range(program.config.num_partitions):
        own = program.config.stage_of_partition(partition)
        written: dict[tuple[int, int], tuple[int, OpDesc]] = {}
        for index, block in enumerate(program.partition_blocks(partition), partition * size):
            for op in block.pre_ops:
                tile = (op.channel, op.subtile)
                if op.role is OpRole.FRAGMENT_LOAD and op.stage == own and tile in written:
                    earlier, load = written[tile]
                    yield Finding(
                        code="P107",
                        message=f"block {earlier} overwrites the tile that block {index} still reads",
                        concerns=(load.concern(role="overwrites"), op.concern(role="reads")),
                        evidence=(("written in block", earlier), ("read in block", index)),
                    )
            written |= {(op.channel, op.subtile): (index, op) for op in block.global_loads if op.stage == own}
