"""What is said about slack without a solver: a refutation is one, and a list is a schedule."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from rota.order.modulo import slack
from rota.order.modulo.handover import Choice, Delivery, Handover
from rota.order.modulo.modulo_check import check_starts
from rota.order.modulo.modulo_problem import ModuloEdge, ModuloOp, ModuloProblem, Resource, Use, derive_mii
from rota.order.modulo.scheduler import ModuloScheduler
from rota.order.modulo.slack import Request, Settled, SlackList, _Search, check_settled, is_out_of_reach, is_simple
from rota.solver.limits import Outcome
from rota.values.placement import certify_by_bound
from tests.findings.smallest import raised

II = 32
UNITS = ("path", "port", "unit")
_EFFORT = 40.0  # times what a request is worth: enough to decide it


def tile(
    copies: int, *, loads: int = 2, reads: int = 2, latency: int = 12, held: int = 2, offset: int = 0, ii: int = II
) -> Choice:
    """A tile that `loads` bring, `reads` take to registers, and as many computations use, spread over the interval.

    A load takes its path `offset` slots after it started.
    """
    first_read, first_use = loads, loads + reads
    ops = (
        *(
            ModuloOp(name=f"load{n}", latency=latency, uses=(Use(resource="path", occupancy=held, offset=offset),))
            for n in range(loads)
        ),
        *(ModuloOp(name=f"read{n}", latency=4, uses=(Use(resource="port", occupancy=held),)) for n in range(reads)),
        *(ModuloOp(name=f"use{n}", latency=4, uses=(Use(resource="unit", occupancy=2),)) for n in range(reads)),
    )
    loading, reading = tuple(range(loads)), tuple(range(first_read, first_use))
    feeds = [ModuloEdge(producer=first_read + n, consumer=first_use + n) for n in range(reads)]
    again = [ModuloEdge(producer=first_use + n, consumer=first_read + n, delay=1, distance=1) for n in range(reads)]
    return Choice(
        problem=ModuloProblem(ops=ops, edges=(*feeds, *again), resources=tuple(Resource(name=each) for each in UNITS)),
        copies=(("A", copies),),
        handovers=(
            Handover("A", loading, reading, 0, lands=True),
            Handover("A", reading, loading, copies, lands=False),
        ),
        deliveries=tuple(Delivery(first_read + n, first_use + n, 0) for n in range(reads)),
        stages=range(2, copies + 3),
        pinned={first_use + n: n * ii // reads for n in range(reads)},
        chains=(loading, reading),
    )


def reached(choice: Choice, *, barriers: int, stages: int = 4, landing: int = 0, reading: int = 0) -> bool:
    return not is_out_of_reach(choice, II, barriers=barriers, stages=stages, landing=landing, reading=reading)


def test_one_copy_takes_two_barriers() -> None:
    """Behind its barrier the tile is read, and freed by the next: two of them within an interval."""
    assert not reached(tile(1), barriers=1)
    assert reached(tile(1), barriers=2)
    assert reached(tile(2), barriers=1)


def test_loads_and_reads_are_as_late_as_the_copies_allow() -> None:
    # Of 32 slots loads take 2 + 12, since the second starts 2 after the first, and reads 2 + 4.
    room = max(slack for slack in range(II) if reached(tile(1), barriers=2, landing=slack))
    assert room == II - (2 + 12) - (2 + 4)
    assert reached(tile(2), barriers=2, landing=room + II)
    assert not reached(tile(2), barriers=2, landing=room + II + 1)


def test_stages_bound_what_loads_may_be_late() -> None:
    assert reached(tile(4), barriers=2, stages=6, landing=3 * II)
    assert not reached(tile(4), barriers=2, stages=2, landing=3 * II)


def beside(one: Choice, other: Choice) -> Choice:
    """Two tiles in one loop, which share its units."""
    shift = len(one.problem.ops)
    edges = [
        replace(edge, producer=edge.producer + shift, consumer=edge.consumer + shift) for edge in other.problem.edges
    ]
    named = [replace(op, name=f"other {op.name}") for op in other.problem.ops]
    taken = {slot + 2 for slot in one.pinned.values()}
    assert not taken & set(one.pinned.values())
    return replace(
        one,
        problem=replace(one.problem, ops=(*one.problem.ops, *named), edges=(*one.problem.edges, *edges)),
        copies=(*one.copies, *(("B", count) for _, count in other.copies)),
        handovers=(
            *one.handovers,
            *(
                each._replace(
                    value="B",
                    before=tuple(op + shift for op in each.before),
                    after=tuple(op + shift for op in each.after),
                )
                for each in other.handovers
            ),
        ),
        deliveries=(
            *one.deliveries,
            *(Delivery(reader + shift, user + shift, distance) for reader, user, distance in other.deliveries),
        ),
        pinned={**one.pinned, **{op + shift: slot + 2 for op, slot in other.pinned.items()}},
        chains=(*one.chains, *(tuple(op + shift for op in chain) for chain in other.chains)),
    )


def test_loads_of_two_tiles_have_to_fit_between_two_instances_of_the_only_barrier() -> None:
    """With two copies loads start after a barrier, and have landed, with slack, at the next.

    Four loads of 4 slots on one path: the last starts 12 after the first, and takes 12 more.
    """
    both = beside(tile(2, held=4), tile(2, held=4))
    assert reached(both, barriers=1, landing=II - 12 - 12)
    assert not reached(both, barriers=1, landing=II - 12 - 12 + 1)
    # Of one tile alone two loads are 4 apart; with two barriers, or other units, each tile has its own time.
    assert reached(tile(2, held=4), barriers=1, landing=II - 4 - 12)
    assert reached(both, barriers=2, landing=II - 12 - 12 + 1)
    apart = replace(
        both.problem,
        ops=tuple(
            replace(op, uses=(Use(resource="other path", occupancy=4),)) if op.name.startswith("other load") else op
            for op in both.problem.ops
        ),
        resources=(*both.problem.resources, Resource(name="other path")),
    )
    assert reached(replace(both, problem=apart), barriers=1, landing=II - 4 - 12)


def listed(choice: Choice, ii: int, barriers: int, *, stages: int, landing: int, reading: int) -> Settled | None:
    found = SlackList(choice, ii, stages=stages, landing=landing, reading=reading).search(barriers)
    if found is None:
        return None
    return Settled(choice=0, starts=found.starts, barriers=found.barriers, landing_slack=landing, read_slack=reading)


def test_a_list_is_a_schedule_and_a_moved_op_is_noticed() -> None:
    found = listed(tile(2), II, 1, stages=3, landing=8, reading=4)
    assert found is not None
    check_settled(tile(2), found, II)
    late = replace(found, starts=(found.starts[0] + II, *found.starts[1:]))
    raised("O102", lambda: check_settled(tile(2), late, II))


def test_reads_stand_as_late_as_their_uses_allow() -> None:
    found = listed(tile(2), II, 1, stages=3, landing=8, reading=4)
    assert found is not None
    _, _, first, second, first_use, second_use = found.starts
    assert first + 4 + 4 == first_use
    # The other one is over, with slack, at the barrier that frees the tile, if not at its use.
    assert second + 4 + 4 == second_use or (second + 4 + 4 - found.barriers[0]) % II == 0


@pytest.mark.parametrize(
    "other",
    [
        replace(tile(2), staged=True),
        replace(tile(2), barriers=(0, 16)),
        replace(tile(2), pinned={}),
        replace(
            tile(2),
            problem=replace(
                tile(2).problem, resources=(Resource(name="path", capacity=2), *tile(2).problem.resources[1:])
            ),
        ),
        tile(2, loads=1, reads=1, held=II + 1),
    ],
    ids=["free stages", "fixed barriers", "nothing pinned", "two places", "longer than the interval"],
)
def test_what_a_list_does_not_know_is_left_to_the_solver(other: Choice) -> None:
    assert is_simple(tile(2), II)
    assert not is_simple(other, II)
    assert Request(number=0, choice=other, ii=II, barriers=1, stages=3, slack=0).at_once() is None


def test_computations_in_each_others_way_have_no_list() -> None:
    crowded = replace(tile(2), pinned=dict.fromkeys(tile(2).pinned, 0))
    assert listed(crowded, II, 1, stages=3, landing=0, reading=0) is None


def drawn(seed: int) -> tuple[Choice, int]:
    draw = random.Random(seed)
    ii = draw.randint(16, 48)
    sizes = {"loads": draw.randint(1, 4), "reads": draw.randint(1, 5), "latency": draw.randint(4, 40)}
    return tile(draw.randint(1, 3), **sizes, held=draw.randint(1, 5), ii=ii), ii


def solved(request: Request, reading: int) -> Outcome:
    """By the solver alone."""
    search = _Search(scheduler=ModuloScheduler(), deadline=1e9, attempt=0)
    return search.solve(request, _EFFORT, reading=reading).outcome


@pytest.mark.thorough  # runs for seconds
def test_what_a_crowded_unit_refutes_the_solver_refutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn pairs of tiles at one barrier; those that precedences alone refute are not counted."""
    crowded = 0
    for seed in range(150):
        draw = random.Random(seed)
        ii, latency, offset = 12 * draw.randint(2, 4), draw.randint(4, 20), draw.choice((0, 0, 3, 9))
        sizes = {"reads": draw.randint(1, 3), "latency": latency, "held": draw.randint(2, 4), "ii": ii}
        first = tile(2, loads=draw.randint(1, 3), **sizes)
        both = beside(first, tile(2, loads=draw.randint(1, 3), **sizes, offset=offset))
        landing = max(ii - latency - draw.randint(0, 16), 0)
        request = Request(number=0, choice=both, ii=ii, barriers=1, stages=5, slack=landing)
        wanted = {"barriers": 1, "stages": 5, "landing": landing, "reading": 0}
        with monkeypatch.context() as patched:
            patched.setattr(slack, "_is_crowded", lambda *_: False)
            precedences_do = is_out_of_reach(both, ii, **wanted)
        if not precedences_do and is_out_of_reach(both, ii, **wanted):
            crowded += 1
            assert solved(request, 0) is Outcome.INFEASIBLE, seed
    assert crowded >= 20


def test_bounds_and_lists_agree_with_the_solver() -> None:
    """Drawn requests: what is refuted, the solver refutes; what is listed, keeps to everything that was asked."""
    said = {"refuted": 0, "listed": 0}
    for seed in range(120):
        choice, ii = drawn(seed)
        draw = random.Random(-seed)
        slack, reading = draw.choice((0, 0, 5, 20, 60)), draw.choice((0, 0, 3, 12))
        barriers, stages = draw.randint(1, 3), draw.choice(choice.stages)
        request = Request(number=0, choice=choice, ii=ii, barriers=barriers, stages=stages, slack=slack)
        decision = request.at_once(reading)
        if decision is None:
            continue
        if decision.starts is None:
            said["refuted"] += 1
            assert solved(request, reading) is Outcome.INFEASIBLE, seed
        else:
            said["listed"] += 1
            starts = tuple(decision.starts[op] for op in range(len(choice.problem.ops)))
            found = certify_by_bound(ii, starts, derive_mii(choice.problem), 0.0)
            check_starts(choice.problem, found)
            slots = tuple(value for name, value in decision.named.items() if name.startswith("barrier"))
            settled = Settled(choice=0, starts=starts, barriers=slots, landing_slack=slack, read_slack=reading)
            check_settled(choice, settled, ii)
            assert all(starts[second] >= starts[first] + apart for first, second, apart in choice.turns())
            assert max(starts) < stages * ii
            assert [starts[op] - (stages - 1) * ii for op in choice.pinned] == list(choice.pinned.values())
    assert min(said.values()) >= 40, said
