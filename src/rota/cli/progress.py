"""Progress of long work: takes what is being done, gives a line on stderr once it takes more than a second.

Work that counts what it has done gets a bar.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import perf_counter

import click

_PATIENCE = 1.0
_TICK = 0.25
_CLEAR = "\r\x1b[K"
_WIDTH = 30


class Counted:
    """How much is done, and of how much: called by the work, read by the line."""

    def __init__(self) -> None:
        self._done = self._whole = 0
        self._what = "workgroups"

    def __call__(self, done: int, whole: int) -> None:
        """So much is done."""
        self._done, self._whole = done, whole

    def proofs(self, done: int, whole: int) -> None:
        """So many proofs, of at most so many, where that is known."""
        self._done, self._whole, self._what = done, whole, "proofs"

    def files(self, done: int, whole: int) -> None:
        """So many files."""
        self._done, self._whole, self._what = done, whole, "files"

    def __str__(self) -> str:
        if not self._whole:
            return f"{self._done} {self._what}, " if self._done else ""
        filled = _WIDTH * self._done // self._whole
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {self._done} of {self._whole} {self._what}, "


@contextmanager
def progress(doing: str) -> Iterator[Counted]:
    """While the block runs; nothing where stderr is no terminal."""
    counted = Counted()
    if not sys.stderr.isatty():
        yield counted
        return
    done = Event()
    ticker = Thread(target=_tick, args=(doing, counted, done), daemon=True)
    ticker.start()
    try:
        yield counted
    finally:
        done.set()
        ticker.join()


def _tick(doing: str, counted: Counted, done: Event) -> None:
    started = perf_counter()
    if done.wait(_PATIENCE):
        return
    while not done.wait(_TICK):
        click.echo(f"{_CLEAR}{doing}: {counted}{perf_counter() - started:.0f} s", nl=False, err=True)
    click.echo(_CLEAR, nl=False, err=True)
