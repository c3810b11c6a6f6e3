"""`import rota` is cheap: no heavy module, and at most 150 ms."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import pytest

HEAVY = frozenset({"click", "elftools", "jinja2", "msgpack", "numpy", "ortools", "pandas", "perfetto", "ray", "rich"})
MOST_MILLISECONDS = 150
RUNS = 7

# Only the import statement is timed: starting the interpreter is not rota's doing.  Processor time, as
# it would be on an idle machine: what other processes do is not rota's doing either.
PROBE = """
import sys, time
start = time.process_time_ns()
import rota
took = time.process_time_ns() - start
packages = sorted({name.partition(".")[0] for name in sys.modules})
from tests.campaigns.undisturbed import slowdown
print(int(took / slowdown()))
assert rota.__file__, "rota is a bare folder without __init__.py"
print(*packages)
"""


class Probed(NamedTuple):
    milliseconds: float
    packages: frozenset[str]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Probed]:
    # The first run fills the bytecode cache, as a user's first run does; the later ones are what users live with.
    cache = tmp_path_factory.mktemp("bytecode")
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(cache), "PYTHONDONTWRITEBYTECODE": ""}
    return [_probe(environment) for _ in range(RUNS)]


def _probe(environment: dict[str, str]) -> Probed:
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    nanoseconds, packages = done.stdout.splitlines()
    return Probed(int(nanoseconds) / 1e6, frozenset(packages.split()))


def test_import_rota_loads_no_heavy_module(runs: list[Probed]) -> None:
    assert "rota" in runs[0].packages
    assert runs[0].packages & HEAVY == frozenset()


def test_import_rota_costs_at_most_150_ms(runs: list[Probed]) -> None:
    # Noise only ever adds time, so the fastest run is the nearest to what the import itself costs.
    assert min(run.milliseconds for run in runs) <= MOST_MILLISECONDS
