"""What a pool computes: jobs that become rows, whatever happens to the process that computes them.

A job belongs to a trade, the module that knows it: `rota.tune.point` schedules loops, `rota.fleet.kernel_job` judges
kernels. Jobs and rows travel as lines of JSON, so that a worker may be another process, or another machine.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeVar, cast


class JobLimits(NamedTuple):
    """What one job may take: seconds by the clock, and MiB of address space."""

    seconds: float = 600.0
    megabytes: int = 4096


class JobRow(Protocol):
    """What a job becomes; a failure is a row, too."""

    @property
    def key(self) -> str: ...

    @property
    def seconds(self) -> float: ...

    def line(self) -> str:
        """The row as a line of JSON."""
        ...

    def after(self, attempts: int) -> Self:
        """The same row, computed at this attempt."""
        ...


RowT = TypeVar("RowT", bound=JobRow)
RowT_co = TypeVar("RowT_co", bound=JobRow, covariant=True)


class Job(Protocol[RowT_co]):
    @property
    def key(self) -> str:
        """The digest of all that its row depends on."""
        ...

    @property
    def trade(self) -> str:
        """The name of the module that computes it."""
        ...

    def line(self) -> str:
        """The job as a line of JSON."""
        ...

    def find_mismatch(self) -> str:
        """What this process would compute instead; empty if it is what the job asks for."""
        ...

    def compute(self) -> RowT_co:
        """The row; only what isn't rota's own finding escapes."""
        ...

    def fail(self, code: str, message: str, **more: Any) -> RowT_co:  # fields of the row
        """The row of a job whose process ended without one."""
        ...


class Trade(Protocol):
    """A module that computes jobs."""

    def make_ready(self) -> None:
        """Loads what every job needs, once, and not under a job's limit of memory."""
        ...

    def job_of(self, line: str) -> Job[JobRow]: ...

    def row_of(self, line: str) -> JobRow: ...


def find_trade(name: str) -> Trade:
    return cast("Trade", importlib.import_module(name))


class Pool(Protocol):
    """What computes jobs: here, or on a cluster."""

    @property
    def workers(self) -> int:
        """How many jobs are computed at once."""
        ...

    @property
    def limits(self) -> JobLimits: ...

    def run(self, jobs: Sequence[Job[RowT]]) -> Iterator[Sequence[RowT]]:
        """The row of each job, in any order, as soon as it is there; rows that come together, together."""
        ...
