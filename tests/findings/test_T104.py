from __future__ import annotations

from pathlib import Path

import pytest

from rota.isa.binary.code_object import read_kernels
from rota.isa.binary.hip_source import HipFlags, compile_hip
from rota.isa.binary.toolchain import find_toolchain
from tests.findings.smallest import raised

TEMPLATE = "template <int N> __attribute__((global)) void fill(int* out) { *out = N; }\n"


def test_a_template_that_nobody_instantiates() -> None:
    found = raised("T104", lambda: find_toolchain().compile(TEMPLATE, "gfx950").kernels)
    assert dict(found.evidence) == {"target": "gfx950"}
    made = find_toolchain().compile(TEMPLATE + "template __attribute__((global)) void fill<4>(int*);", "gfx950")
    assert len(read_kernels(made.hsaco)) == 1


@pytest.mark.thorough  # compiles twice
def test_a_kernel_behind_a_macro(tmp_path: Path) -> None:
    file = tmp_path / "norm.hip"
    file.write_text("#include <hip/hip_runtime.h>\n#ifdef GPU\n__global__ void f(int* o) { *o = 1; }\n#endif\n")
    raised("T104", lambda: compile_hip(file, "gfx950", flags=HipFlags()).kernels)
    assert len(compile_hip(file, "gfx950", flags=HipFlags(define=("GPU",))).kernels) == 1
