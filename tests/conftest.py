"""Prints what was executed of the documentation, and the conformance tables, at the end of a run; fixes CI's draws.

Both also when the tests ran in worker processes.  Marks tests as `quick`, shares what searches and compilers found.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

from rota.fleet.verdict_store import SETTING as VERDICTS
from rota.solver.memory import SETTING, remembering
from tests import compiled_once
from tests.docs.summary import write_documentation
from tests.quick import check_quick, is_quick, seconds_used

# What one test's search found, the others recall, to check and prove it again; the folder is gone after the run.
# Worker processes take over what the first process said.  Tests of the searches themselves recall nothing (SEARCHED).
if "PYTEST_XDIST_WORKER" not in os.environ:
    _FOUND = TemporaryDirectory(prefix="rota-tests-")
    os.environ[SETTING] = _FOUND.name
    _COMPILED = TemporaryDirectory(prefix="rota-tests-")
    os.environ[compiled_once.SETTING] = _COMPILED.name
    _VERDICTS = TemporaryDirectory(prefix="rota-tests-")
    os.environ[VERDICTS] = _VERDICTS.name
SEARCHED = ("tests/values", "tests/order")
COMPILED = ("test_toolchain.py",)  # tests of the compiler itself compile each time
# A landing must not hang on the luck of a draw; on developers' machines Hypothesis goes on looking for new examples.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture(autouse=True, scope="module")
def _recalled(request: pytest.FixtureRequest) -> Iterator[None]:
    folder = request.path.parent.relative_to(Path(__file__).parent.parent).as_posix()
    if folder not in SEARCHED:
        with remembering(), nullcontext() if request.path.name in COMPILED else compiled_once.compiled_once():
            yield
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(SETTING, "off")
            yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What isn't marked as long is `quick`, for `.ci/quick`.  Limits of time are tested last.

    The gate's other checks run beside the first tests; limits are meant for a machine that does nothing else.
    """
    items.sort(key=lambda item: isinstance(item, pytest.Function) and hasattr(item.module, "slowdown"))
    for item in items:
        if is_quick({marker.name for marker in item.iter_markers()}):
            item.add_marker("quick")


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: the collector needn't look at them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test that takes long has to say so; not where it is traced, which costs more than the test itself."""
    before = seconds_used()
    yield
    if item.get_closest_marker("quick") and sys.gettrace() is None:
        check_quick(seconds_used() - before)


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
