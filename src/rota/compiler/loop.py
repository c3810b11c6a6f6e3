"""Loops by values: takes a `LoopSpec` and a machine, gives a proved `CompiledSchedule` of least initiation interval.

Buffer depth is the fewest copies at which the interval is least: of the LDS tiles first, then of registers too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rota.compiler.compiled import CompiledSchedule
from rota.compiler.proved import repaired
from rota.declare.check import bad_field, expect, is_int
from rota.declare.config import PipelineConfig
from rota.declare.values import Home, LoopSpec
from rota.errors import Finding, OrderError
from rota.graph.modulo import ModuloEdge, ModuloOp, ModuloProblem, Resource, Use
from rota.graph.timing import LoopTimes, Unit, least_register_copies, precedences, time_loop
from rota.order.modulo import ModuloScheduler
from rota.order.modulo_schedule import ModuloSchedule
from rota.program.config import ScheduleConfig
from rota.program.unroll import Placement, derive_loop_phases
from rota.targets.machine import GFX950, Machine
from rota.targets.rates import SIMDS, rates_of

_MOST_COPIES = 4
_FIRST_LOOK = 4.0  # seconds


def compile_loop(
    loop: LoopSpec, machine: Machine = GFX950, *, remainder: int = 0, scheduler: ModuloScheduler | None = None
) -> CompiledSchedule:
    """Find the least interval, derive the buffers, unroll, synchronise, prove.

    A loop of N iterations runs as (N - outside) / unroll trips, where `trip_tiles` gives both numbers; `remainder` more
    iterations outside the loop reach the N that don't divide.
    """
    expect("the loop", loop, LoopSpec)
    expect("the machine", machine, Machine)
    if not is_int(remainder) or remainder < 0:
        raise bad_field(loop, "remainder", remainder, "a whole number, at least 0")
    _check_registers(loop, machine)
    times = time_loop(loop, rates_of(machine))
    copies, found = _shallowest(loop, machine, times, scheduler or ModuloScheduler())
    placement = Placement(interval=found.ii, starts=found.starts, copies=tuple(sorted(copies.items())))
    bare = unsynchronised(loop, placement, remainder)
    return repaired(replace(bare, machine=machine, lds_bytes=_lds_bytes(loop, copies), modulo=found))


def unsynchronised(loop: LoopSpec, placement: Placement, remainder: int = 0) -> CompiledSchedule:
    """The phases of a loop whose ops start when `placement` says, without a single wait or barrier."""
    phases = derive_loop_phases(loop, placement, remainder)
    return CompiledSchedule(
        name=loop.name,
        config=PipelineConfig(depth=1, num_partitions=1),
        schedule_config=ScheduleConfig(),
        body=(),
        edges=(),
        prologue=phases.prologue,
        kernel=phases.kernel,
        epilogue=phases.epilogue,
        kernel_deps=(),
        warp_stagger_index=len(phases.prologue) + 1,
        trip_tiles=phases.trip_tiles,
        loop=loop,
        placement=placement,
    )


def modulo_problem(loop: LoopSpec, times: LoopTimes, copies: Mapping[str, int]) -> ModuloProblem:
    """The loop as ops, edges and units, for a given number of copies per value."""
    used = {timing.unit for timing in times.timings}
    return ModuloProblem(
        ops=tuple(
            ModuloOp(
                name=op.name,
                latency=timing.latency,
                uses=(Use(resource=timing.unit.value, occupancy=timing.occupancy),) if timing.occupancy else (),
            )
            for op, timing in zip(loop.ops, times.timings, strict=True)
        ),
        edges=tuple(
            ModuloEdge(producer=p.earlier, consumer=p.later, delay=p.delay, distance=p.distance)
            for p in precedences(loop, times, copies)
        ),
        resources=tuple(Resource(name=unit.value) for unit in Unit if unit in used),
    )


def _shallowest(
    loop: LoopSpec, machine: Machine, times: LoopTimes, scheduler: ModuloScheduler
) -> tuple[dict[str, int], ModuloSchedule]:
    """The fewest copies that reach the interval of the busiest unit, or else the least interval that any reaches.

    Too few copies can take the search all its time, so every number of them gets a short one first.
    """
    depths = list(_depths(loop, machine))
    best: tuple[dict[str, int], ModuloSchedule] | None = None
    for limit in (min(_FIRST_LOOK, scheduler.time_limit), scheduler.time_limit):
        for copies in depths:
            found = replace(scheduler, time_limit=limit).schedule(modulo_problem(loop, times, copies))
            if best is None or found.ii < best[1].ii:
                best = copies, found
            if found.ii <= times.least_interval:
                return copies, found
        if best is not None and best[1].certificate.optimal:
            return best
    if best is None:
        need = _lds_bytes(loop, {})
        raise OrderError(
            Finding(
                code="L103",
                message=f"one copy of each tile takes {need} bytes; {machine.name} has {machine.lds_bytes.value}",
                evidence=(("bytes", need), ("limit", machine.lds_bytes.value)),
                fixes=("a smaller tile, or a shallower K step",),
            )
        )
    return best


def _depths(loop: LoopSpec, machine: Machine) -> Iterator[dict[str, int]]:
    """Equal numbers of copies for all tiles, and for all registers, as long as they fit."""
    tiles = [value.name for value in loop.values if value.home is Home.LDS]
    least = least_register_copies(loop)
    for of_registers in (1, 2):
        for of_tiles in range(1, (_MOST_COPIES if tiles else 1) + 1):
            registers = {name: max(count, of_registers) for name, count in least.items()}
            copies = {**dict.fromkeys(tiles, of_tiles), **registers}
            fits = _lds_bytes(loop, copies) <= machine.lds_bytes.value
            if fits and _registers(loop, copies) <= _register_limit(loop, machine):
                yield copies


def _lds_bytes(loop: LoopSpec, copies: Mapping[str, int]) -> int:
    return sum(value.size * copies.get(value.name, 1) for value in loop.values if value.home is Home.LDS)


def _registers(loop: LoopSpec, copies: Mapping[str, int]) -> int:
    return sum(value.size * copies.get(value.name, 1) for value in loop.values if value.home is not Home.LDS)


def _register_limit(loop: LoopSpec, machine: Machine) -> int:
    """Waves of one SIMD share its register file."""
    return machine.vgprs_per_lane.value // -(-loop.waves // SIMDS)


def _check_registers(loop: LoopSpec, machine: Machine) -> None:
    need, limit = _registers(loop, {}), _register_limit(loop, machine)
    if need > limit:
        raise OrderError(
            Finding(
                code="L104",
                message=f"one copy of each value takes {need} registers a lane; {loop.waves} waves leave {limit}",
                evidence=(("registers", need), ("limit", limit)),
                fixes=("fewer waves, or smaller fragments",),
            )
        )
