"""The exact scheduler: equal to full enumeration, honest about what it proved, clear about what binds."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from rota.errors import DeclarationError, Finding, OrderError
from rota.order.acyclic.check_ordering import check_ordering
from rota.order.acyclic.cpsat import CpSatScheduler, Facts, Goal, Limits, Solution
from rota.order.acyclic.greedy import greedy_order
from rota.order.acyclic.problem import UNLIMITED_VGPR, Evaluation, LoopBody, Ordering, OrderProblem, Proof
from rota.solver.limits import Outcome
from tests.order.bodies import body, op, problems
from tests.order.exhaustive import best_cost
from tests.wording.golden import mentions, worded

pytestmark = pytest.mark.thorough  # runs for seconds

# The greedy order ends at 50; starting with the long chain's MMA ends at 40.
IMPROVABLE = body([op("mma", 10), op("mma", 10), op("valu", 10), op("frag", 30)], (1, 3), (0, 2))
# All orders take 9; the greedy order holds both fragments at once.
LEANER = body([op("frag", 1, 8), op("frag", 1, 8), op("mma", 4, 0, 8), op("mma", 4, 0, 8)], (0, 2), (1, 3))


def refusal(problem: OrderProblem, scheduler: CpSatScheduler | None = None) -> Finding:
    with pytest.raises(OrderError) as caught:
        (scheduler or CpSatScheduler()).order(problem)
    return caught.value.findings[0]


def without_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)


def attempt(problem: OrderProblem) -> Ordering | str:
    try:
        return CpSatScheduler().order(problem)
    except OrderError as error:
        return error.findings[0].code


@given(problems())
@settings(max_examples=100, deadline=None)
def test_it_equals_full_enumeration(problem: OrderProblem) -> None:
    found = attempt(problem)
    best = best_cost(problem)
    if isinstance(found, str):
        assert found in {"O201", "O202", "O203"}
        assert best is None
        return
    assert found.certificate.proof is Proof.OPTIMAL
    if found.certificate.notes:  # the greedy order at the bound: surplus loads are left to redistribution
        best = best_cost(replace(problem, max_globals=0))
    assert Evaluation(found.makespan, found.vgpr_peak) == best


@given(problems(most_ops=6))
@settings(max_examples=60, deadline=None)
def test_a_refusal_names_the_limit_that_binds(problem: OrderProblem) -> None:
    code = attempt(problem)
    if not isinstance(code, str) or not any(op.vgpr_kill for op in problem.body.ops):
        return  # without frees the budget is refused first, whatever the loads
    budget_fits = best_cost(replace(problem, max_globals=0)) is not None
    loads_fit = best_cost(replace(problem, max_vgpr=UNLIMITED_VGPR)) is not None
    assert code == ("O203" if budget_fits == loads_fit else "O202" if budget_fits else "O201")


def test_a_shorter_order_than_greedy_is_found_and_proved() -> None:
    found = CpSatScheduler().order(OrderProblem(body=IMPROVABLE))
    assert (found.makespan, found.certificate.bound, found.gap) == (40, 40, 0)
    assert found.certificate.proof is Proof.OPTIMAL
    assert found.certificate.by == "cpsat"
    assert found.certificate.seconds > 0


def test_of_equal_makespans_the_lower_peak_wins() -> None:
    found = CpSatScheduler().order(OrderProblem(body=LEANER))
    assert (found.makespan, found.vgpr_peak) == (9, 8)
    assert found.certificate.vgpr_bound == 8


def test_makespan_comes_before_the_peak() -> None:
    # Freeing registers first needs the slow chain first, which costs time.
    graph = body([op("mma", 10, 8), op("mma", 10, 0, 8), op("frag", 50)], (0, 2))
    found = CpSatScheduler().order(OrderProblem(body=graph))
    assert (found.makespan, found.vgpr_peak) == (60, 8)


def test_partitions_stay_apart_in_the_order_while_their_times_overlap() -> None:
    graph = body([op("mma", 10), op("frag", 50), op("frag", 50), op("mma", 10)])
    found = CpSatScheduler().order(OrderProblem(body=graph, partitions=2))
    assert found.makespan == 50
    assert set(found.order[:2]) == {0, 1}


def test_the_port_penalty_is_part_of_the_search() -> None:
    graph = body([op("frag", 5), op("load", 100)])
    found = CpSatScheduler().order(OrderProblem(body=graph, lds_contention_penalty=20))
    assert found.order == (1, 0)
    assert found.makespan == 100


def test_ops_that_take_no_time_keep_unit_and_order_consistent() -> None:
    graph = body([op("mma", 8), op("mma", 0), op("mma", 0), op("frag", 9)], (2, 1), (1, 3))
    found = CpSatScheduler().order(OrderProblem(body=graph))
    assert found.order == (2, 1, 0, 3)
    assert found.makespan == 9


def test_a_gap_is_numbered_by_the_computes_of_all_partitions() -> None:
    first = [op("load", 9), op("mma", 10), op("mma", 10), op("frag", 30)]
    second = [op("load", 9), op("mma", 1), op("nop"), op("nop")]
    graph = body([*first, *second], (0, 1), (0, 2), (2, 3), (4, 5))
    found = CpSatScheduler().order(OrderProblem(body=graph, partitions=2, max_globals=1))
    assert (found.makespan, found.certificate.by) == (49, "cpsat")


def test_penalties_may_make_the_only_fitting_order_longer_than_its_latencies() -> None:
    graph = body([op("frag", 1, 8), op("frag", 1, 0, 8)])
    found = CpSatScheduler().order(OrderProblem(body=graph, lds_contention_penalty=30, max_vgpr=7))
    assert (found.order, found.makespan) == ((1, 0), 31)


def test_an_empty_body_has_an_empty_order() -> None:
    found = CpSatScheduler().order(OrderProblem(body=body([]), max_globals=1, max_vgpr=0))
    assert (found.order, found.makespan, found.vgpr_peak) == ((), 0, 0)


class TestSeed:
    """The greedy order is returned where it is proved optimal, whoever proves it."""

    def test_at_both_bounds_no_solver_is_loaded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        without_solver(monkeypatch)
        problem = OrderProblem(body=body([op("frag", 5, 8), op("mma", 4, 4)], (0, 1)), max_vgpr=12)
        found = CpSatScheduler().order(problem)
        assert found.order == greedy_order(problem)
        assert (found.certificate.proof, found.certificate.by) == (Proof.OPTIMAL, "greedy")
        assert found.certificate.notes == ()

    def test_surplus_loads_are_noted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        without_solver(monkeypatch)
        graph = body([op("load", 9), op("load", 9), op("mma", 4), op("mma", 4)])
        problem = OrderProblem(body=graph, max_globals=1)
        found = CpSatScheduler().order(problem)
        assert found.order == (0, 1, 2, 3)
        assert found.certificate.notes == ("max_globals 1 exceeded in 1 gap; redistribution moves 1 load",)
        check_ordering(problem, found)

    def test_a_search_keeps_to_max_globals(self) -> None:
        graph = LoopBody([op("load", 9), op("load", 9), *IMPROVABLE.ops], ())
        graph = body(list(graph.ops), (3, 5), (2, 4))
        problem = OrderProblem(body=graph, max_globals=1)
        found = CpSatScheduler().order(problem)
        assert found.makespan == 40
        assert found.certificate.notes == ()
        check_ordering(problem, found)

    def test_on_a_tie_the_greedy_order_stays(self) -> None:
        # Optimal, but above the bound, so that only the search can prove it.
        graph = body([op("mma", 10), op("mma", 10), op("frag", 30), op("frag", 30)], (0, 2), (1, 3))
        problem = OrderProblem(body=graph)
        found = CpSatScheduler().order(problem)
        assert (found.makespan, found.certificate.by) == (50, "cpsat")
        assert found.order == greedy_order(problem)

    def test_a_search_without_the_solver_is_D105(self, monkeypatch: pytest.MonkeyPatch) -> None:
        without_solver(monkeypatch)
        with pytest.raises(DeclarationError) as caught:
            CpSatScheduler().order(OrderProblem(body=IMPROVABLE))
        assert caught.value.findings[0].code == "D105"


class TestInfeasible:
    """Which limit leaves no order, and by how much."""

    def test_registers_that_nobody_frees_are_O201_without_a_solver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        without_solver(monkeypatch)
        finding = refusal(OrderProblem(body=body([op("frag", 1, 8), op("mma", 1, 4)]), max_vgpr=11))
        assert finding.code == "O201"
        assert dict(finding.evidence) == {"max_vgpr": 11, "registers live at the end of any order": 12}
        assert finding.concerns[0].index == 1

    def test_a_budget_below_the_least_peak_is_O201(self) -> None:
        finding = refusal(OrderProblem(body=LEANER, max_vgpr=7))
        assert finding.code == "O201"
        assert dict(finding.evidence) == {"max_vgpr": 7, "least peak of any order": 8}
        assert "max_vgpr=8" in finding.fixes
        assert finding.concerns[0].role == "8 registers are live here"

    def test_a_budget_at_the_least_peak_is_met(self) -> None:
        assert CpSatScheduler().order(OrderProblem(body=LEANER, max_vgpr=8)).vgpr_peak == 8

    def test_more_loads_than_gaps_are_O202(self) -> None:
        graph = body([*[op("load", 9)] * 5, op("mma", 10), op("mma", 10), op("frag", 30)], (6, 7))
        finding = refusal(OrderProblem(body=graph, max_globals=1))
        assert finding.code == "O202"
        assert dict(finding.evidence) == {
            "max_globals": 1,
            "least loads between two computes of any order": 2,
            "global loads": 5,
            "computes": 2,
        }
        assert "max_globals=2" in finding.fixes

    def test_limits_that_fit_alone_but_not_together_are_O203(self) -> None:
        # Registers want the second load, which frees, right after the first; the load limit wants the MMA between them.
        graph = body([op("load", 9, 4), op("mma", 10, 4, 4), op("load", 9, 0, 4)], (0, 2))
        assert CpSatScheduler().order(OrderProblem(body=graph, max_vgpr=4)).vgpr_peak == 4
        finding = refusal(OrderProblem(body=graph, max_vgpr=4, max_globals=1))
        assert finding.code == "O203"
        evidence = dict(finding.evidence)
        assert evidence["least peak of any order that keeps to max_globals 1"] == 8
        assert evidence["least loads between two computes of any order that fits max_vgpr 4"] == 2

    def test_limits_that_fail_each_alone_are_O203(self) -> None:
        loads = [op("load", 9, 8, 8)] * 3
        finding = refusal(OrderProblem(body=body([*loads, op("mma", 4, 8, 4)]), max_vgpr=7, max_globals=1))
        assert finding.code == "O203"
        evidence = dict(finding.evidence)
        assert evidence["least peak of any order"] == 8
        assert evidence["least loads between two computes of any order"] == 2

    def test_an_edge_backwards_across_partitions_is_O103(self) -> None:
        assert refusal(OrderProblem(body=body([op("load"), op("frag")], (1, 0)), partitions=2)).code == "O103"


class TestTimeLimit:
    """Running out of time is never read as infeasible."""

    hasty = CpSatScheduler(time_limit=1e-9)

    def test_a_greedy_order_that_fits_is_returned_as_feasible(self) -> None:
        problem = OrderProblem(body=IMPROVABLE)
        found = self.hasty.order(problem)
        assert found.order == greedy_order(problem)
        assert found.certificate.proof is Proof.FEASIBLE
        assert found.certificate.bound == 40
        assert found.gap == 10

    def test_a_proved_makespan_with_an_open_peak_is_feasible(self) -> None:
        found = self.hasty.order(OrderProblem(body=LEANER))
        assert found.certificate.proof is Proof.FEASIBLE
        assert (found.makespan, found.certificate.bound) == (9, 9)
        assert (found.vgpr_peak, found.certificate.vgpr_bound) == (16, 8)

    def test_no_order_in_time_is_O204(self) -> None:
        finding = refusal(OrderProblem(body=LEANER, max_vgpr=8), self.hasty)
        assert finding.code == "O204"
        evidence = dict(finding.evidence)
        assert (evidence["register peak of the greedy order"], evidence["max_vgpr"]) == (16, 8)

    def test_O204_names_the_fullest_gap(self) -> None:
        graph = body([op("load", 9), op("load", 9), *IMPROVABLE.ops], (3, 5), (2, 4))
        evidence = dict(refusal(OrderProblem(body=graph, max_globals=1), self.hasty).evidence)
        assert (evidence["loads in the greedy order's fullest gap"], evidence["max_globals"]) == (2, 1)

    def test_limits_that_the_explanation_cannot_decide_are_said_to_be_open(self) -> None:
        problem = OrderProblem(body=LEANER, max_vgpr=7)
        undecided = Scripted.scheduler([Solution(outcome=Outcome.INFEASIBLE), Solution(outcome=Outcome.OPEN, bound=5)])
        finding = refusal(problem, undecided)
        assert finding.code == "O201"
        worded(finding)

    def test_both_limits_undecided_are_O203(self) -> None:
        graph = body([op("load", 9, 4), op("load", 9, 4), op("mma", 10, 0, 4), op("frag", 9)], (2, 3))
        found = Solution(outcome=Outcome.FEASIBLE, order=(0, 1, 2, 3), value=8, bound=4)
        script = [Solution(outcome=Outcome.INFEASIBLE), *[Solution(outcome=Outcome.OPEN)] * 3, found]
        finding = refusal(OrderProblem(body=graph, max_vgpr=6, max_globals=1), Scripted.scheduler(script))
        assert finding.code == "O203"
        evidence = dict(finding.evidence)
        assert evidence["max_vgpr alone"] == evidence["max_globals alone"]
        assert mentions(evidence["least loads between two computes of any order that fits max_vgpr 6"], 4, 8)
        worded(finding)

    def test_a_short_limit_gives_a_legal_order_with_a_bound(self) -> None:
        chains = [op("mma", 16, 8), op("valu", 24, 4, 4), op("mma", 32, 0, 8)] * 14
        edges = [(i, i + 1) for i in range(42) if i % 3 != 2]
        problem = OrderProblem(body=body(chains, *edges), lds_contention_penalty=4)
        found = CpSatScheduler(time_limit=0.3).order(problem)
        check_ordering(problem, found)
        assert found.certificate.bound <= found.makespan
        assert found.certificate.vgpr_bound <= found.vgpr_peak


class Scripted(CpSatScheduler):
    """A solver that says what the test tells it to."""

    script: list[Solution]

    @classmethod
    def scheduler(cls, script: list[Solution]) -> Scripted:
        return type("Once", (cls,), {"script": list(script)})()  # type: ignore[no-any-return]

    def _solve(
        self, facts: Facts, goal: Goal, limits: Limits, deadline: float, hint: tuple[int, ...] | None = None
    ) -> Solution:
        return self.script.pop(0)


class TestMistrust:
    """The solver is outside the trusted base: what it says is checked against the order itself."""

    @pytest.mark.parametrize(
        ("claim", "code"),
        [
            ({"order": (0, 1, 2)}, "O101"),
            ({"order": (1, 3, 0, 2), "bound": 41}, "O102"),
            ({"order": (3, 1, 0, 2)}, "O102"),
        ],
    )
    def test_a_lying_solver_is_refused(self, claim: dict[str, Any], code: str) -> None:
        solution = Solution(outcome=Outcome.OPTIMAL, value=40, **{"bound": 40, **claim})
        # With this limit the greedy order doesn't fit, so the solver's word is all there is.
        ops = [op("load", 9, 4), op("load", 9, 4, 8), *IMPROVABLE.ops]
        problem = OrderProblem(body=IMPROVABLE) if code == "O102" else OrderProblem(body=body(ops), max_vgpr=7)
        assert refusal(problem, Scripted.scheduler([solution])).code == code

    def test_an_order_over_the_load_limit_is_refused(self) -> None:
        graph = body([op("load", 9), op("load", 9), *IMPROVABLE.ops], (3, 5), (2, 4))
        solution = Solution(outcome=Outcome.OPTIMAL, order=(3, 5, 0, 1, 2, 4), value=40, bound=40)
        assert refusal(OrderProblem(body=graph, max_globals=1), Scripted.scheduler([solution])).code == "O102"


def test_the_answer_is_reproducible() -> None:
    chains = [op("mma", 16, 8), op("valu", 24, 4, 4), op("mma", 32, 0, 8), op("load", 50)] * 4
    edges = [(i, i + 1) for i in range(16) if i % 4 < 2]
    problem = OrderProblem(body=body(chains, *edges), max_globals=2, lds_contention_penalty=3)
    answers = {CpSatScheduler().order(problem).order for _ in range(3)}
    assert len(answers) == 1


def test_several_workers_and_another_seed_find_the_same_cost() -> None:
    costs = {
        (found.makespan, found.vgpr_peak)
        for found in (CpSatScheduler(workers=w, seed=s).order(OrderProblem(body=LEANER)) for w, s in ((1, 0), (2, 7)))
    }
    assert costs == {(9, 8)}


@pytest.mark.parametrize(
    "fields",
    [
        {"time_limit": 0},
        {"time_limit": -1.0},
        {"time_limit": float("nan")},
        {"time_limit": "60"},
        {"time_limit": True},
        {"workers": 0},
        {"workers": 1.5},
        {"seed": -1},
        {"seed": 2**31},
    ],
)
def test_a_bad_field_is_D102(fields: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError) as caught:
        CpSatScheduler(**fields)
    assert caught.value.findings[0].code == "D102"
