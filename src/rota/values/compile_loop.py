"""Compile a loop by values: least interval, copies, slack, phases, waits, polish, proof."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from rota.check import bad_field, expect, is_int
from rota.compiled.proved import apply_repairs, certify, repaired
from rota.cycles.predict import clocks_per_tile, list_bounds
from rota.errors import OrderError, RotaError
from rota.order.modulo.modulo_problem import ModuloSchedule
from rota.order.modulo.scheduler import ModuloScheduler
from rota.program.entry import Entry, wait_effect, wait_op
from rota.program.kinds import Phase
from rota.program.loop_spec import MOST_ENTRIES, LoopSpec, check_count
from rota.program.lowered import name_phases, number_entries
from rota.program.machine import Machine
from rota.solver.memory import keep, recall, remembers
from rota.sync.needless import Indispensable, derive_needed
from rota.sync.repair import Repair, renumber, synthesise
from rota.targets.device import rates_of, timing_of
from rota.targets.devices import DEFAULT
from rota.values.buffer_depth import Deadline, check_length, check_placement, check_registers, derive_allowances
from rota.values.compiled_loop import CompiledLoop
from rota.values.interval_certificate import Claim
from rota.values.op_times import LoopTimes, time_loop
from rota.values.placement import certify_again, derive_sites, list_placements, wanted_landing_slack
from rota.values.polish import FastOrder, find_faster_order, reorder
from rota.values.unroll import Placement, UnrolledLoop, derive_loop_phases
from rota.verify.machine_limits import find_impossible

# A placement that was found before.
#
# What is kept are numbers: starts, copies, barriers, slack, and the order that polish found. What they are worth is
# found out again: starts and slack are checked, the interval is held against its bounds, and the schedule is
# proved.


class KeptPlacement(NamedTuple):
    """A kept schedule: its certificate, its placement, and the kernel's order if it was polished."""

    found: ModuloSchedule
    placement: Placement
    order: tuple[int, ...] | None


def recall_placement(question: object, claim: Claim) -> KeptPlacement | None:
    """The kept answer to a question, if it still holds."""
    answer = recall(question)
    try:
        placement, order = _parse_kept(answer)
        found = certify_again(claim.loop, claim.times, placement)
        return KeptPlacement(claim.certify(found, placement), placement, order)
    except (RotaError, TypeError, KeyError, ValueError, IndexError, AttributeError):
        return None  # it is searched for, as if nothing had been kept


def keep_placement(question: object, claim: Claim, before: KeptPlacement) -> None:
    """Keep an answer, if its certificate can be derived again without a search."""
    found, placement, order = before
    if not remembers():
        return
    try:
        again = claim.certify(certify_again(claim.loop, claim.times, placement), placement).certificate
    except RotaError:
        return
    said = found.certificate
    if (again.proof, again.lower, again.limits) == (said.proof, said.lower, said.limits):
        keep(
            question,
            {
                "interval": placement.interval,
                "starts": placement.starts,
                "copies": placement.copies,
                "barriers": placement.barriers,
                "landing_slack": placement.landing_slack,
                "read_slack": placement.read_slack,
                "turns_left": placement.turns_left,
                "order": order,
            },
        )


def _parse_kept(answer: object) -> tuple[Placement, tuple[int, ...] | None]:
    if not isinstance(answer, dict):
        raise TypeError("nothing was kept")
    order = answer["order"]
    placement = Placement(
        interval=_number(answer["interval"]),
        starts=tuple(map(_number, answer["starts"])),
        copies=tuple((str(name), _number(count)) for name, count in answer["copies"]),
        barriers=tuple(map(_number, answer["barriers"])),
        landing_slack=_number(answer["landing_slack"]),
        read_slack=_number(answer["read_slack"]),
        turns_left=answer["turns_left"] is True,
    )
    return placement, None if order is None else tuple(map(_number, order))


def _number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError("no number")
    return value


def drop_needless(written: CompiledLoop) -> CompiledLoop:
    """The loop without needless waits and barriers, unproved; the same loop if it needs all of them."""
    program = written.lowered
    needed = derive_needed(program)
    before = {phase: tuple(entry for entry in program.phase(phase) if entry.listed) for phase in Phase}
    kept = {phase: tuple(_select_needed(before[phase], needed)) for phase in Phase}
    if kept == before:
        return written
    said = {
        (entry.phase, entry.time_slot): why.reason
        for phase in Phase
        for entry in before[phase]
        if (why := needed.get(id(entry))) is not None
    }
    repairs = []
    for each in written.repairs:
        now = next((entry.op for entry in kept[each.phase] if entry.time_slot == each.slot), None)
        if now is not None:
            reason = str(said.get((each.phase, each.slot), each.reason))
            repairs.append(_in_new_places(replace(each, op=now, reason=reason), kept))
    return replace(
        written,
        **name_phases({phase: number_entries(entries) for phase, entries in kept.items()}),
        repairs=tuple(repairs),
    )


def _select_needed(entries: Iterable[Entry], needed: Mapping[int, Indispensable | None]) -> Iterator[Entry]:
    """The needed entries in their order, with waits as weak as possible."""
    for entry in entries:
        why, counter = needed.get(id(entry)), entry.effect.counter
        if why is not None and counter is not None and why.leaves != entry.effect.wait_value:
            yield replace(entry, op=wait_op(counter, why.leaves), effect=wait_effect(counter, why.leaves))
        elif why is not None or id(entry) not in needed:
            yield entry


def _in_new_places(each: Repair, kept: Mapping[Phase, tuple[Entry, ...]]) -> Repair:
    for phase, entries in kept.items():
        each = renumber(each, phase, {entry.time_slot: place for place, entry in enumerate(entries)})
    return each


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
    With `polish`, entries of the kernel move where the cycle model finds that faster (`rota.values.polish`), and other
    placements are tried where a loop is slower than its busiest unit allows: with more copies, or with less slack for
    loads, unless that is said; without, entries are in the order of their starts.  No tile in LDS gets more than
    `most_copies`, where that is said; `slack` is how many slots late a load should be allowed to be, by default three
    quarters of its latency.  `scheduler.time_limit` bounds all searches for the interval, for copies and for slack
    together; without a scheduler it is two minutes.
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
    impossibilities = tuple(find_impossible(loop, machine))
    if impossibilities:
        raise OrderError(*impossibilities)
    check_registers(loop, machine)
    deadline = Deadline(asked=scheduler or ModuloScheduler(time_limit=_TIME_LIMIT))
    times = time_loop(loop, timing_of(machine), groups=2 if stagger else 1)
    check_length(loop, times)
    deep, few = derive_allowances(loop, machine, times, most_copies)
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
        deadline.asked,
    )
    writer = _LoopWriter(loop, machine, times, remainder, stagger, reentrant, vmcnt_in_order, polish)
    before = recall_placement(question, claim)
    if before is not None:
        return writer.write_again(before) or writer.write(before.found, before.placement).compiled
    wished = wanted_landing_slack(times) if slack is None else slack
    vary = polish and slack is None and not fewest_barriers
    fastest = _write_fastest(writer, list_placements(claim, deadline, 0 if fewest_barriers else wished, vary=vary))
    keep_placement(question, claim, fastest.kept)
    return fastest.compiled


_NEAR = 1.01  # of what the busiest unit needs: a loop as fast as this is placed no other way
_FASTER = 0.99  # a later placement is taken if it needs this part of the clocks, or less
_IN_VAIN = 5  # placements one after the other that are no faster than the best before them


def _write_fastest(writer: _LoopWriter, placements: Iterable[tuple[ModuloSchedule, Placement]]) -> _Candidate:
    """The first loop that is about as fast as its busiest unit, or else the fastest of several."""
    best: _Candidate | None = None
    refused: RotaError | None = None
    left = _IN_VAIN
    for placed in placements:
        left -= 1
        try:
            candidate = writer.write(*placed)
        except RotaError as error:  # its registers don't fit, or it isn't proved
            refused = refused or error
            continue
        if best is None or candidate.clocks < best.clocks * _FASTER:
            best, left = candidate, _IN_VAIN
        if best.is_near or not left:
            break
    if best is None:
        raise refused or AssertionError("some placement is listed for every loop")
    return best


class _Candidate(NamedTuple):
    """A compiled loop, what would be kept of it, and its predicted clocks, if there is a model."""

    compiled: CompiledLoop
    kept: KeptPlacement
    clocks: float = 0.0
    least: float = 0.0  # what its busiest unit needs

    @property
    def is_near(self) -> bool:
        """True if hardly any schedule of the loop could be faster."""
        proved = self.kept.found.certificate.lower * rates_of(self.compiled.machine).clocks_per_slot.value
        return self.clocks <= _NEAR * max(proved, self.least)


class _LoopWriter(NamedTuple):
    """From a placement to a loop: phases, waits and barriers, a faster order, and the proof."""

    loop: LoopSpec
    machine: Machine
    times: LoopTimes
    remainder: int
    stagger: bool
    reentrant: bool
    vmcnt_in_order: bool
    polish: bool

    def write(self, found: ModuloSchedule, placement: Placement) -> _Candidate:
        """The loop as placed; in a faster order, if there is a model to find one with."""
        synchronised = self._synchronise(found, placement)
        faster = find_faster_order(synchronised) if self.polish else None
        as_placed = KeptPlacement(found, placement, None)
        if faster is None:
            whole = _ensure_proof(synchronised)
            return _Candidate(whole, as_placed, *(_predict(whole) if self.polish and not self.stagger else ()))
        if faster.order != tuple(range(len(synchronised.kernel))):
            better, clocks = _apply_order(synchronised, faster)
            if better is not None:
                return _Candidate(better, as_placed._replace(order=faster.order), clocks, faster.least)
        elif synchronised.certificate is not None:
            return _Candidate(synchronised, as_placed, faster.clocks, faster.least)
        whole = _ensure_proof(synchronised)
        return _Candidate(whole, as_placed, clocks_per_tile(whole), faster.least)

    def write_again(self, before: KeptPlacement) -> CompiledLoop | None:
        """What was kept, if it is still proved in the kept order."""
        synchronised = self._synchronise(before.found, before.placement)
        if before.order is None:
            return _ensure_proof(synchronised)
        if sorted(before.order) != list(range(len(synchronised.kernel))):
            return None
        return _apply_order(synchronised, FastOrder(before.order, 0.0, 0.0))[0]

    def _synchronise(self, found: ModuloSchedule, placement: Placement) -> CompiledLoop:
        loop, machine = self.loop, self.machine
        check_placement(loop, placement, self.times, machine)
        phases = derive_loop_phases(loop, placement, machine, self.remainder)
        trusted = machine if self.vmcnt_in_order else machine.doubting_dmas()
        bare = replace(
            _bare(loop, placement, trusted, phases, stagger=self.stagger),
            reentrant=self.reentrant,
            lds_bytes=loop.lds_bytes(dict(placement.copies)),
        ).with_interval(found)
        sites = derive_sites(loop, placement, self.times, machine) if placement.barriers else None
        done = None if sites is None else synthesise(bare.lowered, phases.times, placement.interval, sites)
        return repaired(bare) if done is None else apply_repairs(bare, done)


def _predict(compiled: CompiledLoop) -> tuple[float, float]:
    """Its clocks, and those that its busiest unit needs; none without a model."""
    try:
        return clocks_per_tile(compiled), max(list_bounds(compiled).values())
    except RotaError:
        return 0.0, 0.0


def _ensure_proof(written: CompiledLoop) -> CompiledLoop:
    return written if written.certificate is not None else repaired(written)


def _apply_order(synchronised: CompiledLoop, faster: FastOrder) -> tuple[CompiledLoop | None, float]:
    """The loop in another order, without waits that aren't needed there, and its clocks; None if it isn't proved."""
    moved = reorder(synchronised, faster.order)
    lean = drop_needless(moved)
    if lean is not moved:
        clocks = clocks_per_tile(lean)
        if clocks <= (faster.clocks or clocks_per_tile(moved)) and (proved := certify(lean)):
            return proved, clocks
    return certify(moved), faster.clocks


def unroll_bare(
    loop: LoopSpec, placement: Placement, remainder: int = 0, *, machine: Machine = DEFAULT, stagger: bool = False
) -> CompiledLoop:
    """The phases of a loop whose ops start as `placement` says, without any wait or barrier."""
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


# Other schedules of a loop.
#
# They differ in which placement the search met first; `rota.cycles.predict.rank` puts the one that a cycle model
# likes best in front.

_TRIES_EACH = 3


def top_k(loop: LoopSpec, machine: Machine = DEFAULT, *, k: int, stagger: bool = False) -> tuple[CompiledLoop, ...]:
    """Up to `k` schedules with different orders; fewer if the search keeps finding the same ones."""
    if not is_int(k) or k < 1:
        raise bad_field(loop, "k", k, "an integer, at least 1")
    found: dict[tuple[object, ...], CompiledLoop] = {}
    for seed in range(_TRIES_EACH * k):
        scheduler = replace(ModuloScheduler(), seed=seed)
        compiled = compile_loop(loop, machine, stagger=stagger, scheduler=scheduler)
        found.setdefault(tuple(entry.op for entry in compiled.kernel), compiled)
        if len(found) == k:
            break
    return tuple(found.values())
