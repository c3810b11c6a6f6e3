"""A code object: the facts of each kernel, with its instructions.

The kernel descriptor and the notes are read from the file itself (LLVM, "User Guide for AMDGPU Backend", sections
"Kernel Descriptor" and "Code Object V4 Metadata"), so no readelf is needed. The hardware gets the descriptor and
nothing else, so a kernel is whatever has one; the notes say more about it, or leave it out.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import cast

from rota.errors import IsaError, ToolchainError, did_you_mean
from rota.isa.binary.elf import (
    NO_LINES,
    ElfFile,
    LineTable,
    build_image,
    damaged,
    get_numbers,
    get_optional,
    get_required,
    read_elf,
    unpack_notes,
)
from rota.isa.binary.kernel_facts import MOST_WORK_ITEMS, Argument, Descriptor, FloatMode, KernelFacts
from rota.isa.disassembly import Instruction, read_listing
from rota.isa.register_banks import select_banks
from rota.targets.architecture import Architecture, DescriptorLayout
from rota.targets.registry import architecture_named, architecture_with, list_architectures

_DESCRIPTOR_BYTES = 64
_MACH = 0xFF  # EF_AMDGPU_MACH
_NAMED_BARRIERS = 0x3F  # bits of the third word of resources, as .amdhsa_named_barrier_count fills them
_NUMBERS = (
    ".vgpr_count", ".sgpr_count", ".group_segment_fixed_size", ".private_segment_fixed_size", ".kernarg_segment_size",
    ".max_flat_workgroup_size",
)  # fmt: skip
_PROCESSOR = re.compile(r"(?:^|-)(?P<arch>gfx[\w-]*)(?::|$)")
# Initial SGPRs in hardware order, each with the bit that enables it and its size.
_USER_SGPRS = (
    ("private_segment_buffer", 0, 4), ("dispatch_ptr", 1, 2), ("queue_ptr", 2, 2), ("kernarg_segment_ptr", 3, 2),
    ("dispatch_id", 4, 2), ("flat_scratch_init", 5, 2), ("private_segment_size", 6, 1),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeObject:
    """A compiled source: the file, what its kernels demand, and its instructions as text.

    `disassembly` is the text of llvm-objdump if the toolchain has one, else the `assembly`; a code object read from a
    file has no assembly. `lines` maps addresses to source lines.
    """

    arch: str
    toolchain: str
    hsaco: bytes
    assembly: str
    disassembly: str
    kernels: tuple[KernelFacts, ...]
    lines: LineTable = NO_LINES

    def kernel(self, name: str | None = None) -> KernelFacts:
        if name is None and len(self.kernels) == 1:
            return self.kernels[0]
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        message = f"the code object has no kernel named {name!r}" if name else "several kernels: name one"
        fixes = did_you_mean(name or "", (kernel.name for kernel in self.kernels))
        raise ToolchainError.of("T103", message, fixes=fixes)

    def image(self) -> bytes:
        """What a loader puts into memory from `rota.isa.binary.elf.CODE_BASE` on: code, constants and variables."""
        return build_image(read_elf(self.hsaco))

    def instructions(self, name: str | None = None) -> tuple[Instruction, ...]:
        kernel = self.kernel(name)
        names = [each.name for each in self.kernels]
        listed = read_listing(self.disassembly, kernel.name, entry=kernel.entry, kernels=names, lines=self.lines)
        architecture = architecture_named(kernel.arch)
        if architecture is None:
            return listed
        if architecture.listing is not None:
            _check_decoded(listed)
        return select_banks(listed, banked=architecture.has_banks)


def _check_decoded(instructions: tuple[Instruction, ...]) -> None:
    """Refuse words that the disassembler doesn't know: it goes on one word later, and invents what follows."""
    lost = [each for each in instructions if not each.text[0].isalpha() or "/*" in each.text]
    if lost:
        many = f"{len(lost)} words" if len(lost) > 1 else "a word"
        message = f"the disassembler doesn't know {many} of the kernel; what it lists after that may be invented"
        words = " ".join(f"{word:08x}" for word in lost[0].encoding)
        raise IsaError.of(
            "I112",
            message,
            concerns=(lost[0].concern(),),
            evidence=(("words", words or lost[0].text), ("places", len(lost))),
            fixes=("install a newer llvm-objdump, which may know them",),
        )


@cache
def demangle(name: str) -> str:
    """A name of C++ as its author wrote it, by the C++ library of this machine; any other name as it is."""
    if not name.startswith("_Z"):
        return name
    function = _find_demangler()
    status = ctypes.c_int(0)
    found = None if function is None else function(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return name
    text = ctypes.cast(found, ctypes.c_char_p).value or b""
    ctypes.CDLL(None).free(ctypes.c_void_p(found))
    return text.decode(errors="replace").removesuffix(" [clone .kd]")


@cache
def _find_demangler() -> Callable[..., int | None] | None:
    for library in ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib"):
        with suppress(OSError, AttributeError):
            function = ctypes.CDLL(library)["__cxa_demangle"]
            function.restype = ctypes.c_void_p
            return cast("Callable[..., int | None]", function)
    return None


def read_kernels(hsaco: bytes) -> tuple[KernelFacts, ...]:
    """The kernels in the order of the notes, then those that only have a descriptor."""
    return kernels_of(read_elf(hsaco))


def kernels_of(file: ElfFile) -> tuple[KernelFacts, ...]:  # noqa: C901
    """A kernel in the notes without a descriptor can't be launched, so it is an error (T103)."""
    notes = {} if file.metadata is None else unpack_notes(file.metadata)
    architecture = _architecture(file.flags, get_optional(notes, "amdhsa.target", str))
    arch = architecture.arch
    noted: dict[str, object] = {}
    for each in get_optional(notes, "amdhsa.kernels", list) or ():
        symbol, name = get_optional(each, ".symbol", str), get_optional(each, ".name", str)
        if symbol is None and name is None:
            raise damaged("no .symbol")
        symbol = f"{name}.kd" if symbol is None else symbol
        if symbol in noted:
            raise damaged(f"{symbol:.80} is in the notes twice")
        noted[symbol] = each
    found: dict[str, set[int]] = defaultdict(set)
    for each in file.symbols:
        if each.name.endswith(".kd") or each.name in noted:
            found[each.name].add(each.address)
    for name, several in found.items():
        if len(several) > 1:
            raise damaged(f"{name:.80} is at {', '.join(f'{address:#x}' for address in sorted(several))}")
    addresses = {name: address for name, (address,) in found.items()}
    for symbol in noted:
        if symbol not in addresses:
            raise damaged(f"no symbol {symbol:.80}")
    if not addresses:
        if get_optional(notes, "amdhsa.kernels", list) is None:
            raise damaged("neither the notes nor the symbols name a kernel")
        raise ToolchainError.of(
            "T104",
            "the code object holds no kernel: its notes list none",
            evidence=(("target", arch),),
            fixes=(
                "if a macro selects the kernels of a source, define it: -D NAME",
                "a template is a kernel only where it is instantiated, by a launch or explicitly",
            ),
        )
    symbols = (*noted, *(symbol for symbol in addresses if symbol not in noted))
    return tuple(_facts(file, architecture, symbol, addresses[symbol], noted.get(symbol, {})) for symbol in symbols)


def _facts(file: ElfFile, architecture: Architecture, symbol: str, address: int, notes: object) -> KernelFacts:
    octets = file.bytes_at(address, _DESCRIPTOR_BYTES)
    if octets is None:
        raise damaged(f"no segment holds {symbol:.80}, at {address:#x}")
    (offset,) = struct.unpack_from("<q", octets, 16)
    rsrc2, properties, preload = struct.unpack_from("<IHH", octets, 52)
    user = tuple((name, size) for name, bit, size in _USER_SGPRS if properties >> bit & 1)
    layout, entry = architecture.descriptor, address + offset
    if preload & 0x7F:
        user = (*user, ("kernarg_preload", preload & 0x7F))
        entry += layout.preload_prologue
    if not file.code_at(entry):
        raise damaged(f"{symbol:.80} says that its code is at {entry:#x}, where no code is loaded")
    ids = rsrc2 >> 7 & 7 if layout.workgroup_ids else 0
    descriptor = _descriptor(octets, layout)
    needed = (*_NUMBERS, ".args") if descriptor.kernarg_bytes else _NUMBERS

    def number(key: str, otherwise: int) -> int:
        noted = get_optional(notes, key, int)
        return otherwise if noted is None else noted

    return KernelFacts(
        name=get_optional(notes, ".name", str) or symbol.removesuffix(".kd"),
        arch=architecture.arch,
        vgprs=number(".vgpr_count", descriptor.vgprs),
        agprs=get_optional(notes, ".agpr_count", int),
        sgprs=number(".sgpr_count", descriptor.sgprs),
        vgpr_spills=get_optional(notes, ".vgpr_spill_count", int),
        sgpr_spills=get_optional(notes, ".sgpr_spill_count", int),
        lds_bytes=number(".group_segment_fixed_size", descriptor.lds_bytes),
        private_bytes=number(".private_segment_fixed_size", descriptor.private_bytes),
        kernarg_bytes=number(".kernarg_segment_size", descriptor.kernarg_bytes),
        max_workgroup=number(".max_flat_workgroup_size", MOST_WORK_ITEMS),
        arguments=tuple(_arguments(notes)),
        user_sgprs=user,
        workgroup_ids=(bool(ids & 1), bool(ids >> 1 & 1), bool(ids >> 2 & 1)),
        workitem_ids=rsrc2 >> 11 & 3,
        descriptor=descriptor,
        entry=entry,
        required_workgroup=get_numbers(notes, ".reqd_workgroup_size", 3),
        cluster=get_numbers(notes, ".cluster_dims", 3),
        dynamic_stack=bool(properties >> 11 & 1),
        unnoted=tuple(key for key in needed if not isinstance(notes, dict) or key not in notes),
    )


def _descriptor(octets: bytes, layout: DescriptorLayout) -> Descriptor:
    lds, private, kernarg = struct.unpack_from("<III", octets)
    rsrc3, rsrc1, rsrc2, _, preload = struct.unpack_from("<IIIHH", octets, 44)
    vgprs = layout.vector_granule * ((rsrc1 & 0x3F) + 1)
    return Descriptor(
        lds_bytes=lds,
        private_bytes=private,
        kernarg_bytes=kernarg,
        vgprs=vgprs,
        # Where the descriptor counts them, it counts in 8 and allocates in 16.
        sgprs=16 * (rsrc1 >> 7 & 0x7) + 16 if layout.scalar_registers is None else layout.scalar_registers,
        user_sgprs=rsrc2 >> 1 & (1 << layout.user_bits) - 1,
        accum_offset=4 * (rsrc3 & 0x3F) + 4 if layout.accumulators else vgprs,
        tg_split=layout.accumulators and bool(rsrc3 >> 16 & 1),
        float_mode=FloatMode(
            round_32=rsrc1 >> 12 & 3,
            round_64=rsrc1 >> 14 & 3,
            denormals_32=rsrc1 >> 16 & 3,
            denormals_64=rsrc1 >> 18 & 3,
            dx10_clamp=not layout.float_modes or bool(rsrc1 >> 21 & 1),
            ieee=layout.float_modes and bool(rsrc1 >> 23 & 1),
            fp16_overflow=bool(rsrc1 >> 26 & 1),
        ),
        preload_offset=preload >> 7,
        workgroup_info=bool(rsrc2 >> 10 & 1),
        named_barriers=rsrc3 >> 14 & _NAMED_BARRIERS if layout.named_barriers else 0,
    )


def _arguments(notes: object) -> Iterator[Argument]:
    for number, argument in enumerate(get_optional(notes, ".args", list) or ()):
        name = (get_optional(argument, ".name", str) or f"arg{number}").removesuffix(".coerce")
        offset, size = (get_required(argument, key, int) for key in (".offset", ".size"))
        yield Argument(name=name, offset=offset, size=size, kind=get_required(argument, ".value_kind", str))


def _architecture(flags: int, target: str | None) -> Architecture:
    """The architecture of the ELF flags, which the loader obeys; the notes must agree if they name a target.

    Most compilers write a target as amdgcn-amd-amdhsa--gfx942:xnack-, Triton 3.9 as
    amdgpu9.42-amd-amdhsa-unknown-gfx942.
    """
    number = flags & _MACH
    architecture = architecture_with(number)
    arch = None if architecture is None else architecture.arch
    named = None if target is None else _PROCESSOR.search(target)
    noted = named["arch"] if named else target
    if architecture is not None and noted in {arch, None}:
        return architecture
    message = "the code object is for an architecture that rota doesn't know"
    if arch is not None:
        message = "the flags of the code object and its notes name two architectures"
    raise IsaError.of(
        "I111",
        message,
        evidence=(("ELF flags", f"{number:#x}, {arch or 'unknown'}"), ("notes", target or "no target")),
        fixes=(f"known: {', '.join(sorted(each.arch for each in list_architectures()))}",),
    )
