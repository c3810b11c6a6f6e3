"""Drawn conditions: nothing is dropped that arguments lead to, and what is refuted was led to."""

from __future__ import annotations

import re
from collections import Counter

from rota.prove.verdict import Status
from tests.prove.drawn_conditions import drawn
from tests.prove.test_feasibility import executed
from tests.prove.written import evidence

SMALL = (*range(10), 16, 17, -1, -2)


def judged(seed: int) -> str:
    """How a kernel was judged; raises if that is wrong."""
    kernel = drawn(seed)
    races = any(kernel.races(k, n) for k in SMALL for n in SMALL)
    verdict = executed(kernel.text)
    if verdict.status is Status.REFUTED:
        launch = str(evidence(verdict, "I109")["launch"])
        told = dict(re.findall(r"\b([kn]) = (\d+)", launch))
        fill = int(found[1]) if (found := re.search(r"numbers (\d+)", launch)) else 0
        assert kernel.races(int(told.get("k", fill)), int(told.get("n", fill))), seed
    assert not (races and verdict.proved), seed
    return f"{verdict.status.value}, dropped" if verdict.dropped else verdict.status.value


def test_drawn_conditions() -> None:
    counts = Counter(map(judged, range(12)))
    assert counts["refuted"] > 2
    assert counts["proved, dropped"] > 0
