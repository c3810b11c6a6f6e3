from __future__ import annotations

from rota.errors import Severity
from rota.lint.kernel_report import compare_reports
from tests.findings.test_I602 import ARRAY
from tests.lint.linted import linted
from tests.wording.golden import worded

SPILLS, FITS = ARRAY.format(place="n[i] & 63"), ARRAY.format(place="5")


def test_a_build_that_keeps_an_array_in_memory() -> None:
    compared = compare_reports(linted(FITS), linted(SPILLS))
    found = {dict(each.evidence)["what"]: worded(each) for each in compared.findings}
    assert {each.code for each in found.values()} == {"I609"}
    assert compared.is_worse
    assert dict(found["private bytes a lane"].evidence)["before"] == "0"
    assert found["private bytes a lane"].severity is Severity.WARNING


def test_the_same_build_twice_is_not_worse() -> None:
    compared = compare_reports(linted(SPILLS), linted(SPILLS))
    assert compared.findings == ()
    assert not compared.is_worse


def test_a_better_build_is_not_worse() -> None:
    assert not compare_reports(linted(SPILLS), linted(FITS)).is_worse
