"""Prints what was executed of the documentation, and the conformance tables, at the end of a run; fixes CI's draws.

Both also when the tests ran in worker processes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

from rota.solver.memory import SETTING, remembering
from tests.docs.summary import write_documentation

# What one test's search found, the others recall, to check and prove it again; the folder is gone after the run.
# Worker processes take over what the first process said.  Tests of the searches themselves recall nothing (SEARCHED).
if "PYTEST_XDIST_WORKER" not in os.environ:
    _FOUND = TemporaryDirectory(prefix="rota-tests-")
    os.environ[SETTING] = _FOUND.name
SEARCHED = ("tests/values", "tests/order")
# A landing must not hang on the luck of a draw; on developers' machines Hypothesis goes on looking for new examples.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture(autouse=True, scope="module")
def _recalled(request: pytest.FixtureRequest) -> Iterator[None]:
    folder = request.path.parent.relative_to(Path(__file__).parent.parent).as_posix()
    if folder not in SEARCHED:
        with remembering():
            yield
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(SETTING, "off")
            yield


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """In a worker process pytest-cov has two collectors, and stops one: tests marked `no_cover` would be traced."""
    traced = sys.gettrace() if item.get_closest_marker("no_cover") else None
    if traced is None:
        return (yield)
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(traced)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    write_documentation(terminalreporter)
    reports = [*terminalreporter.stats.get("passed", []), *terminalreporter.stats.get("failed", [])]
    tallies = [
        json.loads(value) for report in reports for name, value in report.user_properties if name == "conformance"
    ]
    if tallies:
        from tests.conformance.replays import report as tables  # which needs what only these tests need

        terminalreporter.section("conformance with the reference's measured behaviour")
        terminalreporter.write_line(tables(tallies))
