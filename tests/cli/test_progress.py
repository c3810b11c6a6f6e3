from __future__ import annotations

import io
import sys
import time

import pytest

from rota.cli import output as module
from rota.cli.output import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.02)
    monkeypatch.setattr(module, "_TICK", 0.01)


def _worked(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, seconds: float) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with progress("compiling k"):
        time.sleep(seconds)
    return stream.getvalue()


@pytest.mark.usefixtures("quick")
def test_long_work_is_told_and_the_line_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    told = _worked(monkeypatch, Terminal(), 0.3)
    assert "compiling k: 0 s" in told
    assert told.endswith("\r\x1b[K")


@pytest.mark.usefixtures("quick")
def test_work_that_counts_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress("running k") as counted:
        counted(5, 20)
        time.sleep(0.3)
    assert f"running k: [{'#' * 7}{'.' * 23}] 5 of 20 workgroups, 0 s" in stream.getvalue()


def test_short_work_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _worked(monkeypatch, Terminal(), 0) == ""


@pytest.mark.usefixtures("quick")
def test_nothing_is_told_to_what_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _worked(monkeypatch, io.StringIO(), 0.1) == ""


@pytest.mark.usefixtures("quick")
def test_an_error_ends_the_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)

    def interrupted() -> None:
        with progress("compiling k"):
            time.sleep(0.2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert stream.getvalue().endswith("\r\x1b[K")
