"""Small kernels in HIP or assembly, and what `rota lint` says of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from rota.errors import Finding
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.disassembly import read_listing
from rota.lint.kernel_report import LintOptions, LintReport, lint_instructions, lint_kernel
from rota.targets.registry import device_named
from tests.isa.single import facts, listing

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


def assembled(text: str, *, device: str | None = "mi355x", waves: int = 1, **changes: Any) -> LintReport:
    """A kernel in assembly whose arguments s[0:1] points to, with v0 the work item and s2 the workgroup."""
    told = facts(
        required_workgroup=(64 * waves, 1, 1), user_sgprs=(("kernarg_segment_ptr", 2),),
        workgroup_ids=(True, False, False), **changes,
    )  # fmt: skip
    options = LintOptions(device=None if device is None else device_named(device))
    return lint_instructions(told, read_listing(listing(text), "k"), options)
