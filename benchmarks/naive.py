"""Why the idiom: takes an emitted kernel, prints what the compiler makes of it when it is written in the usual way.

Run `python -m benchmarks.naive` from the repository's root.  The same kernel is compiled as emitted; with the builtin
for LDS DMA in place of asm; with `__syncthreads()` in place of bare barriers too; and with builtins for everything and
nothing that holds the compiler's scheduler.  Each is audited against the same schedule, and its waits are listed.
"""

from __future__ import annotations

import re
import sys

from rota.audit.audit import Audit, audit_gemm
from rota.audit.toolchain import find_toolchain
from rota.emit.hip_gemm import emit_gemm
from tests.emit.kernels import SMALL, Emitted, by_values

_RESOURCE = re.compile(r"const resource (\w)_global = .*;")
_BUILTIN_RESOURCE = (
    r"__amdgpu_buffer_rsrc_t \1_global = "
    r"__builtin_amdgcn_make_buffer_rsrc((void*)\1_base, 0, 0x7fffffff, 0x00027000);"
)
_BUILTIN_DMA = (
    "#define DMA(rsrc, lds, lane_offset, offset) __builtin_amdgcn_raw_ptr_buffer_load_lds("
    "rsrc, (LDS void*)((LDS char*)memory + wave * 1024 + (lds)), 16, lane_offset, offset, 0, 0); FENCE"
)
_BUILTIN_MFMA = """typedef __bf16 factor __attribute__((ext_vector_type(8)));
#define MFMA(c, a, b) c = __builtin_amdgcn_mfma_f32_16x16x32_bf16(\
__builtin_bit_cast(factor, a), __builtin_bit_cast(factor, b), c, 0, 0, 0); FENCE"""


def with_builtin_dma(source: str) -> str:
    """The compiler sees the DMAs, and guards the memory that it believes they write."""
    source = _RESOURCE.sub(_BUILTIN_RESOURCE, source)
    return re.sub(r"#define DMA.*", lambda _: _BUILTIN_DMA, source)


def with_syncthreads(source: str) -> str:
    """What `__syncthreads()` is: a release fence, the barrier, an acquire fence."""
    fence = '__builtin_amdgcn_fence({}, "workgroup");'
    whole = f"{fence.format('__ATOMIC_RELEASE')} __builtin_amdgcn_s_barrier(); {fence.format('__ATOMIC_ACQUIRE')} FENCE"
    return re.sub(r"#define BARRIER.*", f"#define BARRIER {whole}", with_builtin_dma(source))


def naive(source: str) -> str:
    """Builtins everywhere, and nothing keeps the compiler's scheduler from moving them."""
    source = re.sub(r"#define MFMA.*", lambda _: _BUILTIN_MFMA, with_builtin_dma(source))
    return re.sub(r"#define FENCE.*", "#define FENCE", source)


def audits(emitted: Emitted) -> dict[str, Audit]:
    """The three versions, each against the schedule."""
    compiled, geometry = emitted
    source, toolchain = emit_gemm(compiled, geometry), find_toolchain()
    versions = {
        "as emitted": source,
        "with the builtin for DMA": with_builtin_dma(source),
        "with __syncthreads() too": with_syncthreads(source),
        "naive: builtins, no fences": naive(source),
    }
    return {
        version: audit_gemm(compiled, geometry, toolchain.compile(text, compiled.machine.arch))
        for version, text in versions.items()
    }


def main() -> int:
    """Print the three reports."""
    for version, audit in audits(by_values(SMALL)).items():
        print(f"== {version}\n{audit}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
