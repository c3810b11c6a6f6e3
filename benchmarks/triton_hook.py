"""What `rota.triton.judge` adds to the compilation of Triton's kernels, and whether it breaks one.

    python -m benchmarks.triton_hook [--only sources|tests] [--most 1.0]

Compiles all kernels of `shared/kernels/sources` and of `tests/triton` with an empty cache of Triton's and the hook
installed.  Prints, for each, the seconds of the compiler and those that reading, disassembling and proving add, then
the medians.  Fails if a test fails, a kernel isn't judged, or the median is above `--most` seconds on an idle machine.
Runs of the proof are wall-clock time, divided by how busy the machine is (`tests.campaigns.undisturbed`).
"""

from __future__ import annotations

import argparse
import os
import runpy
import statistics
import sys
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

import pytest

import rota.triton
from tests.campaigns.shared_folder import shared_folder
from tests.campaigns.undisturbed import slowdown

ROOT = Path(__file__).parents[1]
SOURCES = ("triton_kernels.py", "gluon_kernels.py", "triton_ping_pong.py", "triton_ping_pong_more.py")


def main(arguments: Sequence[str]) -> None:
    """Compile, print, and exit with 1 if the hook is too slow or breaks something."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.triton_hook")
    parser.add_argument("--only", choices=("sources", "tests"))
    parser.add_argument("--most", type=float, default=1.0)
    asked = parser.parse_args(arguments)
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = str(Path(folder) / "triton")
        compiled, judging, failed = compile_all(Path(folder), asked.only)
    kernels = [*judging.kernels.values()]
    for kernel in kernels:
        took = compiled.get(kernel.file, 0.0)
        print(f"{kernel!s:58}{took:7.2f} s compiled{kernel.seconds:7.2f} s judged  {kernel.unknown}")
    print(judging)
    busy = slowdown()
    median = statistics.median(each.seconds for each in kernels) / busy
    most, unjudged = max(each.seconds for each in kernels) / busy, [each for each in kernels if each.verdict is None]
    print(
        f"\n{len(kernels)} kernels; Triton took {statistics.median(compiled.values()):.2f} s in the median, the hook"
        f" {median:.2f} s more and {most:.2f} s at most; {len(unjudged)} not judged; {failed} runs failed"
    )
    raise SystemExit(bool(failed or unjudged or median > asked.most))


def compile_all(folder: Path, only: str | None) -> tuple[dict[str, float], rota.triton.TritonJudge, int]:
    """Seconds of the compiler by code object, what was judged, and how many runs failed."""
    from triton import knobs

    compiled: dict[str, float] = {}

    def listen(*, metadata_group: dict[str, str], times: object, cache_hit: bool, **_: object) -> None:
        if not cache_hit:
            file = next(path for name, path in metadata_group.items() if name.endswith(".hsaco"))
            compiled[file] = getattr(times, "total", 0) / 1e6  # microseconds

    knobs.compilation.listener = listen
    failed = 0
    (folder / "compiled").mkdir()  # the sources write there
    with rota.triton.judge(raises=False, report=False) as judging, warnings.catch_warnings(), chdir(folder):
        warnings.simplefilter("ignore")
        if only != "tests":
            sources = shared_folder("kernels/sources")
            sys.path.insert(0, str(sources))
            for name in SOURCES:
                runpy.run_path(str(sources / name), run_name="__main__")
        if only != "sources":
            quiet = [f"-Wignore::rota.triton.{each}" for each in ("KernelFindingWarning", "UnjudgedKernelWarning")]
            quiet.append("-Wignore::pytest.PytestAssertRewriteWarning")  # rota is imported by now
            skipped = f"--ignore={ROOT / 'tests' / 'triton' / 'test_judge.py'}"  # it counts proofs itself
            options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}", *quiet, skipped]
            failed += pytest.main([*options, str(ROOT / "tests" / "triton")]) != pytest.ExitCode.OK
    return compiled, judging, failed


if __name__ == "__main__":
    main(sys.argv[1:])
