"""Loops by values: takes a `LoopSpec` and a machine, gives a proved `CompiledSchedule` of least initiation interval."""

from __future__ import annotations

from dataclasses import replace

from rota.compiler.compiled import CompiledSchedule
from rota.compiler.depth import check_registers, depths_that_fit, shallowest
from rota.compiler.proved import applied, repaired
from rota.compiler.room import in_lockstep, landing_wished, staggered
from rota.declare.check import bad_field, expect, is_int
from rota.declare.config import PipelineConfig, WarpStaggerRule
from rota.declare.limits import MOST_ENTRIES, check_count
from rota.declare.values import LoopSpec
from rota.graph.timing import LoopTimes, time_loop
from rota.order.modulo import ModuloScheduler
from rota.order.modulo_schedule import ModuloSchedule
from rota.program.config import ScheduleConfig
from rota.program.unroll import Placement, UnrolledLoop, derive_loop_phases
from rota.sync.sites import derive_sites
from rota.sync.synthesis import synthesise
from rota.targets.machine import GFX950, Machine
from rota.targets.timing import timing_of


def compile_loop(
    loop: LoopSpec,
    machine: Machine = GFX950,
    *,
    remainder: int = 0,
    stagger: bool = False,
    fewest_barriers: bool = False,
    scheduler: ModuloScheduler | None = None,
) -> CompiledSchedule:
    """Find the least interval, derive the buffers, make room, unroll, synchronise, prove.

    A loop of N iterations runs as (N - outside) / unroll trips, where `trip_tiles` gives both numbers; `remainder` more
    iterations outside the loop reach the N that don't divide.  With `stagger` two groups of waves take turns at the
    matrix units, one computing while the other moves data; their barriers have fixed places.

    Barriers are the fewest that leave loads slack for coming late, or with `fewest_barriers` the fewest at all.
    `scheduler.time_limit` bounds the search for an interval at each depth, and the one for slack.
    """
    expect("the loop", loop, LoopSpec)
    expect("the machine", machine, Machine)
    if not is_int(remainder) or remainder < 0:
        raise bad_field(loop, "remainder", remainder, "a whole number, at least 0")
    check_count(f"a remainder of {remainder:,}", "entries", remainder * len(loop.ops), MOST_ENTRIES)
    scheduler = ModuloScheduler() if scheduler is None else expect("the scheduler", scheduler, ModuloScheduler)
    check_registers(loop, machine)
    times = time_loop(loop, timing_of(machine), groups=2 if stagger else 1)
    landing = 0 if fewest_barriers else landing_wished(times)
    found, placement = _placed(loop, machine, times, scheduler, landing)
    phases = derive_loop_phases(loop, placement, remainder)
    bare = replace(
        _bare(loop, placement, phases, stagger=stagger),
        machine=machine,
        lds_bytes=loop.lds_bytes(dict(placement.copies)),
        modulo=found,
    )
    if not placement.barriers:
        return repaired(bare)
    sites = derive_sites(loop, placement, times)
    done = synthesise(bare, phases.times, placement.interval, sites, machine)
    return repaired(bare if done is None else applied(bare, done))


def _placed(
    loop: LoopSpec, machine: Machine, times: LoopTimes, scheduler: ModuloScheduler, landing: int
) -> tuple[ModuloSchedule, Placement]:
    """At the interval of the busiest unit if there is room at any depth, else at the least interval there is."""
    depths = depths_that_fit(loop, machine, times)
    if times.groups > 1:
        return staggered(loop, times, times.least_interval, depths, scheduler=scheduler, landing=landing)
    placed = in_lockstep(loop, times, times.least_interval, depths, scheduler=scheduler, landing=landing)
    if placed is not None:
        return placed
    copies, found = shallowest(loop, machine, times, depths, scheduler)
    placed = in_lockstep(loop, times, found.ii, (copies,), scheduler=scheduler, landing=landing)
    if placed is not None:
        return replace(found, starts=placed[0].starts), placed[1]
    return found, Placement(interval=found.ii, starts=found.starts, copies=tuple(sorted(copies.items())))


def unsynchronised(loop: LoopSpec, placement: Placement, remainder: int = 0) -> CompiledSchedule:
    """The phases of a loop whose ops start when `placement` says, without a single wait or barrier."""
    return _bare(loop, placement, derive_loop_phases(loop, placement, remainder), stagger=False)


def _bare(loop: LoopSpec, placement: Placement, phases: UnrolledLoop, *, stagger: bool) -> CompiledSchedule:
    rule = WarpStaggerRule.fixed(len(phases.prologue)) if stagger else WarpStaggerRule.none()
    return CompiledSchedule(
        name=loop.name,
        config=PipelineConfig(depth=1, num_partitions=1, warp_stagger=rule),
        schedule_config=ScheduleConfig(),
        body=(),
        edges=(),
        prologue=phases.prologue,
        kernel=phases.kernel,
        epilogue=phases.epilogue,
        kernel_deps=(),
        warp_stagger_index=len(phases.prologue) + (not stagger),
        compiler_tracks_registers=False,
        trip_tiles=phases.trip_tiles,
        loop=loop,
        placement=placement,
    )
