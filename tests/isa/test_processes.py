"""Launches on several processes: the same to the bit as on one, and over at once when somebody interrupts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rota.errors import IsaError
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.launch import orders, processes
from rota.isa.launch.loaded_kernel import LoadedKernel, load_kernel
from rota.isa.launch.orders import LaunchResult
from rota.isa.native import workgroups

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is one process elsewhere")

SOURCE = """extern "C" __attribute__((global)) void turned(const int* x, int* y, int shared, int uneven) {
  static __attribute__((shared)) int lds[128];
  int i = __builtin_amdgcn_workitem_id_x(), group = __builtin_amdgcn_workgroup_id_x();
  lds[i] = x[128 * group + i];
  if (uneven && i < 64) __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_s_waitcnt(0);
  __builtin_amdgcn_s_barrier();
  int a = lds[127 - i];
  for (int k = 0; k < 20 + group; k++) a = a * 5 + 1;
  y[128 * (shared ? group / 2 : group) + i] = a;
}"""
GROUPS = 12


@pytest.fixture(scope="module")
def kernel() -> LoadedKernel:
    return load_kernel(find_toolchain().compile(SOURCE, "gfx942").hsaco)


@pytest.fixture
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """No work is too small for a process."""
    for module in (workgroups, orders):
        monkeypatch.setattr(module, "MIN_FORK_SECONDS", 1e-9)


def run(
    kernel: LoadedKernel, processes: int, orders: int, *, shared: int = 0, uneven: int = 0
) -> tuple[LaunchResult, list[int], list[tuple[int, int]]]:
    x, y = np.arange(128 * GROUPS, dtype=np.int32), np.zeros(128 * GROUPS, np.int32)
    told: list[tuple[int, int]] = []
    result = kernel.launch(
        x, y, shared, uneven, grid=GROUPS, block=128, orders=orders, processes=processes, check=False,
        progress=lambda done, whole: told.append((done, whole)),
    )  # fmt: skip
    return result, y.tolist(), told


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.usefixtures("_eager")
@pytest.mark.parametrize("orders", [1, 2, 6])
@pytest.mark.parametrize("shared", [0, 1], ids=["apart", "two to a place"])
def test_the_result_is_that_of_one_process(
    kernel: LoadedKernel, monkeypatch: pytest.MonkeyPatch, orders: int, shared: int
) -> None:
    forks: list[int] = []
    original = processes._start

    def started(work: Callable[[processes.Tell], object]) -> object:
        forks.append(1)
        return original(work)

    monkeypatch.setattr(processes, "_start", started)
    one, values, _ = run(kernel, 1, orders, shared=shared)
    assert not forks
    several, same, told = run(kernel, 3, orders, shared=shared)
    assert len(forks) > 2
    assert (several, same) == (one, values)
    assert ("I303" in {finding.code for finding in several.findings}, several.ok) == (bool(shared), not shared)
    assert told[-1] == (orders * GROUPS, orders * GROUPS)
    assert told == sorted(told)


@pytest.mark.usefixtures("_eager")
def test_notes_come_from_all_processes(kernel: LoadedKernel) -> None:
    one, values, _ = run(kernel, 1, 1, uneven=1)
    several, same, _ = run(kernel, 3, 1, uneven=1)
    assert one.notes
    assert (several, same) == (one, values)


@pytest.mark.usefixtures("_eager")
def test_whoever_interrupts_finds_arrays_as_they_were(kernel: LoadedKernel) -> None:
    x, y = np.arange(128 * GROUPS, dtype=np.int32), np.zeros(128 * GROUPS, np.int32)

    def interrupt(done: int, whole: int) -> None:
        if done > GROUPS + 2:  # in the second order
            raise KeyboardInterrupt

    for count in (2, 6):
        with pytest.raises(KeyboardInterrupt):
            kernel.launch(x, y, 0, 0, grid=GROUPS, block=128, orders=count, processes=2, progress=interrupt)
        assert not y.any()
    with pytest.raises(ChildProcessError):  # none is left
        os.waitpid(-1, os.WNOHANG)


def test_a_process_that_is_killed_is_none() -> None:
    told: list[int] = []
    work = [lambda _: 1, lambda _: os._exit(3), lambda tell: (tell(7), 3)[1], lambda _: 1 // 0]
    assert processes.run_forked(work, 2, told.append) == [1, None, 3, None]
    assert told[-1] == 7


@pytest.mark.parametrize("processes", [0, -1, 1.5, True, 10**6])
def test_a_number_that_makes_no_sense_is_refused(kernel: LoadedKernel, processes: int) -> None:
    with pytest.raises(IsaError) as caught:
        run(kernel, processes, 1)
    assert caught.value.findings[0].code == "I107"


def test_processors_are_shared_with_other_test_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(8)})
    for workers, due in ((None, 8), ("2", 4), ("16", 1), ("0", 8), ("x", 8)):
        monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
        if workers is not None:
            monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", workers)
        assert processes.processes_of(None) == due
    assert processes.processes_of(3) == 3


ENDLESS = """
import os, signal, sys, time
from rota.isa.launch.processes import run_forked

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background ignores

def work(tell):
    for step in range(10**6):
        tell(step)
        time.sleep(0.01)

print("ready", flush=True)
try:
    run_forked([work] * 3, 3, lambda done: None)
except KeyboardInterrupt:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("nobody left", flush=True)
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_worse_leave_nobody_behind(tmp_path: Path, end: signal.Signals) -> None:
    """Without a guard around its main part, as scripts are; the signal goes to all, as from a terminal."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    with subprocess.Popen(
        [sys.executable, tmp_path / "endless.py"], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "ready\n"
        time.sleep(0.5)
        if end is signal.SIGINT:
            os.killpg(script.pid, end)
        else:
            os.kill(script.pid, end)  # the parent alone
        said, _ = script.communicate(timeout=60)  # which needs all who could write to end; a busy machine takes long
    assert said == ("nobody left\n" if end is signal.SIGINT else "")
