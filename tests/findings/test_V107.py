from __future__ import annotations

from tests.findings.test_V106 import findings, make, use


def test_an_op_executed_twice_in_a_trip_is_reported() -> None:
    assert findings("V107", make(-1), make(-1), use(-1, -1))[0].message.endswith(
        "is executed a second time for iteration 0"
    )


def test_an_op_that_leaves_out_every_other_iteration_is_reported() -> None:
    finding = findings("V107", make(0), use(-1, -1))[0]
    assert finding.message == "make is not executed once for each of 1 iterations"


def test_an_op_that_was_declared_and_is_nowhere_is_reported() -> None:
    (finding,) = findings("V107", make(-1))
    assert finding.message == "use is not executed once for each of 1 iterations"


def test_once_per_iteration_is_fine() -> None:
    assert findings("V107", make(-1), use(-1, -1)) == []
