from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rota.isa.binary.toolchain import find_toolchains
from tests.docs.tutorial import type_tutorial

pytestmark = pytest.mark.no_cover  # what pages run counts as covered where it is tested by itself

MOST_SECONDS = 600


@pytest.mark.slow
@pytest.mark.skipif(not any(find_toolchains()), reason="no compiler for AMD GPUs")
def test_the_tutorial_typed_literally_takes_less_than_ten_minutes(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    assert type_tutorial(tmp_path, path) < MOST_SECONDS
    written = {file.name for file in tmp_path.iterdir()}
    assert {"my_gemm.html", "my_gemm2.hip"} <= written
