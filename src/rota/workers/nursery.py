"""A worker: reads jobs from standard input, computes each in a child process, writes rows to standard output.

    python -m rota.workers.nursery TRADE SECONDS MEGABYTES

A child has limits on its memory and its time. One that crashes, takes too much or hangs costs one row. One that
somebody else killed is tried again. A worker whose rota isn't the one that asked it says so (S304): what it would
compute belongs under another key.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import tempfile
import traceback
from time import perf_counter
from typing import NoReturn, cast

from rota.workers.job import Job, JobLimits, JobRow, RowT, find_trade

ATTEMPTS = 3
"""Of a job whose process somebody else killed."""
INSIDE = "ROTA_JOB"
"""Set in the environment of the process that computes a job."""
_PR_SET_PDEATHSIG = 1
_LONGEST = 300
_MEMORY_STATUS = 87  # of a child that got no memory
_NO_MEMORY = ("MemoryError", "bad_alloc", "Cannot allocate memory", "failed to map segment", "can't start new thread")
"""What libraries say when they get none."""


def main() -> None:
    trade, limits = find_trade(sys.argv[1]), JobLimits(float(sys.argv[2]), int(sys.argv[3]))
    rows = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what others print is not a row
    end_with_parent()
    for line in sys.stdin:
        try:
            rows.write(nurse(trade.job_of(line), limits).line())
            rows.flush()
        except BrokenPipeError:  # nobody reads any more
            os._exit(0)


def nurse(job: Job[RowT], limits: JobLimits) -> RowT:
    """The row of a job, whatever becomes of its process."""
    trade = find_trade(job.trade)
    trade.make_ready()
    if own := job.find_mismatch():
        message = f"the worker computes {own[:12]} where {job.key[:12]} was asked for"
        return job.fail("S304", f"{message}: its rota, its solver or its facts differ", facts=limits._asdict())
    took = 0.0
    for attempt in range(1, ATTEMPTS + 1):
        started = perf_counter()
        ended, said, noise = _in_child(job, limits)
        took = perf_counter() - started
        if said.endswith("\n"):
            return cast("RowT", trade.row_of(said).after(attempt))
        failure = _explain(limits, ended, noise, took)
        if failure is not None:
            return job.fail(*failure, facts=limits._asdict(), seconds=took, attempts=attempt)
    message = f"its process was killed {ATTEMPTS} times by somebody else"
    return job.fail("S301", message, facts=limits._asdict(), seconds=took, attempts=ATTEMPTS)


def _explain(limits: JobLimits, ended: int, noise: str, took: float) -> tuple[str, str] | None:
    """Code and message of a failure; None if somebody else killed the process, and it is to be tried again."""
    if took >= limits.seconds:
        return "S303", f"it was not done after {limits.seconds:g} s"
    short = os.WIFEXITED(ended) and os.WEXITSTATUS(ended) == _MEMORY_STATUS
    if short or any(words in noise for words in _NO_MEMORY):
        return "S302", f"it took more than {limits.megabytes:,} MiB"
    last = "".join(noise.strip().splitlines()[-1:])[:_LONGEST]
    if not os.WIFSIGNALED(ended):
        return "S301", f"its process ended with status {os.WEXITSTATUS(ended)}. {last}"
    number = os.WTERMSIG(ended)
    return (
        None if number == signal.SIGKILL else ("S301", f"its process ended with {signal.Signals(number).name}. {last}")
    )


def _in_child(job: Job[JobRow], limits: JobLimits) -> tuple[int, str, str]:
    """The wait status of a child that computes a job, the line that it wrote, and what it said on stderr."""
    with tempfile.TemporaryFile() as noise:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _compute_and_exit(job, limits, writer, noise.fileno())
        os.close(writer)
        said, deadline = b"", perf_counter() + limits.seconds
        while (left := deadline - perf_counter()) > 0 and select.select([reader], [], [], left)[0]:
            part = os.read(reader, 1 << 16)
            if not part:
                break
            said += part
        else:
            os.kill(child, signal.SIGKILL)
        os.close(reader)
        ended = os.waitpid(child, 0)[1]
        noise.seek(0)
        return ended, said.decode(errors="replace"), noise.read().decode(errors="replace")


def _compute_and_exit(job: Job[JobRow], limits: JobLimits, writer: int, noise: int) -> NoReturn:
    status = 1
    try:
        os.dup2(noise, 2)
        end_with_parent()
        os.environ[INSIDE] = job.key
        _limit(limits.megabytes)
        line = job.compute().line().encode()
        with os.fdopen(writer, "wb") as out:
            out.write(line)
        status = 0
    except MemoryError:  # there may be too little left to say so
        status = _MEMORY_STATUS
    except BaseException:  # noqa: BLE001  # a child ends here, whatever happened
        try:
            os.write(2, traceback.format_exc().encode())
        except MemoryError:
            status = _MEMORY_STATUS
    finally:
        os._exit(status)


def _limit(megabytes: int) -> None:
    """Of address space; where the system has no such limit, none is set."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        size = megabytes << 20
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_with_parent() -> None:
    """Whoever started this process takes it along, even when killed; on Linux alone."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
