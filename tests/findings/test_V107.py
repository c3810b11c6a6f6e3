from __future__ import annotations

from tests.findings.test_V106 import findings, make, use


def test_an_op_executed_twice_in_a_trip_is_reported() -> None:
    findings("V107", make(-1), make(-1), use(-1, -1))


def test_an_op_that_leaves_out_every_other_iteration_is_reported() -> None:
    findings("V107", make(0), use(-1, -1))


def test_an_op_that_was_declared_and_is_nowhere_is_reported() -> None:
    findings("V107", make(-1))


def test_once_per_iteration_is_fine() -> None:
    assert findings("V107", make(-1), use(-1, -1)) == []
