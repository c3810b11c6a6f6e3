"""What a compiler made: takes the bytes of a code object, gives `KernelFacts` per kernel, with its instructions.

The kernel descriptor and the notes are read from the file itself (LLVM, "User Guide for AMDGPU Backend", sections
"Kernel Descriptor" and "Code Object V4 Metadata"), so that no readelf is needed.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any

from rota.audit.elf import AMDGPU, Elf, NotElfError, read_elf
from rota.audit.msgpack import unpack
from rota.errors import Finding, IsaError, ToolchainError, did_you_mean
from rota.simulate.isa.kernel import Argument, Descriptor, KernelFacts
from rota.simulate.isa.listing import Instruction, read_listing

_METADATA = 32  # NT_AMDGPU_METADATA
_MACH = 0xFF  # EF_AMDGPU_MACH
_ARCHITECTURES = {0x4C: "gfx942", 0x4F: "gfx950"}
_PROCESSOR = re.compile(r"(?:^|-)(?P<arch>gfx[\w-]*)(?::|$)")
# Initial SGPRs in hardware order, each with the bit that enables it and its size.
_USER_SGPRS = (
    ("private_segment_buffer", 0, 4),
    ("dispatch_ptr", 1, 2),
    ("queue_ptr", 2, 2),
    ("kernarg_segment_ptr", 3, 2),
    ("dispatch_id", 4, 2),
    ("flat_scratch_init", 5, 2),
    ("private_segment_size", 6, 1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeObject:
    """A compiled source: the file, what its kernels demand, and its instructions as text.

    `disassembly` is the text of llvm-objdump where the toolchain has one, else the `assembly` that was assembled.
    """

    arch: str
    toolchain: str
    hsaco: bytes
    assembly: str
    disassembly: str
    kernels: tuple[KernelFacts, ...]

    def kernel(self, name: str | None = None) -> KernelFacts:
        """The kernel of that name; without a name, the only one."""
        if name is None and len(self.kernels) == 1:
            return self.kernels[0]
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise ToolchainError(
            Finding(
                code="T103",
                message=f"the code object has no kernel named {name!r}" if name else "several kernels: name one",
                fixes=did_you_mean(name or "", (kernel.name for kernel in self.kernels)),
            )
        )

    def instructions(self, name: str | None = None) -> tuple[Instruction, ...]:
        """The instructions of one kernel."""
        return read_listing(self.disassembly, self.kernel(name).name)


def read_kernels(hsaco: bytes) -> tuple[KernelFacts, ...]:
    """The kernels of a code object, in the order of its notes."""
    try:
        elf = read_elf(hsaco)
        if elf.machine != AMDGPU:
            raise _unreadable(f"an ELF file for machine {elf.machine}, not for AMDGPU ({AMDGPU})")
        notes: Any = unpack(elf.notes[_METADATA])
        arch = _arch(elf.flags, notes.get("amdhsa.target"))
        return tuple(_facts(elf, arch, kernel) for kernel in notes["amdhsa.kernels"])
    except NotElfError as error:
        raise _unreadable(f"not an ELF file: {error}") from error
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError, struct.error) as error:
        raise _unreadable(f"its notes or descriptors are damaged: {error!r}") from error


def _facts(elf: Elf, arch: str, notes: dict[str, Any]) -> KernelFacts:
    descriptor = elf.at(elf.symbols[notes[".symbol"]], 64)
    lds, private, kernarg = struct.unpack_from("<III", descriptor)
    rsrc3, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", descriptor, 44)
    user = tuple((name, size) for name, bit, size in _USER_SGPRS if properties >> bit & 1)
    if preload & 0x7F:
        user = (*user, ("kernarg_preload", preload & 0x7F))
    return KernelFacts(
        name=notes[".name"],
        arch=arch,
        vgprs=notes[".vgpr_count"],
        agprs=notes.get(".agpr_count", 0),
        sgprs=notes[".sgpr_count"],
        vgpr_spills=notes[".vgpr_spill_count"],
        sgpr_spills=notes[".sgpr_spill_count"],
        lds_bytes=notes[".group_segment_fixed_size"],
        private_bytes=notes[".private_segment_fixed_size"],
        kernarg_bytes=notes[".kernarg_segment_size"],
        max_workgroup=notes[".max_flat_workgroup_size"],
        arguments=tuple(
            Argument(
                name=argument.get(".name", f"arg{number}"),
                offset=argument[".offset"],
                size=argument[".size"],
                kind=argument[".value_kind"],
            )
            for number, argument in enumerate(notes.get(".args", ()))
        ),
        user_sgprs=user,
        workgroup_ids=(bool(rsrc2 >> 7 & 1), bool(rsrc2 >> 8 & 1), bool(rsrc2 >> 9 & 1)),
        workitem_ids=rsrc2 >> 11 & 3,
        descriptor=Descriptor(
            lds_bytes=lds,
            private_bytes=private,
            kernarg_bytes=kernarg,
            vgprs=8 * (rsrc1 & 0x3F) + 8,
            sgprs=8 * (rsrc1 >> 6 & 0xF) + 16,
            user_sgprs=rsrc2 >> 1 & 0x1F,
            accum_offset=4 * (rsrc3 & 0x3F) + 4,
            tg_split=bool(rsrc3 >> 16 & 1),
        ),
    )


def _arch(flags: int, target: str | None) -> str:
    """What the flags say, which is what is loaded; the notes of a few compilers name no target.

    A target is written amdgcn-amd-amdhsa--gfx942:xnack- by most compilers, amdgpu9.42-amd-amdhsa-unknown-gfx942 by
    Triton 3.9.
    """
    number = flags & _MACH
    arch = _ARCHITECTURES.get(number)
    named = None if target is None else _PROCESSOR.search(target)
    noted = named["arch"] if named else target
    if arch is not None and noted in {arch, None}:
        return arch
    message = "the code object is for an architecture that rota doesn't know"
    if arch is not None:
        message = "the flags of the code object and its notes name two architectures"
    raise IsaError(
        Finding(
            code="I111",
            message=message,
            evidence=(("ELF flags", f"{number:#x}, {arch or 'unknown'}"), ("notes", target or "no target")),
            fixes=(f"known: {', '.join(sorted(_ARCHITECTURES.values()))}",),
        )
    )


def _unreadable(why: str) -> ToolchainError:
    return ToolchainError(Finding(code="T103", message=f"the code object can't be read: {why}"))
