"""Work in child processes, and a limit on its time.

Nothing is limited unless somebody asks for it: what is long on one machine isn't on another, and how many instructions
a wave may execute (`most_instructions`) doesn't depend on that.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing.connection import Connection, Pipe, wait
from time import monotonic
from typing import TypeVar

from rota.errors import IsaError
from rota.isa.disassembly import Instruction

# A child process is a fork: it sees all memory as it is at that moment, changes its own copy only, and sends back what
# its function returns. So only results need to be picklable, and no script needs a guard around its main part. Without
# a safe fork there is one process.

T = TypeVar("T")
Tell = Callable[[int], None]  # called with how much of the work is done

MIN_FORK_SECONDS = 0.25  # seconds of work that make a process worth its cost
_MOST = 256
_WORKERS = "PYTEST_XDIST_WORKER_COUNT"  # number of processes that share the machine already


def processes_of(asked: int | None) -> int:
    """The number of processes: as asked, by default one per processor that this process may use."""
    if asked is not None and (type(asked) is not int or not 1 <= asked <= _MOST):
        raise IsaError.of("I107", f"processes is {asked!r:.60}, not a number from 1 to {_MOST}")
    if not sys.platform.startswith("linux"):  # macOS has fork, and libraries that don't survive one
        return 1
    shared = os.environ.get(_WORKERS, "1")
    return asked or max(1, len(os.sched_getaffinity(0)) // int(shared if shared.isdecimal() and int(shared) else 1))


def run_forked(work: Sequence[Callable[[Tell], T]], processes: int, tell: Tell) -> list[T | None]:
    """Runs all of `work`, at most `processes` at a time; None where a process ended without a result.

    Calls `tell` with the sum of what all of them have done. Ends all processes on any exit, Ctrl-C included.
    """
    results: list[T | None] = [None] * len(work)
    done = [0] * len(work)
    running: dict[Connection, tuple[int, int]] = {}  # its number and process
    todo = iter(enumerate(work))
    try:
        while True:
            while len(running) < processes and (following := next(todo, None)) is not None:
                number, each = following
                with _defer_interrupts():  # so that each process that starts is known
                    receiver, process = _start(each)
                    running[receiver] = number, process
            if not running:
                return results
            for ready in wait([*running]):
                if not isinstance(ready, Connection):  # pragma: no cover  # it waits for what it was given
                    continue
                number, process = running[ready]
                try:
                    done[number], result, ended = ready.recv()
                except (EOFError, OSError):
                    ended, result = True, None
                tell(sum(done))
                if ended:
                    results[number] = result
                    del running[ready]
                    ready.close()
                    os.waitpid(process, 0)
    finally:
        for receiver, (_, process) in running.items():
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            receiver.close()


@contextmanager
def _defer_interrupts() -> Iterator[None]:
    """Delays Ctrl-C to the end of the block; a process forked inside never gets one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(work: Callable[[Tell], object]) -> tuple[Connection, int]:
    receiver, sender = Pipe(duplex=False)
    parent = os.getpid()
    with warnings.catch_warnings():  # newer Pythons warn of other threads, whose locks the child never takes
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        sender.close()
        return receiver, process
    _child(work, sender, parent)  # pragma: no cover  # in another process
    raise AssertionError  # pragma: no cover


def _child(work: Callable[[Tell], object], sender: Connection, parent: int) -> None:  # pragma: no cover
    """Ends with its work or with its parent; the parent handles Ctrl-C."""
    try:
        last = 0

        def tell(done: int) -> None:
            nonlocal last
            last = done
            if os.getppid() != parent:
                os._exit(1)
            sender.send((done, None, False))

        result = work(tell)
        sender.send((last, result, True))
        sender.close()
    finally:
        os._exit(0)  # without the parent's exit handlers


_until: ContextVar[tuple[float, float] | None] = ContextVar("until", default=None)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Ends the launches inside after `seconds` of wall time, all together, with an I108."""
    token = _until.set((monotonic() + seconds, seconds))
    try:
        yield
    finally:
        _until.reset(token)


def check_time(wave: int, instruction: Instruction | None = None) -> None:
    """Raises I108 if the time limit has passed; called at backward branches."""
    if (until := _until.get()) is not None and monotonic() > until[0]:
        message = f"wave {wave} did not end within {until[1]:g} seconds"
        concerns = () if instruction is None else (instruction.concern(),)
        fixes = ("run a smaller problem, or allow more time if the kernel is that long",)
        raise IsaError.of("I108", message, concerns=concerns, fixes=fixes)
