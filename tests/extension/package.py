"""A package of somebody else's, installed out of tree: takes a folder, gives an environment in which rota finds it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

METADATA = "Metadata-Version: 2.1\nName: somebody-elses\nVersion: 1.0\n"


def install(folder: Path, source: str, **groups: str) -> dict[str, str]:
    """The module `somebody_elses`, and one entry point for each group, as `name=attribute`, several by commas."""
    (folder / "somebody_elses.py").write_text(source)
    info = folder / "somebody_elses-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text("\n".join(_section(group, text) for group, text in groups.items()))
    before = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(folder), before])), "NO_COLOR": "1"}


def _section(group: str, text: str) -> str:
    pairs = (each.strip().partition("=") for each in text.split(","))
    return "\n".join([f"[rota.{group}]", *(f"{name} = somebody_elses:{attribute}" for name, _, attribute in pairs), ""])


def rota(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from rota.cli.main import main; main()", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
