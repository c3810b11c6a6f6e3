"""Whatever is asked for ends in bounded time: huge numbers, huge files, and Ctrl-C in every command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.campaigns.undisturbed import slowdown
from tests.cli.command import rota

SECONDS = 10  # of processor time on an idle machine; each takes less than one, and took more than a minute

FILE = """
from rota import DoubleBufferTag, KOffsetKind, Loop, PipelineBody, PipelineConfig, PipelineSchedule, Read
from rota import annotate_ops, mi355x_target


def barriers(count: int = 2):
    class Body(PipelineSchedule):
        def config(self):
            return PipelineConfig(m_mmas=1, n_mmas=1)

        def build_body(self):
            body = PipelineBody()
            for _ in range(count):
                body.barrier()
            return annotate_ops(body.build(), mi355x_target().cost_model)

    return Body()


def loop(ops: int = 1, waves: int = 4, registers: int = 1, moved: int = 8192, size: int = 8192, distance: int = 1):
    loop = Loop("l", waves=waves)
    tile = loop.tile("A", size=size)
    loop.load(tile, moved=moved)
    a = loop.fragment("a", tile, registers=registers)
    for number in range(ops):
        loop.valu(f"v{number}", [a, Read(value=f"v{number}", distance=distance)], registers=registers)
    return loop.build()
"""

HUGE = 2**62


@pytest.fixture
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "huge_for_test.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.usefixtures("_file")
@pytest.mark.parametrize(
    "line",
    [
        f"check single_buffer --set num_k_tiles={HUGE}",
        "check single_buffer --set num_k_tiles=99999999999999999999",
        "check huge_for_test.py:barriers --set count=300000",
        "check huge_for_test.py:loop --set ops=100000",
        f"check huge_for_test.py:loop --set waves={HUGE}",
        f"check huge_for_test.py:loop --set registers={HUGE}",
        f"check huge_for_test.py:loop --set moved={HUGE}",
        f"check huge_for_test.py:loop --set size={HUGE}",
        f"check huge_for_test.py:loop --set distance={HUGE}",
        f"check huge_for_test.py:loop --set remainder={HUGE}",
        f"check gemm_small --set shape.rows={HUGE}",
        f"check gemm_small --set shape.depth={HUGE}",
        f"check gemm_small --set instructions=false --set shape.rows={HUGE}",
        f"check attention --set shape.head={HUGE}",
        f"check attention --set shape.rows={HUGE}",
        f"check ping_pong --set target.pipeline.depth={HUGE}",
        f"check ping_pong --set target.pipeline.m_mmas={HUGE}",
        f"check four_wave --set geometry.BM={HUGE}",
        f"show ping_pong --set geometry.BM={HUGE}",
        f"show ping_pong --set geometry.BK={2**20}",
        f"run gemm_small --seeds {HUGE}",
    ],
)
def test_what_is_too_large_is_refused_in_bounded_time(line: str) -> None:
    before = time.process_time()
    result = rota(line)
    spent = time.process_time() - before
    assert result.exit_code in (1, 2), result.output
    assert spent / slowdown() < SECONDS


INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from threading import Timer
from importlib import import_module
module = import_module("rota.cli.{module}")
from rota.cli.main import main

def interrupted(*arguments, do=module.{function}, **named):
    Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    import time
    time.sleep(20)
    return do(*arguments, **named)

module.{function} = interrupted
main()
"""


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize(
    ("line", "module", "function"),
    [
        ("check ping_pong", "commands.check", "summarise"),
        ("check ping_pong", "arguments", "kernel_named"),
        ("show ping_pong", "commands.show", "predict_kernel"),
        ("diff ping_pong", "commands.show", "predict_kernel"),
        ("trace ping_pong", "commands.show", "predict_kernel"),
        ("emit ping_pong", "commands.emit", "source_of"),
        ("audit ping_pong", "commands.run", "build_code"),
        ("run ping_pong", "commands.run", "build_code"),
        ("explain R102", "commands.look_up", "give"),
        ("kernels ping_pong", "commands.look_up", "leaves"),
        ("targets", "commands.look_up", "_text"),
    ],
)
def test_ctrl_c_ends_every_command_with_the_shells_status_and_one_line(line: str, module: str, function: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(module=module, function=function), *line.split()],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + signal.SIGINT, "", "interrupted\n")
