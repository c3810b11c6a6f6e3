"""The check: accepts every honest answer, names both ends of every dishonest one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from rota.errors import Finding, OrderError
from rota.order.acyclic.check_ordering import check_ordering, loads_between_computes, surplus_note
from rota.order.acyclic.problem import OrderCertificate, Ordering, OrderProblem, Proof, evaluate_order
from tests.order.bodies import body, op
from tests.wording.golden import mentions, worded

# Two halves of load, fragment, MMA; the fragment feeds the MMA.
GRAPH = body(
    [op("load", 9, 2), op("frag", 5, 8), op("mma", 4, 4, 8), op("load", 9, 2), op("frag", 5, 8), op("mma", 4, 4, 8)],
    (1, 2),
    (4, 5),
)
PROBLEM = OrderProblem(body=GRAPH, partitions=2, max_globals=1, max_vgpr=40)
HONEST = (0, 1, 2, 3, 4, 5)


def answer(problem: OrderProblem, order: tuple[int, ...], **changes: Any) -> Ordering:
    cost = evaluate_order(problem.body, order, problem.lds_contention_penalty)
    certificate = OrderCertificate(proof=Proof.NONE, bound=0, vgpr_bound=0, by="test")
    ordering = Ordering(order=order, makespan=cost.makespan, vgpr_peak=cost.vgpr_peak, certificate=certificate)
    return replace(ordering, **changes)


def refusal(problem: OrderProblem, ordering: object) -> Finding:
    with pytest.raises(OrderError) as caught:
        check_ordering(problem, cast("Ordering", ordering))
    return worded(caught.value.findings[0])


def test_an_honest_answer_passes() -> None:
    check_ordering(PROBLEM, answer(PROBLEM, HONEST))


def test_an_empty_answer_to_an_empty_body_passes() -> None:
    empty = OrderProblem(body=body([]), max_globals=1, max_vgpr=0)
    check_ordering(empty, answer(empty, ()))


@pytest.mark.parametrize("returned", [None, HONEST, "order"])
def test_something_else_than_an_ordering_is_O101(returned: object) -> None:
    assert refusal(PROBLEM, returned).code == "O101"


def test_an_ordering_without_a_certificate_is_O101() -> None:
    assert refusal(PROBLEM, answer(PROBLEM, HONEST, certificate=None)).code == "O101"


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ((0, 1, 2, 3, 4), ("1", "6")),
        ((0, 1, 2, 3, 4, 4), ("2", "6")),
        ((0, 1, 2, 3, 4, 5, 5), ("1", "6")),
        ((), ("6",)),
        ((0, 1, 2, 3, 4, 6), ("op 6",)),
        ((-1, 1, 2, 3, 4, 5), ("op -1",)),
        ((0, 1, 2, 3, 4, "5"), ("tuple",)),
        ((False, 1, 2, 3, 4, 5), ("tuple",)),
        ([0, 1, 2, 3, 4, 5], ("tuple",)),
    ],
)
def test_something_else_than_a_permutation_is_O101(order: Any, names: tuple[str, ...]) -> None:
    finding = refusal(PROBLEM, replace(answer(PROBLEM, HONEST), order=order))
    assert finding.code == "O101"
    assert mentions(finding.message, *names)


def test_a_doubled_op_is_named_with_its_count() -> None:
    finding = refusal(PROBLEM, replace(answer(PROBLEM, HONEST), order=(0, 1, 2, 3, 4, 4)))
    assert [concern.index for concern in finding.concerns] == [4, 5]
    assert all(mentions(concern.role, count) for concern, count in zip(finding.concerns, (2, 0), strict=True))


def test_a_broken_dependency_is_O102_with_both_ends() -> None:
    finding = refusal(PROBLEM, answer(PROBLEM, (0, 2, 1, 3, 4, 5)))
    assert finding.code == "O102"
    assert [concern.index for concern in finding.concerns] == [1, 2]
    assert mentions(finding.concerns[0].role, 2)
    assert mentions(finding.concerns[1].role, 1)


def test_a_dependency_of_the_iteration_before_binds_nothing() -> None:
    graph = body([op("load", 9), op("mma", 4)], (1, 0, 1))
    problem = OrderProblem(body=graph)
    check_ordering(problem, answer(problem, (0, 1)))


def test_an_op_that_leaves_its_partition_is_O102() -> None:
    finding = refusal(PROBLEM, answer(PROBLEM, (0, 1, 3, 2, 4, 5)))
    assert finding.code == "O102"
    assert [concern.index for concern in finding.concerns] == [3, 2]


def test_a_wrong_makespan_is_O102_with_both_numbers() -> None:
    finding = refusal(PROBLEM, answer(PROBLEM, HONEST, makespan=1))
    assert finding.code == "O102"
    assert dict(finding.evidence) == {"stated": 1, "measured": 13}


def test_a_wrong_peak_is_O102_with_both_numbers() -> None:
    finding = refusal(PROBLEM, answer(PROBLEM, HONEST, vgpr_peak=1))
    assert finding.code == "O102"
    assert dict(finding.evidence) == {"stated": 1, "measured": 20}


def test_the_penalty_counts_in_the_stated_makespan() -> None:
    penalised = replace(PROBLEM, lds_contention_penalty=20)
    assert refusal(penalised, answer(PROBLEM, HONEST)).code == "O102"


@pytest.mark.parametrize(
    ("proof", "bound", "vgpr_bound"),
    [
        (Proof.OPTIMAL, 12, 20),
        (Proof.OPTIMAL, 13, 19),
        (Proof.OPTIMAL, 14, 20),
        (Proof.FEASIBLE, 14, 20),
        (Proof.FEASIBLE, 13, 21),
    ],
)
def test_a_certificate_that_its_own_order_contradicts_is_O102(proof: Proof, bound: int, vgpr_bound: int) -> None:
    certificate = OrderCertificate(proof=proof, bound=bound, vgpr_bound=vgpr_bound, by="test")
    assert refusal(PROBLEM, answer(PROBLEM, HONEST, certificate=certificate)).code == "O102"


def test_a_register_peak_over_budget_is_O102_where_it_happens() -> None:
    tight = replace(PROBLEM, max_vgpr=15)
    finding = refusal(tight, answer(tight, HONEST))
    assert finding.code == "O102"
    assert finding.concerns[0].index == 4
    assert dict(finding.evidence) == {"register peak": 20, "max_vgpr": 15}


def test_too_many_loads_between_two_computes_are_O102() -> None:
    graph = body([op("load", 9), op("load", 9), op("mma", 4), op("mma", 4)])
    problem = OrderProblem(body=graph, max_globals=1)
    check_ordering(problem, answer(problem, (0, 2, 1, 3)))
    finding = refusal(problem, answer(problem, (0, 1, 2, 3)))
    assert finding.code == "O102"
    assert [concern.index for concern in finding.concerns] == [0, 1]
    assert dict(finding.evidence) == {"loads in the fullest gap": 2, "max_globals": 1}


def test_loads_of_two_partitions_share_the_gap_between_their_computes() -> None:
    graph = body([op("mma", 4), op("load", 9), op("load", 9), op("mma", 4)])
    problem = OrderProblem(body=graph, partitions=2, max_globals=1)
    assert loads_between_computes(problem, (0, 1, 2, 3)) == ((), (1, 2), ())
    assert refusal(problem, answer(problem, (0, 1, 2, 3))).code == "O102"
    check_ordering(problem, answer(problem, (1, 0, 2, 3)))


def test_budgets_can_be_left_out_but_nothing_else() -> None:
    tight = replace(PROBLEM, max_vgpr=1)
    check_ordering(tight, answer(tight, HONEST), budgets=False)
    with pytest.raises(OrderError):
        check_ordering(tight, answer(tight, (0, 2, 1, 3, 4, 5)), budgets=False)


class TestSurplusLoads:
    """`max_globals` may be exceeded by the greedy order at the bound, when the certificate says so; never else."""

    graph = body([op("load", 9), op("load", 9), op("load", 9), op("mma", 4), op("mma", 4)])
    problem = OrderProblem(body=graph, max_globals=1)
    note = "max_globals 1 exceeded in 1 gap; redistribution moves 2 loads"
    certificate = OrderCertificate(proof=Proof.OPTIMAL, bound=9, vgpr_bound=0, by="greedy", notes=(note,))
    greedy = (0, 1, 2, 3, 4)

    def test_the_note_counts_gaps_and_loads(self) -> None:
        assert surplus_note(self.problem, self.greedy) == self.note
        assert surplus_note(self.problem, (0, 3, 1, 4, 2)) is None
        assert surplus_note(replace(self.problem, max_globals=0), self.greedy) is None
        several = surplus_note(
            OrderProblem(body=body([op("load")] * 2 + [op("mma")] + [op("load")] * 2), max_globals=1), range(5)
        )
        assert several == "max_globals 1 exceeded in 2 gaps; redistribution moves 2 loads"

    def test_the_one_case_passes(self) -> None:
        check_ordering(self.problem, answer(self.problem, self.greedy, certificate=self.certificate))

    @pytest.mark.parametrize(
        "changes",
        [
            {"notes": ()},
            {"notes": ("max_globals 1 exceeded in 1 gap; redistribution moves 1 load",)},
            {"proof": Proof.FEASIBLE},
            {"proof": Proof.NONE},
        ],
    )
    def test_it_needs_the_certificate_to_say_so(self, changes: dict[str, Any]) -> None:
        certificate = replace(self.certificate, **changes)
        finding = refusal(self.problem, answer(self.problem, self.greedy, certificate=certificate))
        assert finding.code == "O102"

    def test_it_needs_the_greedy_order(self) -> None:
        assert refusal(self.problem, answer(self.problem, (1, 0, 2, 3, 4), certificate=self.certificate)).code == "O102"

    def test_it_needs_the_lower_bound(self) -> None:
        graph = body([op("load", 9), op("load", 9), op("mma", 4), op("mma", 4), op("frag", 20)], (3, 4))
        problem = OrderProblem(body=graph, max_globals=1)
        certificate = replace(
            self.certificate, bound=28, notes=("max_globals 1 exceeded in 1 gap; redistribution moves 1 load",)
        )
        assert refusal(problem, answer(problem, (0, 1, 2, 3, 4), certificate=certificate)).code == "O102"

    def test_the_budget_still_holds(self) -> None:
        graph = body([op("load", 9, 4), op("load", 9, 4), op("mma", 4)])
        problem = OrderProblem(body=graph, max_globals=1, max_vgpr=7)
        note = "max_globals 1 exceeded in 1 gap; redistribution moves 1 load"
        certificate = replace(self.certificate, vgpr_bound=8, notes=(note,))
        finding = refusal(problem, answer(problem, (0, 1, 2), certificate=certificate))
        assert dict(finding.evidence) == {"register peak": 8, "max_vgpr": 7}
