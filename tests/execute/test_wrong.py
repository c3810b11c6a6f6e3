"""Schedules that are known to be wrong end in a wrong result, and the verdict says where."""

from __future__ import annotations

import dataclasses

import pytest

from rota import KOffsetKind, OpDesc
from rota.execute.clock import Earliest, Latest, Policy, Random
from rota.execute.executor import Execution, execute, replay
from rota.program.lowered import Lowerable
from tests.execute.loops import (
    BARRIER,
    FULL,
    LGKM,
    SLOTS,
    VM,
    Witnessed,
    changed,
    drained_four_wave,
    edited,
    four_wave,
    frag,
    load,
    ping_pong,
    single_buffer,
    waiting_single_buffer,
    with_syncs,
    without,
)
from tests.wording.golden import mentions

TRIPS = range(5)
POLICIES: tuple[Policy, ...] = (Latest(), Earliest(), Random())


def at_some_trip_count(loop: Lowerable, *, compiler_waits: bool = True) -> Execution:
    done = [execute(loop, trips, policy=POLICIES, compiler_waits=compiler_waits) for trips in TRIPS]
    return next((each for each in done if not each.right), done[0])


@pytest.mark.parametrize("trip_count", TRIPS)
def test_the_four_wave_loop_as_written_races_in_its_epilogue(trip_count: int) -> None:
    done = replay(four_wave(), Witnessed(trip_count=trip_count))
    assert not done.right
    assert done.first_wrong is not None
    assert "epilogue[" in done.first_wrong
    assert "reads poison in" in done.first_wrong
    assert done.wrong_runs == ("scripted",)
    assert len(execute(four_wave(), trip_count, policy=Random(seeds=20)).wrong_seeds) == 20


def test_identity_ping_pong_with_one_load_overwrites_a_tile_that_is_still_read() -> None:
    loop = ping_pong("IDENTITY", 1)
    assert execute(loop, 0).right  # the race is in the loop
    assert execute(loop, 1, policy=Latest()).right  # and no wave in step shows it
    assert not replay(loop, Witnessed(trip_count=1, ahead=0, behind=1, kind="WAR")).right
    assert len(execute(loop, 3, policy=Random()).wrong_seeds) > 25


@pytest.mark.parametrize("scheduling", ["GREEDY", "CSP"])
def test_ping_pong_with_two_loads_computes_wrong_values(scheduling: str) -> None:
    loop = ping_pong(scheduling, 2)
    assert execute(loop, 0).right
    assert not execute(loop, 1, policy=Latest()).right
    assert not execute(loop, 1, policy=Earliest()).right


@pytest.mark.parametrize("tiles", [1, 2, 3, 4])
def test_the_single_buffer_as_written_reads_what_no_wait_made_visible(tiles: int) -> None:
    done = execute(single_buffer(tiles), 0)
    assert "latest" in done.wrong_runs
    assert len(done.wrong_seeds) == 50


def test_the_single_buffer_needs_the_compiler_to_wait_for_its_registers() -> None:
    loop = waiting_single_buffer(2)
    assert execute(loop, 2, compiler_waits=True).right
    assert not execute(loop, 2, compiler_waits=False).right
    assert not replay(loop, Witnessed(trip_count=2, kind="REG"), compiler_waits=False).right


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param(lambda: without(drained_four_wave(), "kernel", 0, OpDesc.wait_vm(16)), id="loads not waited for"),
        pytest.param(lambda: without(drained_four_wave(), "kernel", 13, LGKM), id="reads not waited for"),
        pytest.param(lambda: without(drained_four_wave(), "kernel", 14, BARRIER), id="no barrier behind the waits"),
        pytest.param(lambda: without(drained_four_wave(), "epilogue", 2, BARRIER), id="no barrier in the tail"),
        pytest.param(lambda: without(drained_four_wave(), "prologue", 9, BARRIER), id="no barrier in the prologue"),
        pytest.param(lambda: without(ping_pong("GREEDY", 1), "kernel", 29, OpDesc.wait_vm(12)), id="ping-pong wait"),
        pytest.param(lambda: without(ping_pong("CSP", 1), "prologue", 4, VM), id="ping-pong prologue"),
        pytest.param(lambda: without(waiting_single_buffer(2), "kernel", 2, LGKM), id="single buffer wait"),
    ],
)
def test_a_removed_wait_or_barrier_is_wrong(loop: object) -> None:
    assert callable(loop)
    assert not at_some_trip_count(loop()).right


def _moved_behind_barrier(ops: list[OpDesc]) -> list[OpDesc]:
    assert ops[12:15] == [OpDesc.wait_vm(16), LGKM, BARRIER]
    return [*ops[:12], LGKM, BARRIER, OpDesc.wait_vm(16), *ops[15:]]


def test_a_wait_behind_its_barrier_is_wrong() -> None:
    assert not at_some_trip_count(edited(drained_four_wave(), "kernel", _moved_behind_barrier)).right


def test_counts_of_the_loop_are_too_weak_for_the_tail() -> None:
    loop = edited(drained_four_wave(), "epilogue", lambda ops: [OpDesc.wait_vm(16), *ops[1:]])
    assert not at_some_trip_count(loop).right


@pytest.mark.parametrize(("count", "right"), [(0, True), (14, True), (15, False), (16, False)])
def test_fifteen_on_lgkmcnt_waits_for_nothing(count: int, right: bool) -> None:
    """20 younger tokens stand after the fragments, so that every real wait covers them."""
    younger = frag(2, 0).but(lgkm_cost=20)
    waits = {5: (younger, OpDesc.wait_lgkm(count))}  # after the loop's second fragment
    loop = with_syncs([waits.get(slot, () if slot == 4 else FULL) for slot in range(SLOTS)])
    assert execute(loop, 2, compiler_waits=False).right is right


@pytest.mark.parametrize(("count", "right"), [(0, True), (62, True), (63, False), (64, False)])
def test_sixty_three_on_vmcnt_waits_for_nothing(count: int, right: bool) -> None:
    """70 younger tokens stand after the prologue's loads."""
    younger = load(2, 0, KOffsetKind.K0).but(vm_cost=70)
    waits = {3: (younger, OpDesc.wait_vm(count), BARRIER)}
    loop = with_syncs([waits.get(slot, () if slot < 3 else FULL) for slot in range(SLOTS)])
    assert execute(loop, 0).right is right


def test_a_swapped_stage_is_wrong() -> None:
    def other_stage(ops: list[OpDesc]) -> list[OpDesc]:
        assert str(ops[15]) == "mma_load_a s1 t0"
        return [*ops[:15], ops[15].but(stage=0), *ops[16:]]

    done = at_some_trip_count(edited(drained_four_wave(), "kernel", other_stage))
    assert "earliest" in done.wrong_runs


def test_a_lost_compute_is_wrong_and_the_number_is_told() -> None:
    loop = drained_four_wave()
    assert str(loop.kernel[6].op) == "mma[0,0]"
    done = execute(without(loop, "kernel", 6, loop.kernel[6].op), 1, policy=Latest())
    assert done.first_wrong is not None
    assert done.first_wrong.startswith("latest: wave 0, accumulator [0,0]: it holds ")
    assert "; A @ B has " in done.first_wrong


def test_tiles_that_do_not_belong_together_are_told() -> None:
    def other_tile(ops: list[OpDesc]) -> list[OpDesc]:
        assert str(ops[5]) == "load_a s0 t0 k0"
        return [*ops[:5], ops[5].but(k_offset=KOffsetKind.K1), *ops[6:]]

    done = execute(edited(drained_four_wave(), "kernel", other_tile), 1, policy=Latest())
    assert done.first_wrong is not None
    assert "multiplies K-tiles 3 of A with 2 of B" in done.first_wrong


def test_a_tile_that_does_not_exist_is_garbage() -> None:
    def beyond(ops: list[OpDesc]) -> list[OpDesc]:
        assert str(ops[29]) == "load_a s1 t0 k1"
        return [*ops[:29], ops[29].but(k_offset=KOffsetKind.K_NEXT), *ops[30:]]

    done = execute(edited(drained_four_wave(), "kernel", beyond), 1, policy=Earliest())
    assert done.first_wrong is not None
    assert "reads poison in A" in done.first_wrong


def test_two_loads_of_a_wave_into_one_tile_may_land_the_wrong_way_round() -> None:
    """The older load's data must not come last: no wait stands between the two."""

    def twice(ops: list[OpDesc]) -> list[OpDesc]:
        assert str(ops[0]) == "load_a s0 t0 k0"
        return [ops[0].but(k_offset=KOffsetKind.K1), *ops]

    loop = edited(drained_four_wave(), "prologue", twice)
    assert execute(loop, 0, policy=(Latest(), Earliest())).right
    assert replay(loop, Witnessed(trip_count=0, kind="RAW")).right
    done = replay(loop, Witnessed(trip_count=0, kind="WAW"))
    assert done.wrong_runs == ("scripted, even loads late", "scripted, overtaken loads late")
    assert done.first_wrong is not None
    assert "multiplies K-tiles 1 of A with 0 of B" in done.first_wrong
    assert execute(loop, 0, policy=Random(seeds=20)).wrong_seeds
    waited = edited(loop, "prologue", lambda ops: [ops[0], VM, *ops[1:]])
    assert execute(waited, 0, policy=POLICIES).right
    assert replay(waited, Witnessed(trip_count=0, kind="WAW")).right


def test_a_barrier_that_one_group_skips_is_a_deadlock() -> None:
    loop = ping_pong("GREEDY", 1)
    skipped = changed(loop, "kernel", lambda e: dataclasses.replace(e, roles=(0,)) if e.time_slot == 4 else e)
    done = execute(skipped, 2)
    assert done.deadlock
    assert not done.right
    assert done.first_wrong is not None
    assert done.first_wrong.startswith("deadlock: ")
    assert execute(skipped, 0).right


def test_loads_of_one_group_leave_the_others_slices_empty() -> None:
    loop = with_syncs([(*FULL, BARRIER)] * SLOTS, stagger=True)
    alone = changed(loop, "prologue", lambda e: e if e.time_slot else dataclasses.replace(e, roles=(1,)))
    assert execute(loop, 0, policy=Earliest()).right
    done = execute(alone, 0, policy=Earliest())
    assert done.first_wrong is not None
    assert "reads poison in A" in done.first_wrong


def test_computes_of_one_group_leave_the_others_sums_short() -> None:
    loop = with_syncs([(*FULL, BARRIER)] * SLOTS, stagger=True)
    (slot,) = (n for n, e in enumerate(loop.epilogue) if str(e.op) == "tag 4[0,0]" and n < len(loop.epilogue) // 2)
    alone = changed(loop, "epilogue", lambda e: dataclasses.replace(e, roles=(1,)) if e.time_slot == slot else e)
    done = execute(alone, 0, policy=Earliest())
    assert done.first_wrong is not None
    assert mentions(done.first_wrong, "earliest", "wave 0", "accumulator [0,0]")
