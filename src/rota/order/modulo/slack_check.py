"""The check of a settled schedule: takes a `Choice` and what was settled, gives silence or an `OrderError`.

Edges and units are looked at by `modulo_check`; here the barriers and the slack that the placement claims.
"""

from __future__ import annotations

from rota.errors import Concern, Finding, OrderError
from rota.order.modulo.choice import Choice
from rota.order.modulo.handover import Handover
from rota.order.modulo.slack import Settled


def check_settled(choice: Choice, settled: Settled, ii: int) -> None:
    """Every handover has as many barriers in it as it needs, with the slack claimed; every read has its own."""
    for handover in choice.handovers:
        _check_handover(choice, settled, handover, ii, choice.behind)
    for handover in choice.gathered:
        _check_handover(choice, settled, handover, ii, 0)
    for reader, user, distance in choice.deliveries:
        ready = settled.starts[reader] + choice.problem.ops[reader].latency + settled.read_slack
        if settled.starts[user] + distance * ii < ready:
            raise _broken(choice, reader, user, "read slack", settled.read_slack)


def _check_handover(choice: Choice, settled: Settled, handover: Handover, ii: int, behind: int) -> None:
    starts, ops = settled.starts, choice.problem.ops
    slack = settled.landing_slack if handover.lands else settled.read_slack
    over = max(handover.before, key=lambda op: starts[op] + ops[op].latency)
    begins = min(handover.after, key=lambda op: starts[op])
    earliest = starts[over] + ops[over].latency + slack
    latest = starts[begins] + handover.distance * ii - behind
    if not any(earliest <= earliest + (slot - earliest) % ii <= latest for slot in settled.barriers):
        raise _broken(choice, over, begins, "landing slack" if handover.lands else "read slack", slack)


def _broken(choice: Choice, first: int, second: int, what: str, claimed: int) -> OrderError:
    before, after = choice.problem.ops[first], choice.problem.ops[second]
    return OrderError(
        Finding(
            code="O102",
            message=f"no barrier or wait stands between {before.name} and {after.name} with the {what} claimed",
            concerns=(
                Concern(label=before.name, index=first, role="must be over"),
                Concern(label=after.name, index=second, role="starts"),
            ),
            evidence=((what, claimed),),
        )
    )
