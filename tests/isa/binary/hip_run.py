"""HIP text compiled with rota's stand-in for HIP's headers, and run: what the kernel `k` of it writes."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.hip_source import compile_hip
from rota.isa.launch.loaded_kernel import LoadedKernel, load_kernel

ARCH = "gfx950"


@cache
def compiled(text: str, arch: str = ARCH, compiler: str | None = None) -> CodeObject:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.hip")
        path.write_text(text, "utf-8")
        return compile_hip(path, arch, compiler=compiler)


@cache
def loaded(text: str, arch: str = ARCH) -> LoadedKernel:
    return load_kernel(compiled(text, arch).hsaco, "k")


def mapped(body: str, *inputs: NDArray[np.generic], out: type[np.generic], head: str = "") -> NDArray[np.generic]:
    """One output for each work item of a wave or more: `body` sets o from the inputs a, b, c."""
    size = len(inputs[0])
    names = "abc"[: len(inputs)]
    taken = "".join(f"const {_C[each.dtype.name]}* p{name}, " for name, each in zip(names, inputs, strict=True))
    read = " ".join(f"auto {name} = p{name}[i];" for name in names)
    text = f"""#include <hip/hip_runtime.h>
{head}
extern "C" __global__ void k({taken}{_C[np.dtype(out).name]}* po) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x; {read}
  {_C[np.dtype(out).name]} o;
  {body}
  po[i] = o;
}}"""
    result = np.zeros(size, out)
    block = min(size, 256)
    assert size % block == 0
    loaded(text).launch(*inputs, result, grid=size // block, block=block, orders=1)
    return result


_C = {
    "float32": "float", "float64": "double", "int32": "int", "uint32": "unsigned", "int64": "long long",
    "uint64": "unsigned long long", "uint16": "unsigned short", "int16": "short", "uint8": "unsigned char",
}  # fmt: skip
