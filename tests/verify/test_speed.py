"""The proof's time, measured in a process of its own because coverage slows this one down."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.no_cover  # tracing is what would be measured


def test_a_proof_is_fast_and_grows_linearly_with_the_entries() -> None:
    ran = subprocess.run([sys.executable, "-m", "benchmarks.proof"], check=True, capture_output=True, text=True)
    shipped, growth = ran.stdout.split("\n\n")
    for line in shipped.splitlines()[1:]:
        assert float(line.split()[2]) <= 20, line
    rows = [line.split() for line in growth.splitlines()[1:]]
    assert int(rows[-1][2]) >= 4000
    assert all(row[-1] == "True" for row in rows)
    per_entry = [float(row[4]) for row in rows]
    assert per_entry[-1] <= 2 * per_entry[1], "time per entry must not grow with the number of entries"
