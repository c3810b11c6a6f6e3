from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer
from typing import NoReturn

import pytest

from rota.cli.arguments import run_search
from rota.solver.limits import stopped
from rota.solver.memory import SETTING

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """A shell starts what it puts into the background with SIGINT ignored, and Python leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_work_gives_its_result() -> None:
    assert run_search("adding", lambda: 2 + 3) == 5


@pytest.mark.parametrize("kind", [ValueError, TimeoutError])
def test_an_error_of_the_work_is_raised(kind: type[Exception]) -> None:
    def fail() -> NoReturn:
        raise kind

    with pytest.raises(kind):
        run_search("failing", fail)


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_ctrl_c_asks_searches_to_stop_and_waits_for_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> str:
        deadline = time.monotonic() + 30
        while not stopped() and time.monotonic() < deadline:
            time.sleep(0.01)
        return "the best so far"

    Timer(0.2, _interrupt).start()
    assert run_search("searching", work) == "the best so far"
    assert "stopping with the best found so far" in capsys.readouterr().err


def test_the_second_ctrl_c_ends_it() -> None:
    over = Event()
    for seconds in (0.2, 0.6):
        Timer(seconds, _interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_search("searching", lambda: over.wait(30))
    over.set()


INTERRUPTED_SOON_AFTER_THE_FIRST_SEARCH_BEGINS = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from threading import Timer
from rota.cli.main import main
from rota.solver.limits import Stop

def watched(*arguments, run=Stop.run):
    Stop.run = run
    Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    return run(*arguments)

Stop.run = watched
main()
"""


@pytest.mark.thorough  # compiles, or starts commands
def test_ctrl_c_ends_a_real_search_with_a_proved_schedule() -> None:
    words = ["check", "attention", "--json"]
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_SOON_AFTER_THE_FIRST_SEARCH_BEGINS, *words],
        capture_output=True,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, SETTING: "off"},
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert b"stopping with the best found so far" in ended.stderr
    assert json.loads(ended.stdout)["summary"]["proved"] is True
