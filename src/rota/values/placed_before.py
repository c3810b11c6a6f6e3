"""A placement that was found before: takes a loop, gives what was kept for it, checked as if it had just been found.

What is kept are numbers: starts, copies, barriers, slack, and the order that polish found.  What they are worth is
found out again: starts and slack are checked, the interval is held against its bounds, and the schedule is proved.
"""

from __future__ import annotations

from typing import NamedTuple

from rota.errors import RotaError
from rota.order.modulo.choice import Choice
from rota.order.modulo.handover import derive_deliveries, derive_handovers
from rota.order.modulo.mii import derive_mii
from rota.order.modulo.modulo_check import check_starts
from rota.order.modulo.modulo_schedule import ModuloSchedule
from rota.order.modulo.slack import Settled
from rota.order.modulo.slack_check import check_settled
from rota.solver.memory import keep, recall, remembers
from rota.values.claim import Claim
from rota.values.loop_problem import modulo_problem, without_turns
from rota.values.place import by_bound
from rota.values.unroll import Placement


class Before(NamedTuple):
    """A schedule with its certificate, its placement, and the order of the kernel's entries, if it was polished."""

    found: ModuloSchedule
    placement: Placement
    order: tuple[int, ...] | None


def placed_before(question: object, claim: Claim) -> Before | None:
    """What was kept for a question, if it still holds."""
    answer = recall(question)
    try:
        placement, order = _read(answer)
        return Before(_checked(claim, placement), placement, order)
    except (RotaError, TypeError, KeyError, ValueError, IndexError, AttributeError):
        return None  # it is searched for, as if nothing had been kept


def keep_placement(question: object, claim: Claim, before: Before) -> None:
    """Keep what was found, if its certificate can be had again without a search."""
    found, placement, order = before
    if not remembers():
        return
    try:
        again = _checked(claim, placement).certificate
    except RotaError:
        return
    if (again.proof, again.lower, again.limits) == _said(found):
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


def _said(found: ModuloSchedule) -> tuple[object, ...]:
    return found.certificate.proof, found.certificate.lower, found.certificate.limits


def _read(answer: object) -> tuple[Placement, tuple[int, ...] | None]:
    """Numbers where numbers are due; anything else is an error."""
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


def _checked(claim: Claim, placement: Placement) -> ModuloSchedule:
    """The interval and starts with what bounds show; an error where they don't hold."""
    loop, times, ii = claim.loop, claim.times, placement.interval
    barriers = placement.barriers
    behind = barriers[1] - barriers[0] if times.groups > 1 and barriers[1:] else 0
    problem = modulo_problem(loop, times, dict(placement.copies), behind)
    mii = derive_mii(problem)
    found = by_bound(ii, placement.starts, mii, seconds=0.0)
    check_starts(without_turns(problem) if placement.turns_left else problem, found)
    if barriers:
        choice = Choice(
            problem=problem,
            copies=placement.copies,
            handovers=tuple(derive_handovers(loop, dict(placement.copies))),
            deliveries=tuple(derive_deliveries(loop)),
            stages=range(placement.stages, placement.stages + 1),
            behind=behind,
        )
        settled = Settled(
            choice=0,
            starts=placement.starts,
            barriers=barriers,
            landing_slack=placement.landing_slack,
            read_slack=placement.read_slack,
        )
        check_settled(choice, settled, ii)
    return claim.certify(found, placement)
