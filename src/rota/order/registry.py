"""Schedulers by name: takes a name, gives a `Scheduler`, rota's own or one that an installed package registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from rota.declare.vocabulary import SchedulingStrategy
from rota.errors import DeclarationError, Finding, did_you_mean
from rota.order.greedy import GreedyScheduler, IdentityScheduler
from rota.order.problem import Scheduler

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "rota.schedulers"


def _exact() -> Scheduler:
    from rota.order.cpsat import CpSatScheduler  # loaded when an order is searched, not with rota

    return CpSatScheduler()


BUILT_IN: Mapping[str, Callable[[], Scheduler]] = MappingProxyType(
    {
        SchedulingStrategy.IDENTITY: IdentityScheduler,
        SchedulingStrategy.GREEDY: GreedyScheduler,
        SchedulingStrategy.CSP: _exact,
    }
)


def scheduler_named(name: str) -> Scheduler:
    """A new scheduler of that name; installed packages are asked only for names that rota doesn't know itself."""
    if not isinstance(name, str):
        raise _unknown(repr(name), BUILT_IN)
    if name in BUILT_IN:
        return BUILT_IN[name]()
    from importlib import metadata  # costs more to import than the rest of rota's order folder

    registered = {entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)}
    if name in registered:
        return _made_by(registered[name])
    raise _unknown(name, [*BUILT_IN, *registered])


def _unknown(name: str, known: Iterable[str]) -> DeclarationError:
    names = [str(other) for other in known]
    spelt = next((other for other in names if other.casefold() == name.casefold()), name)
    return DeclarationError(
        Finding(
            code="D105",
            message=f"no scheduler is named {name!r}",
            evidence=(("got", name), ("known", ", ".join(sorted(names)))),
            fixes=(
                *did_you_mean(spelt, names),
                f"install the package that registers it in the entry-point group {ENTRY_POINT_GROUP!r}",
            ),
        )
    )


def _made_by(entry: EntryPoint) -> Scheduler:
    """What the entry point's factory makes; a third party's failure becomes a finding that names the package."""
    try:
        made = entry.load()()
    except Exception as error:  # a third party's code may raise anything
        raise _unusable(entry, f"it raised {type(error).__name__}: {error}") from error
    if not callable(getattr(made, "order", None)):
        raise _unusable(entry, f"it made {type(made).__name__}, which has no method order(problem)")
    return cast("Scheduler", made)


def _unusable(entry: EntryPoint, why: str) -> DeclarationError:
    package = entry.dist.name if entry.dist else "an unknown package"
    return DeclarationError(
        Finding(
            code="D105",
            message=f"scheduler {entry.name!r} of {package} can't be used: {why}",
            evidence=(("entry point", entry.value), ("expected", "a class or function that makes a Scheduler")),
        )
    )
