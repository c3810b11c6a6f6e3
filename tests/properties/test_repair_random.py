"""Random bodies: whatever compiles with repair is proved, computes A @ B and needs its repairs; else a finding."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, event, given, settings, strategies as st

from rota import (
    BlockSizing,
    DoubleBufferTag,
    KOffsetKind,
    OpDesc,
    PipelineBody,
    PipelineConfig,
    PipelineSchedule,
    RotaError,
    ScheduleConfig,
    SingleBufferSchedule,
    TargetProfile,
    WarpStaggerRule,
    annotate_ops,
    compile_schedule,
    mi355x_single_buffer_target,
    mi355x_target,
    verify,
)
from rota.execute.clock import Latest, Random
from rota.execute.executor import execute
from tests.sync.minimality import with_less

pytestmark = pytest.mark.no_cover  # drawn programs, thousands of times the same lines

OFFSETS = (KOffsetKind.K0, KOffsetKind.K1, KOffsetKind.K_NEXT)
KNOBS = st.builds(
    ScheduleConfig,
    scheduling=st.sampled_from(["IDENTITY", "GREEDY"]),
    minimal_barriers=st.booleans(),
    barrier_before_pre_ops=st.booleans(),
    inter_block_lgkm_drain=st.booleans(),
    global_before_frag=st.booleans(),
    lgkm_after_last=st.booleans(),
    wrap_waits_with_sched_barrier=st.booleans(),
    auto_waits=st.booleans(),
    wait_lgkm_first=st.integers(0, 20),
    wait_vm_last=st.integers(0, 70),
    lgkm_per_load_a=st.integers(1, 9),
    lgkm_per_load_b=st.integers(1, 9),
    drain_lgkm_mask=st.integers(0, 255),
)


class RandomDoubleBuffer(PipelineSchedule):
    """A body of loads, fragments and MMAs in any order within each partition."""

    def __init__(self, pipeline: PipelineConfig, knobs: ScheduleConfig, orders: list[list[float]]) -> None:
        self.pipeline, self.knobs, self.orders = pipeline, knobs, orders

    def config(self) -> PipelineConfig:
        return self.pipeline

    def schedule_config(self) -> ScheduleConfig:
        return self.knobs

    def build_body(self) -> tuple[OpDesc, ...]:
        tags, ops = DoubleBufferTag, []
        config = self.pipeline
        tiles = [(0, t) for t in range(config.m_mmas)] + [(1, t) for t in range(config.n_mmas)]
        for stage in range(config.depth):
            part = PipelineBody()
            for channel, tile in tiles:
                part.frag((tags.MMA_LOAD_A, tags.MMA_LOAD_B)[channel], channel=channel, stage=stage, subtile=tile)
            for channel, tile in tiles:
                load = (tags.LOAD_A, tags.LOAD_B)[channel]
                part.load(load, channel=channel, stage=stage, subtile=tile, k_offset=OFFSETS[stage])
            part.grid(tags.MMA, config.m_mmas, config.n_mmas)
            keyed = zip(self.orders[stage], range(len(part)), part.build(), strict=False)
            ops += [op for _, _, op in sorted(keyed, key=lambda pair: pair[:2])]
        return annotate_ops(ops, mi355x_target().cost_model)


@st.composite
def double_buffers(draw: st.DrawFn) -> PipelineSchedule:
    depth = draw(st.sampled_from([2, 2, 2, 3]))
    pipeline = PipelineConfig(
        depth=depth,
        num_partitions=depth,
        m_mmas=draw(st.integers(1, 3)),
        n_mmas=draw(st.integers(1, 2)),
        block_sizing=BlockSizing(heavy=4, light=2, max_globals=draw(st.integers(0, 2))),
        vm_per_load_a=draw(st.integers(1, 5)),
        vm_per_load_b=draw(st.integers(1, 5)),
        warp_stagger=draw(st.sampled_from([WarpStaggerRule.none(), WarpStaggerRule.auto(), WarpStaggerRule.fixed(1)])),
    )
    length = pipeline.ops_per_partition
    # Mostly in the declared order (fragments, loads, MMAs), each op a little early or late.
    jitter = draw(st.sampled_from([0.0, 3.0, 30.0]))
    orders = [[index + draw(st.floats(-jitter, jitter)) for index in range(length)] for _ in range(depth)]
    return RandomDoubleBuffer(pipeline, draw(KNOBS), orders)


@st.composite
def single_buffers(draw: st.DrawFn) -> PipelineSchedule:
    target: TargetProfile = mi355x_single_buffer_target()
    return SingleBufferSchedule(
        draw(st.integers(1, 5)),
        target=target.with_pipeline(vm_per_load_a=draw(st.integers(1, 9)), lgkm_per_load_a=draw(st.integers(0, 16))),
    )


def right_or_refused(schedule: PipelineSchedule, trip_counts: tuple[int, ...]) -> None:
    try:
        compiled = compile_schedule(schedule)
    except RotaError as error:
        event(f"refused with {error.findings[0].code}")
        return
    event("repaired" if compiled.repairs else "clean as written")
    assert verify(compiled).clean
    for trips in trip_counts:
        ran = execute(compiled, trips, policy=(Latest(), Random(seeds=8)))
        assert ran.right, ran.first_wrong


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(double_buffers(), double_buffers(), double_buffers(), single_buffers()))
def test_a_random_body_is_right_or_refused(schedule: PipelineSchedule) -> None:
    right_or_refused(schedule, (0, 1, 3))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(double_buffers(), double_buffers(), double_buffers(), single_buffers()))
def test_no_repair_of_a_random_body_can_be_left_out_or_weakened(schedule: PipelineSchedule) -> None:
    try:
        compiled = compile_schedule(schedule)
    except RotaError:
        return
    event(f"{min(len(compiled.repairs), 5)} repairs or more")
    for change, variant in with_less(compiled):
        assert not verify(variant).clean, str(change)


@pytest.mark.slow
@settings(max_examples=700, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(double_buffers(), double_buffers(), double_buffers(), single_buffers()))
def test_many_random_bodies_are_right_or_refused(schedule: PipelineSchedule) -> None:
    right_or_refused(schedule, (0, 1, 2, 5))
