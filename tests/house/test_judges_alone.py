"""What judges machine code is useful without the schedulers: importing it loads none of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rota.isa
from tests.house.test_inits_are_docstrings import PACKAGE

MAKERS = ("rota.order", "rota.pipeline", "rota.values", "rota.sync", "rota.compiled", "rota.kernels", "ortools")


@pytest.mark.parametrize(
    "modules",
    [
        ["rota.isa"],
        [
            ".".join(("rota", *file.relative_to(PACKAGE).with_suffix("").parts))
            for file in sorted((PACKAGE / "isa").rglob("*.py"))
            if file.stem != "__init__"
        ],
    ],
    ids=["the package", "all of it"],
)
def test_machine_code_is_judged_without_a_scheduler(modules: list[str]) -> None:
    assert rota.isa.__doc__
    probe = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    loaded = [name for name in done.stdout.split() if name.startswith(MAKERS)]
    assert loaded == []
