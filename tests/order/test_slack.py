"""Room for what is uncertain: what is claimed holds, and what is impossible isn't found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rota.order.modulo import slack
from rota.order.modulo.cpsat_modulo import Decision
from rota.order.modulo.handover import Choice, Delivery, Handover
from rota.order.modulo.modulo_problem import ModuloEdge, ModuloOp, ModuloProblem, Resource, Use
from rota.order.modulo.scheduler import ModuloScheduler
from rota.order.modulo.slack import Settled, check_settled, settle
from rota.solver.limits import Outcome, Stop
from tests.findings.smallest import raised

LOAD, READ, COMPUTE = range(3)
II = 20


def choice(copies: int, *, barriers: tuple[int, ...] | None = None, lag: int = 0) -> Choice:
    """A load that lands after 10 slots, a read that lands after 4, and a use of it."""
    return Choice(
        problem=ModuloProblem(
            ops=(
                ModuloOp(name="load", latency=10, uses=(Use(resource="path"),)),
                ModuloOp(name="read", latency=4, uses=(Use(resource="port"),)),
                ModuloOp(name="compute", latency=1, uses=(Use(resource="unit"),)),
            ),
            edges=(
                ModuloEdge(producer=LOAD, consumer=READ),
                ModuloEdge(producer=READ, consumer=COMPUTE),
                ModuloEdge(producer=READ, consumer=LOAD, distance=copies),
                ModuloEdge(producer=COMPUTE, consumer=READ, distance=1),
            ),
            resources=(Resource(name="path"), Resource(name="port"), Resource(name="unit")),
        ),
        copies=(("A", copies),),
        handovers=(
            Handover("A", (LOAD,), (READ,), 0, lands=True),
            Handover("A", (READ,), (LOAD,), copies, lands=False),
        ),
        deliveries=(Delivery(READ, COMPUTE, 0),),
        stages=range(1, copies + 3),
        barriers=barriers,
        lag=lag,
    )


def found_for(choices: list[Choice], *, landing: int = 0, reading: int = 0) -> Settled:
    found = settle(choices, II, landing=landing, reading=reading, scheduler=ModuloScheduler())
    assert isinstance(found, Settled)
    return found


def test_one_buffer_needs_two_barriers_and_two_buffers_one() -> None:
    alone = found_for([choice(1)], landing=0, reading=0)
    assert len(alone.barriers) == 2
    doubled = found_for([choice(2)], landing=0, reading=0)
    assert len(doubled.barriers) == 1


def test_slack_is_halved_until_there_is_room() -> None:
    # One buffer: 10 to land, 4 to read, of 20 slots; of the 6 that are left a load can't have 8.
    found = found_for([choice(1)], landing=8, reading=0)
    assert found.landing_slack == 4


def test_what_loads_leave_is_given_to_reads() -> None:
    # Landing takes 10 and 2 to spare, reading 4: what is left of 20, 4 slots, is all a read may be late.
    found = found_for([replace(choice(1), stages=range(2, 4))], landing=2, reading=16)
    assert found.read_slack == 4


def test_fewer_stages_come_before_slack() -> None:
    found = found_for([choice(1)], landing=2, reading=16)
    assert max(found.starts) < II
    assert found.read_slack == 3


def test_a_deeper_buffer_is_taken_where_it_saves_a_barrier() -> None:
    found = found_for([choice(1), choice(2)], landing=0, reading=0)
    assert (found.choice, len(found.barriers)) == (1, 1)


def test_a_group_that_lags_needs_the_time_until_it_arrives() -> None:
    late = choice(2, barriers=(0, 10), lag=10)
    found = found_for([late], landing=0, reading=0)
    starts = found.starts
    waited = next(slot for slot in range(starts[LOAD] + 10, starts[READ] - 9) if slot % 10 == 0)
    assert waited + 10 <= starts[READ]
    apart = choice(1, barriers=(0, 10), lag=10)
    assert settle([apart], II, landing=0, reading=0, scheduler=ModuloScheduler()) is Outcome.INFEASIBLE


def test_every_other_barrier_does_where_there_is_room_for_one_more() -> None:
    found = found_for([replace(choice(4), lag=II)])
    landed, freed = found.starts[LOAD] + 10, found.starts[READ] + 4
    (barrier,) = found.barriers
    assert sum(landed <= at <= found.starts[READ] for at in range(barrier, 8 * II, II)) >= 2
    assert sum(freed <= at <= found.starts[LOAD] + 4 * II for at in range(barrier, 8 * II, II)) >= 2
    pair = replace(choice(2), lag=II)
    assert settle([pair], II, landing=0, reading=0, scheduler=ModuloScheduler()) is Outcome.INFEASIBLE


def test_gathered_reads_are_over_at_a_barrier_before_their_use() -> None:
    gathered = replace(choice(2), gathered=(Handover("reads", (READ,), (COMPUTE,), 0, lands=False),))
    found = found_for([gathered])
    (barrier,) = found.barriers
    assert any(found.starts[READ] + 4 <= at <= found.starts[COMPUTE] for at in range(barrier, 8 * II, II))
    early = Settled(choice=0, starts=(0, 12, 17), barriers=(11,), landing_slack=0, read_slack=0)
    check_settled(choice(2), early, II)
    raised("O102", lambda: check_settled(gathered, early, II))


def test_nothing_to_hand_over_takes_no_barrier() -> None:
    plain = replace(choice(2), handovers=())
    found = found_for([plain], landing=4, reading=4)
    assert found.barriers == ()


@pytest.mark.parametrize("change", [{"barriers": (11,)}, {"barriers": (17,)}, {"landing_slack": 9}, {"read_slack": 9}])
def test_a_claim_that_does_not_hold_is_found(change: dict[str, Any]) -> None:
    good = Settled(choice=0, starts=(0, 12, 18), barriers=(11, 17), landing_slack=1, read_slack=1)
    check_settled(choice(1), good, II)
    raised("O102", lambda: check_settled(choice(1), replace(good, **change), II))


def test_more_fixed_barriers_than_would_be_placed_freely() -> None:
    found = found_for([choice(2, barriers=(0, 4, 8, 12, 16))])
    assert found.barriers == (0, 4, 8, 12, 16)


def test_a_stopped_search_finds_nothing_more() -> None:
    stop = Stop()
    with stop.governing():
        found_for([choice(2)])
        stop.ask()
        assert settle([choice(2)], II, landing=0, reading=0, scheduler=ModuloScheduler()) is Outcome.OPEN


def test_a_search_without_time_proves_nothing() -> None:
    at_once = ModuloScheduler(time_limit=0)
    assert settle([choice(2)], II, landing=0, reading=0, scheduler=at_once) is Outcome.OPEN
    load, read, _ = choice(2).problem.ops
    busy = ModuloOp(name="compute", latency=1, uses=(Use(resource="path", occupancy=II),))
    full = replace(choice(2), problem=replace(choice(2).problem, ops=(load, read, busy)))
    assert settle([full], II, landing=0, reading=0, scheduler=at_once) is Outcome.OPEN
    assert settle([full], II, landing=0, reading=0, scheduler=ModuloScheduler()) is Outcome.INFEASIBLE


def test_what_precedences_rule_out_takes_no_time() -> None:
    impossible = choice(1, barriers=(0, 10), lag=10)
    at_once = ModuloScheduler(time_limit=0)
    assert settle([impossible], II, landing=0, reading=0, scheduler=at_once) is Outcome.INFEASIBLE


def test_several_workers_find_as_well() -> None:
    found = settle([choice(1)], II, landing=4, reading=1, scheduler=ModuloScheduler(workers=2))
    assert isinstance(found, Settled)
    check_settled(choice(1), found, II)
    assert (len(found.barriers), found.landing_slack) == (2, 4)


def without(request: Choice) -> Choice:
    """The same loop with one resource less, so that the other is the strict choice."""
    problem = request.problem
    ops = tuple(replace(op, uses=tuple(use for use in op.uses if use.resource != "unit")) for op in problem.ops)
    return replace(request, problem=replace(problem, ops=ops, resources=problem.resources[:2]))


def gives_up(monkeypatch: pytest.MonkeyPatch, tired: Callable[[Any, Decision | None], bool]) -> None:
    """Searches for some requests find nothing, as if they had taken too long."""
    solve = slack._Search.solve

    def tried(search: Any, request: Any, part: float = 1.0, **others: Any) -> Decision:
        if tired(request, others.get("near")):
            return Decision(outcome=Outcome.OPEN)
        return solve(search, request, part, **others)

    monkeypatch.setattr(slack._Search, "solve", tried)


def test_where_a_long_horizon_takes_too_long_a_short_one_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = max(choice(2).stages)
    gives_up(monkeypatch, lambda request, _: request.stages == longest)
    found = found_for([choice(2), without(choice(2))], landing=4)
    assert (found.choice, found.landing_slack) == (0, 4)
    check_settled(choice(2), found, II)


def test_slack_is_found_from_a_schedule_without(monkeypatch: pytest.MonkeyPatch) -> None:
    gives_up(monkeypatch, lambda request, near: request.slack > 0 and near is None)
    found = found_for([choice(2), without(choice(2))], landing=4)
    assert (found.choice, found.landing_slack) == (0, 4)
    check_settled(choice(2), found, II)
