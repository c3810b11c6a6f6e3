"""HIP text compiled with rota's stand-in for HIP's headers, and run."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.hip_source import compile_hip
from rota.isa.launch.loaded_kernel import load_kernel

ARCH = "gfx950"


@cache
def compiled(text: str, arch: str = ARCH, compiler: str | None = None) -> CodeObject:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.hip")
        path.write_text(text, "utf-8")
        return compile_hip(path, arch, compiler=compiler)


def mapped(
    body: str, *inputs: NDArray[np.generic], out: type[np.generic], head: str = "", also: tuple[str, ...] = ()
) -> NDArray[np.generic]:
    """One output for each work item: `body` sets o from the inputs a, b, c.

    `also` has further bodies with inputs and outputs of the same types; all of them are compiled at once.
    """
    size = len(inputs[0])
    names = "abc"[: len(inputs)]
    result = np.zeros(size, out)
    of = _C[result.dtype.name]
    taken = "".join(f"const {_C[each.dtype.name]}* p{name}, " for name, each in zip(names, inputs, strict=True))
    read = " ".join(f"auto {name} = p{name}[i];" for name in names)
    bodies = tuple(dict.fromkeys((body, *also))) if body not in also else also
    kernels = (
        f"""extern "C" __global__ void k{number}({taken}{of}* po) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x; {read}
  {of} o;
  {each}
  po[i] = o;
}}"""
        for number, each in enumerate(bodies)
    )
    code = compiled("\n".join(("#include <hip/hip_runtime.h>", head, *kernels)))
    block = min(size, 256)
    assert size % block == 0
    load_kernel(code.hsaco, f"k{bodies.index(body)}").launch(*inputs, result, grid=size // block, block=block, orders=1)
    return result


_C = {
    "float32": "float", "float64": "double", "int32": "int", "uint32": "unsigned", "int64": "long long",
    "uint64": "unsigned long long", "uint16": "unsigned short",
}  # fmt: skip
