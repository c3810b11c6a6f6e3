"""Assembly of a code object: takes the bodies of kernels and functions, gives a text that an assembler takes."""

from __future__ import annotations

DESCRIPTOR = """
.section .rodata,"a",@progbits
.p2align 6
.amdhsa_kernel {name}
.amdhsa_next_free_vgpr 8
.amdhsa_next_free_sgpr 40
.amdhsa_accum_offset 8
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_float_denorm_mode_32 3
{more}
.end_amdhsa_kernel
.text
"""
NOTES = """
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
{kernels}
...
.end_amdgpu_metadata
"""
NOTE = """  - .name: {name}
    .symbol: {name}.kd
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .kernarg_segment_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: 64
    .sgpr_count: 40
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
"""


def function(name: str, body: str) -> str:
    """A function or the code of a kernel, as given."""
    return f".p2align 8\n.globl {name}\n.type {name},@function\n{name}:\n{body}\n.size {name}, .-{name}\n"


def described(name: str, more: str = "") -> str:
    """The descriptor of a kernel; `more` are directives that change it."""
    return DESCRIPTOR.format(name=name, more=more)


def noted(*notes: str) -> str:
    """The notes, an entry for each kernel."""
    return NOTES.format(kernels="\n".join(notes))


def note(name: str) -> str:
    """The entry of a kernel without arguments."""
    return NOTE.format(name=name)


def kernel(body: str, name: str = "k", *, before: str = "", behind: str = "") -> str:
    """A code object with one kernel, which ends after its body; other code may stand before and after it."""
    code = function(name, f"{body}\ns_endpgm")
    return f".text\n{before}\n{code}\n{behind}\n{described(name)}\n{noted(note(name))}"
