"""What a compiler made: takes the bytes of a code object, gives `KernelFacts` per kernel, with its instructions.

The kernel descriptor and the notes are read from the file itself (LLVM, "User Guide for AMDGPU Backend", sections
"Kernel Descriptor" and "Code Object V4 Metadata"), so that no readelf is needed.  pyelftools knows ELF and msgpack
MessagePack; this module knows what a code object is, and how far damaged bytes are followed.
"""

from __future__ import annotations

import io
import re
import struct
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from rota.errors import Finding, IsaError, ToolchainError, did_you_mean
from rota.isa.disassembly import Instruction, read_listing
from rota.isa.kernel_facts import Argument, Descriptor, KernelFacts
from rota.targets.registry import architecture_with, known_architectures

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

T = TypeVar("T", int, str, list[Any])

_IDENT = b"\x7fELF\x02\x01"  # 64-bit, little-endian
_VENDOR = "AMDGPU"
_METADATA: int | str = 32  # NT_AMDGPU_METADATA; pyelftools gives a name instead to types that it knows
_DESCRIPTOR_BYTES = 64
_MOST = 2**32 - 1  # the descriptor holds each of these numbers in 32 bits or fewer
_MACH = 0xFF  # EF_AMDGPU_MACH
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
    file = _read_elf(hsaco)
    notes = _unpack(file.metadata)
    arch = _arch(file.flags, _optional(notes, "amdhsa.target", str))
    return tuple(_facts(file, arch, kernel) for kernel in _required(notes, "amdhsa.kernels", list))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Elf:
    """What is needed of the file: its flags, the metadata note, the kernel descriptors by symbol."""

    flags: int
    metadata: bytes
    descriptors: dict[str, bytes]


class _Metered(io.BytesIO):
    """A file that is read at most 64 times over: damaged tables may overlap, or have entries of no size.

    Each read is charged 16 bytes more than it gives, so that many small ones end too.  Files of real compilers and
    assemblers were charged up to 4.3 times their size.
    """

    def __init__(self, contents: bytes) -> None:
        super().__init__(contents)
        self._left = 2**16 + 64 * len(contents)

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self._left -= 16 + len(found)
        if self._left < 0:
            raise EOFError("its tables overlap")
        return found


def _read_elf(contents: bytes) -> _Elf:
    if contents[:6] != _IDENT:
        raise _unreadable(f"not an ELF file: starts with {contents[:6]!r}")
    try:
        return _parts(contents)
    except ToolchainError:
        raise
    except Exception as error:  # pyelftools says nowhere all that it may raise
        raise _unreadable(f"the ELF file is cut short or damaged: {error!r}") from error


def _parts(contents: bytes) -> _Elf:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection
    from elftools.elf.segments import NoteSegment

    elf = ELFFile(_Metered(contents))
    if elf["e_machine"] != "EM_AMDGPU":
        raise _unreadable(f"an ELF file for machine {elf['e_machine']}, not for AMDGPU")
    noted = [
        note["n_descdata"]
        for segment in elf.iter_segments("PT_NOTE")
        if isinstance(segment, NoteSegment)
        for note in segment.iter_notes()
        if (note["n_name"], note["n_type"]) == (_VENDOR, _METADATA)
    ]
    if len(noted) != 1:
        raise _damaged(f"{len(noted)} notes with metadata")
    addresses = defaultdict(set)
    for section in elf.iter_sections():  # a stripped file has .dynsym only, which holds every descriptor
        if isinstance(section, SymbolTableSection):
            for symbol in section.iter_symbols():
                if symbol.name.endswith(".kd"):
                    addresses[symbol.name].add(symbol["st_value"])
    return _Elf(
        flags=elf["e_flags"],
        metadata=noted[0],
        descriptors={name: _descriptor(elf, name, found) for name, found in addresses.items()},
    )


def _descriptor(elf: ELFFile, name: str, addresses: set[int]) -> bytes:
    for address in addresses if len(addresses) == 1 else ():
        for offset in elf.address_offsets(address, _DESCRIPTOR_BYTES):
            elf.stream.seek(offset)
            found = elf.stream.read(_DESCRIPTOR_BYTES)
            if len(found) == _DESCRIPTOR_BYTES:
                return found
    at = ", ".join(f"{address:#x}" for address in sorted(addresses))
    raise _damaged(f"no segment holds {name}, at {at}" if len(addresses) == 1 else f"{name} is at {at}")


def _unpack(metadata: bytes) -> object:
    import msgpack

    try:
        return msgpack.unpackb(metadata)  # bounds lengths by the size of its input, and nesting
    except Exception as error:  # what msgpack tells its users to catch
        raise _damaged(repr(error)) from error


def _required(notes: object, key: str, kind: type[T]) -> T:
    value = _optional(notes, key, kind)
    if value is None:
        raise _damaged(f"no {key}")
    return value


def _optional(notes: object, key: str, kind: type[T]) -> T | None:
    """The value of a key that a producer may leave out; LLVM gives no meaning to that, so it is unknown."""
    if not isinstance(notes, dict):
        raise _damaged(f"{notes!r:.80} where a map was due")
    value = notes.get(key)
    if key in notes and (not isinstance(value, kind) or isinstance(value, bool)):
        raise _damaged(f"{key} is {value!r:.80}")
    if isinstance(value, int) and not 0 <= value <= _MOST:
        raise _damaged(f"{key} is {value}")
    return value


def _facts(file: _Elf, arch: str, notes: object) -> KernelFacts:
    symbol = _required(notes, ".symbol", str)
    if symbol not in file.descriptors:
        raise _damaged(f"no symbol {symbol:.80}")
    descriptor = file.descriptors[symbol]
    lds, private, kernarg = struct.unpack_from("<III", descriptor)
    rsrc3, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", descriptor, 44)
    user = tuple((name, size) for name, bit, size in _USER_SGPRS if properties >> bit & 1)
    if preload & 0x7F:
        user = (*user, ("kernarg_preload", preload & 0x7F))
    return KernelFacts(
        name=_required(notes, ".name", str),
        arch=arch,
        vgprs=_required(notes, ".vgpr_count", int),
        agprs=_optional(notes, ".agpr_count", int),
        sgprs=_required(notes, ".sgpr_count", int),
        vgpr_spills=_optional(notes, ".vgpr_spill_count", int),
        sgpr_spills=_optional(notes, ".sgpr_spill_count", int),
        lds_bytes=_required(notes, ".group_segment_fixed_size", int),
        private_bytes=_required(notes, ".private_segment_fixed_size", int),
        kernarg_bytes=_required(notes, ".kernarg_segment_size", int),
        max_workgroup=_required(notes, ".max_flat_workgroup_size", int),
        arguments=tuple(
            Argument(
                name=_optional(argument, ".name", str) or f"arg{number}",
                offset=_required(argument, ".offset", int),
                size=_required(argument, ".size", int),
                kind=_required(argument, ".value_kind", str),
            )
            for number, argument in enumerate(_optional(notes, ".args", list) or ())
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
            preload_offset=preload >> 7,
            workgroup_info=bool(rsrc2 >> 10 & 1),
        ),
    )


def _arch(flags: int, target: str | None) -> str:
    """What the flags say, which is what is loaded; the notes of a few compilers name no target.

    A target is written amdgcn-amd-amdhsa--gfx942:xnack- by most compilers, amdgpu9.42-amd-amdhsa-unknown-gfx942 by
    Triton 3.9.
    """
    number = flags & _MACH
    architecture = architecture_with(number)
    arch = None if architecture is None else architecture.arch
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
            fixes=(f"known: {', '.join(sorted(each.arch for each in known_architectures()))}",),
        )
    )


def _unreadable(why: str) -> ToolchainError:
    return ToolchainError(Finding(code="T103", message=f"the code object can't be read: {why}"))


def _damaged(why: str) -> ToolchainError:
    return _unreadable(f"its notes or descriptors are damaged: {why}")
