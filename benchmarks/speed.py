"""How fast the native core is beside NumPy: `python -m benchmarks.speed [PATTERN]`.

Runs kernels on both engines in one process, under one order, and prints wave instructions a second of processor time
and their ratio: kernels that others compiled (if they lie beside the checkout), and a GEMM of ours of 256 x 256 bf16
with 8 waves and K = 4096.  A launch of few instructions is mostly set-up, which both engines share.  Exit status 1 if
the GEMM's ratio is below 30, or an order of it takes a second or more.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import geometric_mean
from typing import Any
from unittest.mock import patch

from rota import load_kernel
from rota.audit.gemm_launch import load_emitted
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.launch import run as engine
from rota.isa.launch.interleaving import LATEST, some_interleavings
from rota.isa.launch.run import run_workgroups
from rota.isa.native.workgroups import run_clean
from tests.campaigns.shared_folder import shared_folder
from tests.emit.kernels import ZOO
from tests.isa.corpus.cases import FOLDER, cases

OURS, DEPTH = "gemm_bf16_256x256x64_8wave, by instruction", 4096
LEAST, MOST_SECONDS = 30, 1.0
ENOUGH = 0.3  # seconds of one engine and kernel
KERNELS = (
    r"^t_(matmul_bf16_s[123]|matmul_bf16_256_8w|matmul_fp8_s2|softmax|flash_s1|layernorm|vadd|hist|sort|cumsum)\."
    r"gfx950$|^g_(mm|mxfp4|transpose)\.|^h_\w+\.gfx950$"
)


class Clock:
    """Instructions and seconds of processor time of one engine."""

    def __init__(self) -> None:
        self.launches, self.instructions, self.seconds, self.fell_back = 0, 0, 0.0, False

    @contextmanager
    def on(self, *, native: bool) -> Iterator[None]:
        """Meanwhile launches run on that engine, and only it is timed."""
        clean, workgroups = run_clean, run_workgroups

        def core(*args: Any, **more: Any) -> int | None:
            return self._timed(lambda: clean(*args, **more)) if native else None

        def numpy(*args: Any) -> int | None:
            self.fell_back = native
            return self._timed(lambda: workgroups(*args))

        with patch.object(engine, "run_clean", core), patch.object(engine, "run_workgroups", numpy):
            yield

    def _timed(self, run: Callable[[], int | None]) -> int | None:
        start = time.thread_time()
        executed = run()
        self.seconds += time.thread_time() - start
        self.instructions += executed or 0
        return executed

    @property
    def rate(self) -> float:
        """Instructions a second."""
        return self.instructions / self.seconds if self.seconds else 0.0


def _measured(run: Callable[[], None]) -> tuple[Clock, Clock]:
    clocks = Clock(), Clock()
    run()  # decoding and the records of the program are made once
    for clock, native in zip(clocks, (True, False), strict=True):
        while clock.seconds < ENOUGH and not (clock.launches and native and clock.fell_back):
            with clock.on(native=native):
                run()
            clock.launches += 1
    return clocks


def _launch(path: Path, problem: Any) -> Callable[[], None]:  # noqa: ANN401  # of tests.isa.corpus
    kernel = load_kernel(path)

    def run() -> None:
        kernel.launch(
            *problem.args,
            grid=problem.grid,
            block=problem.block,
            dynamic_lds=problem.dynamic_lds,
            orders=1,
            check=False,
        )

    return run


def _line(name: str, core: Clock, numpy: Clock) -> float:
    ratio = core.rate / numpy.rate if numpy.rate else 0.0
    mark, executed = "  NumPy ran it" if core.fell_back else "", core.instructions // core.launches
    print(f"{name:44} {executed:>9,} {core.rate:>11,.0f} {numpy.rate:>9,.0f} {ratio:6.1f}{mark}", flush=True)
    return ratio


def _ours() -> tuple[float, float]:
    compiled, geometry = ZOO[OURS]()
    code = find_toolchain().compile(emit_gemm(compiled, geometry), compiled.machine.arch)
    gemm = load_emitted(compiled, geometry, code)
    trips = next(count for count in range(1, DEPTH) if gemm.depth(count) >= DEPTH)

    def run() -> None:
        gemm.launch(trips, LATEST)

    ratio = _line(f"rota GEMM 256x256 bf16, K = {gemm.depth(trips)}", *_measured(run))
    worst = 0.0
    for order in some_interleavings(gemm.waves, 6, 0):
        clock = Clock()
        with clock.on(native=True):
            gemm.launch(trips, order)
        print(f"    {order.label}: {clock.seconds:.2f} s an order")
        worst = max(worst, clock.seconds)
    return ratio, worst


def main(pattern: str = "") -> int:
    """Prints a line a kernel."""
    folder = shared_folder(FOLDER)
    print(f"{'kernel':44} {'executed':>9} {'core, 1/s':>11} {'NumPy':>9}  ratio")
    ratios = [
        _line(case.name, *_measured(_launch(case.path, case.problem())))
        for case in (cases(folder, pattern or KERNELS) if folder.exists() else ())
        if not case.refused
    ]
    ratio, seconds = _ours() if not pattern or re.search(pattern, OURS) else (LEAST, 0.0)
    ratios.append(ratio)
    print(f"Lowest ratio {min(ratios):.1f}, geometric mean {geometric_mean(ratios):.1f}, of the GEMM {ratio:.1f}")
    return 1 if ratio < LEAST or seconds >= MOST_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
