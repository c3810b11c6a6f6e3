"""The README's code runs and prints what the README says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rota

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)


def test_every_block_of_code_has_its_output() -> None:
    assert len(EXAMPLES) == README.count("```python") == README.count("```text") == 2


@pytest.mark.parametrize(("code", "shown"), EXAMPLES, ids=["by values", "by stages"])
def test_an_example_prints_what_the_readme_shows(code: str, shown: str) -> None:
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout == shown
    lines = [line for line in code.splitlines() if line and not line.startswith(("from", "print"))]
    assert len(lines) <= 30


def test_the_shown_error_is_the_real_one() -> None:
    (shown,) = re.findall(r"(error\[D106\].*?)```", README, re.DOTALL)
    with pytest.raises(rota.DeclarationError) as caught:
        rota.PipelineConfig(depth=3, num_partitions=4)
    assert str(caught.value) == shown.strip()
