"""How many copies each value gets: the fewest that reach the least interval.

Few copies are tried first, the same number for all tiles, so that the loop is unrolled no further than necessary. Then
as many as LDS and registers hold and the size of the unrolled loop allows, for each value separately where not all can
have more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from rota.check import bad_field
from rota.errors import Concern, OrderError
from rota.order.graph import Arc, Cycle, longest_starts
from rota.order.modulo.modulo_problem import (
    LONGEST,
    ModuloEdge,
    ModuloOp,
    ModuloProblem,
    ModuloSchedule,
    Resource,
    Use,
    derive_mii,
)
from rota.order.modulo.scheduler import ModuloScheduler
from rota.program.kinds import Home, OpKind, Unit
from rota.program.loop_spec import LoopSpec
from rota.program.machine import Machine
from rota.solver.limits import Outcome, spent, stopped
from rota.targets.device import registers_per_lane
from rota.values.op_times import LoopTimes, Precedence, find_precedences, find_spans, least_copies
from rota.values.unroll import Placement, find_least_live, find_most_live, report_too_many


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A deadline that all searches of one compilation share: the scheduler's `time_limit`."""

    asked: ModuloScheduler
    started: float = field(default_factory=spent)

    @property
    def left(self) -> float:
        return max(self.started + self.asked.time_limit - spent(), 0.0)

    def scheduler(self, at_most: float | None = None) -> ModuloScheduler:
        """The scheduler with the remaining time, or less."""
        return replace(self.asked, time_limit=self.left if at_most is None else min(self.left, at_most))


def modulo_problem(loop: LoopSpec, times: LoopTimes, copies: Mapping[str, int], lag: int = 0) -> ModuloProblem:
    """The loop as ops, edges and units, for a given number of copies per value.

    Groups of waves that run apart each hold a unit once, `lag` slots after the previous group.
    """
    used = {timing.unit for timing in times.timings} | {Unit.ISSUE for timing in times.timings if timing.issue}
    return ModuloProblem(
        ops=tuple(
            ModuloOp(
                name=op.name,
                latency=timing.latency,
                uses=(
                    *(
                        Use(resource=timing.unit.value, occupancy=timing.occupancy, offset=group * lag)
                        for group in range(times.groups)
                        if timing.occupancy
                    ),
                    *((Use(resource=Unit.ISSUE.value, occupancy=timing.issue),) if timing.issue else ()),
                ),
            )
            for op, timing in zip(loop.ops, times.timings, strict=True)
        ),
        edges=tuple(
            ModuloEdge(producer=p.earlier, consumer=p.later, delay=p.delay, distance=p.distance)
            for p in find_precedences(loop, times, copies)
        ),
        resources=tuple(Resource(name=unit.value) for unit in Unit if unit in used),
    )


def drop_turns(problem: ModuloProblem) -> ModuloProblem:
    """The same problem without issue turns; the order decides those."""
    turns = Unit.ISSUE.value
    ops = (replace(op, uses=tuple(use for use in op.uses if use.resource != turns)) for op in problem.ops)
    return replace(problem, ops=tuple(ops), resources=tuple(r for r in problem.resources if r.name != turns))


# Copies for an interval.
#
# More copies of a value let its next writer start earlier and change nothing else. So where a cycle of precedences
# is too long for an interval, every choice of copies that bears it has more of some value whose copies the cycle
# counts. Going that way from the fewest on meets all choices worth having, and where there is none, there is none
# at all.

_MOST_TRIED = 300  # choices of copies, before the question is left open
_MOST_STEPS = 3_000_000  # arcs looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What copies may take: bytes of LDS, registers per lane if each copy has its own, and copies per value.

    None lifts a limit.
    """

    loop: LoopSpec
    least: Mapping[str, int]
    lds_bytes: int
    registers: int | None = None
    most: Mapping[str, int] | None = None

    def holds(self, copies: Mapping[str, int]) -> bool:
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
class Precedences:
    """The precedences of `count` ops and moments, with no copy of anything."""

    count: int
    precedences: tuple[Precedence, ...]

    @classmethod
    def of(cls, loop: LoopSpec, found: Iterable[Precedence]) -> Precedences:
        """The precedences of a loop; accumulators have one copy, which is already counted."""
        single = {value.name for value in loop.values if value.home not in (Home.LDS, Home.REGISTERS)}
        each = tuple(tie._replace(of="") if tie.of in single else tie for tie in found)
        count = max([len(loop.ops), *(tie.later + 1 for tie in each)])
        return cls(count=count, precedences=each)

    def arcs(self, copies: Mapping[str, int]) -> Iterator[tuple[Arc, str]]:
        """Arcs with these copies, each with the value whose copies it counts."""
        for earlier, later, delay, distance, _, of in self.precedences:
            yield Arc(earlier, later, delay, distance + (copies[of] if of else 0)), of

    def too_long(self, copies: Mapping[str, int], ii: int) -> Cycle | None:
        found = longest_starts(self.count, tuple(dict(self.arcs(copies))), ii)
        return found if isinstance(found, Cycle) else None


def find_cheapest_copies(ties: Precedences, allowed: Allowance, ii: int) -> dict[str, int] | Outcome:
    """The cheapest copies that allow the interval; INFEASIBLE if none do, OPEN if the search took too long."""
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
        for more in _deepen_cycle(ties, copies, cycle, ii):
            offer(more)
    return Outcome.INFEASIBLE


def _deepen_cycle(ties: Precedences, copies: Mapping[str, int], cycle: Cycle, ii: int) -> Iterator[dict[str, int]]:
    """Copies with more of one value of the cycle; enough to break it where there is only one such value."""
    counts: dict[Arc, set[str]] = {}
    for arc, of in ties.arcs(copies):
        counts.setdefault(arc, set()).add(of)
    # Where the same arc holds whatever the copies, more of them are no way out.
    counted = Counter(min(counts[arc]) for arc in cycle.arcs if "" not in counts[arc])
    for name, times in counted.items():
        missing = cycle.delay - cycle.distance * ii
        step = -(-missing // (times * ii)) if len(counted) == 1 and ii else 1
        yield {**copies, name: copies[name] + step}


def bound_interval(ties: Precedences, allowed: Allowance, floor: int) -> int:
    """A lower bound on the interval over all allowed copies that leave an order; at least `floor`."""
    low, high = floor - 1, floor
    while find_cheapest_copies(ties, allowed, high) is Outcome.INFEASIBLE:
        low, high = high, 2 * high
    while high - low > 1:  # low is refuted, or below the floor; high isn't
        middle = (low + high) // 2
        if find_cheapest_copies(ties, allowed, middle) is Outcome.INFEASIBLE:
            low = middle
        else:
            high = middle
    return high


_OF_TILES, _OF_REGISTERS = 4, 2  # copies that are tried where deeper ones leave no room for barriers
_DEEPEST, _MOST_ENTRIES = 16, 1024  # periods of the unrolled loop, and ops in it
_MOST_SEARCHED = 8
_FIRST_LOOK = 4.0  # seconds
_QUICK = 64  # ops


def derive_allowances(
    loop: LoopSpec, machine: Machine, times: LoopTimes, most_copies: int | None = None
) -> tuple[Allowance, Allowance]:
    """The most and the fewest copies that LDS, registers and code size allow; an error if none leave an order.

    No tile gets more than `most_copies`, if given. Every copy gets registers of its own. Where even the fewest copies
    don't fit that way, they are allowed all the same: not all of them need be live at once.
    """
    least, ties = least_copies(loop), derive_precedences(loop, times)
    boundless = Allowance(loop=loop, least=least, lds_bytes=machine.lds_bytes.value)
    fewest = find_cheapest_copies(ties, boundless, _find_safe_interval(ties))
    if isinstance(fewest, Outcome):
        raise _no_room(loop, machine, times, boundless)
    registers = max(registers_per_lane(machine, loop.waves), loop.registers(fewest))
    entries = _MOST_ENTRIES // max(len(loop.ops), 1)
    tiles = {value.name for value in loop.values if value.home is Home.LDS}
    few = {name: max(_OF_TILES if name in tiles else _OF_REGISTERS, *fewest.values()) for name in least}
    most = {name: max(count, min(_DEEPEST, entries)) for name, count in few.items()}
    if most_copies is not None:
        deepest = max((fewest[name] for name in tiles), default=1)
        if most_copies < deepest:
            raise bad_field(loop, "most_copies", most_copies, f"at least {deepest}: fewer leave no order")
        few, most = ({**each, **dict.fromkeys(tiles, most_copies)} for each in (few, most))
    deep = replace(boundless, registers=registers, most=most)
    return deep, replace(deep, most=few)


def narrow_allowances(deep: Allowance, times: LoopTimes) -> Iterator[Allowance]:
    """Allowances with ever fewer copies of the tiles, as `most_copies` would ask; each leaves some order.

    Where the deepest copies leave no room for barriers, a shorter unrolled loop may; the interval grows with each step.
    """
    loop, most = deep.loop, deep.most or {}
    ties = derive_precedences(loop, times)
    tiles = [value.name for value in loop.values if value.home is Home.LDS]
    deepest = max((most[name] for name in tiles), default=1)
    for cap in range(deepest - 1, 0, -1):
        allowed = replace(deep, most={name: min(most[name], cap) if name in tiles else most[name] for name in most})
        if isinstance(find_cheapest_copies(ties, allowed, _find_safe_interval(ties)), Outcome):
            return
        yield allowed


def _find_safe_interval(ties: Precedences) -> int:
    return sum(abs(each.delay) for each in ties.precedences) + 1


def _no_room(loop: LoopSpec, machine: Machine, times: LoopTimes, allowed: Allowance) -> OrderError:
    ties = derive_precedences(loop, times)
    needed = find_cheapest_copies(ties, replace(allowed, lds_bytes=1 << 62), _find_safe_interval(ties))
    if isinstance(needed, Outcome):
        modulo_problem(loop, times, dict.fromkeys(allowed.least, _DEEPEST))  # says which ops wait for each other
        needed = dict(allowed.least)
    need, limit = loop.lds_bytes(needed), machine.lds_bytes.value
    alone = set(needed.values()) <= {1}
    which = "one copy of each tile takes" if alone else "the fewest copies of the tiles that leave an order take"
    return OrderError.of(
        "L103",
        f"{which} {need} bytes; {machine.name} has {limit}",
        evidence=(("bytes", need), ("limit", limit)),
        fixes=("a smaller tile, or a shallower K step",),
    )


def derive_precedences(loop: LoopSpec, times: LoopTimes) -> Precedences:
    """The loop's precedences, those of whole tiles included, with no copies of values that may have several."""
    none = dict.fromkeys(least_copies(loop), 0)
    return Precedences.of(loop, (*find_precedences(loop, times, none), *find_spans(loop, times)))


def select_depths(ii: int, allowed: Allowance, times: LoopTimes, slack: int = 0) -> tuple[dict[str, int], ...]:
    """Copies worth trying at an interval, the fewest first; beyond four of each tile few, some with slack for loads."""
    ties = derive_precedences(allowed.loop, times)
    shallow = tuple(each for each in _equal_copies(allowed) if ties.too_long(each, ii) is None)
    if shallow:
        return shallow
    own = find_cheapest_copies(ties, allowed, ii)
    if isinstance(own, Outcome):
        return ()
    most = max((allowed.most or own).values(), default=1)
    roomy = select_roomy_depths(ii, allowed, times, slack)
    return ((own,) if _unroll(own) <= most and own not in roomy else ()) + roomy


def select_roomy_depths(ii: int, allowed: Allowance, times: LoopTimes, slack: int) -> tuple[dict[str, int], ...]:
    """All tiles alike: as many copies as let loads be `slack` slots late at an interval, or as many as fit.

    With few copies of the registers, and with two: those are read ahead.  None unrolls the loop further than allowed.
    Of a loop in tiles, whose reads are long and whose waits are few, as many as fit.
    """
    loop, ties = allowed.loop, derive_precedences(allowed.loop, times)
    own = find_cheapest_copies(ties, allowed, ii)
    if isinstance(own, Outcome):
        return ()
    most = max((allowed.most or own).values(), default=1)
    tiles = [value.name for value in loop.values if value.home is Home.LDS]
    fewest = max((own[name] for name in tiles), default=1)
    loads = {number for number, op in enumerate(loop.ops) if op.kind is OpKind.DMA}
    slack = slack if times.turns else LONGEST
    late = (tie._replace(delay=tie.delay + slack) if tie.earlier in loads else tie for tie in ties.precedences)
    roomy = replace(ties, precedences=tuple(late))
    read_ahead = {name: max(count, _OF_REGISTERS) for name, count in own.items()}
    powers = {name: 1 << (count - 1).bit_length() for name, count in own.items()}
    found: list[dict[str, int]] = []
    for base in (own, read_ahead, powers):
        alike = [{**base, **dict.fromkeys(tiles, count)} for count in range(fewest, most + 1)]
        fitting = [each for each in (base, *alike) if _unroll(each) <= most and allowed.holds(each)]
        found += [next((each for each in fitting if roomy.too_long(each, ii) is None), fitting[-1])] if fitting else []
    return tuple(each for place, each in enumerate(found) if each not in found[:place])


def _equal_copies(allowed: Allowance) -> Iterator[dict[str, int]]:
    """Equal numbers of copies for all tiles, and for all registers, while they are few and fit."""
    loop, least = allowed.loop, allowed.least
    tiles = [value.name for value in loop.values if value.home is Home.LDS]
    fewest_of_tiles = max((least[name] for name in tiles), default=1)
    most = max(_OF_TILES, *least.values(), 1)
    for of_registers in sorted({*range(1, _OF_REGISTERS + 1), *least.values()}):
        for of_tiles in range(fewest_of_tiles, (most if tiles else 1) + 1):
            copies = {name: max(count, of_registers) for name, count in least.items()} | dict.fromkeys(tiles, of_tiles)
            if allowed.holds(copies) and _unroll(copies) <= most:
                yield copies


def _unroll(copies: Mapping[str, int]) -> int:
    return math.lcm(1, *copies.values())


def find_shallowest(
    allowed: Allowance, times: LoopTimes, depths: Sequence[Mapping[str, int]], deadline: Deadline, lower: int
) -> tuple[Mapping[str, int], ModuloSchedule]:
    """The fewest copies with the least interval that a search finds; none is below `lower`.

    Too few copies can use up the whole search time, so every number of copies gets a short search first.
    """
    problems = [
        (copies, modulo_problem(allowed.loop, times, copies)) for copies in _search_depths(allowed, times, depths)
    ]
    if len(problems) > 1:  # what all copies at once leave no room for, none of them does
        most = {name: max(copies[name] for copies, _ in problems) for name in allowed.least}
        joint = modulo_problem(allowed.loop, times, most)
        lower = deadline.scheduler(_FIRST_LOOK).least_possible(joint, lower=lower)
    known = [(max(derive_mii(problem).ii, lower), copies, problem) for copies, problem in problems]
    known = sorted(known, key=lambda each: each[0])[:_MOST_SEARCHED]
    bounds = [bound for bound, _, _ in known]
    best: tuple[Mapping[str, int], ModuloSchedule] | None = None
    for first_look in (True, False):
        for number, (_, copies, problem) in enumerate(known):
            # Without time left the heuristic alone looks at each depth once, if that is quick.
            over = not deadline.left and (not first_look or len(problem.ops) > _QUICK)
            if best is not None and (over or best[1].ii <= bounds[number]):
                continue
            share = _FIRST_LOOK if first_look else deadline.left / (len(known) - number)
            found = deadline.scheduler(share).schedule(problem, lower=lower)
            bounds[number] = found.certificate.lower
            if best is None or found.ii < best[1].ii:
                best = copies, found
        if stopped():
            break
    if best is None:
        raise AssertionError("copies that leave an order were allowed")
    return best


def _search_depths(
    allowed: Allowance, times: LoopTimes, depths: Sequence[Mapping[str, int]]
) -> Iterator[Mapping[str, int]]:
    """Copies that reach the least interval, and copies that leave an order at all."""
    yield from depths
    ties = derive_precedences(allowed.loop, times)
    high = _find_safe_interval(ties)
    yield from (each for each in _equal_copies(allowed) if each not in depths and ties.too_long(each, high) is None)
    fewest = find_cheapest_copies(ties, allowed, high)
    if not isinstance(fewest, Outcome):
        yield fewest


def check_length(loop: LoopSpec, times: LoopTimes) -> None:
    """Refuse an iteration so long that a table of its slots would fill the memory; such numbers are a mistake."""
    unit, busy = max(times.busy, key=lambda pair: pair[1], default=(Unit.ISSUE, 0))
    length = max(busy, *(timing.latency for timing in times.timings), 0)
    if length > LONGEST:
        op = max(loop.ops, key=lambda each: (each.instructions, each.moved))
        said = f"{op.instructions:,} instructions, {op.moved:,} bytes"
        raise OrderError.of(
            "L107",
            f"one iteration of {loop.name} takes {length:,} slots; at most {LONGEST:,} are planned",
            concerns=(Concern(label=op.name, role=said, source=op.source),),
            evidence=(("busiest", unit.value), ("slots", length), ("limit", LONGEST)),
            fixes=("give the op the instructions and bytes of one iteration",),
        )


def check_registers(loop: LoopSpec, machine: Machine) -> None:
    """Check that the registers live in every schedule fit a wave."""
    live, limit = find_least_live(loop), registers_per_lane(machine, loop.waves)
    if live.registers > limit:
        words = (
            f"in every schedule {live.registers} registers a lane are live at once; {loop.waves} waves leave {limit}"
        )
        raise OrderError(report_too_many(loop, live, limit, words))


def check_placement(loop: LoopSpec, placement: Placement, times: LoopTimes, machine: Machine) -> None:
    """Check that the registers live in this schedule fit a wave."""
    live, limit = find_most_live(loop, placement, times), registers_per_lane(machine, loop.waves)
    if live.registers > limit:
        words = f"{live.registers} registers a lane are live at once as placed; {loop.waves} waves leave {limit}"
        raise OrderError(report_too_many(loop, live, limit, words))
