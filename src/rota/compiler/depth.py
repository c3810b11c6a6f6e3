"""How many copies each value gets: takes a loop and a machine, gives the fewest that reach the least interval.

LDS tiles first, then registers too; all tiles alike, so that the loop is unrolled no further than it must be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rota.declare.values import Home, LoopSpec
from rota.errors import Finding, OrderError
from rota.graph.longest import Arc, Circle, longest_starts
from rota.graph.loop_problem import modulo_problem
from rota.graph.timing import LoopTimes, least_copies, precedences
from rota.order.modulo import ModuloScheduler
from rota.order.modulo_schedule import ModuloProof, ModuloSchedule
from rota.order.stopping import stopped
from rota.targets.machine import Machine
from rota.targets.rates import registers_per_lane

_MOST_COPIES = 4
_FIRST_LOOK = 4.0  # seconds


def shallowest(
    loop: LoopSpec,
    machine: Machine,
    times: LoopTimes,
    depths: Sequence[Mapping[str, int]],
    scheduler: ModuloScheduler,
) -> tuple[Mapping[str, int], ModuloSchedule]:
    """The fewest copies that reach the interval of the busiest unit, or else the least interval that any reaches.

    Too few copies can take the search all its time, so every number of them gets a short one first.
    """
    problems = [modulo_problem(loop, times, copies) for copies in depths]
    best: tuple[Mapping[str, int], ModuloSchedule] | None = None
    lower: dict[int, int] = {}
    for limit in (min(_FIRST_LOOK, scheduler.time_limit), scheduler.time_limit):
        for number, (copies, problem) in enumerate(zip(depths, problems, strict=True)):
            found = replace(scheduler, time_limit=limit).schedule(problem)
            lower[number] = max(found.certificate.lower, lower.get(number, 0))
            if best is None or _worth(found) < _worth(best[1]):
                best = copies, found
            if found.ii <= times.least_interval:
                return copies, found
        if best is not None and (best[1].certificate.optimal or stopped()):
            break
    if best is None:
        need = loop.lds_bytes({})
        raise OrderError(
            Finding(
                code="L103",
                message=f"one copy of each tile takes {need} bytes; {machine.name} has {machine.lds_bytes.value}",
                evidence=(("bytes", need), ("limit", machine.lds_bytes.value)),
                fixes=("a smaller tile, or a shallower K step",),
            )
        )
    return best[0], among_depths(best[1], min(lower.values()))


def among_depths(found: ModuloSchedule, lower: int) -> ModuloSchedule:
    """What is proved about the interval once other numbers of copies count, for none of which it is below `lower`."""
    if lower >= found.ii:
        return found
    return replace(found, certificate=replace(found.certificate, proof=ModuloProof.OPEN, lower=lower, refuted=()))


def _worth(found: ModuloSchedule) -> tuple[int, bool]:
    """A smaller interval first; of equal ones that which is proved least."""
    return found.ii, not found.certificate.optimal


def depths_that_fit(loop: LoopSpec, machine: Machine, times: LoopTimes) -> tuple[dict[str, int], ...]:
    """Equal numbers of copies for all tiles, and for all registers, as long as they fit and leave an order.

    Values may each do with their least copies and yet not all of them at once, so all get more until there is an order.
    If that never comes, the fewest are given: it isn't for want of copies.
    """
    least = least_copies(loop)
    fewest = fitting = tuple(_fitting(loop, machine, least))
    while fitting:
        orderly = tuple(copies for copies in fitting if _leave_an_order(loop, times, copies))
        if orderly:
            return orderly
        least = {name: count + 1 for name, count in least.items()}
        fitting = tuple(_fitting(loop, machine, least))
    return fewest


def _leave_an_order(loop: LoopSpec, times: LoopTimes, copies: Mapping[str, int]) -> bool:
    within = [Arc(*each[:4]) for each in precedences(loop, times, copies) if each.distance == 0]
    return not isinstance(longest_starts(len(loop.ops), within, 0), Circle)


def _fitting(loop: LoopSpec, machine: Machine, least: Mapping[str, int]) -> Iterator[dict[str, int]]:
    tiles = [value.name for value in loop.values if value.home is Home.LDS]
    most = max(_MOST_COPIES, *least.values()) if least else _MOST_COPIES
    fewest_of_tiles = max((least[name] for name in tiles), default=1)
    for of_registers in sorted({1, 2, *least.values()}):
        for of_tiles in range(fewest_of_tiles, (most if tiles else 1) + 1):
            copies = {name: max(count, of_registers) for name, count in least.items()} | dict.fromkeys(tiles, of_tiles)
            fits = loop.lds_bytes(copies) <= machine.lds_bytes.value and math.lcm(*copies.values()) <= most
            if fits and loop.registers(copies) <= registers_per_lane(machine, loop.waves):
                yield copies


def check_registers(loop: LoopSpec, machine: Machine) -> None:
    """One copy of each value fits the registers of a wave."""
    need, limit = loop.registers({}), registers_per_lane(machine, loop.waves)
    if need > limit:
        raise OrderError(
            Finding(
                code="L104",
                message=f"one copy of each value takes {need} registers a lane; {loop.waves} waves leave {limit}",
                evidence=(("registers", need), ("limit", limit)),
                fixes=("a smaller tile per wave",),
            )
        )
