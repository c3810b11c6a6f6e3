"""Loops by values: takes a `LoopSpec` and a machine, gives a proved `CompiledSchedule` of least initiation interval."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from rota.check import bad_field, expect, is_int
from rota.compiled.proved import applied, certified, repaired
from rota.cycles.predict import clocks_per_tile
from rota.errors import OrderError
from rota.order.modulo.modulo_schedule import ModuloSchedule
from rota.order.modulo.scheduler import ModuloScheduler
from rota.program.limits import MOST_ENTRIES, check_count
from rota.program.loop_spec import LoopSpec
from rota.program.machine import Machine
from rota.sync.synthesis import synthesise
from rota.targets.default import DEFAULT
from rota.targets.device import rates_of, timing_of
from rota.values.buffer_depth import (
    allowances,
    check_length,
    check_placement,
    check_registers,
    depths_that_bear,
    narrowed,
    shallowest,
)
from rota.values.claim import Claim
from rota.values.compiled_loop import CompiledLoop
from rota.values.copies import least_borne
from rota.values.lean_loop import without_needless
from rota.values.op_times import time_loop
from rota.values.patience import Patience
from rota.values.place import in_lockstep, landing_wished, staggered
from rota.values.placed_before import Before, keep_placement, placed_before
from rota.values.polish import faster_order, reordered
from rota.values.unroll import Placement, UnrolledLoop, derive_loop_phases
from rota.values.wait_sites import derive_sites
from rota.verify.impossible import impossible

_TIME_LIMIT = 120.0  # seconds, several times what the largest shipped loop takes


def compile_loop(
    loop: LoopSpec,
    machine: Machine = DEFAULT,
    *,
    remainder: int = 0,
    stagger: bool = False,
    fewest_barriers: bool = False,
    reentrant: bool = False,
    vmcnt_in_order: bool = True,
    polish: bool = True,
    most_copies: int | None = None,
    slack: int | None = None,
    scheduler: ModuloScheduler | None = None,
) -> CompiledLoop:
    """Find the least interval, derive the buffers, add slack, unroll, synchronise, polish, prove.

    A loop of N iterations runs as (N - outside) / unroll trips, where `trip_tiles` gives both numbers; `remainder` more
    iterations outside the loop reach the N that don't divide.  With `stagger` two groups of waves take turns at the
    matrix units, one computing while the other moves data; their barriers have fixed places.

    A `reentrant` loop may run again immediately after itself, as a persistent kernel does.  Without `vmcnt_in_order`
    the proof trusts no wait that leaves some of vmcnt's tokens pending.

    Barriers are the fewest that are found to leave loads slack, or with `fewest_barriers` without regard to slack.
    With `polish`, entries of the kernel move where the cycle model finds that faster (`rota.values.polish`); without,
    they stand in the order of their starts.  No tile in LDS gets more than `most_copies`, where that is said; `slack`
    is how many slots late a load should be allowed to be, by default three quarters of its latency.
    `scheduler.time_limit` bounds all searches for the interval, for copies and for slack together; without a scheduler
    it is two minutes.
    """
    expect("the loop", loop, LoopSpec)
    expect("the machine", machine, Machine)
    if not is_int(remainder) or remainder < 0:
        raise bad_field(loop, "remainder", remainder, "an integer, at least 0")
    check_count(f"a remainder of {remainder:,}", "entries", remainder * len(loop.ops), MOST_ENTRIES)
    if most_copies is not None and (not is_int(most_copies) or most_copies < 1):
        raise bad_field(loop, "most_copies", most_copies, "an integer, at least 1")
    if slack is not None and (not is_int(slack) or slack < 0):
        raise bad_field(loop, "slack", slack, "an integer, at least 0")
    if scheduler is not None:
        expect("the scheduler", scheduler, ModuloScheduler)
    impossibilities = tuple(impossible(loop, machine))
    if impossibilities:
        raise OrderError(*impossibilities)
    check_registers(loop, machine)
    patience = Patience(asked=scheduler or ModuloScheduler(time_limit=_TIME_LIMIT))
    times = time_loop(loop, timing_of(machine), groups=2 if stagger else 1)
    check_length(loop, times)
    deep, few = allowances(loop, machine, times, most_copies)
    claim = Claim(loop=loop, machine=machine, times=times, deep=deep, few=few)
    question = (
        "loop",
        loop,
        machine,
        remainder,
        stagger,
        fewest_barriers,
        reentrant,
        vmcnt_in_order,
        polish,
        most_copies,
        slack,
        patience.asked,
    )
    before = placed_before(question, claim)
    if before is None:
        wished = landing_wished(times) if slack is None else slack
        landing = 0 if fewest_barriers else wished
        found, placement = _placed(claim, patience, landing)
    else:
        found, placement, _ = before
    check_placement(loop, placement, times, machine)
    phases = derive_loop_phases(loop, placement, machine, remainder)
    trusted = machine if vmcnt_in_order else machine.doubting_dmas()
    bare = replace(
        _bare(loop, placement, trusted, phases, stagger=stagger),
        reentrant=reentrant,
        lds_bytes=loop.lds_bytes(dict(placement.copies)),
    ).with_interval(found)
    sites = derive_sites(loop, placement, times, machine) if placement.barriers else None
    done = None if sites is None else synthesise(bare.lowered, phases.times, placement.interval, sites)
    synchronised = repaired(bare) if done is None else applied(bare, done)
    if before is not None and before.order is not None:
        again = _in_order(synchronised, before.order)
        if again is not None:
            return again
    order = faster_order(synchronised) if polish and (before is None or before.order is not None) else None
    better = None if order is None else _in_order(synchronised, order)
    keep_placement(question, claim, Before(found, placement, None if better is None else order))
    if better is not None:
        return better
    return synchronised if synchronised.certificate is not None else repaired(synchronised)


def _in_order(synchronised: CompiledLoop, order: tuple[int, ...]) -> CompiledLoop | None:
    """The loop with its kernel in another order, if that is one, without waits that this can do without, and proved."""
    if sorted(order) != list(range(len(synchronised.kernel))):
        return None
    moved = reordered(synchronised, order)
    lean = without_needless(moved)
    if lean is not moved and clocks_per_tile(lean) <= clocks_per_tile(moved):
        return certified(lean) or certified(moved)
    return certified(moved)


def _placed(claim: Claim, patience: Patience, landing: int) -> tuple[ModuloSchedule, Placement]:
    """At the least interval that any copies allow if there is room, else with ever fewer copies of the tiles.

    Where none of these leave room for barriers, at the least interval that is found for few copies.
    """
    loop, machine, times, deep, few = claim.loop, claim.machine, claim.times, claim.deep, claim.few
    depths: tuple[dict[str, int], ...] = ()
    if times.groups > 1:
        ii, depths = times.least_interval, depths_that_bear(times.least_interval, deep, times)
        in_turn = staggered(
            loop, times, ii, depths, patience=patience, landing=landing, simds=rates_of(machine).simds.value
        )
        return claim.certify(*in_turn), in_turn[1]
    for allowed in chain((deep,), narrowed(deep, times), (few,)):
        ii, tried = least_borne(claim.ties, allowed, times.least_interval), depths
        depths = depths_that_bear(ii, allowed, times)
        placed = None if depths == tried else in_lockstep(loop, times, ii, depths, patience=patience, landing=landing)
        if placed is not None:
            return claim.certify(*placed), placed[1]
    lower = claim.least_possible(patience)
    copies, best = shallowest(few, times, depths, patience, lower)
    bare = Placement(interval=best.ii, starts=best.starts, copies=tuple(sorted(copies.items())))
    placed = in_lockstep(loop, times, best.ii, (copies,), patience=patience, landing=landing) or (best, bare)
    return claim.certify(*placed, lower), placed[1]


def unsynchronised(
    loop: LoopSpec, placement: Placement, remainder: int = 0, *, machine: Machine = DEFAULT, stagger: bool = False
) -> CompiledLoop:
    """The phases of a loop whose ops start when `placement` says, without a single wait or barrier."""
    return _bare(loop, placement, machine, derive_loop_phases(loop, placement, machine, remainder), stagger=stagger)


def _bare(
    loop: LoopSpec, placement: Placement, machine: Machine, phases: UnrolledLoop, *, stagger: bool
) -> CompiledLoop:
    return CompiledLoop(
        name=loop.name,
        machine=machine,
        prologue=phases.prologue,
        kernel=phases.kernel,
        epilogue=phases.epilogue,
        trip_tiles=phases.trip_tiles,
        loop=loop,
        placement=placement,
        staggered=stagger,
        stagger_index=len(phases.prologue),
    )
