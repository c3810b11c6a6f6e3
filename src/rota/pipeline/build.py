"""Build the kernel program: order the body, group it into blocks, plan waits, check the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rota.check import bad_field, check_elements, expect
from rota.errors import DeclarationError, Finding, ProgramError, Severity, several
from rota.order.acyclic.check_ordering import check_ordering
from rota.order.acyclic.greedy import BUILT_IN, scheduler_named
from rota.order.acyclic.problem import DepEdge, LoopBody, Ordering, OrderProblem
from rota.pipeline.block import (
    MMABlockSpec,
    PipelineProgram,
    derive_drain_mask,
    derive_main_wait_vm,
    derive_waits_from_blocks,
    drains_otherwise,
    lgkm_cost,
    patch_waits,
)
from rota.pipeline.config import LEAST_BLOCK_DEPTH, PipelineConfig
from rota.pipeline.op import FrameworkTag, OpDesc, ScheduleEntry, number_ops, numbers_of
from rota.pipeline.rules import derive_edges_from_ops
from rota.pipeline.schedule_config import NO_FIRST_WAIT, ScheduleConfig
from rota.program.kinds import OpRole, Phase, ResourceKind

# Block building.
#
# A block is the run of ops that ends with a compute. It has one class, tested in this order: first of its
# partition, first block with a cross-stage fragment, last of its partition, other.


class _Run(NamedTuple):
    pre_ops: tuple[OpDesc, ...]
    global_loads: tuple[OpDesc, ...]
    mma: OpDesc


def construct_blocks(
    ordered: Sequence[OpDesc], config: PipelineConfig, sched: ScheduleConfig
) -> tuple[MMABlockSpec, ...]:
    """Cut the ordered ops after each compute and plan every block's waits and flags."""
    runs, trailing = _cut(ordered)
    if len(runs) != config.total_blocks:
        raise ProgramError.of(
            "P101",
            f"the body has {len(runs)} computes, but {config.num_partitions} partitions of a "
            f"{config.m_mmas}x{config.n_mmas} grid need {config.total_blocks}",
            evidence=(("computes", len(runs)), ("blocks", config.total_blocks)),
            fixes=("m_mmas, n_mmas and num_partitions must describe the computes that build_body() declares",),
        )
    main_wait = derive_main_wait_vm(ordered, config)
    size = config.blocks_per_partition
    cross = [bool(_fragments_of_other_stages([run], index // size, config)) for index, run in enumerate(runs)]
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
            entry_wait=OpDesc.wait_vm(main_wait).made_by(
                "another stage is read here or later in the partition: one partition's share may stay in flight",
                ops=numbers_of(_fragments_of_other_stages(part, partition, config)),
            )
            if waits_at_entry
            else None,
            trailing_sched_barrier=bool(sched.sched_barrier_mask >> index & 1),
            global_before_frag=sched.global_before_frag,
            barrier_before_pre_ops=sched.barrier_before_pre_ops,
            wrap_waits_with_sched_barrier=sched.wrap_waits_with_sched_barrier,
        )
        blocks.append(_plan_sync(plain, place=place, size=size, first_cross=first_cross, sched=sched))
    return with_drains(blocks, sched.drain_lgkm_mask)


def with_drains(blocks: Iterable[MMABlockSpec], mask: int) -> tuple[MMABlockSpec, ...]:
    """Set each block's drain flag from its mask bit; a drain needs fragments and loads around it."""
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


def _fragments_of_other_stages(runs: Sequence[_Run], partition: int, config: PipelineConfig) -> list[OpDesc]:
    own = config.stage_of_partition(partition)
    return [op for run in runs for op in run.pre_ops if op.role is OpRole.FRAGMENT_LOAD and op.stage != own]


def _plan_sync(block: MMABlockSpec, *, place: int, size: int, first_cross: bool, sched: ScheduleConfig) -> MMABlockSpec:
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
        raise DeclarationError.of(
            "D115",
            f"{owner}: nothing says what {whole} do; an op from OpDesc.logical() has no role yet",
            concerns=tuple(op.concern(index, "no role") for index, op in bare[:_MOST_SHOWN]),
            evidence=(("without a role", len(bare)), ("ops", len(ops))),
            fixes=(f"return annotate_ops(ops, cost_model) from {owner}", "OpDesc.op(tag, role=..., ...) states it"),
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
        raise ProgramError.of(
            "P111",
            f"build_explicit_blocks() gave {several(len(blocks), 'listing')} for "
            f"{several(len(program.blocks), 'block')}",
            evidence=(("listings", len(blocks)), ("blocks", len(program.blocks))),
            fixes=("give one listing per block, empty where the template should stand, or none at all",),
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
        "P102",
        f"the kernel loses {several(lost.total(), 'declared op')} and issues "
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
                "P118",
                f"{body[ends[0]]} must come before {body[ends[1]]}, and the kernel issues it after it",
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
            "P104",
            "no load fetches a tile ahead: every stage would be read before it was ever filled",
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
                "P105",
                f"partition {partition} completes no other stage, though other partitions do",
                severity=Severity.WARNING,
                concerns=tuple(op.concern(role="completes another partition's stage") for op in used),
                evidence=(("completion loads of the partition", 0), ("of all partitions", len(used))),
            )


def _lgkm_bounds(program: PipelineProgram, sched: ScheduleConfig) -> Iterator[Finding]:
    """The wait may leave in flight what the loads after the fragments cost on lgkmcnt, and nothing more."""
    for partition in range(program.config.num_partitions):
        block = program.partition_blocks(partition)[0]
        limit = sum(lgkm_cost(op, program.config, sched) for op in block.global_loads)
        wait = block.pre_sync if block.entry_wait_lgkm is None else block.entry_wait_lgkm
        if wait is None or wait.tag != FrameworkTag.WAIT_LGKM or wait.wait_value <= limit:
            continue
        yield Finding(
            "W101",
            f"{wait} in partition {partition}'s first block may leave fragments in flight: "
            f"the loads after them cost {limit} tokens",
            severity=Severity.WARNING,
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
                    "P103",
                    f"block {index} computes from stage {own} but reads a fragment of stage {op.stage}",
                    concerns=(op.concern(role=f"reads stage {op.stage}"), block.mma.concern(role=f"stage {own}")),
                    evidence=(("stage", op.stage), ("expected", own)),
                    fixes=("cross_stage_rotation=True if subtile 0 is meant to be read a partition ahead",),
                )


def _uniform_distribution(program: PipelineProgram) -> Iterator[Finding]:
    limit = program.config.block_sizing.max_globals
    for index, block in enumerate(program.blocks):
        if limit and len(block.global_loads) > limit:
            yield Finding(
                "P106",
                f"block {index} holds {len(block.global_loads)} loads; max_globals allows {limit}",
                severity=Severity.WARNING,
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
                        "P107",
                        f"block {earlier} overwrites the tile that block {index} still reads",
                        concerns=(load.concern(role="overwrites"), op.concern(role="reads")),
                        evidence=(("written in block", earlier), ("read in block", index)),
                    )
            written |= {(op.channel, op.subtile): (index, op) for op in block.global_loads if op.stage == own}


class OrderedProgram(NamedTuple):
    """A program and the ordering it was cut from."""

    program: PipelineProgram
    ordering: Ordering


def build_kernel_program(
    body: Sequence[OpDesc],
    config: PipelineConfig,
    sched: ScheduleConfig = ScheduleConfig(),
    edges: Sequence[DepEdge] = (),
) -> PipelineProgram:
    """Order the body, cut it into blocks, redistribute loads, derive waits and drains, and check the structure.

    Without `edges` the default rules apply.  What `verify_schedule` calls an error is raised; `compile_schedule`
    proves the whole loop besides.
    """
    if not expect("the pipeline config", config, PipelineConfig).has_blocks:
        raise DeclarationError.of(
            "D106",
            "build_kernel_program() builds the blocks of a double buffer; a single buffer has none",
            evidence=(("depth", config.depth), ("least depth with blocks", LEAST_BLOCK_DEPTH)),
            fixes=("compile_schedule(schedule) compiles a single buffer: its kernel is its body",),
        )
    check_described("the body", check_elements("a body", body, OpDesc))
    ops = number_ops(body)
    program = build_ordered_program(ops, config, sched, edges or derive_edges_from_ops(ops, config)).program
    if wrong := [each for each in verify_schedule(program, sched) if each.severity is Severity.ERROR]:
        raise ProgramError(*wrong)
    return program


def build_ordered_program(
    body: Sequence[OpDesc], config: PipelineConfig, sched: ScheduleConfig, edges: Sequence[DepEdge]
) -> OrderedProgram:
    """The same, with the ordering and its certificate."""
    expect("the pipeline config", config, PipelineConfig)
    expect("the schedule config", sched, ScheduleConfig)
    problem = order_problem(body, config, sched, edges)
    ordering = scheduler_named(sched.scheduling).order(problem)
    if sched.scheduling not in BUILT_IN:  # a third party's answer is re-checked like a solver's
        check_ordering(problem, ordering)
    given = tuple(body)
    ordered = [given[index] for index in ordering.order]
    return OrderedProgram(derive_program(ordered, config, sched), ordering)


def order_problem(
    body: Sequence[OpDesc], config: PipelineConfig, sched: ScheduleConfig, edges: Sequence[DepEdge]
) -> OrderProblem:
    """What a scheduler is asked, once body and edges are sound."""
    graph = LoopBody(body, edges)
    for index, op in enumerate(body):
        config.check_stage(op, index)
    return OrderProblem(
        body=graph,
        partitions=config.num_partitions,
        max_globals=config.block_sizing.max_globals,
        lds_contention_penalty=sched.lds_contention_penalty,
        max_vgpr=sched.max_vgpr,
    )


def derive_program(ordered: Sequence[OpDesc], config: PipelineConfig, sched: ScheduleConfig) -> PipelineProgram:
    blocks = construct_blocks(ordered, config, sched)
    blocks = with_drains(redistribute_loads(blocks, config.block_sizing.max_globals), sched.drain_lgkm_mask)
    if sched.auto_waits:
        blocks = patch_waits(blocks, derive_waits_from_blocks(blocks, config, sched), config, sched)
        if sched.auto_drain:
            blocks = with_drains(blocks, derive_drain_mask(blocks))
    return PipelineProgram(blocks=blocks, config=config)
