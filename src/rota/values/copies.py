"""Copies for an interval: takes a loop's precedences and what copies may take, gives the cheapest that bear it.

More copies of a value let its next writer start earlier and change nothing else.  So where a cycle of precedences is
too long for an interval, every choice of copies that bears it has more of some value whose copies the cycle counts.
Going that way from the fewest on meets all choices worth having, and where there is none, there is none at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

from rota.order.modulo.longest import Arc, Cycle, longest_starts
from rota.program.kinds import Home
from rota.program.loop_spec import LoopSpec
from rota.solver.outcome import Outcome
from rota.values.op_times import Precedence

_MOST_TRIED = 300  # choices of copies, before the question is left open
_MOST_STEPS = 3_000_000  # arcs looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What copies may take: bytes of LDS, registers per lane if each copy has its own, and how many of a value.

    None lifts a limit.
    """

    loop: LoopSpec
    least: Mapping[str, int]
    lds_bytes: int
    registers: int | None = None
    most: Mapping[str, int] | None = None

    def holds(self, copies: Mapping[str, int]) -> bool:
        """Do so many copies fit?"""
        return (
            self.loop.lds_bytes(copies) <= self.lds_bytes
            and (self.registers is None or self.loop.registers(copies) <= self.registers)
            and (self.most is None or all(count <= self.most.get(name, count) for name, count in copies.items()))
        )

    def price(self, copies: Mapping[str, int]) -> float:
        """The share of LDS and registers that they take."""
        registers = 0.0 if self.registers is None else self.loop.registers(copies) / max(self.registers, 1)
        return self.loop.lds_bytes(copies) / self.lds_bytes + registers + sum(copies.values()) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Ties:
    """The precedences of `count` ops, with no copy of anything."""

    count: int
    precedences: tuple[Precedence, ...]

    @classmethod
    def of(cls, loop: LoopSpec, found: Iterable[Precedence]) -> Ties:
        """Those of a loop; accumulators have one copy, which is counted already."""
        single = {value.name for value in loop.values if value.home not in (Home.LDS, Home.REGISTERS)}
        each = tuple(tie._replace(of="") if tie.of in single else tie for tie in found)
        return cls(count=len(loop.ops), precedences=each)

    def arcs(self, copies: Mapping[str, int]) -> Iterator[tuple[Arc, str]]:
        """Arcs with so many copies, each with the value whose copies it counts."""
        for earlier, later, delay, distance, _, of in self.precedences:
            yield Arc(earlier, later, delay, distance + (copies[of] if of else 0)), of

    def too_long(self, copies: Mapping[str, int], ii: int) -> Cycle | None:
        """A cycle that asks for more than so many copies give at this interval."""
        found = longest_starts(self.count, tuple(dict(self.arcs(copies))), ii)
        return found if isinstance(found, Cycle) else None


def cheapest(ties: Ties, allowed: Allowance, ii: int) -> dict[str, int] | Outcome:
    """The copies that bear the interval and take the least; INFEASIBLE if none do, OPEN if that took too long."""
    names = tuple(allowed.least)
    queue: list[tuple[float, tuple[int, ...]]] = []
    seen: set[tuple[int, ...]] = set()

    def offer(copies: Mapping[str, int]) -> None:
        choice = tuple(copies[name] for name in names)
        if choice not in seen and allowed.holds(copies):
            seen.add(choice)
            heappush(queue, (allowed.price(copies), choice))

    offer(allowed.least)
    left = min(_MOST_TRIED, _MOST_STEPS // max(len(ties.precedences), 1) + 1)
    while queue:
        if not left:
            return Outcome.OPEN
        left -= 1
        copies = dict(zip(names, heappop(queue)[1], strict=True))
        cycle = ties.too_long(copies, ii)
        if cycle is None:
            return copies
        for more in _ways_out(ties, copies, cycle, ii):
            offer(more)
    return Outcome.INFEASIBLE


def _ways_out(ties: Ties, copies: Mapping[str, int], cycle: Cycle, ii: int) -> Iterator[dict[str, int]]:
    """Copies with more of one value of the cycle; as many more as it takes where there is only one such value."""
    counts: dict[Arc, set[str]] = {}
    for arc, of in ties.arcs(copies):
        counts.setdefault(arc, set()).add(of)
    # Where the same arc holds whatever the copies, more of them are no way out.
    counted = Counter(min(counts[arc]) for arc in cycle.arcs if "" not in counts[arc])
    for name, times in counted.items():
        missing = cycle.delay - cycle.distance * ii
        step = -(-missing // (times * ii)) if len(counted) == 1 and ii else 1
        yield {**copies, name: copies[name] + step}


def least_borne(ties: Ties, allowed: Allowance, floor: int) -> int:
    """No interval below this is borne by any copies allowed, some of which leave an order; at least `floor`."""
    low, high = floor - 1, floor
    while cheapest(ties, allowed, high) is Outcome.INFEASIBLE:
        low, high = high, 2 * high
    while high - low > 1:  # low is refuted, or below the floor; high isn't
        middle = (low + high) // 2
        if cheapest(ties, allowed, middle) is Outcome.INFEASIBLE:
            low = middle
        else:
            high = middle
    return high
