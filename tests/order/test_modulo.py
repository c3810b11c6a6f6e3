from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from rota.errors import DeclarationError, OrderError
from rota.order.modulo import scheduler as modulo
from rota.order.modulo.cpsat_modulo import Decision
from rota.order.modulo.modulo_check import check_modulo_schedule
from rota.order.modulo.modulo_problem import ModuloProblem, ModuloProof, ModuloSchedule, Resource, derive_mii
from rota.order.modulo.scheduler import ModuloScheduler
from rota.solver.limits import Outcome
from tests.order.modulo_oracle import feasible, keeps, least_ii
from tests.order.modulo_problems import ALU, crossed, edge, on, op, problem, small_problems
from tests.wording.golden import worded

MOST = 12


def outcome(scheduler: ModuloScheduler, of: ModuloProblem, ii: int | None = None) -> ModuloSchedule | str:
    """A schedule, or the code of the finding."""
    try:
        return scheduler.schedule(of) if ii is None else scheduler.schedule_at(of, ii)
    except OrderError as error:
        return error.findings[0].code


def test_a_chain_on_one_unit_is_pipelined_at_the_bound() -> None:
    chain = problem([op("load", on("alu"), latency=5), op("mul", on("alu")), op("store")], [edge(0, 1), edge(1, 2)])
    schedule = ModuloScheduler().schedule(chain)
    assert schedule.ii == 2
    assert schedule.certificate.proof is ModuloProof.MEETS_BOUND
    worded(str(schedule))
    assert schedule.starts == tuple(
        2 * stage + slot for stage, slot in zip(schedule.stages, schedule.slots, strict=True)
    )


def test_a_bound_that_can_not_be_met_is_refuted() -> None:
    schedule = ModuloScheduler().schedule(crossed())
    assert schedule.ii == 4
    assert schedule.certificate.proof is ModuloProof.REFUTED
    assert (schedule.certificate.lower, schedule.certificate.refuted) == (4, (3,))
    worded(str(schedule))


def test_the_least_possible_interval_without_a_schedule() -> None:
    assert ModuloScheduler().least_possible(crossed()) == 4
    assert ModuloScheduler(time_limit=0).least_possible(crossed()) == 3  # the bound; nothing is refuted
    assert ModuloScheduler().least_possible(crossed(), lower=6) == 6


def test_what_the_caller_knows_is_not_sought_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModuloScheduler, "_search", lambda *_: pytest.fail("3 is known to be out of reach"))
    schedule = ModuloScheduler().schedule(crossed(), lower=4)
    assert (schedule.ii, schedule.certificate.lower) == (4, 4)
    assert schedule.certificate.proof is ModuloProof.REFUTED


def test_without_time_the_heuristic_answers_and_nothing_is_called_infeasible() -> None:
    schedule = ModuloScheduler(time_limit=0).schedule(crossed())
    assert schedule.certificate.proof is ModuloProof.OPEN
    assert (schedule.certificate.lower, schedule.ii) == (3, 4)
    worded(str(schedule))


def test_a_use_longer_than_the_interval_holds_several_places() -> None:
    wide = problem([op("long", on("dma", 7))], [], Resource(name="dma", capacity=3))
    schedule = ModuloScheduler().schedule(wide)
    assert (schedule.ii, schedule.stage_count) == (3, 1)


def test_equal_holds_that_fill_a_unit_stand_on_a_grid() -> None:
    ops = [op(f"mma {number}", on("alu", 4), on("port")) for number in range(8)]
    reads = [op(f"read {number}", on("port", 2), latency=9) for number in range(16)]
    feeds = [edge(8 + number, number // 2) for number in range(16)]
    schedule = ModuloScheduler().schedule_at(problem([*ops, *reads], feeds), 32)
    slots = sorted(schedule.slots[:8])
    assert [slot - slots[0] for slot in slots] == list(range(0, 32, 4))
    assert schedule.certificate.optimal


def test_ops_of_many_uses_are_packed_exactly() -> None:
    """Three holds of 2 on one place fill 6 slots; the issue slot of each, one later, must find room beside them."""
    ops = [op("x", on("alu", 2), on("port", 1, 1)) for _ in range(3)] + [op("y", on("port", 3)) for _ in range(3)]
    packed = problem(ops, [edge(0, 3, 4)])
    schedule = ModuloScheduler().schedule(packed)
    assert schedule.ii == least_ii(packed, 8) == 6


def test_the_empty_problem_has_an_empty_schedule() -> None:
    schedule = ModuloScheduler().schedule(ModuloProblem(ops=()))
    assert (schedule.ii, schedule.starts, schedule.stage_count) == (1, (), 1)


def test_the_same_answer_twice() -> None:
    tight = problem(
        [op(str(n), on("alu"), latency=3) for n in range(6)], [edge(n, (n + 1) % 6, 3, int(n == 5)) for n in range(6)]
    )
    assert ModuloScheduler().schedule(tight) == ModuloScheduler().schedule(tight)


def test_an_interval_left_open_is_never_read_as_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver is silent: whatever is found above says nothing about what is below."""
    monkeypatch.setattr(modulo, "decide", lambda *_, **__: Decision(outcome=Outcome.OPEN))
    schedule = ModuloScheduler().schedule(crossed())
    assert (schedule.ii, schedule.certificate.by) == (4, "ims")
    assert (schedule.certificate.proof, schedule.certificate.lower) == (ModuloProof.OPEN, 3)
    assert schedule.certificate.refuted == ()


def test_if_all_else_fails_ops_run_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modulo, "iterative_starts", lambda *_: None)
    chain = problem([op("b", on("alu", 3)), op("a", on("alu"), latency=4)], [edge(1, 0), edge(0, 1, 2, 1)])
    schedule = ModuloScheduler(time_limit=0).schedule(chain)
    assert (schedule.ii, schedule.starts) == (8, (4, 0))
    assert (schedule.certificate.proof, schedule.certificate.lower) == (ModuloProof.OPEN, 6)


def test_a_fixed_interval_without_time_is_left_open() -> None:
    with pytest.raises(OrderError) as caught:
        ModuloScheduler(time_limit=0).schedule_at(crossed(), 3)
    finding = caught.value.findings[0]
    assert finding.code == "O204"
    worded(finding)


def test_a_fixed_interval_above_the_bound_claims_nothing() -> None:
    schedule = ModuloScheduler().schedule_at(crossed(), 5)
    assert schedule.ii == 5
    assert schedule.certificate.proof is ModuloProof.OPEN


def test_a_fixed_interval_is_searched_where_the_heuristic_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modulo, "iterative_starts", lambda *_: None)
    schedule = ModuloScheduler().schedule_at(crossed(), 4)
    assert (schedule.certificate.by, schedule.certificate.refuted) == ("cpsat", ())


def test_an_op_that_meets_itself_fits_nowhere() -> None:
    twice = problem([op("x", on("alu", 2), on("alu", 1, 1))], [], ALU)
    with pytest.raises(OrderError) as caught:
        ModuloScheduler().schedule(twice)
    assert caught.value.findings[0].code == "O301"


def test_without_time_what_may_fit_nowhere_is_left_open() -> None:
    tied = problem([op("a", on("alu")), op("b", on("alu"))], [edge(0, 1, 0), edge(1, 0, 0)])
    assert outcome(ModuloScheduler(), tied) == "O301"
    assert outcome(ModuloScheduler(time_limit=0), tied) == "O204"


@pytest.mark.parametrize(
    "make",
    [
        lambda: ModuloScheduler(time_limit=-1),
        lambda: ModuloScheduler(time_limit="soon"),  # type: ignore[arg-type]
        lambda: ModuloScheduler(workers=0),
        lambda: ModuloScheduler(seed=-1),
        lambda: ModuloScheduler().schedule_at(crossed(), 0),
        lambda: ModuloScheduler().schedule_at(crossed(), True),
        lambda: ModuloScheduler().schedule([]),  # type: ignore[arg-type]
    ],
)
def test_malformed_requests_are_findings(make: Any) -> None:
    with pytest.raises(DeclarationError):
        make()


@pytest.mark.thorough  # runs for seconds
@settings(max_examples=200, deadline=None)
@given(small=small_problems())
def test_the_least_interval_is_the_oracles(small: ModuloProblem) -> None:
    least = least_ii(small, 6 if len(small.ops) > 3 else MOST)
    schedule = outcome(ModuloScheduler(), small)
    if isinstance(schedule, str):
        assert (schedule, least) == ("O301", None)
        return
    check_modulo_schedule(small, schedule)
    assert keeps(small, schedule.ii, schedule.starts)
    assert schedule.certificate.optimal
    assert ModuloScheduler().least_possible(small) == schedule.ii
    if least is not None:
        assert schedule.ii == least
    assert schedule.ii >= derive_mii(small).ii


@settings(max_examples=100, deadline=None)
@given(small=small_problems(3))
def test_without_time_no_certificate_is_wrong(small: ModuloProblem) -> None:
    schedule = outcome(ModuloScheduler(time_limit=0), small)
    if isinstance(schedule, str):
        assert schedule == "O204" or not any(feasible(small, ii) for ii in range(1, 9))
        return
    assert keeps(small, schedule.ii, schedule.starts)
    assert not any(feasible(small, ii) for ii in range(1, min(schedule.certificate.lower, 9)))


@settings(max_examples=60, deadline=None)
@given(small=small_problems(3))
def test_a_fixed_interval_is_decided_as_by_the_oracle(small: ModuloProblem) -> None:
    for ii in range(1, 6):
        schedule = outcome(ModuloScheduler(), small, ii)
        if isinstance(schedule, str):
            assert schedule == "O301"
            assert not feasible(small, ii)
        else:
            assert keeps(small, ii, schedule.starts)
