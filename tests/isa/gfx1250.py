"""Code objects for gfx1250 and gfx1201, assembled from the lines of a kernel's body."""

from __future__ import annotations

from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.disassembly import Instruction

ARCH, OLDER = "gfx1250", "gfx1201"
_TEXT = """.amdgcn_target "amdgcn-amd-amdhsa--{arch}"
.amdhsa_code_object_version {version}
.text
.globl k
.p2align 8
.type k,@function
k:
{body}
s_endpgm
.size k, .-k
.rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_next_free_vgpr {vgprs}
.amdhsa_next_free_sgpr 32
.amdhsa_user_sgpr_kernarg_segment_ptr 1
{more}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{arch}
amdhsa.kernels:
  - {{.name: k, .symbol: k.kd, .kernarg_segment_size: 0, .kernarg_segment_align: 8, .group_segment_fixed_size: {lds},
     .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 32, .vgpr_count: {vgprs},
     .max_flat_workgroup_size: 64{noted}}}
...
.end_amdgpu_metadata
"""


def assembled(
    *body: str, arch: str = ARCH, vgprs: int = 256, version: int = 6, more: str = "", noted: str = "", lds: int = 0
) -> CodeObject:
    """One kernel k; `more` are directives of its descriptor, `noted` further keys of its notes."""
    text = _TEXT.format(body="\n".join(body), arch=arch, vgprs=vgprs, version=version, more=more, noted=noted, lds=lds)
    return find_toolchain().assemble(text, arch)


def listed(*body: str, arch: str = ARCH, vgprs: int = 256) -> tuple[Instruction, ...]:
    """The instructions of the body, as they are read back."""
    return assembled(*body, arch=arch, vgprs=vgprs).instructions()[:-1]
