"""Barriers in the modulo model: takes handovers, gives constraints that put a barrier, and slack, into each of them.

A handover is met at a pivot: an instance of one of the loop's barriers, after everything before it has landed and ahead
of everything after it.  One pivot in place of all pairs of ops propagates better and is exact, since the tightest pair
of a handover lies inside all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from rota.order.modulo.cpsat_modulo import ModuloModel
from rota.order.modulo.handover import Delivery, Handover
from rota.order.modulo.modulo_problem import ModuloProblem

READ_SLACK = "least read slack"
"""The name of the variable that counts how many slots any read of LDS may be late without a wait."""

Constraint = Callable[[ModuloModel], None]


_BARRIER = "barrier "

Named = TypeVar("Named")


def of_barriers(named: Mapping[str, Named]) -> tuple[Named, ...]:
    """The solver's variables for the slots of barriers, picked out by name."""
    return tuple(what for name, what in named.items() if name.startswith(_BARRIER))


def name_barriers(slots: Sequence[int]) -> dict[str, int]:
    """The slots of barriers under the names of the solver's variables."""
    return {f"{_BARRIER}{number}": slot for number, slot in enumerate(slots)}


def place_barriers(count: int) -> Constraint:
    """`count` barriers, each in a slot of its own; one stands ahead of the ops of its slot."""

    def constrain(on: ModuloModel) -> None:
        barriers = [on.name(f"{_BARRIER}{number}", 0, on.ii - 1) for number in range(count)]
        for first, second in pairwise(barriers):
            on.model.add(first < second)

    return constrain


def fix_barriers(slots: Sequence[int]) -> Constraint:
    """Barriers whose slots are given."""

    def constrain(on: ModuloModel) -> None:
        for name, slot in name_barriers(slots).items():
            on.name(name, slot, slot)

    return constrain


def demand_read_slack(deliveries: Sequence[Delivery], problem: ModuloProblem, least: int) -> Constraint:
    """A variable, at least `least`, that no read's slack up to the first use of its registers falls below."""

    def constrain(on: ModuloModel) -> None:
        slack = on.name(READ_SLACK, least, on.ii)
        for reader, user, distance in deliveries:
            ready = on.start[reader] + problem.ops[reader].latency
            on.model.add(on.start[user] + distance * on.ii >= ready + slack)

    return constrain


def hand_over(handovers: Sequence[Handover], problem: ModuloProblem, landing_slack: int, behind: int = 0) -> Constraint:
    """A barrier in every handover: what lands has `landing_slack` slots to spare, what is read the read slack.

    `behind` is how many slots later the last wave group passes the same barrier; what it hands over, or is handed,
    needs a barrier more in between.
    """

    def constrain(on: ModuloModel) -> None:
        barriers = of_barriers(on.named)
        for handover in handovers:
            periods = on.latest // on.ii + 1 + handover.distance
            period = on.model.new_int_var(0, periods, f"period of {handover.value}")
            pivot = on.model.new_int_var(0, (periods + 1) * on.ii, f"pivot of {handover.value}")
            at = [on.model.new_bool_var("") for _ in barriers]
            on.model.add_exactly_one(at)
            for barrier, chosen in zip(barriers, at, strict=True):
                on.model.add(pivot == on.ii * period + barrier).only_enforce_if(chosen)
            slack = landing_slack if handover.lands else on.named[READ_SLACK]
            for op in handover.before:
                on.model.add(pivot >= on.start[op] + problem.ops[op].latency + slack)
            for op in handover.after:
                on.model.add(pivot + behind <= on.start[op] + handover.distance * on.ii)

    return constrain


def pin_slots(slots: Mapping[int, int]) -> Constraint:
    """Ops whose slot is given; their stages stay free."""

    def constrain(on: ModuloModel) -> None:
        for op, slot in slots.items():
            on.model.add(on.slot[op] == slot)

    return constrain


def keep_turns(chains: Sequence[Sequence[int]]) -> Constraint:
    """Ops of a chain start one after the other."""

    def constrain(on: ModuloModel) -> None:
        for chain in chains:
            for first, second in pairwise(chain):
                on.model.add(on.start[first] < on.start[second])

    return constrain


def lengthen_slack(on: ModuloModel) -> None:
    """Aim at the most read slack."""
    on.model.maximize(on.named[READ_SLACK])


def shorten_lives(deliveries: Sequence[Delivery]) -> Constraint:
    """Aim at the least sum of the times for which registers are held."""

    def constrain(on: ModuloModel) -> None:
        ends: dict[int, list[tuple[int, int]]] = {}
        for reader, user, distance in deliveries:
            ends.setdefault(reader, []).append((user, distance))
        lives = []
        for reader, users in ends.items():
            life = on.model.new_int_var(0, on.ii * (2 + max(distance for _, distance in users)), f"life of {reader}")
            for user, distance in users:
                on.model.add(life >= on.start[user] + distance * on.ii - on.start[reader])
            lives.append(life)
        on.model.minimize(sum(lives))

    return constrain
