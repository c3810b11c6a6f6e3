"""Drawn pipelines by stages: takes a random generator, gives small bodies with any knobs, compiled."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from rota import (
    BlockSizing,
    DeclarativeSchedule,
    DoubleBufferTag,
    KernelGeometry,
    KOffsetKind,
    OpDesc,
    Pipeline4Wave,
    PipelineBody,
    PipelineConfig,
    PipelineSchedule,
    RotaError,
    ScheduleConfig,
    SingleBufferSchedule,
    WarpStaggerRule,
    annotate_ops,
    compile_schedule,
    mi355x_single_buffer_target,
    mi355x_target,
)
from rota.compiled.proved import mended
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.program.lowered import LoweredProgram
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


def draw_knobs(random: Random) -> ScheduleConfig:
    """Any waits and barriers that the rules of blocks can give."""

    def yes() -> bool:
        return random.random() < 0.5

    return ScheduleConfig(
        scheduling=random.choice(("IDENTITY", "IDENTITY", "GREEDY")),
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
    return DrawnPipeline(pipeline, draw_knobs(random), annotate_ops(ops, mi355x_target().cost_model))


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


def draw_compiled(random: Random) -> CompiledPipeline:
    """Mostly repaired, now and then as the rules give it."""
    while True:
        (drawn,) = random.choices((_double, _single, _shipped), (16, 4, 1))
        schedule = drawn(random)
        try:
            written = compile_schedule(schedule, sync="as_written")
            tracked = random.random() < 0.6
            written = with_assumptions(random, replace(written, compiler_tracks_registers=tracked))
            return written if random.random() < 0.15 else mended(written)
        except RotaError:
            continue


def draw_by_stages(random: Random) -> LoweredProgram:
    """The same as a program."""
    return draw_compiled(random).lowered
