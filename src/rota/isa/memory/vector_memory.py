"""Vector memory instructions: buffer, global, flat and scratch (CDNA3 ISA, "Vector Memory").

An access that passes the check of its buffer resource and yet belongs to no buffer is a fault, as on the machine. Loads
and stores may start at any byte, atomics at multiples of their size.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.isa.binary.kernel_facts import LANES
from rota.isa.disassembly import Instruction
from rota.isa.memory.atomic_ops import Combine, memory_atomic
from rota.isa.memory.lds_ops import change_bytes, combine_bytes, reach, report_misaligned, write_bytes
from rota.isa.memory.memories import Width
from rota.isa.memory.scalar_memory import decode_scalar_memory
from rota.isa.races import MemoryUse, Scope, scope_of
from rota.isa.wave.operand import M0, PRIVATE_BASE, SHARED_BASE, File, Operand, parse_operand, scalar_reader, unknown
from rota.isa.wave.wave import Act, Step, Wave, make_step
from rota.targets.architecture import Architecture

Lanes = NDArray[np.bool_]
_APERTURE = 1 << 32  # bytes of LDS and of private memory among flat addresses
SIZES = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "byte": 1, "short": 2}
_WORDS = ("dword", "dwordx2", "dwordx3", "dwordx4")
_LOADS = frozenset(
    (
        *_WORDS,
        *(sign + name for sign in "us" for name in ("byte", "short")),
        *(name + half for name in ("ubyte", "sbyte", "short") for half in ("_d16", "_d16_hi")),
    )
)
_STORES = frozenset((*_WORDS, "byte", "short", "byte_d16_hi", "short_d16_hi"))


def width_of(verb: str, text: str) -> Width | None:
    """The width of that name, such as dwordx2 or sbyte_d16_hi; None if `verb` (load or store) has none."""
    if text not in (_LOADS if verb == "load" else _STORES):
        return None
    name, _, half = text.partition("_")
    plain = name if name in SIZES else name[1:]
    return Width(
        size=SIZES[plain], signed=name in {"sbyte", "sshort"}, half=bool(half) and verb == "load", high=half == "d16_hi"
    )


# Addresses. A buffer resource (CDNA3 ISA, "Buffer Addressing") adds its base, offsets of the lane, a scalar and the
# instruction, and index times stride, swizzled if it says so. Accesses outside `num_records` read zero and write
# nothing. Without a stride or an index, records are bytes and each word is checked by itself. With both and a swizzle,
# records are strides and the index is checked. With both and no swizzle, public accounts differ (AMD: bytes, Mesa:
# strides), so a lane that only one of them lets through is a fault.

CACHE = frozenset({"sc0", "sc1", "nt", "glc", "slc"})  # cache policy: no effect on values
_FLAGS = CACHE | {"offen", "idxen", "lds"}
_ELEMENT = 4  # bytes that stay together in a swizzled buffer; gfx9 has no other size
_NO_END = np.uint64(1 << 62)

# From a wave to byte addresses and the bytes in range after each; None is without limit.
Addresses = Callable[["Wave"], tuple["NDArray[np.uint64]", "NDArray[np.uint64] | None"]]


class Modifiers(NamedTuple):
    offset: int
    flags: frozenset[str]


def read_modifiers(instruction: Instruction) -> Modifiers:
    offset, flags = 0, set()
    for modifier in instruction.modifiers:
        if modifier.startswith("offset:"):
            offset = int(modifier.partition(":")[2], 0)
        elif modifier in _FLAGS:
            flags.add(modifier)
        else:
            raise unknown(instruction, f"modifier {modifier!r}")
    return Modifiers(offset=offset, flags=frozenset(flags))


def pointer_addresses(lane: Operand, base: Operand, offset: int) -> Addresses:
    """A 64-bit address per lane, or a scalar base with an offset per lane."""
    row = lane.first
    near = np.uint64(offset & 0xFFFF_FFFF_FFFF_FFFF)

    def full(wave: Wave) -> tuple[NDArray[np.uint64], None]:
        low, high = wave.v[row].astype(np.uint64), wave.v[row + 1].astype(np.uint64)
        return (low | high << np.uint64(32)) + near, None

    scalar = scalar_reader(base, wide=True)

    def relative(wave: Wave) -> tuple[NDArray[np.uint64], None]:
        return wave.v[row].astype(np.uint64) + np.uint64(scalar(wave)) + near, None

    return full if base.file is File.NONE else relative


def buffer_addresses(operands: list[Operand], modifiers: Modifiers, instruction: Instruction) -> Addresses:
    lane, first = operands[0], operands[1].first
    soffset = scalar_reader(operands[2])
    offen, idxen = "offen" in modifiers.flags, "idxen" in modifiers.flags
    offset_row = lane.first + (1 if idxen else 0)

    def report(wave: Wave, what: str) -> None:
        message = f"{instruction.opcode} uses a buffer resource that {what}"
        wave.faults.add("I105", instruction, message, ("wave", wave.number))

    def addresses(wave: Wave) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        # The buffer resource, in the layout of gfx9.
        low, high, count, last = wave.s[first : first + 4]
        base, records, stride = np.uint64(low | (high & 0xFFFF) << 32), np.uint64(count), np.uint64(high >> 16 & 0x3FFF)
        swizzled, moved, wrong = high >> 31, np.uint64(soffset(wave)), ""
        offset = np.full(LANES, modifiers.offset, np.uint64)
        if offen:
            offset += wave.v[offset_row]
        if last >> 23 & 1:
            wrong = "adds the lane's number to the index, which is not modelled"
        elif not idxen and stride and swizzled:
            wrong = "is swizzled, but it has no index"
        if wrong:
            report(wave, wrong)
            return offset, np.zeros(LANES, np.uint64)
        if not idxen or not stride:  # an offset is out of range from num_records - soffset on
            inside = offset + moved
            return inside + base, records - np.minimum(inside, records)
        index = wave.v[lane.first].astype(np.uint64)
        counted, settled = index < records, np.ones(LANES, np.bool_)  # settled if all public accounts agree
        if swizzled:
            group, element = np.uint64(8 << (last >> 21 & 3)), np.uint64(_ELEMENT)
            at = (index // group * stride + offset // element * element) * group
            at += index % group * element + offset % element
        else:
            at = index * stride + offset
            settled = counted == (at + moved < records)
        if not settled[wave.active].all():
            report(wave, "makes a lane's range depend on the unit of num_records")
        return at + moved + base, np.where(counted & settled, _NO_END, np.uint64(0))

    return addresses


# Private memory. Each lane has its own bytes; a kernel can't see how the device interleaves them.

_SCRATCH_OPCODE = re.compile(r"^scratch_(?P<verb>load|store)_(?P<width>\w+)$")


def decode_scratch(instruction: Instruction) -> Step | None:
    found = _SCRATCH_OPCODE.match(instruction.opcode)
    width = width_of(found["verb"], found["width"]) if found else None
    if found is None or width is None:
        return None
    loads, offset = found["verb"] == "load", read_modifiers(instruction).offset
    first, second, base = (parse_operand(text, instruction) for text in instruction.operands)
    data, lane = (first, second) if loads else (second, first)
    scalar = scalar_reader(base) if base.file is not File.NONE else (lambda _: 0)
    registers = slice(data.first, data.first + data.count)

    def act(wave: Wave) -> None:
        private, issued = wave.private, wave.active
        at = np.full(LANES, scalar(wave) + offset, np.int64)
        at = at if lane.file is File.NONE else at + wave.v[lane.first]
        index, lanes = private.index(wave, instruction, at, width.size, issued)
        if not loads:
            private.put(index, lanes, width.to_bytes(wave.v[registers])[:, : width.size])
            wave.launch("vm", instruction)
            return
        fetched, old = private.get(index, lanes), wave.other_half(data.first)

        def finish() -> None:
            np.copyto(wave.v[registers], width.registers(fetched, old), where=issued)

        wave.launch("vm", instruction, rows=data.rows, finish=finish)

    if loads:
        return make_step(instruction, act)
    return make_step(instruction, act)


# Flat instructions. An address in the shared aperture means LDS, one in the private aperture the lane's private memory,
# any other global memory. They count in vmcnt and in lgkmcnt and return in no order, so that only waits for zero on
# both counters cover them.

_FLAT_OPCODE = re.compile(r"^flat_(?P<verb>load|store)_(?P<width>\w+)$")


def decode_flat(instruction: Instruction) -> Step | None:
    if not instruction.opcode.startswith("flat_"):
        return None
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    modifiers = read_modifiers(instruction)
    if not modifiers.flags <= {"sc0", "sc1", "nt"}:
        raise unknown(instruction, "modifier")
    flat = _Flat(instruction=instruction, offset=modifiers.offset, scope=scope_of(modifiers.flags))
    if (atomic := memory_atomic(instruction.opcode)) is not None:
        combine, size, compares = atomic
        target, rest = (operands[0], operands[1:]) if "sc0" in modifiers.flags else (None, operands)
        lane, data = rest
        if data.count != (2 if compares else 1) * size // 4:
            raise unknown(instruction, f"operand {data.text!r}")
        act = _flat_atomic(flat, lane, data, target, atomic=(combine, size))
        return make_step(instruction, act)
    found = _FLAT_OPCODE.match(instruction.opcode)
    width = width_of(found["verb"], found["width"]) if found else None
    if found is None or width is None:
        return None
    if found["verb"] == "load":
        return make_step(instruction, _load_flat(flat, operands, width))
    return make_step(instruction, _store_flat(flat, operands, width))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flat:
    instruction: Instruction
    offset: int
    scope: Scope

    def split(self, wave: Wave, lane: Operand) -> tuple[NDArray[np.uint64], Lanes, Lanes, Lanes]:
        """Addresses, and the active lanes that go to global memory, LDS and private memory."""
        low, high = wave.v[lane.first].astype(np.uint64), wave.v[lane.first + 1].astype(np.uint64)
        address = (low | high << np.uint64(32)) + np.uint64(self.offset & 0xFFFF_FFFF_FFFF_FFFF)
        part = address // np.uint64(_APERTURE)
        in_lds = wave.active & (part == SHARED_BASE // _APERTURE)
        private = wave.active & (part == PRIVATE_BASE // _APERTURE)
        return address, wave.active & ~in_lds & ~private, in_lds, private


def _places_in_lds(
    wave: Wave, flat: _Flat, address: NDArray[np.uint64], lanes: Lanes, size: int
) -> tuple[NDArray[np.int64], Lanes]:
    near = np.where(lanes, address % np.uint64(_APERTURE), np.uint64(0)).astype(np.int64)
    index, inside = reach(wave, flat.instruction, near, np.arange(size, dtype=np.int64))
    return index, lanes & inside


def _load_flat(flat: _Flat, operands: tuple[Operand, ...], width: Width) -> Act:
    target, lane = operands
    instruction, size, first = flat.instruction, width.size, target.first

    def act(wave: Wave) -> None:
        memory, lds, issued = wave.memory, wave.lds, wave.active
        address, outside, in_lds, in_private = flat.split(wave, lane)
        out = np.full((LANES, size), 0xFF, np.uint8)
        number = memory.order.begin(wave, instruction, MemoryUse.READ, flat.scope)
        place, reached = memory.places(address, size, outside, instruction)
        memory.order.touch(number, place, size)
        out[reached] = memory.get(place, size)
        covers: list[Callable[[int], None]] = [partial(memory.order.cover, number)]
        if in_private.any():
            near = (address % np.uint64(_APERTURE)).astype(np.int64)
            index, lanes = wave.private.index(wave, instruction, near, size, in_private)
            out[lanes] = wave.private.get(index, lanes)[lanes]
        if in_lds.any():
            index, lanes = _places_in_lds(wave, flat, address, in_lds, size)
            read = lds.order.begin_read(index[lanes], wave.number, wave.epoch, instruction, flat=True)
            octets, marked = lds.sample(index[lanes], wave.number)
            if marked.any():
                lds.order.mark_seen(read, index[lanes][marked])
            out[lanes] = np.where(marked, np.uint8(0xFF), octets)
            covers.append(partial(lds.order.cover, read))
        old = wave.other_half(first)

        def finish() -> None:
            np.copyto(wave.v[first : first + target.count], width.registers(out, old), where=issued)

        wave.launch("flat", instruction, *covers, rows=target.rows, finish=finish)

    return act


def _store_flat(flat: _Flat, operands: tuple[Operand, ...], width: Width) -> Act:
    lane, source = operands
    instruction, size = flat.instruction, width.size

    def act(wave: Wave) -> None:
        memory = wave.memory
        address, outside, in_lds, in_private = flat.split(wave, lane)
        data = width.to_bytes(wave.v[source.first : source.first + source.count])[:, :size]
        number = memory.order.begin(wave, instruction, MemoryUse.WRITE, flat.scope)
        place, reached = memory.places(address, size, outside, instruction)
        memory.order.touch(number, place, size, memory.get(place, size) == data[reached])
        memory.put(place, data[reached])
        covers: list[Callable[[int], None]] = [partial(memory.order.cover, number)]
        finish: Callable[[], None] = lambda: None  # noqa: E731  # replaced where LDS is written
        if in_private.any():
            near = (address % np.uint64(_APERTURE)).astype(np.int64)
            index, lanes = wave.private.index(wave, instruction, near, size, in_private)
            wave.private.put(index, lanes, data)
        if in_lds.any():
            index, lanes = _places_in_lds(wave, flat, address, in_lds, size)
            finish, cover = write_bytes(wave, instruction, index[lanes], data[lanes])
            covers.append(cover)
        wave.launch("flat", instruction, *covers, finish=finish)

    return act


def _flat_atomic(
    flat: _Flat, lane: Operand, data: Operand, target: Operand | None, *, atomic: tuple[Combine, int]
) -> Act:
    instruction, (combine, size) = flat.instruction, atomic

    def act(wave: Wave) -> None:
        memory, issued = wave.memory, wave.active
        address, outside, in_lds, in_private = flat.split(wave, lane)
        if in_private.any():
            report_misaligned(wave, instruction, "atomics don't reach private memory")
        even = address % np.uint64(size) == 0
        if ((outside | in_lds) & ~even).any():
            report_misaligned(wave, instruction, f"its address is not a multiple of {size}")
        given = np.ascontiguousarray(wave.v[data.first : data.first + data.count].T).view(f"<u{size}")
        found = np.full((LANES, size), 0xFF, np.uint8)
        place, reached = memory.places(address, size, outside & even, instruction)
        covers = [_change_memory(wave, instruction, place, reached, combine, given, found, returns=target is not None)]
        ends: list[Callable[[], None]] = []
        if in_lds.any():
            index, lanes = _places_in_lds(wave, flat, address, in_lds & even, size)
            end, cover = change_bytes(wave, instruction, index, lanes, combine, given, found)
            ends.append(end)
            covers.append(cover)

        def finish() -> None:
            for end in ends:
                end()
            if target is not None:
                rows = slice(target.first, target.first + target.count)
                np.copyto(wave.v[rows], found.view(np.uint32).T, where=issued)

        wave.launch("flat", instruction, *covers, rows=() if target is None else target.rows, finish=finish)

    return act


def _change_memory(  # noqa: PLR0917
    wave: Wave,
    instruction: Instruction,
    place: NDArray[np.int64],
    reached: Lanes,
    combine: Combine,
    given: NDArray[np.uint64],
    found: NDArray[np.uint8],
    *,
    returns: bool,
) -> Callable[[int], None]:
    """Issues an atomic on each reached lane's place in turn; `found` gets the old bytes.  Gives its cover."""
    memory, size = wave.memory, found.shape[1]
    number = memory.order.begin(wave, instruction, MemoryUse.ATOMIC if returns else MemoryUse.BLIND_ATOMIC)
    memory.order.touch(number, place, size)
    for lane, at in zip(np.flatnonzero(reached).tolist(), place.tolist(), strict=True):
        spot = np.array([at])
        found[lane] = memory.get(spot, size)[0]
        memory.put(spot, combine_bytes(combine, found[lane], given[lane])[None])
    return partial(memory.order.cover, number)


_OPCODE = re.compile(r"^(?P<space>buffer|global)_(?P<verb>load|store)_(?P<lds>lds_)?(?P<width>\w+)$")
_HINTS = frozenset({"buffer_inv", "buffer_wbl2", "buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_invl2"})
_DMA_SIZES = frozenset({4, 12, 16})
SHORT_M0 = 1 << 16  # LDS bytes that 16 bits of M0 can name
_LANE = np.arange(LANES, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Access:
    instruction: Instruction
    size: int
    addresses: Addresses
    scope: Scope


def decode_memory(instruction: Instruction, architecture: Architecture) -> Step | None:
    for decode in (decode_scalar_memory, decode_scratch, decode_flat):
        if (step := decode(instruction)) is not None:
            return step
    if instruction.opcode in _HINTS:
        return make_step(instruction, lambda _: None)
    if (atomic := memory_atomic(instruction.opcode)) is not None:
        return _decode_atomic(instruction, *atomic)
    found = _OPCODE.match(instruction.opcode)
    width = width_of(found["verb"], found["width"]) if found else None
    if found is None or width is None:
        return None
    return _decode_plain(instruction, found, width, architecture)


def _decode_plain(
    instruction: Instruction, found: re.Match[str], width: Width, architecture: Architecture
) -> Step | None:
    modifiers = read_modifiers(instruction)
    to_lds = bool(found["lds"]) or "lds" in modifiers.flags
    operands = [parse_operand(text, instruction) for text in instruction.operands]
    stores = found["verb"] == "store"
    if to_lds:
        data, rest = None, operands
    elif found["space"] == "global" and stores:
        data, rest = operands[1], [operands[0], *operands[2:]]
    else:
        data, rest = operands[0], operands[1:]
    access = _access(instruction, found["space"], rest, width.size)
    if data is None:
        if stores or width.size not in _DMA_SIZES or width.size > architecture.dma_width.value:
            raise unknown(instruction, "width of a load to LDS")
        return make_step(instruction, _dma(access, modifiers.offset, architecture))
    if stores:
        return make_step(instruction, _store(access, data, width))
    return make_step(instruction, _load(access, data, width))


def _access(instruction: Instruction, space: str, rest: list[Operand], size: int) -> _Access:
    modifiers = read_modifiers(instruction)
    if space == "buffer":
        where = buffer_addresses(rest, modifiers, instruction)
    else:
        where = pointer_addresses(rest[0], rest[1], modifiers.offset)
    return _Access(instruction=instruction, size=size, addresses=where, scope=scope_of(modifiers.flags))


def _fetch(access: _Access, wave: Wave) -> tuple[NDArray[np.uint8], int, NDArray[np.uint64]]:
    """Lanes by bytes, zero beyond the end of a buffer resource; the number of the access; the addresses."""
    memory, (address, room) = wave.memory, access.addresses(wave)
    out = np.zeros((LANES, access.size), np.uint8)
    number = memory.order.begin(wave, access.instruction, MemoryUse.READ, access.scope)
    unit = access.size if room is None or bool((room >= access.size).all()) else min(4, access.size)
    for at in range(0, access.size, unit):
        wanted = wave.active if room is None else wave.active & (room >= at + unit)
        place, reached = memory.places(address + np.uint64(at), unit, wanted, access.instruction)
        out[reached, at : at + unit] = memory.get(place, unit)
        out[wanted & ~reached, at : at + unit] = 0xFF
        memory.order.touch(number, place, unit)
    return out, number, address


def _load(access: _Access, data: Operand, width: Width) -> Act:
    first = data.first

    def act(wave: Wave) -> None:
        fetched, number, _ = _fetch(access, wave)
        issued, old = wave.mask, wave.other_half(first)

        def finish() -> None:
            registers = width.registers(fetched, old)
            np.copyto(wave.v[first : first + data.count], registers, where=True if issued is None else issued)

        cover = partial(wave.memory.order.cover, number)
        wave.launch("vm", access.instruction, cover, rows=data.rows, finish=finish)

    return act


def _store(access: _Access, data: Operand, width: Width) -> Act:
    first, size = data.first, access.size

    def act(wave: Wave) -> None:
        memory, (address, room) = wave.memory, access.addresses(wave)
        octets = width.to_bytes(wave.v[first : first + data.count])
        number = memory.order.begin(wave, access.instruction, MemoryUse.WRITE, access.scope)
        unit = size if room is None else min(4, size)
        for at in range(0, size, unit):
            wanted = wave.active if room is None else wave.active & (room >= at + unit)
            place, reached = memory.places(address + np.uint64(at), unit, wanted, access.instruction)
            part = octets[reached, at : at + unit]
            memory.order.touch(number, place, unit, memory.get(place, unit) == part)
            memory.put(place, part)
        wave.launch("vm", access.instruction, partial(memory.order.cover, number))

    return act


def _decode_atomic(instruction: Instruction, combine: Combine, size: int, compares: bool) -> Step:
    """The old value returns if sc0 (glc) is set; the data may hold an expected value too."""
    modifiers = read_modifiers(instruction)
    returns = not modifiers.flags.isdisjoint({"sc0", "glc"})
    operands = [parse_operand(text, instruction) for text in instruction.operands]
    buffer = instruction.opcode.startswith("buffer")
    target = None
    if buffer:
        data, rest = operands[0], operands[1:]
        if returns:
            target = Operand(text=data.text, file=data.file, first=data.first, count=size // 4)
    else:
        if returns:
            target, operands = operands[0], operands[1:]
        data, rest = operands[1], [operands[0], *operands[2:]]
    if data.count != (2 if compares else 1) * size // 4:
        raise unknown(instruction, f"operand {data.text!r}")
    access = _access(instruction, "buffer" if buffer else "global", rest, size)
    act = _atomic(access, data, target, combine)
    return make_step(instruction, act)


def _atomic(access: _Access, data: Operand, target: Operand | None, combine: Combine) -> Act:
    size, instruction = access.size, access.instruction

    def act(wave: Wave) -> None:
        memory, (address, room) = wave.memory, access.addresses(wave)
        wanted = wave.active if room is None else wave.active & (room >= size)
        if (address[wanted] % np.uint64(size)).any():
            report_misaligned(wave, instruction, f"its address is not a multiple of {size}")
            wanted = wanted & (address % np.uint64(size) == 0)
        place, reached = memory.places(address, size, wanted, instruction)
        given = np.ascontiguousarray(wave.v[data.first : data.first + data.count].T).view(f"<u{size}")
        found = np.zeros((LANES, size), np.uint8)
        found[wanted & ~reached] = 0xFF
        cover = _change_memory(wave, instruction, place, reached, combine, given, found, returns=target is not None)
        issued = wave.active

        def finish() -> None:
            if target is not None:
                rows = slice(target.first, target.first + target.count)
                np.copyto(wave.v[rows], found.view(np.uint32).T, where=issued)

        wave.launch("vm", instruction, cover, rows=() if target is None else target.rows, finish=finish)

    return act


def _dma(access: _Access, offset: int, architecture: Architecture) -> Act:
    """Loads from memory to LDS: lane i writes at M0 + offset + i * size, whatever its source address.

    M0's upper bits are ignored where 16 bits address all of LDS (CDNA3 ISA), else M0 is taken whole.
    """
    size = access.size
    mask = SHORT_M0 - 1 if architecture.lds_bytes.value <= SHORT_M0 else 0xFFFF_FFFF

    def act(wave: Wave) -> None:
        lds = wave.lds
        fetched, read, address = _fetch(access, wave)
        start = (wave.s[M0] & mask) + offset
        if start & 3:
            report_misaligned(wave, access.instruction, "m0 plus its offset is not a multiple of 4")
            start &= ~3
        at = start + _LANE * size
        active = wave.active.copy()
        active[active] = lds.within(at[active], size, access.instruction)
        index = (at[:, None] + np.arange(size))[active]
        source = np.where(active, address, 0).tobytes() + at.tobytes() + active.tobytes()
        number = lds.order.begin_load(index, wave.number, wave.epoch, access.instruction, source)
        serial = lds.begin(index, wave.number, dma=True)

        def finish() -> None:
            lds.bytes[index] = fetched[active]
            lds.end(index, serial)

        covers = partial(lds.order.cover, number), partial(wave.memory.order.cover, read)
        wave.launch("vm", access.instruction, *covers, finish=finish)

    return act
