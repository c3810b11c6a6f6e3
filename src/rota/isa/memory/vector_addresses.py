"""Where vector memory instructions go: takes operands and modifiers, gives a function from a wave to its addresses.

Buffer addresses follow the resource (CDNA3 ISA, "Buffer Addressing"): base, offsets from a lane, a scalar and the
instruction, and index times stride, swizzled if the resource says so.  Accesses outside of `num_records` read zero and
write nothing.  Without a stride, or without an index, records are bytes, and each word is checked by itself.  With
both, and swizzled, they are strides, and the index is checked.  With both and not swizzled public accounts differ
(bytes in AMD's, strides in Mesa's): a lane that only one of them lets through is a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.wave.operand import File, Operand, scalar_reader, unknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

CACHE = frozenset({"sc0", "sc1", "nt", "glc", "slc"})  # who may keep a copy: no effect on values
_FLAGS = CACHE | {"offen", "idxen", "lds"}
_ELEMENT = 4  # bytes that stay together in a swizzled buffer; gfx9 has no other size
_NO_END = np.uint64(1 << 62)

# Takes a wave, gives byte addresses, and the room behind each of them; None is as much as one likes.
Addresses = Callable[["Wave"], tuple["NDArray[np.uint64]", "NDArray[np.uint64] | None"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Modifiers:
    """The offset of an instruction, and its flags."""

    offset: int
    flags: frozenset[str]


def read_modifiers(instruction: Instruction) -> Modifiers:
    """All modifiers of a vector memory instruction; one that isn't known is an error."""
    offset, flags = 0, set()
    for modifier in instruction.modifiers:
        if modifier.startswith("offset:"):
            offset = int(modifier.partition(":")[2], 0)
        elif modifier in _FLAGS:
            flags.add(modifier)
        else:
            raise unknown(instruction, f"modifier {modifier!r}")
    return Modifiers(offset=offset, flags=frozenset(flags))


def pointers(lane: Operand, base: Operand, offset: int) -> Addresses:
    """A 64-bit address per lane, or a scalar one with an offset per lane."""
    row = lane.first
    near = np.uint64(offset & 0xFFFF_FFFF_FFFF_FFFF)

    def full(wave: Wave) -> tuple[NDArray[np.uint64], None]:
        low, high = wave.v[row].astype(np.uint64), wave.v[row + 1].astype(np.uint64)
        return (low | high << np.uint64(32)) + near, None

    scalar = scalar_reader(base, wide=True)

    def relative(wave: Wave) -> tuple[NDArray[np.uint64], None]:
        return wave.v[row].astype(np.uint64) + np.uint64(scalar(wave)) + near, None

    return full if base.file is File.NONE else relative


@dataclass(frozen=True, slots=True)
class _Resource:
    """A buffer resource of four scalar registers, as gfx9 lays it out."""

    base: int
    stride: int
    swizzled: bool
    records: int
    index_stride: int
    adds_lane: bool

    @classmethod
    def of(cls, words: list[int]) -> _Resource:
        low, high, records, last = words
        return cls(
            base=low | (high & 0xFFFF) << 32,
            stride=high >> 16 & 0x3FFF,
            swizzled=bool(high >> 31),
            records=records,
            index_stride=8 << (last >> 21 & 3),
            adds_lane=bool(last >> 23 & 1),
        )


def in_buffer(operands: list[Operand], modifiers: Modifiers, instruction: Instruction) -> Addresses:
    """Addresses within a buffer resource."""
    lane, first = operands[0], operands[1].first
    soffset = scalar_reader(operands[2])
    offen, idxen = "offen" in modifiers.flags, "idxen" in modifiers.flags
    offset_row = lane.first + (1 if idxen else 0)

    def addresses(wave: Wave) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        resource = _Resource.of(wave.s[first : first + 4])
        moved = np.uint64(soffset(wave))
        offset = np.full(LANES, modifiers.offset, np.uint64)
        if offen:
            offset += wave.v[offset_row]
        if resource.adds_lane:
            _unsettled(wave, instruction, "adds the lane's number to the index, which is not modelled")
            return offset, np.zeros(LANES, np.uint64)
        if not idxen and resource.stride and resource.swizzled:
            _unsettled(wave, instruction, "is swizzled, without an index")
            return offset, np.zeros(LANES, np.uint64)
        if not idxen or not resource.stride:
            return _raw(resource, offset, moved)
        address, counted, settled = _structured(resource, wave.v[lane.first].astype(np.uint64), offset, moved)
        if not settled[wave.active].all():
            _unsettled(wave, instruction, "has a lane that is in range or not, by the unit of its num_records")
        return address, np.where(counted & settled, _NO_END, np.uint64(0))

    return addresses


def _raw(
    resource: _Resource, offset: NDArray[np.uint64], moved: np.uint64
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The scalar offset counts in the check: an offset is out of range from num_records - soffset on."""
    inside = offset + moved
    records = np.uint64(resource.records)
    return inside + np.uint64(resource.base), records - np.minimum(inside, records)


def _structured(
    resource: _Resource, index: NDArray[np.uint64], offset: NDArray[np.uint64], moved: np.uint64
) -> tuple[NDArray[np.uint64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Addresses, which of them are in range, and for which of them that is settled."""
    stride, records = np.uint64(resource.stride), np.uint64(resource.records)
    counted = index < records
    if resource.swizzled:
        group, element = np.uint64(resource.index_stride), np.uint64(_ELEMENT)
        at = (index // group * stride + offset // element * element) * group
        at += index % group * element + offset % element
        settled = np.ones(LANES, np.bool_)
    else:
        at = index * stride + offset
        settled = counted == (at + moved < records)
    return at + moved + np.uint64(resource.base), counted, settled


def _unsettled(wave: Wave, instruction: Instruction, what: str) -> None:
    wave.faults.add("I105", instruction, f"{instruction.opcode} uses a resource that {what}", ("wave", wave.number))
