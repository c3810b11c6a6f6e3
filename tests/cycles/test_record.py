"""Timelines: what no machine could do must not be drawn."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest

from rota import CompiledSchedule
from rota.cycles.instructions import nominal
from rota.cycles.record import record
from rota.cycles.timeline import Cause, Lane, Slice, Timeline
from rota.pipeline.geometry import TileShape
from rota.program.entry import Entry
from rota.program.kinds import Home, OpKind, Phase
from rota.program.loop_spec import LoopSpec
from rota.targets.device import device_of
from rota.values.compiled_loop import CompiledLoop
from tests.cycles.timed_loops import NAMES, timed

pytestmark = pytest.mark.thorough  # runs for seconds


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
    moving = sum(bool(entry.effect.writes) for entry in compiled.lowered.kernel)
    done = {(each.wave, each.at) for each in timeline.slices if each.at.phase is Phase.KERNEL}
    assert len(done) == moving * 3 * timeline.waves


def test_counters_stay_within_their_limits_and_end_at_zero(case: Case) -> None:
    timeline = case[2]
    limits = dict(timeline.counter_limits)
    last: dict[tuple[int, str], int] = {}
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
    if any(entry.op.kind is OpKind.BARRIER for entry in compiled.lowered.kernel):
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

    program = compiled.lowered

    def waits(entry: Entry) -> bool:
        return entry.effect.kind is OpKind.WAIT and entry.effect.counter == "vmcnt"

    bare = program.with_phases(
        {phase: [entry for entry in program.phase(phase) if not waits(entry)] for phase in Phase}
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
    semantics = compiled.lowered.semantics
    if isinstance(semantics, LoopSpec):
        tiles = [value.name for value in semantics.values if value.home is Home.LDS]
        assert set(by_name) == {f"{tile}[{copy}]" for tile in tiles for copy in range(2)}


def test_live_registers_lie_between_the_accumulators_and_all_copies(case: Case) -> None:
    compiled, _, timeline = case
    if not isinstance(compiled, CompiledLoop):
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
    free = nominal(device_of(compiled.machine)).but(barrier=0)
    timeline = record(compiled, shape, trips=1, parameters=free)
    barriers = sum(entry.executed_by(0) and entry.op.kind is OpKind.BARRIER for entry in compiled.lowered.entries)
    assert sum(each.wave == 0 for each in timeline.crossings) == barriers
    assert {each.cause for each in timeline.stalls} >= {Cause.BARRIER, Cause.MMA_BUSY}
    assert timeline.window == timeline.edges == (timeline.edges[0], timeline.edges[1])


def test_staggered_groups_are_told_apart() -> None:
    compiled, shape = timed("ping_pong")
    timeline = record(compiled, shape, trips=2)
    assert timeline.roles == ("group 0",) * 4 + ("group 1",) * 4
    first = {wave: min(s.start for s in timeline.slices if s.wave == wave and s.lane is Lane.MMA) for wave in (0, 4)}
    assert first[0] < first[4]
