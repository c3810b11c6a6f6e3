"""The kernarg segment of a launch: takes a kernel's facts, values and sizes, gives the bytes that the kernel reads.

What a runtime fills in by itself, the hidden arguments (LLVM, "User Guide for AMDGPU Backend", "Code Object V5 Kernel
Argument Metadata"), is filled in as a runtime would.  Services that only a runtime has, such as printf, are addresses
that belong to nothing: a kernel that uses one is told so.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rota.errors import Concern, Finding, IsaError
from rota.isa.binary.kernel_facts import Argument, KernelFacts
from rota.isa.wave.wave import POISON

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
    """An address within one of the launch's buffers."""

    buffer: int
    offset: int = 0


Value = Pointer | int | float | bytes | np.generic | None
"""An argument as it is packed: None is the null pointer, bytes are a struct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large a launch is: workgroups, work-items of each, and LDS in bytes, fixed by the kernel or not."""

    grid: Triple
    block: Triple
    fixed_lds: int
    dynamic_lds: int


def service_pointer(name: str) -> int:
    """Where a service that rota doesn't have would be: an address of no memory."""
    return _NOWHERE + (_SERVICES.index(name) << 32)


def service_at(address: int) -> str | None:
    """The service that an address belongs to, if any."""
    number = (address - _NOWHERE) >> 32
    return _SERVICES[number] if 0 <= number < len(_SERVICES) else None


def build_kernarg(
    facts: KernelFacts, values: Sequence[Value], address: Callable[[Pointer], int], sizes: Sizes
) -> bytes:
    """The segment, as long as the kernel says; without notes about arguments, values one behind the other."""
    explicit = [argument for argument in facts.arguments if not argument.hidden]
    if not named_arguments(facts):
        return _unnamed(facts, values, address)
    segment = bytearray(facts.kernarg_bytes)
    lds = sizes.fixed_lds
    for number, (argument, value) in enumerate(zip(explicit, values, strict=True)):
        if argument.kind == "dynamic_shared_pointer":
            lds = -(-lds // _LDS_UNIT) * _LDS_UNIT
            packed, lds = lds.to_bytes(argument.size, "little"), lds + _lds_bytes(argument, number, value)
        elif argument.kind == "global_buffer":
            packed = _pointer(argument, number, value, address).to_bytes(argument.size, "little")
        elif argument.kind == "by_value":
            packed = _number(argument, number, value, address)
        else:
            raise _wrong(argument, number, f"it is of kind {argument.kind}, which rota has nothing for")
        segment[argument.offset : argument.offset + argument.size] = packed
    hidden = _hidden(sizes)
    for argument in facts.arguments:
        if argument.kind in hidden:
            packed = hidden[argument.kind].to_bytes(argument.size, "little")
            segment[argument.offset : argument.offset + argument.size] = packed
    return bytes(segment[: facts.kernarg_bytes])


def named_arguments(facts: KernelFacts) -> bool:
    """Do the notes say what the kernel takes?  Those of hand-written kernels often don't."""
    return bool(facts.arguments) or not facts.kernarg_bytes


def dynamic_lds(facts: KernelFacts, values: Sequence[Value], sizes: Sizes) -> int:
    """Bytes of LDS that a launch needs behind the fixed ones: what is asked for, and what pointers to LDS name."""
    end = sizes.fixed_lds
    explicit = (argument for argument in facts.arguments if not argument.hidden)
    for argument, value in zip(explicit, values, strict=False):
        if argument.kind == "dynamic_shared_pointer" and isinstance(value, int):
            end = -(-end // _LDS_UNIT) * _LDS_UNIT + value
    return end - sizes.fixed_lds + sizes.dynamic_lds


def _hidden(sizes: Sizes) -> dict[str, int]:
    """Grids are whole numbers of workgroups, so there is no remainder; offsets of a grid are OpenCL's, and zero."""
    found = {
        "hidden_grid_dims": max((axis + 1 for axis in range(3) if sizes.grid[axis] * sizes.block[axis] > 1), default=1)
    }
    for axis, count, size in zip("xyz", sizes.grid, sizes.block, strict=True):
        found |= {f"hidden_block_count_{axis}": count, f"hidden_group_size_{axis}": size}
        found |= {f"hidden_remainder_{axis}": 0, f"hidden_global_offset_{axis}": 0}
    found |= {f"hidden_{name}": service_pointer(name) for name in _SERVICES}
    found |= {"hidden_private_base": POISON, "hidden_shared_base": POISON}  # apertures: instructions know them here
    return found | {"hidden_dynamic_lds_size": sizes.dynamic_lds}


def _unnamed(facts: KernelFacts, values: Sequence[Value], address: Callable[[Pointer], int]) -> bytes:
    """Pointers and NumPy scalars as C would lay them out, bytes wherever the last value ended."""
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
            raise _wrong(
                unnamed, number, "the code object doesn't say how large it is", "pass numpy.int32(...) or bytes"
            )
        segment += bytes(-len(segment) % len(packed)) + packed
    if len(segment) > facts.kernarg_bytes:
        raise IsaError(
            Finding(
                code="I107",
                message=f"the launch doesn't fit kernel {facts.name}",
                evidence=(("kernarg segment", f"{len(segment)} bytes given, {facts.kernarg_bytes} declared"),),
            )
        )
    return bytes(segment.ljust(facts.kernarg_bytes, b"\0"))


def _lds_bytes(argument: Argument, number: int, value: Value) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _wrong(argument, number, f"a pointer to LDS, for which {value!r:.60} is no size", "pass its bytes as int")
    return value


def _pointer(argument: Argument, number: int, value: Value, address: Callable[[Pointer], int]) -> int:
    if isinstance(value, Pointer):
        return address(value)
    if value is None:
        return 0
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < 1 << 64:
        return int(value)
    raise _wrong(argument, number, f"a pointer, for which {value!r:.60} stands", "pass an array, or None for null")


def _number(argument: Argument, number: int, value: Value, address: Callable[[Pointer], int]) -> bytes:
    size = argument.size
    if isinstance(value, Pointer) and size == 8:  # a pointer that the compiler lost sight of
        return address(value).to_bytes(8, "little")
    if (
        isinstance(value, bytes | np.generic)
        and len(octets := bytes(value) if isinstance(value, bytes) else value.tobytes()) == size
    ):
        return octets
    if isinstance(value, int | np.integer) and -(1 << 8 * size - 1) <= int(value) < 1 << 8 * size:
        return (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little")
    if isinstance(value, float | np.floating) and size in _FLOATS:
        return struct.pack(_FLOATS[size], value)
    raise _wrong(argument, number, f"{size} bytes by value, into which {value!r:.60} doesn't go")


def _wrong(argument: Argument, number: int, why: str, *fixes: str) -> IsaError:
    return IsaError(
        Finding(
            code="I107",
            message=f"argument {number} doesn't fit the kernel",
            concerns=(Concern(label=argument.name, index=number, role=argument.kind),),
            evidence=(("it is", why),),
            fixes=fixes,
        )
    )
