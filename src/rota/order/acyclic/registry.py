"""Schedulers by name: takes a name, gives a `Scheduler`, rota's own or one that an installed package registers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rota.order.acyclic.problem import Scheduler, SchedulingStrategy
from rota.registry import Registry

ENTRY_POINT_GROUP = "rota.schedulers"

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        SchedulingStrategy.IDENTITY: "rota.order.acyclic.greedy:IdentityScheduler",
        SchedulingStrategy.GREEDY: "rota.order.acyclic.greedy:GreedyScheduler",
        SchedulingStrategy.CSP: "rota.order.acyclic.cpsat:CpSatScheduler",
    }
)

SCHEDULERS: Registry[Scheduler] = Registry(
    what="scheduler",
    group=ENTRY_POINT_GROUP,
    own=BUILT_IN,
    expected="a class or function that makes a Scheduler",
    lacks=lambda made: None if callable(getattr(made, "order", None)) else "has no method order(problem)",
    make=lambda factory: factory(),
)
"""All of them."""


def scheduler_named(name: str) -> Scheduler:
    """A new scheduler of that name."""
    return SCHEDULERS.named(name)
