"""Workers on this machine; a worker that dies costs its start, not its job."""

from __future__ import annotations

import contextlib
import selectors
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from typing import IO, Any, cast

from rota.workers.job import Job, JobLimits, JobRow, RowT, find_trade

DEATHS = 3
"""Of workers over one job, before it is given up."""


class Nursery:
    """A process that computes jobs, one after the other, each in a child."""

    def __init__(self, trade: str, limits: JobLimits) -> None:
        command = [sys.executable, "-m", "rota.workers.nursery", trade, f"{limits.seconds:g}", str(limits.megabytes)]
        self.process = subprocess.Popen(  # noqa: S603  # rota itself
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self.trade = find_trade(trade)
        self.jobs: deque[Job[Any]] = deque()

    @property
    def rows(self) -> IO[str]:
        return cast("IO[str]", self.process.stdout)

    def give(self, job: Job[Any]) -> None:
        self.jobs.append(job)
        into = cast("IO[str]", self.process.stdin)
        with contextlib.suppress(BrokenPipeError):  # it is dead, which its rows will show
            into.write(job.line())
            into.flush()

    def row(self) -> JobRow | None:
        """The next row; None if it died."""
        line = self.rows.readline()
        if not line.endswith("\n"):
            return None
        self.jobs.popleft()
        return self.trade.row_of(line)

    def end(self) -> None:
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self.process.wait()


class LocalPool:
    """So many workers on this machine."""

    def __init__(self, workers: int = 1, limits: JobLimits | None = None) -> None:
        self.workers = workers
        self.limits = limits or JobLimits()

    def run(self, jobs: Sequence[Job[RowT]]) -> Iterator[Sequence[RowT]]:
        """The rows; whatever ends this, Ctrl-C included, ends all workers."""
        todo, died = deque(jobs), dict.fromkeys((job.key for job in jobs), 0)
        selector = selectors.DefaultSelector()
        try:
            for _ in range(min(self.workers, len(jobs))):
                self._start(selector, todo)
            while selector.get_map():
                for ready, _ in selector.select():
                    yield from self._hear(selector, cast("Nursery", ready.data), todo, died)
        finally:
            for each in list(selector.get_map().values()):
                cast("Nursery", each.data).end()
            selector.close()

    def _start(self, selector: selectors.BaseSelector, todo: deque[Job[RowT]]) -> None:
        if todo:
            job = todo.popleft()
            nursery = Nursery(job.trade, self.limits)
            nursery.give(job)
            selector.register(nursery.rows, selectors.EVENT_READ, nursery)

    def _hear(
        self, selector: selectors.BaseSelector, nursery: Nursery, todo: deque[Job[RowT]], died: dict[str, int]
    ) -> Iterator[Sequence[RowT]]:
        row = cast("RowT | None", nursery.row())
        if row is not None and todo:
            nursery.give(todo.popleft())
        else:
            selector.unregister(nursery.rows)
            nursery.end()
        if row is not None:
            yield (row,)
            return
        for job in nursery.jobs:
            died[job.key] += 1
            if died[job.key] < DEATHS:
                todo.appendleft(job)
            else:
                yield (give_up(job, died[job.key]),)
        self._start(selector, todo)


def give_up(job: Job[RowT], deaths: int) -> RowT:
    """The row of a job over which every worker died."""
    return job.fail("S305", f"{deaths} workers ended over it without a row", attempts=deaths)
