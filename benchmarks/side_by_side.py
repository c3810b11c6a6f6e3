"""Compile and proof times against an earlier commit: takes the commit, gives both in turn, in one run, and the ratio.

`python -m benchmarks.side_by_side COMMIT`.  The commit is checked out beside the project into a temporary folder; each
round times one process of either version, so that what else the machine does falls on both.  Processor time, the least
of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_ROUNDS = 7
_PROBE = """
import json, time
from dataclasses import replace
from rota import DeclarativeSchedule, KernelGeometry, Pipeline4Wave, SingleBufferSchedule, compile_loop
from rota import compile_schedule, verify
from rota.kernels.gemm import GEMM_SHAPES

def least(call, times):
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)

schedules = {"4-wave": Pipeline4Wave(KernelGeometry()), "ping-pong": DeclarativeSchedule(),
             "single buffer": SingleBufferSchedule(4)}
took = {}
for name, schedule in schedules.items():
    took[f"compile as written, {name}"] = least(lambda: compile_schedule(schedule, sync="as_written"), 60)
proved = {name: compile_schedule(schedule) for name, schedule in schedules.items()}
proved["GEMM by values, in tiles"] = compile_loop(GEMM_SHAPES[2].loop(instructions=False))
for name, compiled in proved.items():
    bare = replace(compiled, certificate=None)
    took[f"proof, {name}"] = least(lambda: verify(replace(bare)), 40)
print(json.dumps(took))
"""


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__)
    parser.add_argument("commit", help="what to compare with")
    asked = parser.parse_args(arguments)
    root = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        git = ["git", "-C", str(root), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(before), asked.commit], check=True)
        try:
            least: dict[str, list[float]] = {}
            for _ in range(_ROUNDS):
                for number, home in enumerate((before, root)):
                    for name, seconds in _timed(home).items():
                        pair = least.setdefault(name, [float("inf"), float("inf")])
                        pair[number] = min(pair[number], seconds)
        finally:
            subprocess.run([*git, "remove", "--force", str(before)], check=True)
    print(f"{'':36} {'before':>9} {'now':>9} {'ratio':>6}   ms of processor time, least of {_ROUNDS} rounds")
    for name, (old, new) in least.items():
        print(f"{name:36} {old * 1e3:9.3f} {new * 1e3:9.3f} {new / old:6.2f}")
    return 0


def _timed(home: Path) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(home / "src")}
    done = subprocess.run([sys.executable, "-c", _PROBE], env=environment, check=True, capture_output=True, text=True)
    took: dict[str, float] = json.loads(done.stdout)
    return took


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
