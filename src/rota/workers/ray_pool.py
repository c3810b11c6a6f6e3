"""Workers on a Ray cluster; the only module that imports Ray.

A batch is a Ray task of some 10 to 60 seconds: long enough that scheduling it costs little, short enough that little is
lost with a node. Inside a task a worker process computes the jobs as on one machine, each in a child with limits. Ray
retries a task whose process or node dies; rows stream back batch by batch, and only the driver writes.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, cast

from rota.errors import ToolchainError, TuneError
from rota.workers.job import Job, JobLimits, RowT, find_trade
from rota.workers.local_pool import DEATHS, Nursery, give_up

BATCH_SECONDS = 30.0
"""What a batch should take; its size follows the mean of the rows so far."""
_FIRST_GUESS = 5.0  # seconds of a job, while nothing is known
_ANSWER_SECONDS = 10.0  # for a cluster
_AHEAD = 2  # batches per worker that wait or run: no worker is idle while the driver writes


class RayPool:
    """A cluster at an address, or one that is started on this machine with this many workers."""

    def __init__(self, address: str | None = None, workers: int = 1, limits: JobLimits | None = None) -> None:
        self.address, self.limits, self._asked = address, limits or JobLimits(), workers

    @property
    def workers(self) -> int:
        return self._asked if self.address is None else max(1, int(_ray().cluster_resources().get("CPU", 1)))

    def run(self, jobs: Sequence[Job[RowT]]) -> Iterator[Sequence[RowT]]:
        """The rows; the cluster that was started here ends with this."""
        if not jobs:
            return
        ray = _ray()
        started = not ray.is_initialized()
        if started:
            self._connect(ray)
        try:
            yield from self._rows(ray, deque(jobs))
        finally:
            if started:
                ray.shutdown()

    def _connect(self, ray: Any) -> None:  # noqa: ANN401  # Ray's module
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        try:
            host, colon, port = (self.address or "").removeprefix("ray://").rpartition(":")
            if colon and port.isdecimal():  # Ray itself would try for minutes
                socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS).close()
            if self.address is None:
                ray.init(num_cpus=self._asked, include_dashboard=False, **options)
            else:
                ray.init(address=self.address, **options)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise TuneError.of(
                "S305",
                f"no Ray cluster at {self.address or 'this machine'}: {error!s:.200}",
                fixes=("start one: ray start --head", "without --ray no Ray is needed"),
            ) from error

    def _rows(self, ray: Any, todo: deque[Job[RowT]]) -> Iterator[Sequence[RowT]]:  # noqa: ANN401  # Ray's module
        task = ray.remote(num_cpus=1, max_retries=DEATHS, retry_exceptions=[BatchLostError])(compute_batch)
        running: dict[Any, list[Job[RowT]]] = {}
        seconds, count, workers, trade = 0.0, 0, self.workers, todo[0].trade
        while todo or running:
            while todo and len(running) < _AHEAD * workers:
                mean = seconds / count if count else _FIRST_GUESS
                size = max(1, min(int(BATCH_SECONDS / max(mean, 0.01)), -(-len(todo) // workers)))
                batch = [todo.popleft() for _ in range(min(size, len(todo)))]
                running[task.remote(trade, [job.line() for job in batch], tuple(self.limits))] = batch
            for done in ray.wait(list(running), num_returns=1)[0]:
                batch = running.pop(done)
                try:
                    lines = ray.get(done)
                except (ray.exceptions.RayError, BatchLostError):
                    yield tuple(give_up(job, DEATHS) for job in batch)
                    continue
                rows = cast("tuple[RowT, ...]", tuple(map(find_trade(trade).row_of, lines)))
                seconds, count = seconds + sum(row.seconds for row in rows), count + len(rows)
                yield rows


class BatchLostError(Exception):
    """The worker process of a task died; Ray tries the task again."""


def compute_batch(trade: str, lines: Sequence[str], limits: tuple[float, int]) -> list[str]:
    """Runs on the cluster: the rows of a batch."""
    nursery = Nursery(trade, JobLimits(*limits))
    try:
        rows: list[str] = []
        for line in lines:
            nursery.give(find_trade(trade).job_of(line))
            row = nursery.row()
            if row is None:
                raise BatchLostError(f"its worker died after {len(rows)} of {len(lines)} jobs")
            rows.append(row.line())
        return rows
    finally:
        nursery.end()


def _ray() -> Any:  # noqa: ANN401  # Ray's module
    try:
        import ray
    except ImportError as error:
        raise ToolchainError.of(
            "T301",
            f"a cluster needs the package {error.name}",
            fixes=("pip install 'rota[ray]'", "without --ray no Ray is needed"),
        ) from error
    return ray
