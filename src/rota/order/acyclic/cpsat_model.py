"""The facts of an exact search: takes an `OrderProblem`, gives fixed precedences, serial groups, twins and bounds.

Nothing here touches the solver.  A search asks for one `Goal` under some `Limits`; which ops need a place of their own
in the order follows from both: without a limit on loads or registers the start times say everything.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rota.check import bad_field
from rota.errors import Finding, GraphError, OrderError
from rota.order.acyclic.bounds import ancestors, peak_lower_bound
from rota.order.acyclic.edge import DepEdge
from rota.order.acyclic.evaluate import LDS_PORT, SERIAL_UNITS, makespan_lower_bound
from rota.order.acyclic.greedy import greedy_order
from rota.order.acyclic.loop_body import LoopBody
from rota.order.acyclic.problem import OrderProblem
from rota.program.kinds import OpRole
from rota.solver.outcome import LARGEST_SUM, Outcome


class Goal(enum.Enum):
    """What one solve minimises."""

    MAKESPAN = "makespan"
    PEAK = "register peak"
    LOADS = "loads between two computes"
    NONE = "nothing: any order will do"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one solve keeps to besides dependencies and partitions; None lifts a limit.

    Without a `horizon` times play no part: every order has some makespan.
    """

    horizon: int | None = None
    max_globals: int | None = None
    max_vgpr: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What a solve found: an order where there is one, the goal's value there, and the bound proved for any order."""

    outcome: Outcome
    order: tuple[int, ...] | None = None
    value: int | None = None
    bound: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialGroup:
    """Ops that a unit or the LDS port takes one after the other, and how long each keeps the next one waiting."""

    members: tuple[int, ...]
    spacing: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What holds for every order of a problem.

    `before[i]` is the bit mask of the ops that precede op i in every order that the search looks at: dependencies,
    earlier partitions, and of two interchangeable ops the one with the lower index.
    """

    problem: OrderProblem
    seed: tuple[int, ...]
    part: tuple[int, ...]
    before: tuple[int, ...]
    twins: tuple[tuple[int, int], ...]
    serial: tuple[SerialGroup, ...]
    computes: tuple[int, ...]
    loads: tuple[int, ...]
    makespan_bound: int
    peak_bound: int
    longest: int
    most_registers: int

    @property
    def peak_varies(self) -> bool:
        """If no op frees a register, every order ends with all of them live and has the same peak."""
        return any(op.vgpr_kill for op in self.problem.body.ops)

    def known(self, first: int, second: int) -> bool | None:
        """Does `first` precede `second` in every order (True), in none (False), or is it open (None)?"""
        if self.before[second] >> first & 1:
            return True
        return False if self.before[first] >> second & 1 else None

    def binding(self) -> Limits:
        """The problem's limits, without those that no order can break."""
        problem = self.problem
        loads_bind = 0 < problem.max_globals < len(self.loads)
        registers_bind = self.peak_varies and problem.max_vgpr < self.most_registers
        return Limits(
            max_globals=problem.max_globals if loads_bind else None,
            max_vgpr=problem.max_vgpr if registers_bind else None,
        )

    def ordered(self, goal: Goal, limits: Limits) -> tuple[int, ...]:
        """The ops whose mutual order the solver must decide, body order; all others go where dependencies let them.

        Any cycle through an op that is left out shortens to one among the ops that are in, since `before` is closed.
        """
        loads_matter = goal is Goal.LOADS or limits.max_globals is not None
        registers_matter = goal is Goal.PEAK or limits.max_vgpr is not None
        members: set[int] = set()
        if loads_matter:
            members.update(self.computes, self.loads)
        if registers_matter:
            members.update(i for i, op in enumerate(self.problem.body.ops) if op.vgpr_def or op.vgpr_kill)
        if members and limits.horizon is not None:
            members.update(*(group.members for group in self.serial))
        return tuple(sorted(members))

    def follow(self, chains: Iterable[Sequence[int]]) -> tuple[int, ...]:
        """The order that keeps each chain's sequence and otherwise takes the lowest-index ready op."""
        body = self.problem.body
        links = tuple(DepEdge(first, second) for chain in chains for first, second in pairwise(chain))
        try:
            chained = LoopBody(body.ops, body.edges + links)
        except GraphError as error:
            raise OrderError(
                Finding(
                    code="O101",
                    message="the solver's answer is not an order: some ops would come before each other",
                    evidence=(("cycle", str(dict(error.findings[0].evidence).get("cycle", ""))),),
                )
            ) from error
        return greedy_order(OrderProblem(body=chained, partitions=self.problem.partitions))


def gather_facts(problem: OrderProblem) -> Facts:
    """All facts of a problem; O103 where dependencies point backward across partitions."""
    body, penalty = problem.body, problem.lds_contention_penalty
    ops = body.ops
    seed = greedy_order(problem)
    part = tuple(problem.partition_of(index) for index in range(len(ops)))
    twins = _twins(body, part)
    port = [op for op in ops if op.resource in LDS_PORT]
    longest = sum(op.latency for op in ops) + penalty * len(port)
    most_registers = sum(op.vgpr_def for op in ops)
    freed = sum(op.vgpr_kill for op in ops)
    for name, total in (("latency plus penalty", longest), ("vgpr_def", most_registers), ("vgpr_kill", freed)):
        if total > LARGEST_SUM:
            raise bad_field(body, name, total, f"a sum over all ops of at most {LARGEST_SUM}")
    return Facts(
        problem=problem,
        seed=seed,
        part=part,
        before=_precedences(body, part, twins),
        twins=twins,
        serial=_serial_groups(body, penalty),
        computes=tuple(i for i, op in enumerate(ops) if op.role is OpRole.COMPUTE),
        loads=tuple(i for i, op in enumerate(ops) if op.role is OpRole.GLOBAL_LOAD),
        makespan_bound=makespan_lower_bound(body, penalty),
        peak_bound=peak_lower_bound(problem),
        longest=longest,
        most_registers=most_registers,
    )


def _twins(body: LoopBody, part: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Neighbouring pairs of ops that can change places without any effect: alike, with the same dependencies."""
    after: list[set[int]] = [set() for _ in body.ops]
    for index, producers in enumerate(body.predecessors()):
        for producer in producers:
            after[producer].add(index)
    alike: dict[object, list[int]] = {}
    for index, op in enumerate(body.ops):
        cost = (op.role, op.resource, op.latency, op.vgpr_def, op.vgpr_kill)
        place = (part[index], frozenset(body.predecessors()[index]), frozenset(after[index]))
        alike.setdefault((cost, place), []).append(index)
    return tuple(pair for indices in alike.values() for pair in pairwise(indices))


def _precedences(body: LoopBody, part: Sequence[int], twins: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    links = tuple(DepEdge(first, second) for first, second in twins)
    masks = ancestors(LoopBody(body.ops, body.edges + links))
    earlier: dict[int, int] = {}
    for number in set(part):
        earlier[number] = sum(1 << index for index, other in enumerate(part) if other < number)
    return tuple(mask | earlier[number] for mask, number in zip(masks, part, strict=True))


def _serial_groups(body: LoopBody, penalty: int) -> tuple[SerialGroup, ...]:
    groups = []
    for unit in SERIAL_UNITS:
        members = tuple(index for index, op in enumerate(body.ops) if op.resource is unit)
        groups.append(SerialGroup(members=members, spacing=tuple(body.ops[i].latency for i in members)))
    if penalty:
        members = tuple(index for index, op in enumerate(body.ops) if op.resource in LDS_PORT)
        groups.append(SerialGroup(members=members, spacing=(penalty,) * len(members)))
    return tuple(group for group in groups if len(group.members) > 1)
