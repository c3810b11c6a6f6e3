"""The check of an ordering.

It shares nothing with the search: whatever a scheduler claims, rota's own or a third party's, is measured here again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from rota.check import is_int
from rota.errors import Concern, OrderError
from rota.order.acyclic.greedy import greedy_order
from rota.order.acyclic.problem import (
    OrderCertificate,
    Ordering,
    OrderProblem,
    Proof,
    evaluate_order,
    makespan_lower_bound,
)
from rota.program.kinds import OpRole


def check_ordering(problem: OrderProblem, ordering: Ordering, *, budgets: bool = True) -> None:
    """Check that all ops appear once, that dependencies, partitions and limits hold, and that the cost is as stated.

    `max_globals` may be exceeded in one case only: the greedy order, at the lower bound, with the certificate's note
    that redistribution moves the surplus loads. With `budgets` off, `max_globals` and `max_vgpr` are ignored, for
    schedulers that know no budgets.
    """
    _check_kind(ordering)
    _check_permutation(problem, ordering.order)
    _check_dependencies(problem, ordering.order)
    _check_partitions(problem, ordering.order)
    _check_cost(problem, ordering)
    if budgets:
        _check_loads(problem, ordering)
        _check_registers(problem, ordering)


def loads_between_computes(problem: OrderProblem, order: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """The global loads before the first compute, between each two, and after the last."""
    gaps: list[list[int]] = [[]]
    for index in order:
        role = problem.body.ops[index].role
        if role is OpRole.GLOBAL_LOAD:
            gaps[-1].append(index)
        elif role is OpRole.COMPUTE:
            gaps.append([])
    return tuple(map(tuple, gaps))


def surplus_note(problem: OrderProblem, order: Iterable[int]) -> str | None:
    """How far `order` exceeds `max_globals`, as a certificate says it; None where it doesn't."""
    if not problem.max_globals:
        return None
    surplus = [len(gap) - problem.max_globals for gap in loads_between_computes(problem, order)]
    over = [count for count in surplus if count > 0]
    if not over:
        return None
    gaps = f"{len(over)} gap{'s' if len(over) > 1 else ''}"
    loads = f"{sum(over)} load{'s' if sum(over) > 1 else ''}"
    return f"max_globals {problem.max_globals} exceeded in {gaps}; redistribution moves {loads}"


def _check_kind(returned: object) -> None:
    """Check the type: a scheduler may be third-party code and return anything."""
    if not isinstance(returned, Ordering) or not isinstance(returned.certificate, OrderCertificate):
        kind = type(returned).__name__
        raise _broken("O101", "the scheduler returned no Ordering with an OrderCertificate", (), (("returned", kind),))


def _check_permutation(problem: OrderProblem, order: Sequence[int]) -> None:
    ops = problem.body.ops
    if not isinstance(order, tuple) or not all(is_int(index) for index in order):
        raise _broken("O101", "the order is not a tuple of op indices", (), (("got", repr(order)[:80]),))
    outside = sorted({index for index in order if not 0 <= index < len(ops)})
    if outside:
        raise _broken(
            "O101",
            f"the order names op {outside[0]}, but the body has {len(ops)} ops",
            (),
            (("index", outside[0]), ("ops", len(ops))),
        )
    times = [0] * len(ops)
    for index in order:
        times[index] += 1
    wrong = [index for index, count in enumerate(times) if count != 1]
    if wrong:
        raise _broken(
            "O101",
            f"{len(wrong)} of {len(ops)} ops are not in the order exactly once",
            tuple(ops[index].concern(index, f"is there {times[index]} times") for index in wrong[:8]),
            (("entries in the order", len(order)), ("ops", len(ops))),
        )


def _check_dependencies(problem: OrderProblem, order: Sequence[int]) -> None:
    place = {index: position for position, index in enumerate(order)}
    ops = problem.body.ops
    for edge in problem.body.edges:
        producer, consumer = edge.producer_idx, edge.consumer_idx
        if edge.loop_distance == 0 and place[producer] > place[consumer]:
            raise _broken(
                "O102",
                f"{ops[consumer]} comes before {ops[producer]}, which it depends on",
                (
                    ops[producer].concern(producer, f"must come first, is at place {place[producer]}"),
                    ops[consumer].concern(consumer, f"must come later, is at place {place[consumer]}"),
                ),
                (("edge", f"{edge.dep_kind.value} distance 0"),),
            )


def _check_partitions(problem: OrderProblem, order: Sequence[int]) -> None:
    ops = problem.body.ops
    for first, second in pairwise(order):
        parts = problem.partition_of(first), problem.partition_of(second)
        if parts[0] > parts[1]:
            raise _broken(
                "O102",
                f"an op of partition {parts[1]} comes after one of partition {parts[0]}",
                (
                    ops[first].concern(first, f"partition {parts[0]}, comes first"),
                    ops[second].concern(second, f"partition {parts[1]}, comes later"),
                ),
                (("partitions", problem.partitions),),
            )


def _check_cost(problem: OrderProblem, ordering: Ordering) -> None:
    cost = evaluate_order(problem.body, ordering.order, problem.lds_contention_penalty)
    certificate = ordering.certificate
    for name, stated, measured, bound in (
        ("makespan", ordering.makespan, cost.makespan, certificate.bound),
        ("register peak", ordering.vgpr_peak, cost.vgpr_peak, certificate.vgpr_bound),
    ):
        if stated != measured:
            raise _broken(
                "O102",
                f"the scheduler states a {name} of {stated}; the order has {measured}",
                (),
                (("stated", stated), ("measured", measured)),
            )
        # A heuristic claims nothing; whoever claims a proof must not be contradicted by the order itself.
        if (certificate.proof is Proof.OPTIMAL and bound != measured) or (
            certificate.proof is Proof.FEASIBLE and bound > measured
        ):
            raise _broken(
                "O102",
                f"the certificate says {certificate.proof.value} at a bound of {bound}, but the {name} is {measured}",
                (),
                (("measured", measured), ("bound", bound), ("by", certificate.by)),
            )


def _check_loads(problem: OrderProblem, ordering: Ordering) -> None:
    note = surplus_note(problem, ordering.order)
    if note is None or _surplus_is_accounted_for(problem, ordering, note):
        return
    gaps = loads_between_computes(problem, ordering.order)
    fullest = max(gaps, key=len)
    raise _broken(
        "O102",
        f"{len(fullest)} global loads are between two computes; max_globals allows {problem.max_globals}",
        tuple(problem.body.ops[index].concern(index, "in the fullest gap") for index in fullest),
        (("loads in the fullest gap", len(fullest)), ("max_globals", problem.max_globals)),
    )


def _surplus_is_accounted_for(problem: OrderProblem, ordering: Ordering, note: str) -> bool:
    """True for the greedy order at the lower bound whose certificate leaves loads to redistribution."""
    return (
        note in ordering.certificate.notes
        and ordering.certificate.proof is Proof.OPTIMAL
        and ordering.makespan == makespan_lower_bound(problem.body, problem.lds_contention_penalty)
        and ordering.order == greedy_order(problem)
    )


def _check_registers(problem: OrderProblem, ordering: Ordering) -> None:
    if ordering.vgpr_peak <= problem.max_vgpr:
        return
    live = 0
    for index in ordering.order:
        op = problem.body.ops[index]
        live += op.vgpr_def
        if live > problem.max_vgpr:
            raise _broken(
                "O102",
                f"the order needs {ordering.vgpr_peak} registers; max_vgpr allows {problem.max_vgpr}",
                (op.concern(index, f"{live} registers are live here"),),
                (("register peak", ordering.vgpr_peak), ("max_vgpr", problem.max_vgpr)),
            )
        live -= op.vgpr_kill


def _broken(
    code: str, message: str, concerns: tuple[Concern, ...], evidence: tuple[tuple[str, str | int], ...]
) -> OrderError:
    return OrderError.of(code, message, concerns=concerns, evidence=evidence)
