"""Drawn pipelines by stages: small bodies with any knobs, some of which rotate fragments, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from rota import (
    BlockSizing,
    ChannelSpec,
    DeclarativeSchedule,
    DepEdge,
    DoubleBufferTag,
    KernelGeometry,
    KOffsetKind,
    OpDesc,
    OpRole,
    Pipeline4Wave,
    PipelineBody,
    PipelineConfig,
    PipelineProgram,
    PipelineSchedule,
    RotaError,
    ScheduleConfig,
    SingleBufferSchedule,
    WarpStaggerRule,
    annotate_ops,
    compile_schedule,
    derive_cross_stage_rotation_edges,
    derive_edges_from_ops,
    emit_minimal_barrier_block,
    filter_spurious_cross_stage_flow,
    mi355x_single_buffer_target,
    mi355x_target,
)
from rota.compiled.proved import add_repairs
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.program.lowered import LoweredProgram
from tests.oracle.by_stages import Stages
from tests.oracle.draw_values import with_assumptions

_OFFSETS = (KOffsetKind.K0, KOffsetKind.K1, KOffsetKind.K_NEXT)


class DrawnPipeline(PipelineSchedule):
    """A body of loads, fragments and MMAs, partition by partition, in any order within each."""

    def __init__(self, pipeline: PipelineConfig, knobs: ScheduleConfig, body: tuple[OpDesc, ...]) -> None:
        self.pipeline, self.knobs, self.body = pipeline, knobs, body

    def config(self) -> PipelineConfig:
        return self.pipeline

    def schedule_config(self) -> ScheduleConfig:
        return self.knobs

    def build_body(self) -> tuple[OpDesc, ...]:
        return self.body


class DrawnRotation(DrawnPipeline):
    """Each partition reads the first fragments of the next one, whose first ones the prologue reads."""

    def __init__(
        self,
        pipeline: PipelineConfig,
        knobs: ScheduleConfig,
        body: tuple[OpDesc, ...],
        bootstrap: tuple[OpDesc, ...],
        *,
        explicit: bool,
    ) -> None:
        super().__init__(pipeline, knobs, body)
        self.bootstrap, self.explicit = bootstrap, explicit

    def but(self, **knobs: Any) -> DrawnRotation:
        """The same body with other knobs."""
        changed = self.knobs.but(**knobs)
        return DrawnRotation(self.pipeline, changed, self.body, self.bootstrap, explicit=self.explicit)

    def bootstrap_frags(self) -> tuple[OpDesc, ...]:
        return self.bootstrap

    def derive_edges(self, body: Sequence[OpDesc]) -> tuple[DepEdge, ...]:
        kept = filter_spurious_cross_stage_flow(derive_edges_from_ops(body, self.pipeline), body, self.pipeline)
        return (*kept, *derive_cross_stage_rotation_edges(body, self.pipeline))

    def build_explicit_blocks(self, body: Sequence[OpDesc], program: PipelineProgram) -> Sequence[Sequence[OpDesc]]:
        wrap = self.knobs.wrap_waits_with_sched_barrier
        return [emit_minimal_barrier_block(block, wrap) for block in program.blocks] if self.explicit else ()


def draw_knobs(random: Random) -> ScheduleConfig:
    """Any waits and barriers that the rules of blocks can give."""

    def yes() -> bool:
        return random.random() < 0.5

    return ScheduleConfig(
        scheduling=random.choice(("IDENTITY", "IDENTITY", "IDENTITY", "GREEDY", "GREEDY", "CSP")),
        minimal_barriers=yes(),
        barrier_before_pre_ops=yes(),
        inter_block_lgkm_drain=yes(),
        global_before_frag=yes(),
        lgkm_after_last=yes(),
        auto_waits=yes(),
        wait_lgkm_first=random.choice((0, 0, 1, 2, 4)),
        wait_vm_last=random.choice((0, 0, 1, 2, 4, 8)),
        lgkm_per_load_a=random.choice((0, 1, 2)),
        lgkm_per_load_b=random.choice((0, 1, 2)),
        drain_lgkm_mask=random.choice((0, random.getrandbits(8))),
    )


def _double(random: Random) -> PipelineSchedule:
    depth = random.choice((2, 2, 2, 2, 3))
    tags = DoubleBufferTag
    pipeline = PipelineConfig(
        depth=depth,
        num_partitions=depth,
        m_mmas=random.choice((1, 1, 2)),
        n_mmas=random.choice((1, 1, 2)) if depth == 2 else 1,
        block_sizing=BlockSizing(heavy=4, light=2, max_globals=random.choice((0, 0, 1, 2))),
        vm_per_load_a=random.choice((1, 1, 2, 4)),
        vm_per_load_b=random.choice((1, 1, 2, 4)),
        warp_stagger=random.choice(
            (WarpStaggerRule.none(), WarpStaggerRule.none(), WarpStaggerRule.auto(), WarpStaggerRule.fixed(1))
        ),
    )
    jitter = random.choice((0.0, 0.0, 2.0, 6.0))
    tiles = [(0, tile) for tile in range(pipeline.m_mmas)] + [(1, tile) for tile in range(pipeline.n_mmas)]
    ops: list[OpDesc] = []
    for stage in range(depth):
        part = PipelineBody()
        for channel, tile in tiles:
            part.frag((tags.MMA_LOAD_A, tags.MMA_LOAD_B)[channel], channel=channel, stage=stage, subtile=tile)
        grid = [(m, n) for m in range(pipeline.m_mmas) for n in range(pipeline.n_mmas)]
        loads = PipelineBody()
        for channel, tile in tiles:
            load = (tags.LOAD_A, tags.LOAD_B)[channel]
            loads.load(load, channel=channel, stage=stage, subtile=tile, k_offset=_OFFSETS[stage])
        computes = PipelineBody()
        for m, n in grid:
            computes.compute(tags.MMA, row=m, column=n)
        behind = random.random() < 0.5
        order = (part, computes, loads) if behind else (part, loads, computes)
        each = [op for kind in order for op in kind.build()]
        keyed = sorted((number + random.uniform(-jitter, jitter), number) for number in range(len(each)))
        ops += [each[number] for _, number in keyed]
    body = with_own_tokens(random, annotate_ops(ops, mi355x_target().cost_model))
    return DrawnPipeline(pipeline, draw_knobs(random), body)


def draw_rotating(random: Random) -> DrawnRotation:
    """Ops in any order within a partition; a search or a list puts them right, the body's own order may be wrong."""
    depth = random.choice((2, 2, 2, 3))
    pipeline = PipelineConfig(
        depth=depth,
        num_partitions=depth,
        m_mmas=random.choice((1, 2)),
        n_mmas=random.choice((1, 2)) if depth == 2 else 1,
        block_sizing=BlockSizing(heavy=4, light=2, max_globals=0),
        vm_per_load_a=random.choice((1, 2, 4)),
        vm_per_load_b=random.choice((1, 2, 4)),
        lgkm_per_load_a=random.choice((1, 2, 4)),
        lgkm_per_load_b=random.choice((1, 2, 4)),
        cross_stage_rotation=True,
    )
    tags, sizes = DoubleBufferTag, (pipeline.m_mmas, pipeline.n_mmas)
    jitter = random.choice((0.0, 1.0, 3.0, 20.0))
    ops: list[OpDesc] = []
    for own in range(depth):
        part = PipelineBody()
        after = (own + 1) % depth
        for channel in (0, 1):  # first what this partition still lacks
            for tile in range(1, sizes[channel]):
                part.frag((tags.MMA_LOAD_A, tags.MMA_LOAD_B)[channel], channel=channel, stage=own, subtile=tile)
        part.grid(tags.MMA, *sizes)
        for channel in (0, 1):
            part.frag((tags.MMA_LOAD_A, tags.MMA_LOAD_B)[channel], channel=channel, stage=after, subtile=0)
            load = (tags.LOAD_A, tags.LOAD_B)[channel]
            for tile in range(sizes[channel]):
                part.load(load, channel=channel, stage=own, subtile=tile, k_offset=_OFFSETS[own])
        each = part.build()
        keyed = sorted((number + random.uniform(-jitter, jitter), number) for number in range(len(each)))
        ops += [each[number] for _, number in keyed]
    costs = mi355x_target().cost_model
    first = PipelineBody().frag(tags.MMA_LOAD_A, channel=0).frag(tags.MMA_LOAD_B, channel=1)
    return DrawnRotation(
        pipeline,
        draw_knobs(random).but(partial_prologue_drain=True),
        with_own_tokens(random, annotate_ops(ops, costs)),
        annotate_ops(first.build(), costs),
        explicit=random.random() < 0.4,
    )


def with_own_tokens(random: Random, ops: tuple[OpDesc, ...]) -> tuple[OpDesc, ...]:
    """In every other body some loads and fragments state tokens of their own, each its own number."""
    if random.random() < 0.5:
        return ops
    own = {OpRole.GLOBAL_LOAD: "vm_cost", OpRole.FRAGMENT_LOAD: "lgkm_cost"}
    return tuple(
        op.but(**{own[op.role]: random.randint(1, 5)}) if op.role in own and random.random() < 0.6 else op for op in ops
    )


def _single(random: Random) -> PipelineSchedule:
    target = mi355x_single_buffer_target().with_pipeline(
        vm_per_load_a=random.choice((1, 2, 4)), lgkm_per_load_a=random.choice((0, 1, 2))
    )
    return SingleBufferSchedule(random.randint(1, 3), target=target)


def _shipped(random: Random) -> PipelineSchedule:
    """Schedules with all their blocks, one that reads across stages among them."""
    if random.random() < 0.5:
        return Pipeline4Wave(KernelGeometry())
    knobs = draw_knobs(random).but(lgkm_per_load_a=8, lgkm_per_load_b=4)
    return DeclarativeSchedule(knobs, mi355x_target(max_globals=random.choice((0, 1, 2))))


def draw_schedule(random: Random) -> PipelineSchedule:
    """A schedule of any kind, which need not compile."""
    (drawn,) = random.choices((_double, draw_rotating, _single, _shipped, _with_scales), (12, 8, 4, 1, 3))
    return drawn(random)


def check_tokens(compiled: CompiledPipeline) -> None:
    """Every load and fragment counts as many tokens as the body's op of the same tile, in whatever phase it stands."""
    knobs = compiled.schedule_config
    stages = Stages(compiled.config, (knobs.lgkm_per_load_a, knobs.lgkm_per_load_b))
    declared = {_same(op): stages.effect(op).tokens for op in compiled.body if _counts(op)}
    for entry in compiled.lowered.entries:
        op = entry.op.declared
        if isinstance(op, OpDesc) and _counts(op) and _same(op) in declared:
            if op.role is OpRole.FRAGMENT_LOAD and op not in compiled.body:
                continue  # a bootstrap fragment states its own
            assert entry.effect.tokens == declared[_same(op)], f"{entry.phase}: {entry}"


def _counts(op: OpDesc) -> bool:
    return not op.is_framework and op.role in (OpRole.GLOBAL_LOAD, OpRole.SHARED_STORE, OpRole.FRAGMENT_LOAD)


def _same(op: OpDesc) -> tuple[int, ...]:
    return op.tag, op.channel, op.stage, op.subtile


def draw_compiled(random: Random) -> CompiledPipeline:
    """Mostly repaired, now and then as the rules give it."""
    while True:
        schedule = draw_schedule(random)
        try:
            written = compile_schedule(schedule, sync="as_written")
            check_tokens(written)
            tracked = random.random() < 0.6
            written = with_assumptions(random, replace(written, compiler_tracks_registers=tracked))
            return written if random.random() < 0.15 else add_repairs(written)
        except RotaError:
            continue


def draw_by_stages(random: Random) -> LoweredProgram:
    """The same as a program."""
    return draw_compiled(random).lowered


def _with_scales(random: Random) -> PipelineSchedule:
    """A drawn double buffer whose computes have a third operand, now and then a fourth, each read before the computes.

    A load brings it all at once, or part by part; sometimes it is left out, or stands where it is read too late.
    """
    plain = _double(random)
    assert isinstance(plain, DrawnPipeline)
    named = [("rows", 0), ("columns", 1)][: random.choice((1, 1, 2))]
    specs = tuple(
        ChannelSpec(
            name=name,
            match_field=field,
            vm_per_load=random.choice((1, 1, 2)),
            lgkm_per_load=random.choice((0, 1, 2)),
            whole_tile=random.random() < 0.5,
        )
        for name, field in named
    )
    pipeline = plain.pipeline.but(further_channels=specs)
    size = len(plain.body) // pipeline.num_partitions
    body: list[OpDesc] = []
    for stage in range(pipeline.depth):
        reads, loads = PipelineBody(), PipelineBody()
        for channel, spec in enumerate(specs, 2):
            parts = range(pipeline.subtiles(spec))
            for part in parts:
                reads.frag(DoubleBufferTag.MMA_LOAD_A, channel=channel, stage=stage, subtile=part)
            for part in parts[:1] if spec.whole_tile else parts:
                k = random.choice((*[_OFFSETS[stage]] * 9, KOffsetKind.K0))
                loads.load(DoubleBufferTag.LOAD_A, channel=channel, stage=stage, subtile=part, k_offset=k)
        own = annotate_ops([*reads.build(), *loads.build()], mi355x_target().cost_model)
        count = len(reads)
        part_ops = plain.body[stage * size : (stage + 1) * size]
        late = random.randrange(len(part_ops))
        body += [*own[:count], *part_ops[:late], *own[count:], *part_ops[late:]]
    return DrawnPipeline(pipeline, plain.knobs, tuple(body))
