"""Pictures load no solver, no array library, no templates and no trace package until one is asked for."""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import sys
import rota.view.page, rota.view.page, rota.view.perfetto_trace
print(*{name.partition(".")[0] for name in sys.modules})
"""


def test_importing_the_pictures_is_cheap() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "rota" in loaded
    assert loaded & {"perfetto", "google", "numpy", "ortools", "click", "rich", "jinja2"} == set()
