"""What a wave starts with: the kernarg segment, the dispatch packet and the first registers.

What a runtime fills in by itself, the hidden arguments (LLVM, "User Guide for AMDGPU Backend", "Code Object V5 Kernel
Argument Metadata"), is filled in as a runtime would. Services that only a runtime has, such as printf, get addresses
outside every buffer: a kernel that uses one gets a finding.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rota.errors import Concern, IsaError
from rota.isa.binary.kernel_facts import Argument, KernelFacts
from rota.isa.disassembly import Instruction
from rota.isa.registers import EXEC, NAMED
from rota.isa.wave.wave import POISON, Wave
from rota.targets.architecture import Architecture

Triple = tuple[int, int, int]

_SERVICES = (
    "printf_buffer", "hostcall_buffer", "multigrid_sync_arg", "heap_v1", "default_queue", "completion_action",
    "queue_ptr",
)  # fmt: skip
_NOWHERE = 0x6B00_0000_0000  # below all memory; each service has 4 GiB from here on
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}
_LDS_UNIT = 16  # the largest alignment that a pointer to LDS needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    buffer: int
    offset: int = 0


Value = Pointer | int | float | bytes | np.generic | None
"""An argument as it is packed: None is the null pointer, bytes are a struct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    grid: Triple
    block: Triple
    fixed_lds: int
    dynamic_lds: int


def service_pointer(name: str) -> int:
    """The address of a runtime service that rota lacks; no memory is there."""
    return _NOWHERE + (_SERVICES.index(name) << 32)


def service_at(address: int) -> str | None:
    number = (address - _NOWHERE) >> 32
    return _SERVICES[number] if 0 <= number < len(_SERVICES) else None


def build_kernarg(  # noqa: C901, PLR0912
    facts: KernelFacts, values: Sequence[Value], address: Callable[[Pointer], int], sizes: Sizes
) -> bytes:
    """The kernarg segment; a kernel without argument metadata gets its values one after the other."""
    explicit = [argument for argument in facts.arguments if not argument.hidden]
    if not named_arguments(facts):
        return _pack_unnamed(facts, values, address)
    segment = bytearray(facts.kernarg_bytes)
    lds = sizes.fixed_lds
    for number, (argument, value) in enumerate(zip(explicit, values, strict=True)):
        if argument.kind == "dynamic_shared_pointer":
            lds = -(-lds // _LDS_UNIT) * _LDS_UNIT
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                why = f"a pointer to LDS, but {value!r:.60} is no size"
                raise _misfit(argument, number, why, "pass its bytes as int")
            packed, lds = lds.to_bytes(argument.size, "little"), lds + value
        elif argument.kind == "global_buffer":
            if isinstance(value, Pointer) or value is None:
                to = 0 if value is None else address(value)
            elif isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < 1 << 64:
                to = int(value)
            else:
                why = f"a pointer, but {value!r:.60} was given"
                raise _misfit(argument, number, why, "pass an array, or None for null")
            packed = to.to_bytes(argument.size, "little")
        elif argument.kind == "by_value":
            packed = _pack_value(argument, number, value, address)
        else:
            raise _misfit(argument, number, f"of kind {argument.kind}, which rota doesn't support")
        segment[argument.offset : argument.offset + argument.size] = packed
    # Grids are whole workgroups, so remainders are zero; global offsets are OpenCL's, and zero too.
    hidden = {"hidden_grid_dims": _count_dimensions(sizes), "hidden_dynamic_lds_size": sizes.dynamic_lds}
    for axis, count, size in zip("xyz", sizes.grid, sizes.block, strict=True):
        hidden |= {f"hidden_block_count_{axis}": count, f"hidden_group_size_{axis}": size}
        hidden |= {f"hidden_remainder_{axis}": 0, f"hidden_global_offset_{axis}": 0}
    hidden |= {f"hidden_{name}": service_pointer(name) for name in _SERVICES}
    hidden |= {"hidden_private_base": POISON, "hidden_shared_base": POISON}  # apertures: instructions know them here
    for argument in facts.arguments:
        if argument.kind in hidden:
            packed = hidden[argument.kind].to_bytes(argument.size, "little")
            segment[argument.offset : argument.offset + argument.size] = packed
    return bytes(segment[: facts.kernarg_bytes])


def named_arguments(facts: KernelFacts) -> bool:
    """True if the metadata describes the arguments; that of hand-written kernels often doesn't."""
    return bool(facts.arguments) or not facts.kernarg_bytes


def dynamic_lds(facts: KernelFacts, values: Sequence[Value], sizes: Sizes) -> int:
    """Bytes of LDS after the fixed ones: the requested bytes, and what pointers to LDS need."""
    end = sizes.fixed_lds
    explicit = (argument for argument in facts.arguments if not argument.hidden)
    for argument, value in zip(explicit, values, strict=False):
        if argument.kind == "dynamic_shared_pointer" and isinstance(value, int):
            end = -(-end // _LDS_UNIT) * _LDS_UNIT + value
    return end - sizes.fixed_lds + sizes.dynamic_lds


def _count_dimensions(sizes: Sizes) -> int:
    return max((axis + 1 for axis in range(3) if sizes.grid[axis] * sizes.block[axis] > 1), default=1)


def _pack_unnamed(facts: KernelFacts, values: Sequence[Value], address: Callable[[Pointer], int]) -> bytes:
    """Aligns pointers and NumPy scalars as C does, and appends bytes without padding."""
    segment = bytearray()
    for number, value in enumerate(values):
        if isinstance(value, bytes):
            segment += value
            continue
        if isinstance(value, Pointer) or value is None:
            packed = (0 if value is None else address(value)).to_bytes(8, "little")
        elif isinstance(value, np.generic):
            packed = value.tobytes()
        else:
            unnamed = Argument(name=f"arg{number}", offset=len(segment), size=0, kind="unnamed")
            why = "the code object doesn't say how large it is"
            raise _misfit(unnamed, number, why, "pass numpy.int32(...) or bytes")
        segment += bytes(-len(segment) % len(packed)) + packed
    if len(segment) > facts.kernarg_bytes:
        evidence = (("kernarg segment", f"{len(segment)} bytes given, {facts.kernarg_bytes} declared"),)
        raise IsaError.of("I107", f"the launch doesn't fit kernel {facts.name}", evidence=evidence)
    return bytes(segment.ljust(facts.kernarg_bytes, b"\0"))


def _pack_value(argument: Argument, number: int, value: Value, address: Callable[[Pointer], int]) -> bytes:
    size = argument.size
    if isinstance(value, Pointer) and size == 8:  # a pointer that the compiler lost sight of
        return address(value).to_bytes(8, "little")
    octets = value if isinstance(value, bytes) else value.tobytes() if isinstance(value, np.generic) else b""
    if len(octets) == size > 0:
        return octets
    if isinstance(value, int | np.integer) and -(1 << 8 * size - 1) <= int(value) < 1 << 8 * size:
        return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")
    if isinstance(value, float | np.floating) and size in _FLOATS:
        return struct.pack(_FLOATS[size], value)
    raise _misfit(argument, number, f"{size} bytes by value, but {value!r:.60} doesn't fit")


def _misfit(argument: Argument, number: int, why: str, *fixes: str) -> IsaError:
    message = f"argument {number} doesn't fit the kernel"
    concerns = (Concern(label=argument.name, index=number, role=argument.kind),)
    return IsaError.of("I107", message, concerns=concerns, evidence=(("it is", why),), fixes=fixes)


# The initial state of a wave (LLVM, "User Guide for AMDGPU Backend", sections "Initial Kernel Execution State" and
# "Kernel Dispatch") and the packet of the HSA runtime specification, "Kernel dispatch packet".

PACKET_BYTES = 64
_KERNEL_DISPATCH = 2 | 1 << 8 | 2 << 9 | 2 << 11  # its type, after a barrier, fences of the system's scope
_OLD_FIRMWARE = 256  # bytes before the entry, which load the arguments if the firmware doesn't preload them
_FIRST_WAVE = 1 << 31
_WAVE_SHIFT = 25  # where ttmp8 holds a wave's number


def waves_of(block: Triple, lanes: int) -> int:
    return -(-block[0] * block[1] * block[2] // lanes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """What all waves of a launch start from: the sizes, and the addresses of kernarg segment and packet."""

    facts: KernelFacts
    sizes: Sizes
    kernarg: bytes
    kernarg_at: int
    packet_at: int
    entry: int  # the number of the first instruction
    lanes: int  # of a wave
    fills_traps: bool = False  # workgroup ids come in registers of trap handlers

    @property
    def waves(self) -> int:
        return waves_of(self.sizes.block, self.lanes)

    def start(self, wave: Wave, workgroup: Triple) -> None:
        """Sets a wave's first registers: user SGPRs, workgroup ids, and work-item ids packed into v0 (gfx90a on)."""
        wave.pc = self.entry
        wave.mode = self.facts.descriptor.float_mode.bits
        at = 0
        for name, size in self.facts.user_sgprs:
            wave.s[at : at + size] = self._user(name, size)
            at += size
        for wanted, value in zip(self.facts.workgroup_ids, workgroup, strict=True):
            if wanted:
                wave.s[at] = value
                at += 1
        if self.facts.descriptor.workgroup_info:
            wave.s[at] = self.waves | (_FIRST_WAVE if wave.number == 0 else 0)
        if self.fills_traps:
            self._fill_trap_registers(wave, workgroup)
        block, lanes = self.sizes.block, self.lanes
        item = wave.number * lanes + np.arange(lanes)
        x, y, z = item % block[0], item // block[0] % block[1], item // (block[0] * block[1])
        ids = (x, y, z)[: self.facts.workitem_ids + 1]
        wave.v[0] = sum((part << (10 * place) for place, part in enumerate(ids)), np.zeros(lanes, np.int64))
        here = block[0] * block[1] * block[2] - wave.number * lanes
        if here < lanes:
            wave.s[EXEC], wave.s[EXEC + 1] = (1 << here) - 1 & 0xFFFF_FFFF, (1 << here) - 1 >> 32
            wave.update_mask()

    @staticmethod
    def _fill_trap_registers(wave: Wave, workgroup: Triple) -> None:
        """No clusters, the workgroup's place, and the wave's number in it (seen in what LLVM 22 and Triton emit)."""
        x, y, z = workgroup
        for name, value in (("ttmp6", 0), ("ttmp7", y | z << 16), ("ttmp8", wave.number << _WAVE_SHIFT), ("ttmp9", x)):
            wave.s[NAMED[name][0]] = value

    def _user(self, name: str, size: int) -> list[int]:
        """Words of one user SGPR value; hardware finds scratch by itself, so scratch descriptors are poison."""
        if name == "kernarg_preload":
            padded = self.kernarg[4 * self.facts.descriptor.preload_offset :].ljust(4 * size, b"\0")
            return list(struct.unpack_from(f"<{size}I", padded))
        known = {
            "kernarg_segment_ptr": self.kernarg_at,
            "dispatch_ptr": self.packet_at,
            "queue_ptr": service_pointer("queue_ptr"),
            "dispatch_id": 0,
            "private_segment_size": self.facts.private_bytes,
        }
        if name not in known:
            return [POISON] * size
        return [known[name] >> 32 * word & 0xFFFF_FFFF for word in range(size)]


def build_packet(facts: KernelFacts, sizes: Sizes, kernarg_at: int) -> bytes:
    items = (count * size for count, size in zip(sizes.grid, sizes.block, strict=True))
    return struct.pack(
        "<6H5I4Q",
        *(_KERNEL_DISPATCH, _count_dimensions(sizes), *sizes.block, 0),
        *(*items, facts.private_bytes, sizes.fixed_lds + sizes.dynamic_lds),
        *(0, kernarg_at, 0, 0),  # the kernel object and the signal are nobody's business here
    )


def first_instruction(facts: KernelFacts, instructions: Sequence[Instruction]) -> int:
    """The entry: with preloaded arguments, after the loads for old firmware; else, and without addresses, the top."""
    entry = facts.entry
    if entry is None and "kernarg_preload" in dict(facts.user_sgprs) and instructions[0].address is not None:
        entry = instructions[0].address + _OLD_FIRMWARE
    return next((number for number, each in enumerate(instructions) if entry and each.address == entry), 0)


MOST_WORKGROUPS = 1 << 20  # per launch: more would take days here
_TRITON = "a kernel that Triton compiled takes two pointers more, to scratch memory: pass None, None"


def check_sizes(
    facts: KernelFacts, machine: Architecture, values: Sequence[Value], *, grid: Triple, block: Triple, more_lds: int
) -> Sizes:
    """The sizes of a launch; raises I107 if the arguments, the workgroup or its LDS don't fit the kernel."""
    declared = [argument for argument in facts.arguments if not argument.hidden]
    counted = not named_arguments(facts) or len(declared) == len(values)
    whole = min(*grid, *block) > 0
    sizes = Sizes(grid=grid, block=block, fixed_lds=facts.descriptor.lds_bytes, dynamic_lds=more_lds)
    more = dynamic_lds(facts, values, sizes)
    lds = sizes.fixed_lds + more
    items = block[0] * block[1] * block[2] if whole else 0
    meant = facts.required_workgroup in {None, block}
    whole = whole and grid[0] * grid[1] * grid[2] <= MOST_WORKGROUPS
    if (
        counted
        and whole
        and meant
        and more_lds >= 0
        and items <= facts.max_workgroup
        and lds <= machine.lds_bytes.value
    ):
        return Sizes(grid=grid, block=block, fixed_lds=sizes.fixed_lds, dynamic_lds=more)
    missing = declared[len(values) :] if not counted else []
    raise IsaError.of(
        "I107",
        f"the launch doesn't fit kernel {facts.name}",
        evidence=(
            ("arguments", f"{len(values)} given, {len(declared)} declared"),
            *(("missing", f"{each.name}, {each.kind} of {each.size} bytes") for each in missing),
            *((("grid", f"{grid} workgroups, at most {MOST_WORKGROUPS} in all"),) if not whole else ()),
            ("workgroup", f"{block} work-items, at most {facts.max_workgroup} in all"),
            *((("compiled for", f"{facts.required_workgroup} work-items"),) if not meant else ()),
            ("LDS", f"{lds} bytes; {machine.arch} has {machine.lds_bytes.value}"),
        ),
        fixes=(_TRITON,) if [each.kind for each in missing] == ["global_buffer"] * 2 else (),
    )
