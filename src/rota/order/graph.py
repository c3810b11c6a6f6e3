"""Edges between ops, under the acyclic and the modulo search: what they may be, and the longest paths along them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from rota.errors import Concern, GraphError, several


class NamedOp(Protocol):
    """An op as one end of an edge."""

    def concern(self, index: int, role: str = "") -> Concern: ...


def check_ends(owner: str, ops: Sequence[NamedOp], ends: tuple[int, int], distance: int, kind: str = "") -> None:
    """Check that both ends of an edge are ops of its owner (G101), and that it doesn't reach back in time (G104)."""
    producer, consumer = ends
    for role, index in zip(("producer", "consumer"), ends, strict=True):
        if not 0 <= index < len(ops):
            raise GraphError.of(
                "G101",
                f"the edge's {role} is op {index}, but {owner} has ops 0..{len(ops) - 1}",
                concerns=(Concern(label=f"{producer} -> {consumer} {kind}".rstrip()),),
                evidence=((f"{role} index", index), ("ops", len(ops))),
            )
    if distance < 0:
        raise GraphError.of(
            "G104",
            f"an edge can't reach {several(-distance, 'iteration')} back in time",
            concerns=(ops[producer].concern(producer, "comes first"), ops[consumer].concern(consumer, "comes later")),
            evidence=(("distance", distance), ("least", 0)),
        )


# Longest paths with loop distances.
#
# At a fixed initiation interval an arc asks for t(consumer) - t(producer) >= delay - distance x II. Such a system
# of differences has a solution exactly if no cycle asks for a positive sum (Bellman 1958).


class Arc(NamedTuple):
    """t(consumer) + distance x II >= t(producer) + delay."""

    producer: int
    consumer: int
    delay: int
    distance: int


class Cycle(NamedTuple):
    """Arcs that close: together they ask for `delay` slots within `distance` iterations."""

    arcs: tuple[Arc, ...]

    @property
    def ops(self) -> tuple[int, ...]:
        return tuple(arc.producer for arc in self.arcs)

    @property
    def delay(self) -> int:
        return sum(arc.delay for arc in self.arcs)

    @property
    def distance(self) -> int:
        return sum(arc.distance for arc in self.arcs)


def strong_components(count: int, arcs: Iterable[Arc]) -> tuple[tuple[int, ...], ...]:
    """The strongly connected components, producers' components first, ops of each ascending (Tarjan 1972)."""
    after: list[list[int]] = [[] for _ in range(count)]
    for arc in arcs:
        after[arc.producer].append(arc.consumer)
    number, low = [-1] * count, [0] * count
    stack: list[int] = []
    on_stack = [False] * count
    found: list[tuple[int, ...]] = []
    reached = 0
    for root in range(count):
        walk = [(root, 0)] if number[root] < 0 else []
        while walk:
            op, position = walk.pop()
            if position == 0:
                number[op] = low[op] = reached
                reached += 1
                stack.append(op)
                on_stack[op] = True
            else:  # back from the successor before `position`
                low[op] = min(low[op], low[after[op][position - 1]])
            for place in range(position, len(after[op])):
                successor = after[op][place]
                if number[successor] < 0:
                    walk += [(op, place + 1), (successor, 0)]
                    break
                if on_stack[successor]:
                    low[op] = min(low[op], number[successor])
            else:
                if low[op] == number[op]:
                    members: list[int] = []
                    while not members or members[-1] != op:
                        members.append(stack.pop())
                        on_stack[members[-1]] = False
                        low[members[-1]] = count  # closed: no longer anyone's low point
                    found.append(tuple(sorted(members)))
    return tuple(reversed(found))


def longest_starts(count: int, arcs: Sequence[Arc], ii: int) -> list[int] | Cycle:
    """The earliest starts from 0 under all arcs, resources ignored; or a cycle that leaves none at this II.

    Bellman-Ford. In a graph without a positive cycle the arcs that last raised each op form a forest, so the search
    looks for a cycle among them after every round instead of running as many rounds as there are ops.
    """
    start = [0] * count
    raised_by: list[Arc | None] = [None] * count
    steps = [(arc.producer, arc.consumer, arc.delay - arc.distance * ii, arc) for arc in arcs]
    steps.sort(key=lambda step: step[3].distance)  # within an iteration first: fewer rounds
    changed = True
    while changed:
        changed = False
        for producer, consumer, weight, arc in steps:
            earliest = start[producer] + weight
            if earliest > start[consumer]:
                start[consumer], raised_by[consumer], changed = earliest, arc, True
        if changed:
            cycle = _cycle_among(raised_by)
            if cycle is not None:
                return cycle
    return start


class Gaps(NamedTuple):
    """How far apart ops must start: least[a][b] <= t(b) - t(a); `direct` has the gaps from which the others follow."""

    least: dict[int, dict[int, int]]
    direct: tuple[tuple[int, int, int], ...]


def longest_gaps(ops: Sequence[int], arcs: Sequence[Arc], ii: int, start: Mapping[int, int]) -> Gaps:
    """The longest paths between `ops`, and those among them that neither pass another one of `ops` nor need to.

    `start` satisfies all arcs: measured from it every arc has a slack of at least 0, so Dijkstra's method finds the
    path of least slack, which is the longest one (Johnson 1977). Other ops are eliminated first, so that paths of any
    length are searched among `ops` alone.
    """
    slack: dict[int, dict[int, int]] = {}
    for producer, consumer, delay, distance in arcs:
        spare = start[consumer] - start[producer] - delay + distance * ii
        onward = slack.setdefault(producer, {})
        if spare < onward.get(consumer, spare + 1):
            onward[consumer] = spare
    wanted = set(ops)
    bare = {op: _least_slack(op, slack, wanted) for op in ops}
    closed = {op: _least_slack(op, bare, set()) for op in ops}
    least = {
        op: {other: start[other] - start[op] - spare for other, spare in others.items()}
        for op, others in closed.items()
    }
    direct = tuple(
        (op, other, least[op][other])
        for op, others in bare.items()
        for other, spare in others.items()
        if spare == closed[op][other] and not _passes_another(op, other, closed)
    )
    return Gaps(least, direct)


def _least_slack(source: int, slack: Mapping[int, Mapping[int, int]], ends: set[int]) -> dict[int, int]:
    """The least slack from `source` to every op it reaches, or to `ends` if given, which end the walk."""
    least = {source: 0}
    done: set[int] = set()
    queue = [(0, source)]
    while queue:
        spare, op = heapq.heappop(queue)
        if op in done:
            continue
        done.add(op)
        if op in ends and op != source:
            continue
        for consumer, more in slack.get(op, {}).items():
            total = spare + more
            if total < least.get(consumer, total + 1):
                least[consumer] = total
                heapq.heappush(queue, (total, consumer))
    del least[source]
    return {op: spare for op, spare in least.items() if op in ends} if ends else least


def _passes_another(first: int, second: int, closed: Mapping[int, Mapping[int, int]]) -> bool:
    """True if a third op, tied rigidly to neither end, lies on a path of the same length.

    Where three ops are tied rigidly each gap would excuse the next one, and none might remain.
    """
    spare = closed[first][second]
    for between, part in closed[first].items():
        if part > spare or between == second:
            continue
        rest = closed[between].get(second)
        if rest is not None and part + rest == spare:
            back, again = closed[between].get(first), closed[second].get(between)
            if (back is None or part + back > 0) and (again is None or rest + again > 0):
                return True
    return False


def _cycle_among(raised_by: Sequence[Arc | None]) -> Cycle | None:
    seen = [0] * len(raised_by)  # by which walk an op was first met
    for first in range(len(raised_by)):
        op = first
        while not seen[op]:
            seen[op] = first + 1
            arc = raised_by[op]
            if arc is None:
                break
            op = arc.producer
            if seen[op] == first + 1:
                return _walk_back(op, raised_by)
    return None


def _walk_back(last: int, raised_by: Sequence[Arc | None]) -> Cycle:
    arcs: list[Arc] = []
    op = last
    while not arcs or op != last:
        arc = raised_by[op]
        assert arc is not None  # noqa: S101 -- the walk that found the cycle passed here
        arcs.append(arc)
        op = arc.producer
    arcs.reverse()
    lead = min(range(len(arcs)), key=lambda place: arcs[place].producer)
    return Cycle((*arcs[lead:], *arcs[:lead]))
