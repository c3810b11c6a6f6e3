"""Why the idiom: takes an emitted kernel, prints what the compiler makes of it when it is written in the usual way.

Run `python -m benchmarks.naive [--reports]` from the repository's root.  The same kernel is compiled as emitted; with
the builtin for LDS DMA in place of asm; with `__syncthreads()` in place of bare barriers too; and with builtins for
everything and nothing that holds the compiler's scheduler, its waits written, left to the compiler, or left to
`__syncthreads()`.  Each is audited against the same schedule.  The table is Markdown; `--reports` prints every finding.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter as Tally
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rota.audit.audit import Audit, audit_gemm
from rota.audit.machine_loop import read_machine_loop
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.program.kinds import OpKind
from tests.emit.kernels import SMALL, Emitted, by_values

_RESOURCE = re.compile(r"const resource (\w)_global = .*;")
_BUILTIN_RESOURCE = (
    r"__amdgpu_buffer_rsrc_t \1_global = "
    r"__builtin_amdgcn_make_buffer_rsrc((void*)\1_base, 0, 0x7fffffff, 0x00027000);"
)
_BUILTIN_DMA = (
    "#define ROTA_DMA(rsrc, lds, lane_offset, offset) __builtin_amdgcn_raw_ptr_buffer_load_lds("
    "rsrc, (ROTA_LDS void*)((ROTA_LDS char*)memory + wave * 1024 + (lds)), 16, lane_offset, offset, 0, 0); ROTA_FENCE"
)
_BUILTIN_MFMA = """typedef __bf16 factor __attribute__((ext_vector_type(8)));
#define ROTA_MFMA(c, a, b) c = __builtin_amdgcn_mfma_f32_16x16x32_bf16(\
__builtin_bit_cast(factor, a), __builtin_bit_cast(factor, b), c, 0, 0, 0); ROTA_FENCE"""


def with_builtin_dma(source: str) -> str:
    """The compiler sees the DMAs, and guards the memory that it believes they write."""
    source = _RESOURCE.sub(_BUILTIN_RESOURCE, source)
    return re.sub(r"#define ROTA_DMA.*", lambda _: _BUILTIN_DMA, source)


def with_syncthreads(source: str) -> str:
    """What `__syncthreads()` is: a release fence, the barrier, an acquire fence."""
    fence = '__builtin_amdgcn_fence({}, "workgroup");'
    release, acquire = (fence.format(order) for order in ("__ATOMIC_RELEASE", "__ATOMIC_ACQUIRE"))
    whole = f"#define ROTA_BARRIER {release} __builtin_amdgcn_s_barrier(); {acquire} ROTA_FENCE"
    return re.sub(r"#define ROTA_BARRIER.*", whole, with_builtin_dma(source))


def naive(source: str) -> str:
    """Builtins everywhere, and nothing keeps the compiler's scheduler from moving them."""
    source = re.sub(r"#define ROTA_MFMA.*", lambda _: _BUILTIN_MFMA, with_builtin_dma(source))
    return re.sub(r"#define ROTA_FENCE.*", "#define ROTA_FENCE", source)


def without_waits(source: str) -> str:
    """The compiler's own waits are all there are."""
    return re.sub(r"#define (ROTA_WAIT_\w+)\(n\).*", r"#define \1(n)", source)


VERSIONS: dict[str, Callable[[str], str]] = {
    "as emitted": lambda source: source,
    "with the builtin for DMA": with_builtin_dma,
    "with __syncthreads() too": with_syncthreads,
    "naive: builtins, no fences": naive,
    "naive, no waits": lambda source: without_waits(naive(source)),
    "naive, no waits, __syncthreads()": lambda source: without_waits(with_syncthreads(naive(source))),
}


class Version(NamedTuple):
    """One way to write the kernel: its machine code and the audit against the schedule."""

    code: CodeObject
    audit: Audit

    def waits(self) -> str:
        """The loop's waits for DMAs."""
        events = read_machine_loop(self.code.instructions()).kernel
        found = Tally(
            f"{counter}({count})"
            for event in events
            if event.kind is OpKind.WAIT
            for counter, count in event.waits
            if counter == "vmcnt"
        )
        return ", ".join(f"{number} x {wait}" for wait, number in sorted(found.items())) or "none"


def versions(emitted: Emitted) -> dict[str, Version]:
    """Each version, compiled and laid beside the schedule."""
    compiled, geometry = emitted
    source, toolchain = emit_gemm(compiled, geometry), find_toolchain()
    codes = {name: toolchain.compile(change(source), compiled.machine.arch) for name, change in VERSIONS.items()}
    return {name: Version(code, audit_gemm(compiled, geometry, code)) for name, code in codes.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or the reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", action="store_true", help="every finding instead of the table")
    found = versions(by_values(SMALL))
    if parser.parse_args(arguments).reports:
        for name, version in found.items():
            print(f"== {name}\n{version.audit}\n")
        return 0
    print("| written | the schedule? | waits for DMAs in the loop | findings |")
    print("|" + " --- |" * 4)
    for name, version in found.items():
        audit = version.audit
        verdict = "yes" if audit.exact else "waits for more" if audit.clean else "no"
        codes = Tally(finding.code for finding in audit.findings)
        shown = ", ".join(f"{number} x {code}" for code, number in sorted(codes.items())) or "none"
        print(f"| {name} | {verdict} | {version.waits()} | {shown} |")
    return 0
