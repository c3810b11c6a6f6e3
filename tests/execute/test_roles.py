"""Roles with lists of their own: right where arrivals and waits fit together, wrong or stuck where one is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from rota import RotaError
from rota.execute.clock import (
    BarrierOrder,
    Earliest,
    Latest,
    Policy,
    Random,
    Scripted,
    Together,
    barrier_order,
    run_clock,
)
from rota.execute.executor import Execution, Setup, execute, replay
from rota.execute.semantics import Gemm
from rota.program.entry import Effect, Entry, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import Barrier, LoweredProgram
from tests.execute.loops import BARRIER, FULL, SLOTS, Witnessed, ping_pong, with_syncs
from tests.programs.producer_consumer import CONSUMER, EMPTY, PRODUCER, SPEC, producer_consumer
from tests.wording.golden import worded

TRIPS = range(7)
POLICIES: tuple[Policy, ...] = (Latest(), Earliest(), Random())
ROLES = (PRODUCER, CONSUMER)


def without(program: LoweredProgram, phase: Phase, slot: int) -> LoweredProgram:
    entries = program.phase(phase)
    return program.with_phases({phase: (*entries[:slot], *entries[slot + 1 :])})


def instead(program: LoweredProgram, phase: Phase, slot: int, *entries: Entry) -> LoweredProgram:
    before = program.phase(phase)
    return program.with_phases({phase: (*before[:slot], *entries, *before[slot + 1 :])})


def at_some_trip_count(program: LoweredProgram, policy: Policy | Sequence[Policy] = POLICIES) -> Execution:
    done = (execute(program, trips, policy=policy) for trips in TRIPS)
    return next((each for each in done if not each.right), Execution(right=True))


def sites(program: LoweredProgram) -> Iterator[tuple[Phase, int, Entry]]:
    return ((phase, slot, entry) for phase in Phase for slot, entry in enumerate(program.phase(phase)))


# Right


@pytest.mark.parametrize("trip_count", TRIPS)
def test_the_consumer_computes_what_the_producer_brings(trip_count: int) -> None:
    for semantics in (None, Gemm(spec=SPEC)):
        done = execute(producer_consumer(), trip_count, policy=POLICIES, semantics=semantics)
        assert done == Execution(right=True), done.first_wrong


@pytest.mark.parametrize("waves", [1, 2, 3])
def test_any_number_of_waves_shares_the_tiles(waves: int) -> None:
    assert execute(producer_consumer(), 2, waves_per_role=waves, semantics=Gemm(spec=SPEC)).right


@pytest.mark.parametrize("kind", ["RAW", "WAR", "WAW", "REG"])
def test_no_witness_shows_a_race_that_is_not_there(kind: str) -> None:
    for ahead in ROLES:
        for behind in ROLES:
            done = replay(producer_consumer(), Witnessed(trip_count=3, ahead=ahead, behind=behind, kind=kind))
            assert done.right, done.first_wrong


# Wrong or stuck


@pytest.mark.parametrize(("phase", "slot", "entry"), list(sites(producer_consumer())), ids=str)
def test_no_entry_can_be_left_out(phase: Phase, slot: int, entry: Entry) -> None:
    done = at_some_trip_count(without(producer_consumer(), phase, slot))
    assert not done.right
    assert done.deadlock is (entry.effect.arrives is not None)


WAITS = [site for site in sites(producer_consumer()) if site[2].effect.kind is OpKind.WAIT]


@pytest.mark.parametrize(("phase", "slot", "entry"), WAITS, ids=str)
def test_no_wait_can_be_weaker(phase: Phase, slot: int, entry: Entry) -> None:
    counter, count = entry.effect.counter, entry.effect.wait_value + 1
    assert counter is not None
    weaker = replace(entry, op=wait_op(counter, count), effect=wait_effect(counter, count))
    done = at_some_trip_count(instead(producer_consumer(), phase, slot, weaker))
    assert not done.right
    assert not done.deadlock


def test_a_scripted_producer_overwrites_what_a_late_consumer_still_reads() -> None:
    """Without the wait at "empty" a wave in step needs luck; the producer ahead and the consumer lagging do not."""
    (slot,) = (n for n, e in enumerate(producer_consumer().kernel) if e.effect.awaits == EMPTY and n < 10)
    racy = without(producer_consumer(), Phase.KERNEL, slot)
    done = replay(racy, Witnessed(trip_count=2, ahead=PRODUCER, behind=CONSUMER, kind="WAR"))
    assert done.wrong_runs == ("scripted",)
    assert not done.deadlock


def test_an_arrival_in_front_of_its_wait_says_nothing_about_it() -> None:
    entries = producer_consumer().kernel
    (slot,) = (n for n, e in enumerate(entries) if e.effect.arrives == "full" and n < 12)
    assert entries[slot - 1].effect.kind is OpKind.WAIT
    swapped = (*entries[: slot - 1], entries[slot], entries[slot - 1], *entries[slot + 1 :])
    done = at_some_trip_count(producer_consumer().with_phases({Phase.KERNEL: swapped}))
    assert done.wrong_runs
    assert not done.deadlock


def test_a_register_of_another_role_is_not_there() -> None:
    """The producer reads a; the consumer, which multiplies it, has nothing in its own registers."""
    program = producer_consumer()
    moved = [replace(e, roles=(PRODUCER,)) if e.op.name == "read_a" else e for e in program.epilogue]
    done = execute(program.with_phases({Phase.EPILOGUE: moved}), 0, policy=Earliest())
    assert done.first_wrong is not None
    assert "mma_c s0 of iteration 0 reads poison in a of iteration 0" in done.first_wrong


def test_a_load_by_a_role_whose_it_is_not_is_wrong() -> None:
    program = producer_consumer()
    moved = [replace(e, roles=(CONSUMER,)) if e.op.name == "load_A" else e for e in program.prologue]
    assert not execute(program.with_phases({Phase.PROLOGUE: moved}), 0, policy=Earliest()).right


def test_an_op_that_is_never_executed_is_missed() -> None:
    program = producer_consumer()
    idle = {phase: [e for e in program.phase(phase) if e.op.name != "mma_c"] for phase in Phase}
    assert not execute(program.with_phases(idle), 1, policy=Earliest()).right


# Deadlocks


def test_roles_that_wait_for_each_other_are_stuck_though_their_counts_agree() -> None:
    """The producer waits for a tile to be read before it loads the first; the consumer reads one tile too many."""
    program = producer_consumer()
    (wait,) = (e for e in program.kernel if e.effect.awaits == EMPTY and e.time_slot < 10)
    (arrive,) = (e for e in program.kernel if e.effect.arrives == EMPTY and e.time_slot < 10)
    crossed = program.with_phases(
        {
            Phase.PROLOGUE: [replace(wait, phase=Phase.PROLOGUE), *program.prologue],
            Phase.EPILOGUE: [*program.epilogue, replace(arrive, phase=Phase.EPILOGUE)],
        }
    )
    counts = [
        sum(getattr(e.effect, does) == EMPTY for e in crossed.entries if e.executed_by(role))
        for does, role in (("awaits", PRODUCER), ("arrives", CONSUMER))
    ]
    assert counts[0] == counts[1]
    for trips in range(3):
        done = execute(crossed, trips)
        assert (done.right, done.deadlock, done.wrong_runs) == (False, True, ())
        assert done.first_wrong is not None
        assert "producer waits at empty forever, in prologue[0] wait(empty)" in done.first_wrong
        assert "consumer never arrives there for the first time" in done.first_wrong


def test_arrivals_may_be_ahead_of_waits_by_any_number() -> None:
    """Nobody waits for the last arrivals; more of them change nothing."""
    program = producer_consumer()
    (arrive,) = (e for e in program.kernel if e.effect.arrives == EMPTY and e.time_slot < 10)
    more = [*program.epilogue, *[replace(arrive, phase=Phase.EPILOGUE)] * 3]
    assert execute(program.with_phases({Phase.EPILOGUE: more}), 2).right


@pytest.mark.parametrize(
    "barriers",
    [
        (Barrier("full", (PRODUCER,), (CONSUMER,)),),
        (Barrier("full", (PRODUCER,), (CONSUMER,)), Barrier(EMPTY, (PRODUCER,), (PRODUCER,))),
        (Barrier("full", (PRODUCER,), (CONSUMER,)), Barrier(EMPTY, (CONSUMER,), (CONSUMER,))),
    ],
)
def test_a_barrier_that_is_not_for_a_role_is_refused(barriers: tuple[Barrier, ...]) -> None:
    with pytest.raises(RotaError) as caught:
        execute(replace(producer_consumer(), barriers=barriers), 1)
    (finding,) = caught.value.findings
    assert finding.code == "D105"
    worded(finding)


# Times


def general_order(program: LoweredProgram, trips: int) -> tuple[BarrierOrder, BarrierOrder | None]:
    """The order as it is worked out where there is no shortcut, and what is given."""
    group = Setup(trip_count=trips).workgroup(program)
    everyone = tuple(range(len(program.roles)))
    another = replace(program, barriers=(*program.barriers, Barrier("another", everyone, everyone)))
    nobody = Entry(
        op=program.kernel[0].op,
        effect=Effect(kind=OpKind.BARRIER, arrives="another", awaits="another"),
        time_slot=0,
        phase=Phase.EPILOGUE,
    )
    longer = another.with_phases({Phase.EPILOGUE: [*program.epilogue, nobody]})
    order = barrier_order(Setup(trip_count=trips).workgroup(longer))
    assert order is not None
    last = {role: len(trace.barriers) for role, trace in enumerate(group.traces)}
    kept = tuple(each for each in order.passages if each.stop.number < last[each.stop.role])
    return BarrierOrder(passages=kept, stuck=order.stuck), barrier_order(group)


@pytest.mark.parametrize("trips", [0, 3])
@pytest.mark.parametrize(
    "program",
    [ping_pong("GREEDY", 1).lowered, with_syncs([(*FULL, BARRIER)] * SLOTS, stagger=True).lowered],
    ids=["ping-pong", "tiny, staggered"],
)
def test_barriers_one_by_one_give_the_times_of_all_at_once(program: LoweredProgram, trips: int) -> None:
    """The shortcut for a barrier at which all meet is the general way, to the last bit."""
    group = Setup(trip_count=trips).workgroup(program)
    policy = Together(policies=(*POLICIES, Scripted(witness=Witnessed(trip_count=trips, ahead=1))))
    order, given = general_order(program, trips)
    assert given is None
    for quick, general in zip(run_clock(group, policy), run_clock(group, policy, order), strict=True):
        assert np.array_equal(quick, general)


def test_a_wave_behind_is_held_up_by_nobody_but_those_it_waits_for() -> None:
    """The producer runs two tiles ahead of a consumer that is late, and no further."""
    group = Setup(trip_count=4).workgroup(producer_consumer())
    clock = run_clock(group, Scripted(witness=Witnessed(trip_count=4, ahead=PRODUCER, behind=CONSUMER)))
    producer, consumer = group.traces
    loads = [n for n, (entry, _) in enumerate(producer.steps) if entry.op.name == "load_A"]
    reads = [n for n, (entry, _) in enumerate(consumer.steps) if entry.op.name == "read_a"]
    ahead, late = clock.steps[0, 0], clock.steps[0, -1]
    for tile in range(2, len(loads)):
        assert ahead[loads[tile]] > late[reads[tile - 2]]
        assert ahead[loads[tile]] < late[reads[tile - 1]]
