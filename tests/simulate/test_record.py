"""Timelines: what no machine could do must not be drawn."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from rota import CompiledSchedule
from rota.declare.effects import Counter
from rota.declare.values import Home
from rota.declare.vocabulary import FrameworkTag, Phase
from rota.program.loop import steps_of
from rota.program.timeline import Cause, Lane, Slice, Timeline
from rota.simulate.parameters import nominal
from rota.simulate.record import record
from rota.simulate.work import TileShape
from rota.targets.timing import timing_of
from tests.simulate.timed_loops import NAMES, timed


@pytest.fixture(params=NAMES)
def case(request: pytest.FixtureRequest) -> tuple[CompiledSchedule, TileShape | None, Timeline]:
    compiled, shape = timed(request.param)
    return compiled, shape, record(compiled, shape, trips=3)


Case = tuple[CompiledSchedule, TileShape | None, Timeline]


def test_a_unit_does_one_thing_at_a_time(case: Case) -> None:
    by_unit: dict[tuple[Lane, int], list[Slice]] = defaultdict(list)
    for each in case[2].slices:
        if each.lane is not Lane.GLOBAL:
            by_unit[each.lane, 0 if each.lane is Lane.LDS else each.wave % 4].append(each)
    for slices in by_unit.values():
        for earlier, later in pairwise(sorted(slices, key=lambda each: each.start)):
            assert earlier.end <= later.start


def test_all_work_of_all_trips_is_there(case: Case) -> None:
    compiled, _, timeline = case
    assert timeline.edges[0] < timeline.window[0] < timeline.window[1] <= timeline.edges[-1] <= timeline.end
    assert timeline.window in tuple(pairwise(timeline.edges))
    steps = steps_of(compiled)
    moving = sum(bool(step.effect.writes) for step in steps.kernel)
    done = {(each.wave, each.at) for each in timeline.slices if each.at.phase is Phase.KERNEL}
    assert len(done) == moving * 3 * timeline.waves


def test_counters_stay_within_their_limits_and_end_at_zero(case: Case) -> None:
    timeline = case[2]
    limits = dict(timeline.counter_limits)
    last: dict[tuple[int, Counter], int] = {}
    for level in timeline.levels:
        assert 0 <= level.tokens <= limits[level.counter]
        last[level.wave, level.counter] = level.tokens
    assert set(last.values()) == {0}


def test_a_wave_stands_at_one_thing_at_a_time(case: Case) -> None:
    timeline = case[2]
    for wave in range(timeline.waves):
        stalls = sorted((each for each in timeline.stalls if each.wave == wave), key=lambda each: each.start)
        for earlier, later in pairwise(stalls):
            assert earlier.end <= later.start
        assert all(each.label for each in stalls)


def test_no_wave_leaves_a_barrier_before_the_last_arrives(case: Case) -> None:
    compiled, _, timeline = case
    by_wave = [[each for each in timeline.crossings if each.wave == wave] for wave in range(timeline.waves)]
    if any(entry.op.tag == FrameworkTag.BARRIER for entry in compiled.kernel):
        assert by_wave[0]
    for crossings in zip(*by_wave, strict=True):
        assert max(each.arrived for each in crossings) < min(each.released for each in crossings)


def late_flows(timeline: Timeline) -> int:
    """Uses of something that was not there yet."""
    pairs = ((timeline.slices[flow.producer], timeline.slices[flow.consumer]) for flow in timeline.flows)
    return sum(producer.done > consumer.start for producer, consumer in pairs if producer.lane is not Lane.VALU)


def test_everything_is_there_before_it_is_used(case: Case) -> None:
    timeline = case[2]
    assert timeline.flows
    assert late_flows(timeline) == 0


def test_without_waits_for_loads_tiles_are_read_before_they_land() -> None:
    compiled, shape = timed("small")

    def kept(entries: tuple) -> tuple:  # type: ignore[type-arg]
        return tuple(entry for entry in entries if entry.op.tag != FrameworkTag.WAIT_VM)

    bare = replace(
        compiled, prologue=kept(compiled.prologue), kernel=kept(compiled.kernel), epilogue=kept(compiled.epilogue)
    )
    assert late_flows(record(bare, shape, trips=3)) > 0


def test_buffers_hold_one_tile_at_a_time(case: Case) -> None:
    compiled, _, timeline = case
    by_name = defaultdict(list)
    for each in timeline.buffers:
        by_name[each.buffer].append(each)
    assert by_name
    for uses in by_name.values():
        for earlier, later in pairwise(sorted(uses, key=lambda each: each.start)):
            assert earlier.end <= later.start
    if compiled.loop is not None:
        tiles = [value.name for value in compiled.loop.values if value.home is Home.LDS]
        assert set(by_name) == {f"{tile}[{copy}]" for tile in tiles for copy in range(2)}


def test_live_registers_lie_between_the_accumulators_and_all_copies(case: Case) -> None:
    compiled, _, timeline = case
    if compiled.loop is None or compiled.placement is None:
        assert timeline.registers == ()
        return
    copies = dict(compiled.placement.copies)
    values = [value for value in compiled.loop.values if value.home is not Home.LDS]
    sums = sum(value.size for value in values if value.home is Home.ACCUMULATOR)
    everything = sum(value.size * copies.get(value.name, 1) for value in values)
    live = {each.live for each in timeline.registers}
    assert min(live) == sums
    assert sums < max(live) <= everything
    assert timeline.register_limit == 512


def test_barriers_at_no_cost_are_still_drawn() -> None:
    compiled, shape = timed("ping_pong")
    free = nominal(timing_of(compiled.machine)).but(barrier=0)
    timeline = record(compiled, shape, trips=1, parameters=free)
    barriers = sum(
        step.group in (None, 0) and step.entry.op.tag == FrameworkTag.BARRIER
        for phase in Phase
        for step in steps_of(compiled).phase(phase)
    )
    assert sum(each.wave == 0 for each in timeline.crossings) == barriers
    assert {each.cause for each in timeline.stalls} >= {Cause.BARRIER, Cause.MMA_BUSY}
    assert timeline.window == timeline.edges == (timeline.edges[0], timeline.edges[1])


def test_staggered_groups_are_told_apart() -> None:
    compiled, shape = timed("ping_pong")
    timeline = record(compiled, shape, trips=2)
    assert timeline.groups == (0, 0, 0, 0, 1, 1, 1, 1)
    first = {wave: min(s.start for s in timeline.slices if s.wave == wave and s.lane is Lane.MMA) for wave in (0, 4)}
    assert first[0] < first[4]
