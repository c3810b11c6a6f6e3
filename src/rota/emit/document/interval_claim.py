"""How good an interval is said to be: takes a loop by values that was read, gives it with what can be shown again.

A search that found nothing better is no proof that can be read; a bound of the loop itself is.
"""

from __future__ import annotations

from dataclasses import replace

from rota.emit.document.derived_again import CLAIMED
from rota.emit.document.disagreement import demand, derived_again, disagreement
from rota.order.modulo.choice import Choice
from rota.order.modulo.handover import derive_deliveries, derive_handovers
from rota.order.modulo.modulo_check import check_starts
from rota.order.modulo.modulo_problem import LONGEST, ModuloProblem
from rota.order.modulo.modulo_schedule import ModuloSchedule
from rota.order.modulo.slack import Settled
from rota.order.modulo.slack_check import check_settled
from rota.program.loop_spec import LoopSpec
from rota.targets.device import timing_of
from rota.values.buffer_depth import allowances
from rota.values.claim import Claim
from rota.values.compiled_loop import CompiledLoop
from rota.values.loop_problem import modulo_problem, without_turns
from rota.values.op_times import time_loop
from rota.values.unroll import Placement


def with_interval_as_claimed(schedule: CompiledLoop) -> CompiledLoop:
    """The schedule with a certificate of its interval that holds; what a search has shown is left open."""
    shown = _modulo(schedule)
    return replace(schedule, modulo=None) if shown is None else schedule.with_interval(shown)


def _modulo(schedule: CompiledLoop) -> ModuloSchedule | None:
    """Starts keep every edge and unit at the interval, with the slack that is said; then the bound is derived again."""
    found, loop, placement = schedule.modulo, schedule.loop, schedule.placement
    if placement.interval > LONGEST or max(placement.starts, default=0) > LONGEST:
        raise disagreement("placement", f"takes more than {LONGEST} slots")
    if found is None:
        _check_no_slack(placement, "no interval was searched for")
        return None
    demand("modulo.ii", found.ii, placement.interval)
    demand("modulo.starts", found.starts, placement.starts)
    groups = 2 if schedule.staggered else 1
    with derived_again("loop"):
        times = time_loop(loop, timing_of(schedule.machine), groups=groups)
        behind = placement.barriers[1] - placement.barriers[0] if groups > 1 and placement.barriers[1:] else 0
        problem = modulo_problem(loop, times, dict(placement.copies), behind)
    with derived_again("placement"):
        check_starts(without_turns(problem) if placement.turns_left else problem, found)
        _check_slack(loop, placement, problem, behind)
    with derived_again("loop"):
        deep, few = allowances(loop, schedule.machine, times)
        claim = Claim(loop=loop, machine=schedule.machine, times=times, deep=deep, few=few)
        shown = claim.certify(found, placement)
    if shown.certificate.optimal:  # by bounds alone
        for name in ("mii", "limits", "proof", "lower", "refuted"):
            demand(f"modulo.certificate.{name}", getattr(found.certificate, name), getattr(shown.certificate, name))
        return found
    return replace(shown, certificate=replace(shown.certificate, by=CLAIMED))


def _check_no_slack(placement: Placement, why: str) -> None:
    for name in ("landing_slack", "read_slack"):
        demand(f"placement.{name}", getattr(placement, name), 0, f"{why}, so nothing is known about slack")


def _check_slack(loop: LoopSpec, placement: Placement, problem: ModuloProblem, behind: int) -> None:
    if not placement.barriers:
        _check_no_slack(placement, "no barriers were placed")
        return
    choice = Choice(
        problem=problem,
        copies=placement.copies,
        handovers=tuple(derive_handovers(loop, dict(placement.copies))),
        deliveries=tuple(derive_deliveries(loop)),
        stages=range(0),
        behind=behind,
    )
    settled = Settled(
        choice=0,
        starts=placement.starts,
        barriers=placement.barriers,
        landing_slack=placement.landing_slack,
        read_slack=placement.read_slack,
    )
    check_settled(choice, settled, placement.interval)
