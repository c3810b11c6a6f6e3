"""A loop by values as a modulo-scheduling problem: takes ops, their times and copies, gives a `ModuloProblem`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rota.order.modulo.modulo_problem import ModuloEdge, ModuloOp, ModuloProblem, Resource, Use
from rota.program.kinds import Unit
from rota.program.loop_spec import LoopSpec
from rota.values.op_times import LoopTimes, precedences


def modulo_problem(loop: LoopSpec, times: LoopTimes, copies: Mapping[str, int], behind: int = 0) -> ModuloProblem:
    """The loop as ops, edges and units, for a given number of copies per value.

    Groups of waves that run apart hold each unit once more, each group `behind` slots after the one before.
    """
    used = {timing.unit for timing in times.timings} | {Unit.ISSUE for timing in times.timings if timing.issue}
    return ModuloProblem(
        ops=tuple(
            ModuloOp(
                name=op.name,
                latency=timing.latency,
                uses=(
                    *(
                        Use(resource=timing.unit.value, occupancy=timing.occupancy, offset=group * behind)
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
            for p in precedences(loop, times, copies)
        ),
        resources=tuple(Resource(name=unit.value) for unit in Unit if unit in used),
    )


def without_turns(problem: ModuloProblem) -> ModuloProblem:
    """The same, with issue turns left to the order."""
    turns = Unit.ISSUE.value
    ops = (replace(op, uses=tuple(use for use in op.uses if use.resource != turns)) for op in problem.ops)
    return replace(problem, ops=tuple(ops), resources=tuple(r for r in problem.resources if r.name != turns))
