"""A plug-in for pytest that judges every Triton kernel which the tests compile, if ROTA_CHECK_TRITON asks for it.

    ROTA_CHECK_TRITON=1 python -m pytest

No test and no kernel changes.  `rota.triton.judge` does the work; the summary at the end counts the kernels of all of
xdist's workers together.  Nothing heavy is imported unless the variable is set.
"""

from __future__ import annotations

import os
import pickle
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rota.triton import JudgedKernel, TritonJudge

_SETTING = "ROTA_CHECK_TRITON"  # as `rota.triton` has it, whose import takes a second
_OUTPUT = "rota_triton"
_judge: pytest.StashKey[TritonJudge] = pytest.StashKey()
_workers: pytest.StashKey[_Workers] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """Start to judge before test modules are collected: they may compile when they are imported."""
    if not os.environ.get(_SETTING) or find_spec("triton") is None:
        return
    from rota.errors import RotaError
    from rota.triton import judge, read_setting

    try:
        raises = read_setting()
    except RotaError as error:
        raise pytest.UsageError(str(error)) from error
    if raises is None:
        return
    config.stash[_judge] = judge(raises=raises, report=False)
    config.stash[_workers] = _Workers()
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(config.stash[_workers])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Triton has its listener back."""
    if (judging := config.stash.get(_judge, None)) is not None:
        judging.stop()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist sends what it has judged to the process that reports."""
    output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if output is not None and (judging := session.config.stash.get(_judge, None)) is not None:
        output[_OUTPUT] = pickle.dumps((judging.kernels, judging.repeated))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:  # noqa: ANN401  # pytest keeps its type private
    """Kernels judged, proved, and with findings."""
    if (judging := config.stash.get(_judge, None)) is None:
        return
    from rota.triton import summarise

    workers = config.stash[_workers]
    kernels = {**judging.kernels, **workers.kernels}
    terminalreporter.section("Triton kernels, judged by rota")
    terminalreporter.write_line(summarise([*kernels.values()], judging.repeated + workers.repeated))


class _Workers:
    """What xdist's workers have judged; each had its own copy of a kernel."""

    def __init__(self) -> None:
        self.kernels: dict[tuple[object, ...], JudgedKernel] = {}
        self.repeated = 0

    def pytest_testnodedown(self, node: Any) -> None:  # noqa: ANN401  # of xdist, which need not be installed
        sent = getattr(node, "workeroutput", {}).get(_OUTPUT)
        if sent is not None:
            kernels, repeated = pickle.loads(sent)  # noqa: S301  # sent by a process that this one has started
            self.repeated += repeated + len(self.kernels.keys() & kernels.keys())
            self.kernels.update(kernels)
