"""Right schedules compute A @ B in every wave, however their memory ops complete and their waves interleave."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rota.execute.clock import Earliest, Latest, Policy, Random
from rota.execute.executor import execute, replay
from rota.program.lowered import Lowerable
from tests.execute.loops import (
    BARRIER,
    FULL,
    SLOTS,
    Witnessed,
    drained_four_wave,
    ping_pong,
    waiting_single_buffer,
    with_syncs,
)

POLICIES: tuple[Policy, ...] = (Latest(), Earliest(), Random())

RIGHT: dict[str, Callable[[], Lowerable]] = {
    "ping-pong greedy, any loads": lambda: ping_pong("GREEDY", 0),
    "ping-pong greedy, one load": lambda: ping_pong("GREEDY", 1),
    "ping-pong CSP, any loads": lambda: ping_pong("CSP", 0),
    "ping-pong CSP, one load": lambda: ping_pong("CSP", 1),
    "4-wave, drained": drained_four_wave,
    "single buffer, 1 slice": lambda: waiting_single_buffer(1),
    "single buffer, 3 slices": lambda: waiting_single_buffer(3),
    "tiny": lambda: with_syncs([FULL] * SLOTS),
    "tiny, staggered": lambda: with_syncs([(*FULL, BARRIER)] * SLOTS, stagger=True),
}


@pytest.mark.parametrize("trip_count", range(9))
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_loop_is_right_at_every_trip_count(name: str, trip_count: int) -> None:
    done = execute(RIGHT[name](), trip_count, policy=POLICIES)
    assert done.right, done.first_wrong
    assert (done.deadlock, done.wrong_seeds, done.wrong_runs, done.first_wrong) == (False, (), (), None)


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("kind", ["RAW", "WAR", "WAW", "REG"])
def test_no_witness_shows_a_race_in_a_right_loop(name: str, kind: str) -> None:
    loop = RIGHT[name]()
    roles = range(len(loop.lowered.roles))
    for ahead in roles:
        for behind in roles:
            done = replay(loop, Witnessed(trip_count=3, ahead=ahead, behind=behind, kind=kind))
            assert done.right, done.first_wrong


@pytest.mark.parametrize("waves", [1, 2, 3, 8])
def test_any_number_of_waves_will_do(waves: int) -> None:
    assert execute(ping_pong("GREEDY", 1), 2, waves_per_role=waves).right


def test_double_buffers_need_no_compiler_to_wait_for_registers() -> None:
    assert execute(ping_pong("CSP", 1), 3, compiler_waits=False).right
    assert execute(drained_four_wave(), 3, compiler_waits=False).right


def test_a_seed_gives_the_same_run_in_any_company() -> None:
    loop = ping_pong("IDENTITY", 1)
    together = execute(loop, 1, policy=(Earliest(), Random(seeds=12, first_seed=3), Latest()))
    alone = [seed for seed in range(3, 15) if not execute(loop, 1, policy=Random(seeds=1, first_seed=seed)).right]
    assert 0 < len(alone) < 12
    assert together.wrong_seeds == tuple(alone)


def test_many_trips_are_computed_in_batches() -> None:
    assert execute(drained_four_wave(), 40, policy=Random(seeds=20)).right
