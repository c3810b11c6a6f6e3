"""What is proved about a loop's interval, within which limits.

A search covers one choice of copies, with all waves in step; a user asks about the loop. So the interval is compared
with bounds of wider and wider problems, the widest first. The certificate states what the first bound that reaches the
interval leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from rota.order.modulo.modulo_problem import MII, ModuloProof, ModuloSchedule, ResourceBound, derive_mii
from rota.program.kinds import Home
from rota.program.loop_spec import LoopSpec
from rota.program.machine import Machine
from rota.solver.limits import Outcome
from rota.targets.device import timing_of
from rota.values.buffer_depth import (
    Allowance,
    Deadline,
    Precedences,
    bound_interval,
    derive_precedences,
    find_cheapest_copies,
    modulo_problem,
)
from rota.values.op_times import LoopTimes, bound_times
from rota.values.unroll import Placement

_IN_STEP, _IN_TURN = "all waves in step", "two wave groups in turn"
_OWN_REGISTERS = "registers for every copy"
_TURNS_LEFT = "issue turns left to the order"
_MOST_NAMED = 8
_REFUTING = 10.0  # seconds
_BEYOND = 1 << 16  # copies that no loop needs


class _Bound(NamedTuple):
    """How busy the busiest unit is, and which precedences bind."""

    busy: int
    ties: Precedences


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A loop on a machine, its times, and the most and fewest copies that were tried."""

    loop: LoopSpec
    machine: Machine
    times: LoopTimes
    deep: Allowance
    few: Allowance

    @property
    def ties(self) -> Precedences:
        return derive_precedences(self.loop, self.times)

    def least_possible(self, deadline: Deadline) -> int:
        """A lower bound for schedules with few copies; a search refutes what bounds leave open."""
        return deadline.scheduler(_REFUTING).least_possible(
            modulo_problem(self.loop, self.times, _find_most_copies(self.few))
        )

    def certify(self, found: ModuloSchedule, placement: Placement, refuted_below: int = 0) -> ModuloSchedule:
        """The schedule with what is proved about its interval, and within which limits.

        No schedule with few copies has an interval below `refuted_below`, where that was shown.
        """
        proof = _Proof(self, found.ii, dict(placement.copies))
        limits, lower, mii = proof.limits(), found.ii, proof.mii(self.deep)
        if limits is None:
            limits, lower, mii = proof.all_limits, proof.lower(refuted_below), proof.mii(proof.own)
        kind = ModuloProof.REFUTED if lower == found.ii else ModuloProof.OPEN
        certificate = replace(
            found.certificate,
            proof=ModuloProof.MEETS_BOUND if mii.ii == found.ii else kind,
            mii=mii,
            lower=lower,
            refuted=tuple(range(mii.ii, lower)),
            limits=(*limits, *((_TURNS_LEFT,) if placement.turns_left else ())),
        )
        return replace(found, certificate=certificate)


class _Proof:
    """Bounds of the problems that a schedule with these `copies` solves; `own` is the narrowest of them.

    That an interval is the least of a problem to which the schedule doesn't belong would say nothing about it.
    """

    def __init__(self, claim: Claim, ii: int, copies: Mapping[str, int]) -> None:
        self.claim, self.ii = claim, ii
        deep, times = claim.deep, claim.times
        within_few = all(count <= (claim.few.most or {}).get(name, count) for name, count in copies.items())
        self.own = claim.few if within_few else deep
        lds, both = replace(deep, registers=None, most=None), (deep, claim.few) if within_few else (deep,)
        self.allowed = (lds, *(replace(each, registers=None) for each in both), *both)
        apart = bound_times(claim.loop, timing_of(claim.machine), dict.fromkeys(deep.least, 0))
        self.apart = _Bound(apart.least_interval, Precedences.of(claim.loop, apart.precedences))
        self.planned = _Bound(times.least_interval, claim.ties)
        self.waves = _IN_STEP if times.groups == 1 else _IN_TURN

    def mii(self, allowed: Allowance) -> MII:
        """The bounds of the problem in which each value has the most copies it could have."""
        times = self.claim.times
        mii = derive_mii(modulo_problem(self.claim.loop, times, _find_most_copies(allowed)))
        unit, busy = max(times.busy, key=lambda pair: pair[1], default=(None, 0))
        if unit is not None and busy > (0 if mii.resource is None else mii.resource.ii):  # what lands takes LDS, too
            mii = replace(mii, resource=ResourceBound(ii=busy, resource=unit.value, busy=busy, capacity=1))
        return mii

    def limits(self) -> tuple[str, ...] | None:
        """The fewest limits under which a bound reaches the interval; None if none does."""
        for allowed in self.allowed:
            for bound, words in ((self.apart, ()), (self.planned, (self.waves,))):
                if bound.busy >= self.ii:
                    return words
                if self.reached(bound, allowed):
                    return (*self.of_copies(bound, allowed), *words)
        return None

    def reached(self, bound: _Bound, allowed: Allowance) -> bool:
        """True if no allowed copies permit less than the interval."""
        return bound.busy >= self.ii or find_cheapest_copies(bound.ties, allowed, self.ii - 1) is Outcome.INFEASIBLE

    def of_copies(self, bound: _Bound, allowed: Allowance) -> Iterator[str]:
        """The limits on copies that the bound needs to reach the interval."""
        needed = dict(allowed.most or {})
        for name in tuple(needed):
            less = {other: most for other, most in needed.items() if other != name}
            if self.reached(bound, replace(allowed, most=less)):
                needed = less
        yield from _describe_copies("at most", needed)
        yield from self.of_older(allowed)
        if allowed.registers is not None:
            yield _OWN_REGISTERS

    def of_older(self, allowed: Allowance) -> Iterator[str]:
        """The limit that a value read several iterations later has that many copies in every schedule.

        It could do with fewer if its reader ran ahead of its younger versions' writers, and leave others more room.
        """
        loop = self.claim.loop
        older = {read.value for op in loop.ops for read in op.reads if read.distance > 1}
        first = {loop.registers_of(name)[0] for name in older}
        counted = (Home.LDS,) if allowed.registers is None else (Home.LDS, Home.REGISTERS)
        named = {name: count for name, count in allowed.least.items() if name in first}
        yield from _describe_copies("at least", {n: c for n, c in named.items() if loop.value(n).home in counted})

    @property
    def all_limits(self) -> tuple[str, ...]:
        few = self.own
        within, freely = _find_most_copies(few), _find_most_copies(replace(few, registers=None))
        capped = {name: most for name, most in (few.most or {}).items() if freely[name] == most}
        own = () if within == freely else (_OWN_REGISTERS,)
        return (*_describe_copies("at most", capped), *self.of_older(few), *own, self.waves)

    def lower(self, known: int) -> int:
        """A lower bound within all limits; `known` is about few copies alone."""
        few = self.own
        if few is not self.claim.few:
            known = 0
        return min(max(known, self.mii(few).ii, bound_interval(self.planned.ties, few, self.planned.busy)), self.ii)


def _find_most_copies(allowed: Allowance) -> dict[str, int]:
    """The copies that each value could have if the others had their fewest.

    A bound of the problem with these copies holds for all allowed copies.
    """
    least, loop = dict(allowed.least), allowed.loop
    if not allowed.holds(least):
        return least
    limits = ((allowed.lds_bytes, loop.lds_bytes), (allowed.registers, loop.registers))
    room = [(limit - taken(least), taken) for limit, taken in limits if limit is not None]
    found = {name: (allowed.most or {}).get(name, _BEYOND) for name in least}
    for left, taken in room:
        fewest = taken(least)
        for name, count in least.items():
            each = taken({**least, name: count + 1}) - fewest
            found[name] = min(found[name], count + left // each) if each else found[name]
    return found


def _describe_copies(words: str, copies: Mapping[str, int]) -> Iterator[str]:
    for count in sorted(set(copies.values())):
        names = [name for name, each in copies.items() if each == count]
        if len(names) > _MOST_NAMED:
            names[_MOST_NAMED - 1 :] = [f"{len(names) - _MOST_NAMED + 1} others"]
        *first, last = names
        yield f"{words} {count} copies of " + (f"{', '.join(first)} and {last}" if first else last)
