from __future__ import annotations

from importlib import metadata
from importlib.metadata import EntryPoint

import pytest

from rota import ScheduleConfig, compile_schedule
from rota.order.acyclic.greedy import measured
from rota.order.acyclic.problem import Ordering, OrderProblem
from tests.findings.smallest import Small, raised


class Backwards:
    """A third party's scheduler that pays no attention to dependencies."""

    def order(self, problem: OrderProblem) -> Ordering:
        return measured(problem, tuple(reversed(range(len(problem.body.ops)))), "backwards")


def test_a_third_partys_order_is_rechecked(monkeypatch: pytest.MonkeyPatch) -> None:
    registered = EntryPoint("BACKWARDS", f"{__name__}:Backwards", "rota.schedulers")
    monkeypatch.setattr(EntryPoint, "load", lambda self: Backwards)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [registered])
    finding = raised("O102", lambda: compile_schedule(Small(knobs=ScheduleConfig(scheduling="BACKWARDS"))))
    assert len(finding.concerns) == 2
