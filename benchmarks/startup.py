"""How long a command takes to start: takes nothing, prints medians net of an empty Python, cold and warm.

    python -m benchmarks.startup [--runs 9]

Processor time of the whole process, divided by how much slower this machine is just now than undisturbed
(`tests.campaigns.undisturbed`).  Cold: rota's cache of what searches found is empty; warm: it is not.  Bytecode is
there in both, as after a user's first run.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.campaigns.undisturbed import slowdown

_ROTA = "from rota.cli.main import main; main()"
COMMANDS: dict[str, tuple[str, ...]] = {
    "import rota": ("-c", "import rota"),
    "rota check ping_pong": ("-c", _ROTA, "check", "ping_pong"),
    "rota check four_wave": ("-c", _ROTA, "check", "four_wave"),
    "rota check gemm_small": ("-c", _ROTA, "check", "gemm_small"),
}


def seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    """Processor time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / slowdown()


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup")
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args(arguments).runs
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "found"
        environment = os.environ | {
            "PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode"),
            "PYTHONDONTWRITEBYTECODE": "",
            "ROTA_CACHE": str(kept),
        }
        empty = median(seconds(("-c", "pass"), environment) for _ in range(runs))
        print(f"{'command':24} {'cold':>8} {'warm':>8}   ms, net of an empty Python ({1e3 * empty:.0f} ms)")
        for name, command in COMMANDS.items():
            seconds(command, environment)  # bytecode
            cold = []
            for _ in range(runs):
                shutil.rmtree(kept, ignore_errors=True)
                cold.append(seconds(command, environment))
            warm = [seconds(command, environment) for _ in range(runs)]
            print(f"{name:24} {1e3 * (median(cold) - empty):8.0f} {1e3 * (median(warm) - empty):8.0f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
