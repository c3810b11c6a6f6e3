"""Compares the wording that a test looked at with `tests/wording/*.txt`, or writes it there (`--refresh-wording`).

Worker processes only read the pages.  What they record for a refresh comes with their reports, and the first process
writes it.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from tests.wording.golden import FOLDER, Pages, Recorded, read_pages, recording, write_pages

TESTS = "tests/"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--refresh-wording",
        action="store_true",
        help="write the wording that the tests look at to tests/wording/*.txt, instead of comparing it",
    )
    parser.addoption("--wording", type=Path, default=FOLDER, help="another folder of pages, to test this plug-in")


def pytest_configure(config: pytest.Config) -> None:
    judge = Refresh if config.getoption("--refresh-wording") else Comparison
    config.pluginmanager.register(judge(config.getoption("--wording"), config), "wording")


class _Listener:
    """Records what each test looks at; tests of Hypothesis see other findings with every draw and are left out."""

    def __init__(self, folder: Path, config: pytest.Config) -> None:
        self.folder = folder
        self.config = config
        self.pages = read_pages(folder)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        name = _name(item.nodeid)
        with recording(name.split("/")[0]) as seen:
            result = yield
        if not getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            self.judge(item, name, seen)
        return result

    def judge(self, item: pytest.Item, name: str, seen: Recorded) -> None:
        raise NotImplementedError


class Comparison(_Listener):
    """Fails a test whose findings read otherwise than the pages say."""

    def judge(self, item: pytest.Item, name: str, seen: Recorded) -> None:
        kept = {page: texts[name] for page, texts in self.pages.items() if name in texts}
        if kept != seen:
            pytest.fail(_differences(item.nodeid, kept, seen), pytrace=False)


class Refresh(_Listener):
    """Writes the entries of the tests that passed, and drops those of tests that are gone."""

    def __init__(self, folder: Path, config: pytest.Config) -> None:
        super().__init__(folder, config)
        self.collected: set[str] = set()
        self.seen: dict[str, Recorded] = {}

    def judge(self, item: pytest.Item, name: str, seen: Recorded) -> None:
        item.user_properties.append(("wording", json.dumps(seen)))

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self.collected.add(_name(item.nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            for key, value in report.user_properties:
                if key == "wording":
                    self.seen[_name(report.nodeid)] = json.loads(str(value))

    def pytest_sessionfinish(self) -> None:
        if not hasattr(self.config, "workerinput"):
            write_pages(self.refreshed(), self.folder)

    def refreshed(self) -> Pages:
        pages: Pages = {
            page: {test: said for test, said in texts.items() if test not in self.seen and not self._is_gone(test)}
            for page, texts in self.pages.items()
        }
        for test, seen in self.seen.items():
            for page, said in seen.items():
                pages.setdefault(page, {})[test] = said
        return pages

    def _is_gone(self, test: str) -> bool:
        """True if its file is gone, or was collected whole and doesn't have it."""
        file = test.partition("::")[0]
        if not (self.config.rootpath / TESTS / file).exists():
            return True
        whole = not any("::" in argument for argument in self.config.args)
        return whole and test not in self.collected and any(each.startswith(f"{file}::") for each in self.collected)


def _name(nodeid: str) -> str:
    return nodeid.removeprefix(TESTS)


def _differences(nodeid: str, kept: Recorded, seen: Recorded) -> str:
    lines = [f"the wording differs from tests/wording; if that is meant: pytest --refresh-wording '{nodeid}'"]
    for page in sorted({*kept, *seen}):
        old, new = ("\n\n".join(texts.get(page, ())).splitlines() for texts in (kept, seen))
        lines += unified_diff(old, new, f"{page}.txt", "this test", lineterm="")
    return "\n".join(lines)
