"""Room in a loop by values: takes the least interval found for it, gives a placement with barriers and slack.

Loads get three quarters of their latency to spare where that can be had, with more copies of their tiles if LDS holds
them: with that much the cycle model keeps its pace when latencies scatter by half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter

from rota.compiler.depth import registers_taken
from rota.declare.values import Home, LoopSpec
from rota.errors import Finding, OrderError
from rota.graph.bounds import derive_mii
from rota.graph.handover import derive_deliveries, derive_handovers
from rota.graph.loop_problem import modulo_problem
from rota.graph.modulo import ModuloProblem
from rota.graph.timing import LoopTimes, Unit
from rota.order.modulo_check import check_starts
from rota.order.modulo_schedule import ModuloCertificate, ModuloProof, ModuloSchedule
from rota.order.settle import Choice, settle
from rota.order.settle_check import check_settled
from rota.program.unroll import Placement

_ROOM_FOR_TURNS = 0.9  # of the interval: with more instructions than this no search has found each one a turn
_READING = 4  # times its latency is the slack wished for a read of LDS
_CLUSTERS = 2  # turns of a staggered wave group at the matrix unit per iteration; each takes two barriers


def in_lockstep(
    loop: LoopSpec, times: LoopTimes, ii: int, depths: Sequence[Mapping[str, int]], seed: int = 0
) -> tuple[ModuloSchedule, Placement] | None:
    """All waves run alike, at this interval and one of these depths; None if no such placement was found.

    The busiest unit's ops have the author's order, and every instruction a turn of its wave; if that is not found,
    turns are left to the order itself, which brings them about a few slots late, and an order in tiles is free.
    Registers in several copies unroll the loop, so they are left for when tiles alone don't do.
    """
    turns = _turns(times, ii)
    untimed = replace(times, timings=tuple(time._replace(issue=0) for time in times.timings))
    issued = dict(times.busy).get(Unit.ISSUE, 0)
    fewest = min((registers_taken(loop, each) for each in depths), default=0)
    lean = [each for each in depths if registers_taken(loop, each) == fewest]
    rich = [each for each in depths if registers_taken(loop, each) > fewest]
    for these in (lean, rich):
        ways = [(turns, times)] if issued <= _ROOM_FOR_TURNS * ii else []
        ways.append((turns, untimed) if issued else ({}, times))
        choices = [_choice(loop, known, each, pinned=pinned) for pinned, known in ways for each in these]
        placed = _placed(choices, [modulo_problem(loop, times, each) for _ in ways for each in these], ii, times, seed)
        if placed is not None:
            return placed
    return None


def staggered(
    loop: LoopSpec, times: LoopTimes, ii: int, depths: Sequence[Mapping[str, int]], seed: int = 0
) -> tuple[ModuloSchedule, Placement]:
    """Two groups of waves, the second a barrier behind: each computes in the segments in which the other doesn't."""
    segment, rest = divmod(ii, 2 * _CLUSTERS)
    mma = [op for op, timing in enumerate(times.timings) if timing.unit is Unit.MMA]
    share, odd = divmod(len(mma), _CLUSTERS)
    pinned: dict[int, int] = {}
    for cluster in range(_CLUSTERS):
        now = 2 * cluster * segment
        for op in mma[cluster * share : (cluster + 1) * share]:
            pinned[op] = now
            now += times.timings[op].occupancy
        odd = odd or now > (2 * cluster + 1) * segment
    if rest or odd or not mma:
        raise _no_turns(loop, f"its {len(mma)} matrix ops don't make {_CLUSTERS} equal turns of {segment} slots")
    barriers = tuple(range(0, ii, segment))
    choices = [_choice(loop, times, each, pinned=pinned, barriers=barriers) for each in depths]
    placed = _placed(choices, [choice.problem for choice in choices], ii, times, seed)
    if placed is None:
        raise _no_turns(loop, f"loads and reads don't fit between turns of {segment} slots")
    return placed


def _no_turns(loop: LoopSpec, why: str) -> OrderError:
    return OrderError(
        Finding(
            code="O302",
            message=f"{loop.name} has no schedule for two staggered wave groups: {why}",
            evidence=(("wave groups", 2), ("barriers an iteration", 2 * _CLUSTERS)),
            fixes=("stagger=False runs all waves alike",),
        )
    )


def _choice(
    loop: LoopSpec,
    times: LoopTimes,
    copies: Mapping[str, int],
    *,
    pinned: Mapping[int, int],
    barriers: Sequence[int] = (),
) -> Choice:
    behind = barriers[1] - barriers[0] if barriers else 0
    made = {value for op in pinned for value in loop.ops[op].writes}
    tiles = [copies[value.name] for value in loop.values if value.home is Home.LDS]
    return Choice(
        problem=modulo_problem(loop, times, copies, behind),
        copies=tuple(sorted(copies.items())),
        handovers=tuple(derive_handovers(loop, copies)),
        deliveries=tuple(derive_deliveries(loop)),
        stages=range(2, max(tiles, default=0) + 3),
        pinned=pinned,
        staged=any(value in made for op in loop.ops for value in (read.value for read in op.reads)),
        chains=tuple(_chains(loop)),
        barriers=tuple(barriers) or None,
        behind=behind,
    )


def _turns(times: LoopTimes, ii: int) -> dict[int, int]:
    """The ops of the busiest unit in the order in which the author declared them, spread evenly over the interval.

    Of the many orders of what keeps a unit busy throughout one is as good as another, and the author's has a reason;
    with it the search has only what is served by this unit, and serves it, left to place.
    """
    busy = dict(times.busy)
    spine = max((Unit.MMA, Unit.VALU), key=lambda unit: busy.get(unit, 0))
    turns, now = {}, 0
    for op, timing in enumerate(times.timings):
        if timing.unit is spine:
            turns[op] = now * ii // busy[spine]
            now += timing.occupancy
    return turns


def _chains(loop: LoopSpec) -> Iterator[tuple[int, ...]]:
    """Loads that bring parts of one tile start in the order of declaration, reads of it in that of their first use."""
    first_use: dict[int, int] = {}
    for reader, user, _ in derive_deliveries(loop):
        first_use.setdefault(reader, user)
    for value in loop.values:
        if value.home is Home.LDS:
            yield tuple(index for index, op in enumerate(loop.ops) if value.name in op.writes)
            readers = [index for index, op in enumerate(loop.ops) if any(r.value == value.name for r in op.reads)]
            yield tuple(sorted(readers, key=lambda reader: first_use.get(reader, reader)))


def _placed(
    choices: Sequence[Choice], whole: Sequence[ModuloProblem], ii: int, times: LoopTimes, seed: int
) -> tuple[ModuloSchedule, Placement] | None:
    """The certificate is about the `whole` problem of a choice, which may leave turns to the order."""
    started = perf_counter()
    bounds = [derive_mii(problem) for problem in whole]
    possible = [(choice, bound) for choice, bound in zip(choices, bounds, strict=True) if bound.ii <= ii]
    settled = settle(
        [choice for choice, _ in possible],
        ii,
        times.latency(Unit.DMA) * 3 // 4,
        _READING * times.latency(Unit.LDS),
        seed=seed,
    )
    if settled is None:
        return None
    chosen, bound = possible[settled.choice]
    found = ModuloSchedule(
        ii=ii,
        starts=settled.starts,
        certificate=ModuloCertificate(
            proof=ModuloProof.MEETS_BOUND if bound.ii == ii else ModuloProof.OPEN,
            mii=bound,
            lower=bound.ii,
            by="cpsat",
            seconds=perf_counter() - started,
        ),
    )
    check_starts(chosen.problem, found)
    check_settled(chosen, settled, ii)
    return found, Placement(
        interval=ii,
        starts=settled.starts,
        copies=chosen.copies,
        barriers=settled.barriers,
        landing_slack=settled.landing_slack,
        read_slack=settled.read_slack,
        turns=any(use.resource == Unit.ISSUE.value for op in chosen.problem.ops for use in op.uses),
    )
