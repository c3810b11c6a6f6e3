"""The landing page's test of a Triton kernel fails with what the page shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks_of, commands_of, matches

PAGE = (ROOT / "docs" / "i_write_triton.md").read_text("utf-8")


@pytest.mark.thorough  # compiles, or starts commands
def test_the_race_is_found_as_shown(tmp_path: Path) -> None:
    blocks = blocks_of(PAGE)
    (written,) = [block for block in blocks if block.file == "test_shift.py"]
    typed = [
        command
        for block in blocks
        if block.language == "console"
        for command in commands_of(block)
        if "test_shift.py" in command.line
    ]
    (tmp_path / "test_shift.py").write_text(written.text, "utf-8")
    assert len(typed) == 2
    for command in typed:
        done = subprocess.run(
            command.line.replace("python ", f"{sys.executable} ", 1),
            shell=True,
            cwd=tmp_path,
            env={**os.environ, "PYTEST_PLUGINS": "rota.integrations.triton_plugin"},  # where it isn't installed
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert matches(command.shown, done.stdout), done.stdout
