"""Progress of long work: takes what is being done, gives a line on stderr once it takes more than a second."""

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


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """While the block runs; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    done = Event()
    ticker = Thread(target=_tick, args=(doing, done), daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()


def _tick(doing: str, done: Event) -> None:
    started = perf_counter()
    if done.wait(_PATIENCE):
        return
    while not done.wait(_TICK):
        click.echo(f"{_CLEAR}{doing}: {perf_counter() - started:.0f} s", nl=False, err=True)
    click.echo(_CLEAR, nl=False, err=True)
