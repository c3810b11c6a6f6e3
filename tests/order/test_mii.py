from __future__ import annotations

from itertools import permutations

from hypothesis import given, settings, strategies as st

from rota.order.modulo.modulo_problem import (
    MII,
    ModuloEdge,
    ModuloOp,
    ModuloProblem,
    Resource,
    Use,
    derive_mii,
    recurrence_mii,
    resource_mii,
)
from tests.wording.golden import mentions, worded


def mma(occupancy: int) -> ModuloOp:
    return ModuloOp(name="mma", latency=8, uses=(Use(resource="MMA unit", occupancy=occupancy),))


def test_the_full_unit_is_named_with_its_numbers() -> None:
    resources = (Resource(name="LDS port"), Resource(name="MMA unit"))
    problem = ModuloProblem(ops=tuple(mma(16) for _ in range(64)), resources=resources)
    bound = resource_mii(problem)
    assert bound is not None
    assert mentions(worded(str(bound)), "MMA unit", "1,024 of 1,024")
    assert mentions(worded(str(derive_mii(problem))), "MII 1,024", "MMA unit", "1,024 of 1,024")


def test_capacity_divides_and_rounds_up() -> None:
    problem = ModuloProblem(ops=(mma(3), mma(4)), resources=(Resource(name="MMA unit", capacity=2),))
    bound = resource_mii(problem)
    assert bound is not None
    assert bound.ii == 4
    assert mentions(worded(str(bound)), "MMA unit", "7 of 8")


def test_of_two_cycles_the_tighter_one_is_named() -> None:
    ops = tuple(ModuloOp(name=name, latency=5) for name in "abc")
    edges = (
        ModuloEdge(producer=0, consumer=1),
        ModuloEdge(producer=1, consumer=0, distance=1),
        ModuloEdge(producer=1, consumer=2),
        ModuloEdge(producer=2, consumer=0, distance=2),
    )
    bound = recurrence_mii(ModuloProblem(ops=ops, edges=edges))
    assert bound is not None
    assert (bound.ii, bound.cycle, bound.delay, bound.distance) == (10, (0, 1), 10, 1)
    assert "10" in worded(str(bound))


def test_a_ratio_is_rounded_up() -> None:
    edges = (ModuloEdge(producer=0, consumer=0, delay=7, distance=3),)
    bound = recurrence_mii(ModuloProblem(ops=(ModuloOp(name="a"),), edges=edges))
    assert bound is not None
    assert bound.ii == 3
    assert mentions(worded(str(bound)), "a -> a", 7, 3)


def test_without_cycles_and_resources_nothing_binds() -> None:
    free = derive_mii(ModuloProblem(ops=(ModuloOp(name="a"),)))
    assert free == MII(resource=None, recurrence=None)
    assert free.ii == 1
    assert mentions(worded(str(free)), 1)
    assert derive_mii(ModuloProblem(ops=())).ii == 1


def test_both_bounds_are_named_where_both_bind() -> None:
    problem = ModuloProblem(
        ops=(mma(4),),
        edges=(ModuloEdge(producer=0, consumer=0, delay=4, distance=1),),
        resources=(Resource(name="MMA unit"),),
    )
    worded(str(derive_mii(problem)))


@settings(max_examples=150, deadline=None)
@given(
    edges=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-4, 9), st.integers(1, 3)), max_size=8)
)
def test_the_recurrence_bound_is_the_worst_of_all_cycles(edges: list[tuple[int, int, int, int]]) -> None:
    problem = ModuloProblem(
        ops=tuple(ModuloOp(name=str(number)) for number in range(4)),
        edges=tuple(ModuloEdge(producer=a, consumer=b, delay=c, distance=d) for a, b, c, d in edges),
    )

    def fits(ii: int) -> bool:
        """No simple cycle asks for more than its iterations have; only the dearest edge of a pair counts."""
        dearest: dict[tuple[int, int], int] = {}
        for a, b, delay, distance in edges:
            dearest[a, b] = max(dearest.get((a, b), -(10**6)), delay - distance * ii)
        cycles = [p for size in range(1, 5) for p in permutations(range(4), size)]
        around = [list(zip(ops, (*ops[1:], ops[0]), strict=True)) for ops in cycles]
        return all(sum(dearest[pair] for pair in pairs) <= 0 for pairs in around if all(p in dearest for p in pairs))

    bound = recurrence_mii(problem)
    ii = 0 if bound is None else bound.ii
    assert fits(ii)
    assert ii == 0 or not fits(ii - 1)
    if bound is not None:
        assert -(-bound.delay // bound.distance) == bound.ii
