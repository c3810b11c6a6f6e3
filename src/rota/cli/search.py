"""A search that Ctrl-C ends early: takes work that searches, gives its result.

The first Ctrl-C ends the searches that are under way, and the work goes on with the best that they found; the second
ends the command.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from rota.cli.output import tell
from rota.cli.progress import progress
from rota.solver.memory import remembering
from rota.solver.stopping import Stop

T = TypeVar("T")

_TICK = 0.1  # seconds, after which a wait looks around: one without an end would not let Ctrl-C through on Windows


def searched(doing: str, work: Callable[[], T]) -> T:
    """What `work` returns or raises."""
    stop = Stop()
    result: Future[T] = Future()
    # A daemon, so that the second Ctrl-C doesn't wait for it.
    Thread(target=_run, args=(work, stop, result), daemon=True).start()
    with progress(doing):
        try:
            return _awaited(result)
        except KeyboardInterrupt:
            tell("\nstopping with the best found so far; Ctrl-C again gives it up")
            return _awaited(result, stop)


def _run(work: Callable[[], T], stop: Stop, result: Future[T]) -> None:
    with stop.governing(), remembering():
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  # raised again where the result is asked for
            result.set_exception(error)


def _awaited(result: Future[T], stop: Stop | None = None) -> T:
    """A search may begin just when it is asked to stop, so it is asked until it has."""
    while True:
        if stop is not None:
            stop.ask()
        try:
            return result.result(timeout=_TICK)
        except TimeoutError:
            if result.done():  # it is the work that ran out of time, or it ended just now
                return result.result()
