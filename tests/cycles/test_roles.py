"""Roles with lists of their own: a producer and a consumer who meet at two barriers, against clocks counted by hand."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest

from rota.cycles.instructions import MeetingPoint, encode, nominal
from rota.cycles.model import run
from rota.cycles.predict import predict
from rota.cycles.record import record
from rota.cycles.timeline import Cause, Lane, Timeline, wait_for
from rota.errors import DeclarationError, ProgramError
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import Role
from rota.targets.device import device_of
from tests.cycles.programs import PARAMETERS, VALU, arrive, await_all, program
from tests.cycles.test_cycles import lost
from tests.cycles.two_roles import DMAS, MFMAS, producer_consumer
from tests.wording.golden import worded

# The producer waits for a tile before it fetches the next.  From await_empty on: that takes a turn, two more set up the
# first load; 4 loads of 16 clocks on the path, 800 of latency, 8 at the port; a turn each for wait and arrival.
SERIAL = (4 + 8) + 4 * 16 + 800 + 8 + 4 + 4
EDGE = 4 * 4 / 2  # four turns for two tiles


@pytest.mark.parametrize("waves", [(1, 1), (2, 2), (4, 4), (1, 4)])
def test_a_producer_that_drains_its_loads_sets_the_pace(waves: tuple[int, int]) -> None:
    found = predict(producer_consumer(waves), band=False)
    assert found.cycles == pytest.approx(SERIAL + EDGE, abs=4)
    assert found.idle[0].cause == Cause.BARRIER
    assert found.idle[0].label == "await_full"
    assert dict(found.causes)[wait_for("vmcnt")] > 0
    assert found.mma_share == pytest.approx(16 * MFMAS / found.cycles)
    flops = 2 * 16 * 16 * 32 * MFMAS * waves[1]  # consumers alone multiply
    assert found.ceiling_tflops == pytest.approx(flops * 256 * 2400e6 / found.cycles / 1e12)


def test_a_producer_a_tile_ahead_is_faster_and_one_without_buffers_to_fill_slower() -> None:
    ahead = predict(producer_consumer(leaves=DMAS), band=False).cycles
    drained = predict(producer_consumer(), band=False).cycles
    one_buffer = predict(producer_consumer(ahead=1), band=False).cycles
    assert ahead < 0.6 * drained
    assert one_buffer > drained


def test_waves_have_the_lists_of_their_roles() -> None:
    parameters = nominal(device_of(producer_consumer().machine))
    code = encode(producer_consumer((1, 3)), parameters)
    assert code.roles == (0, 1, 1, 1)
    kinds = [{each.kind for each in instructions} for instructions in code.instructions]
    assert kinds[0] != kinds[1]
    assert len(code.instructions[0]) != len(code.instructions[1])
    assert code.barriers == (MeetingPoint("full", (0,), (1, 2, 3)), MeetingPoint("empty", (1, 2, 3), (0,)))
    assert code.load.mma_simds == 3


def arrivals_and_waits(timeline: Timeline, barrier: str) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    arrived: defaultdict[int, list[int]] = defaultdict(list)
    released: defaultdict[int, list[int]] = defaultdict(list)
    for each in timeline.crossings:
        if each.barrier == barrier:
            assert each.arrives != each.awaits
            (arrived if each.arrives else released)[each.wave].append(each.arrived if each.arrives else each.released)
    return arrived, released


@pytest.mark.parametrize("barrier", ["full", "empty"])
def test_nobody_goes_on_before_all_have_arrived_as_often(barrier: str) -> None:
    arrived, released = arrivals_and_waits(record(producer_consumer((2, 3)), trips=4), barrier)
    producers, consumers = {0, 1}, {2, 3, 4}
    assert (set(arrived), set(released)) == ((producers, consumers) if barrier == "full" else (consumers, producers))
    for times in released.values():
        assert len(times) == 4 * 2
        for meeting, moment in enumerate(times):
            assert moment > max(each[meeting] for each in arrived.values())


def test_the_timeline_names_roles_and_leads_from_who_wrote_a_tile_to_who_reads_it() -> None:
    timeline = record(producer_consumer((1, 2)), trips=3)
    assert timeline.roles == ("producer", "consumer", "consumer")
    pairs = {(timeline.slices[flow.producer].wave, timeline.slices[flow.consumer].wave) for flow in timeline.flows}
    assert pairs == {(0, 1), (0, 2), (1, 1), (2, 2)}
    handed = [flow for flow in timeline.flows if timeline.slices[flow.producer].wave == 0]
    assert all(timeline.slices[flow.producer].lane is Lane.GLOBAL for flow in handed)
    assert all(timeline.slices[flow.producer].done <= timeline.slices[flow.consumer].start for flow in handed)
    live = {wave: {each.live for each in timeline.registers if each.wave == wave} for wave in range(3)}
    assert live[0] == {0}
    assert max(live[1]) == 8  # four of the sum, four of the fragment


def test_waves_that_wait_for_each_other_end_in_a_finding() -> None:
    with pytest.raises(ProgramError, match="B101") as caught:
        predict(producer_consumer(ahead=0), band=False)
    (finding,) = caught.value.findings
    assert {concern.label for concern in finding.concerns} == {"await_full", "await_empty"}
    assert dict(finding.evidence)["wave 0 waits at"] == "empty, meeting 1; 0 complete"


def test_a_program_that_does_not_say_its_waves_is_refused() -> None:
    silent = replace(producer_consumer(), roles=(Role("producer"), Role("consumer")))
    with pytest.raises(DeclarationError, match="D109"):
        predict(silent)
    shared = encode(replace(silent, waves=5), nominal(device_of(silent.machine)))
    assert shared.roles == (0, 0, 0, 1, 1)


def test_an_unknown_barrier_is_refused() -> None:
    given = producer_consumer()
    with pytest.raises(DeclarationError, match=r"D105.*'full'"):
        predict(replace(given, barriers=given.barriers[1:]))


def test_an_op_without_work_is_refused() -> None:
    given = producer_consumer()
    bare = [
        replace(entry, op=replace(entry.op, work=None)) if entry.op.kind is OpKind.MMA else entry
        for entry in given.kernel
    ]
    with pytest.raises(DeclarationError, match="D109"):
        predict(given.with_phases({Phase.KERNEL: bare}))


def test_work_between_arrival_and_wait_hides_the_wait() -> None:
    late = [*[VALU] * 10, arrive(), await_all()]
    joined = run(program(late, [arrive(), await_all(), *[VALU] * 6], roles=(0, 1)), PARAMETERS, trips=1)
    apart = run(program(late, [arrive(), *[VALU] * 6, await_all()], roles=(0, 1)), PARAMETERS, trips=1)
    # Wave 0 arrives at 40, the release takes 8; wave 1 has its turns at 1, 5, 9, ...: it waits from 5 or from 29 on.
    assert lost(joined, wave=1) == {Cause.BARRIER: 49 - 5 - 4}
    assert lost(apart, wave=1) == {Cause.BARRIER: 49 - 29 - 4}
    assert lost(apart, wave=0) == {}


def test_a_wave_that_comes_after_the_last_arrival_goes_on_at_once() -> None:
    early, late = [arrive(), VALU], [arrive(), *[VALU] * 12, await_all()]
    result = run(program(early, late, roles=(0, 1)), PARAMETERS, trips=1)
    assert lost(result, wave=1) == {}


def test_a_wave_may_arrive_ahead_by_several_meetings() -> None:
    ahead = [arrive()] * 3
    behind = [await_all()] * 3
    points = [MeetingPoint("full", (0,), (1,))]
    result = run(program(ahead, behind, roles=(0, 1), barriers=points), PARAMETERS, trips=1)
    # Arrivals at 0, 4 and 8; the first wait is over 8 clocks after the first, then each takes its turn.
    assert result.edges[1] == (1, 9 + 4 + 4)


def test_two_waves_that_each_wait_first_wait_for_ever() -> None:
    points = [MeetingPoint("full", (0,), (1,)), MeetingPoint("back", (1,), (0,))]
    crossed = program([await_all(1), arrive(0)], [await_all(0), arrive(1)], roles=(0, 1), barriers=points)
    with pytest.raises(ProgramError) as caught:
        run(crossed, PARAMETERS, trips=1)
    worded(caught.value)
