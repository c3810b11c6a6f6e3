"""Schedulers by name: rota's own, a third party's, and names that nobody knows."""

from __future__ import annotations

from importlib import metadata
from importlib.metadata import EntryPoint, EntryPoints
from typing import cast

import pytest

from rota.errors import DeclarationError, Finding
from rota.order.acyclic import greedy
from rota.order.acyclic.cpsat import CpSatScheduler
from rota.order.acyclic.greedy import ENTRY_POINT_GROUP, GreedyScheduler, IdentityScheduler, scheduler_named
from rota.order.acyclic.problem import Ordering, OrderProblem, SchedulingStrategy
from tests.order.bodies import body, op
from tests.wording.golden import mentions, worded

HERE = "tests.order.test_registry"


class Backwards:
    """A third party's scheduler."""

    def order(self, problem: OrderProblem) -> Ordering:
        ordering = IdentityScheduler().order(problem)
        return Ordering(
            order=ordering.order[::-1],
            makespan=ordering.makespan,
            vgpr_peak=ordering.vgpr_peak,
            certificate=ordering.certificate,
        )


def explode() -> Backwards:
    raise RuntimeError("out of luck")


def register(monkeypatch: pytest.MonkeyPatch, **values: str) -> list[str]:
    """Entry points by name; gives the list of groups that were asked for."""
    asked: list[str] = []
    entries = EntryPoints(EntryPoint(name, value, ENTRY_POINT_GROUP) for name, value in values.items())

    def entry_points(*, group: str) -> EntryPoints:
        asked.append(group)
        return entries

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    return asked


def refusal(name: str) -> Finding:
    with pytest.raises(DeclarationError) as caught:
        scheduler_named(name)
    return worded(caught.value.findings[0])


@pytest.mark.parametrize(
    ("name", "kind"), [("IDENTITY", IdentityScheduler), ("GREEDY", GreedyScheduler), ("CSP", CpSatScheduler)]
)
def test_built_in_names_need_no_lookup(name: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = register(monkeypatch, **{name: f"{HERE}:explode"})
    assert isinstance(scheduler_named(name), kind)
    assert asked == []


def test_every_strategy_has_a_scheduler() -> None:
    assert {strategy.value for strategy in SchedulingStrategy} == set(greedy.BUILT_IN)
    for strategy in SchedulingStrategy:
        assert callable(scheduler_named(strategy).order)


def test_a_third_partys_scheduler_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = register(monkeypatch, BACKWARDS=f"{HERE}:Backwards")
    scheduler = scheduler_named("BACKWARDS")
    assert scheduler.order(OrderProblem(body=body([op("mma"), op("mma")]))).order == (1, 0)
    assert asked == ["rota.schedulers"]


@pytest.mark.parametrize(
    ("name", "guess"), [("GREDY", "GREEDY"), ("csp", "CSP"), ("Identity", "IDENTITY"), ("backwards", "BACKWARDS")]
)
def test_a_misspelt_name_is_D105_with_a_guess(name: str, guess: str, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, BACKWARDS=f"{HERE}:Backwards")
    finding = refusal(name)
    assert finding.code == "D105"
    assert mentions(finding.fixes[0], guess)
    assert mentions(finding.fixes[1], "BACKWARDS", "CSP", "GREEDY", "IDENTITY")


@pytest.mark.parametrize("name", ["", "SIMULATED_ANNEALING", None, 3, []])
def test_an_unknown_name_is_D105(name: object) -> None:
    assert refusal(cast("str", name)).code == "D105"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (f"{HERE}:explode", "RuntimeError"),
        (f"{HERE}:HERE", "TypeError"),
        (f"{HERE}:nothing", "AttributeError"),
        ("no_such_package_at_all:Scheduler", "ModuleNotFoundError"),
        ("builtins:dict", "dict"),
    ],
)
def test_a_third_partys_failure_is_D105_and_not_a_traceback(
    value: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(monkeypatch, THEIRS=value)
    finding = refusal("THEIRS")
    assert finding.code == "D105"
    assert mentions(finding.message, name)
    assert dict(finding.evidence)["entry point"] == value
