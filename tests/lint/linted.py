"""Small kernels in HIP: takes their source, gives what `rota lint` says of them."""

from __future__ import annotations

from functools import cache

from rota.errors import Finding
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.lint.kernel_report import LintOptions, LintReport, lint_kernel
from rota.targets.registry import device_named

HEAD = """#define __shared__ __attribute__((shared))
typedef float float4 __attribute__((ext_vector_type(4)));
#define __syncthreads() __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), __builtin_amdgcn_s_barrier(), \\
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")
extern "C" __attribute__((global, amdgpu_flat_work_group_size({items}, {items}))) """


@cache
def compiled(body: str, items: int = 64, arch: str = "gfx950") -> CodeObject:
    """A kernel from its name on: `void k(...) {...}`."""
    return find_toolchain().compile(HEAD.format(items=items) + body, arch)


def linted(body: str, items: int = 64, arch: str = "gfx950", *, needed: bool = False) -> LintReport:
    return lint_kernel(compiled(body, items, arch), None, LintOptions(device=device_named(arch), needed=needed))


def codes(report: LintReport) -> list[str]:
    return [each.code for each in report.findings]


def only(report: LintReport, code: str) -> Finding:
    (found,) = [each for each in report.findings if each.code == code]
    return found
