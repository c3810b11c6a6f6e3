"""Vector memory instructions: buffer, global, flat and scratch (CDNA3 ISA, "Vector Memory").

An access that passes the check of its buffer resource and yet belongs to no buffer is a fault, as on the machine. Loads
and stores may start at any byte, atomics at multiples of their size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.isa.binary.kernel_facts import LANES
from rota.isa.disassembly import Instruction
from rota.isa.memory.atomic_ops import Combine, combine_of
from rota.isa.memory.lds_ops import change_bytes, combine_bytes, reach, report_misaligned, write_bytes
from rota.isa.memory.memories import to_bytes, to_registers
from rota.isa.memory.scalar_memory import decode_scalar_memory, read_resource
from rota.isa.opcodes import CacheWork, IsaUnit, MemAccess, MemSpace, MemVerb
from rota.isa.races import MemoryUse, Scope, scope_of
from rota.isa.registers import M0
from rota.isa.wave.operand import PRIVATE_BASE, SHARED_BASE, File, Operand, parse_operand, scalar_reader, unknown
from rota.isa.wave.wave import Act, Step, Wave, make_step
from rota.targets.architecture import Architecture, ResourceLayout, Traffic

Lanes = NDArray[np.bool_]
_APERTURE = 1 << 32  # bytes of LDS and of private memory among flat addresses
# Addresses. A buffer resource (CDNA3 ISA, "Buffer Addressing") adds its base, offsets of the lane, a scalar and the
# instruction, and index times stride, swizzled if it says so. Accesses outside `num_records` read zero and write
# nothing. Without a stride or an index, records are bytes and each word is checked by itself. With both and a swizzle,
# records are strides and the index is checked. With both and no swizzle, public accounts differ (AMD: bytes, Mesa:
# strides), so a lane that only one of them lets through is a fault.

CACHE = frozenset({"sc0", "sc1", "nt", "glc", "slc", "nv"})  # cache policy: no effect on values
_FLAGS = CACHE | {"offen", "idxen", "lds", "scale_offset"}
_POLICIES = frozenset({"scope", "th"})
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
        name, _, value = modifier.partition(":")
        if name == "offset":
            offset = int(value, 0)
        elif modifier in _FLAGS or name in _POLICIES:
            flags.add(modifier)
        else:
            raise unknown(instruction, f"modifier {modifier!r}")
    return Modifiers(offset=offset, flags=frozenset(flags))


def pointer_addresses(
    lane: Operand, base: Operand, modifiers: Modifiers, *, size: int = 1, signed: bool = False
) -> Addresses:
    """A 64-bit address per lane, or a scalar base with an offset per lane, which may be `signed` and count elements."""
    row = lane.first
    near = np.uint64(modifiers.offset & 0xFFFF_FFFF_FFFF_FFFF)
    scale = np.uint64(size if "scale_offset" in modifiers.flags else 1)

    def full(wave: Wave) -> tuple[NDArray[np.uint64], None]:
        low, high = wave.v[row].astype(np.uint64), wave.v[row + 1].astype(np.uint64)
        return (low | high << np.uint64(32)) + near, None

    scalar = scalar_reader(base, wide=True)

    def relative(wave: Wave) -> tuple[NDArray[np.uint64], None]:
        lanes = (wave.i[row].astype(np.int64) if signed else wave.v[row].astype(np.int64)).view(np.uint64)
        return lanes * scale + np.uint64(scalar(wave)) + near, None

    return full if base.file is File.NONE else relative


def buffer_addresses(
    operands: list[Operand], modifiers: Modifiers, instruction: Instruction, architecture: Architecture
) -> Addresses:
    lane, first = operands[0], operands[1].first
    soffset = scalar_reader(operands[2])
    offen, idxen = "offen" in modifiers.flags, "idxen" in modifiers.flags
    offset_row = lane.first + (1 if idxen else 0)

    def report(wave: Wave, what: str) -> None:
        message = f"{instruction.opcode} uses a buffer resource that {what}"
        wave.faults.add("I105", instruction, message, ("wave", wave.number))

    def addresses(wave: Wave) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        _, high, _, last = words = wave.s[first : first + 4]
        base, records, stride = map(np.uint64, read_resource(words, architecture))
        swizzled, moved = high >> 31, np.uint64(soffset(wave))
        offset = np.full(wave.lanes, modifiers.offset, np.uint64)
        if offen:
            offset += wave.v[offset_row]
        if wrong := _why_unmodelled(words, architecture, strides=bool(stride), idxen=idxen):
            report(wave, wrong)
            return offset, np.zeros(wave.lanes, np.uint64)
        if not idxen or not stride:  # an offset is out of range from num_records - soffset on
            inside = offset + moved
            return inside + base, records - np.minimum(inside, records)
        index = wave.v[lane.first].astype(np.uint64)
        counted, settled = index < records, np.ones(wave.lanes, np.bool_)  # settled if all public accounts agree
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


def _why_unmodelled(words: list[int], architecture: Architecture, *, strides: bool, idxen: bool) -> str:
    """What a resource asks for that isn't modelled; of later architectures everything but plain bytes."""
    if architecture.resource != ResourceLayout():
        return "has a stride, which is not modelled" if strides or idxen else ""
    if words[3] >> 23 & 1:
        return "adds the lane's number to the index, which is not modelled"
    return "is swizzled, but it has no index" if strides and words[1] >> 31 and not idxen else ""


# Private memory. Each lane has its own bytes; a kernel can't see how the device interleaves them.


def _decode_scratch(instruction: Instruction, access: MemAccess) -> Step:
    loads, offset = access.verb is MemVerb.LOAD, read_modifiers(instruction).offset
    first, second, base = (parse_operand(text, instruction) for text in instruction.operands)
    data, lane = (first, second) if loads else (second, first)
    scalar = scalar_reader(base) if base.file is not File.NONE else (lambda _: 0)
    registers = slice(data.first, data.first + data.count)

    def act(wave: Wave) -> None:
        private, issued = wave.private, wave.active
        at = np.full(wave.lanes, scalar(wave) + offset, np.int64)
        at = at if lane.file is File.NONE else at + wave.v[lane.first]
        index, lanes = private.index(wave, instruction, at, access.size, issued)
        if not loads:
            private.put(index, lanes, to_bytes(access, wave.v[registers])[:, : access.size])
            wave.launch(instruction)
            return
        fetched, old = private.get(index, lanes), wave.other_half(data.first)

        def finish() -> None:
            np.copyto(wave.v[registers], to_registers(access, fetched, old), where=issued)

        wave.launch(instruction, rows=data.rows, finish=finish)

    if loads:
        return make_step(instruction, act)
    return make_step(instruction, act)


# Flat instructions. An address in the shared aperture means LDS, one in the private aperture the lane's private memory,
# any other global memory. They count in vmcnt and in lgkmcnt and return in no order, so that only waits for zero on
# both counters cover them.


def _decode_flat(instruction: Instruction, access: MemAccess) -> Step | None:
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    modifiers = read_modifiers(instruction)
    if not modifiers.flags <= {"sc0", "sc1", "nt"}:
        raise unknown(instruction, "modifier")
    flat = _Flat(instruction=instruction, offset=modifiers.offset, scope=scope_of(modifiers.flags))
    if access.verb is MemVerb.LOAD:
        return make_step(instruction, _load_flat(flat, operands, access))
    if access.verb is MemVerb.STORE:
        return make_step(instruction, _store_flat(flat, operands, access))
    if (combine := combine_of(access)) is None:
        return None
    target, rest = (operands[0], operands[1:]) if instruction.returns else (None, operands)
    lane, data = rest
    _check_data(instruction, access, data)
    return make_step(instruction, _flat_atomic(flat, lane, data, target, atomic=(combine, access.size)))


def _check_data(instruction: Instruction, access: MemAccess, data: Operand) -> None:
    """The data of cmpswap holds what is expected, too."""
    if data.count != (2 if access.atomic == "cmpswap" else 1) * access.size // 4:
        raise unknown(instruction, f"operand {data.text!r}")


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


def _load_flat(flat: _Flat, operands: tuple[Operand, ...], access: MemAccess) -> Act:
    target, lane = operands
    instruction, size, first = flat.instruction, access.size, target.first

    def act(wave: Wave) -> None:
        memory, lds, issued = wave.memory, wave.lds, wave.active
        address, outside, in_lds, in_private = flat.split(wave, lane)
        out = np.full((wave.lanes, size), 0xFF, np.uint8)
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
            np.copyto(wave.v[first : first + target.count], to_registers(access, out, old), where=issued)

        wave.launch(instruction, *covers, rows=target.rows, finish=finish)

    return act


def _store_flat(flat: _Flat, operands: tuple[Operand, ...], access: MemAccess) -> Act:
    lane, source = operands
    instruction, size = flat.instruction, access.size

    def act(wave: Wave) -> None:
        memory = wave.memory
        address, outside, in_lds, in_private = flat.split(wave, lane)
        data = to_bytes(access, wave.v[source.first : source.first + source.count])[:, :size]
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
        wave.launch(instruction, *covers, finish=finish)

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
        found = np.full((wave.lanes, size), 0xFF, np.uint8)
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

        wave.launch(instruction, *covers, rows=() if target is None else target.rows, finish=finish)

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


_SIZES = frozenset({1, 2, 4, 8, 12, 16})  # bytes per lane
_DMA_SIZES = frozenset({4, 12, 16})
SHORT_M0 = 1 << 16  # LDS bytes that 16 bits of M0 can name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    instruction: Instruction
    size: int
    addresses: Addresses
    scope: Scope


def decode_memory(instruction: Instruction, architecture: Architecture) -> Step | None:
    if (scalar := decode_scalar_memory(instruction, architecture)) is not None:
        return scalar
    spec, access = instruction.spec, instruction.spec.access
    if access is None and (spec.cache is not None or spec.traffic is not None):  # of caches: no effect on values
        act = _count(instruction) if spec.cache is None else _work_on_caches(instruction, architecture, spec.cache)
        return make_step(instruction, act)
    if (
        access is None
        or spec.unit is not IsaUnit.VMEM
        or (access.verb is not MemVerb.ATOMIC and access.size not in _SIZES)
    ):
        return None
    if access.space in {MemSpace.PRIVATE, MemSpace.FLAT} and architecture.lanes.value != LANES:
        raise unknown(instruction, "flat or private memory of smaller waves")
    if access.space is MemSpace.PRIVATE:
        return None if access.verb is MemVerb.ATOMIC or access.to_lds else _decode_scratch(instruction, access)
    if access.space is MemSpace.FLAT:
        return _decode_flat(instruction, access)
    return _decode_global(instruction, access, architecture)


_CACHE_USES = {
    CacheWork.WRITE_BACK: (MemoryUse.WRITE_BACK, Traffic.STORE),
    CacheWork.INVALIDATE: (MemoryUse.INVALIDATE, None),
    CacheWork.SCALAR_INVALIDATE: (MemoryUse.SCALAR_INVALIDATE, Traffic.SCALAR),
}


def _work_on_caches(instruction: Instruction, architecture: Architecture, work: CacheWork) -> Act:
    """No effect on values; a wait for zero covers it, or, of invalidates of vector caches, nothing has to."""
    use, traffic = _CACHE_USES[work]
    counter = None if traffic is None else architecture.queue_of(traffic).counter
    scope = Scope.DEVICE if use is MemoryUse.SCALAR_INVALIDATE else scope_of(instruction.modifiers)

    def act(wave: Wave) -> None:
        order = wave.memory.order
        number = order.begin(wave, instruction, use, scope)
        if counter is None:
            order.cover(number, wave.releases)
        else:
            wave.cover_at_zero(counter, partial(order.cover, number))

    return act


def _count(instruction: Instruction) -> Act:
    """No effect on values, but a counter counts it."""

    def act(wave: Wave) -> None:
        wave.launch(instruction)

    return act


def _decode_global(instruction: Instruction, access: MemAccess, architecture: Architecture) -> Step | None:
    modifiers, returns, signed = read_modifiers(instruction), instruction.returns, architecture.signed_lane_offsets
    operands = [parse_operand(text, instruction) for text in instruction.operands]
    target = operands[0] if returns else None
    if returns and not (access.verb is MemVerb.ATOMIC and access.buffer):
        operands = operands[1:]
    # A buffer instruction names its data first, a store or an atomic on pointers after the address.
    place = 0 if access.buffer else 1
    data = None if instruction.to_lds or access.verb is MemVerb.LOAD else operands.pop(place)
    where = (
        buffer_addresses(operands, modifiers, instruction, architecture)
        if access.buffer
        else pointer_addresses(operands[0], operands[1], modifiers, size=access.size, signed=signed)
    )
    site = _Site(instruction=instruction, size=access.size, addresses=where, scope=scope_of(modifiers.flags))
    if instruction.to_lds:
        widest = architecture.dma_width.value
        if access.verb is MemVerb.STORE or access.size not in _DMA_SIZES or access.size > widest:
            raise unknown(instruction, "width of a load to LDS")
        return make_step(instruction, _dma(site, modifiers.offset, architecture))
    if data is None and target is not None:
        return make_step(instruction, _load(site, target, access))
    if data is None or access.verb is MemVerb.STORE:
        return None if data is None else make_step(instruction, _store(site, data, access))
    combine = combine_of(access)
    _check_data(instruction, access, data)
    if target is not None:
        target = Operand(text=target.text, file=target.file, first=target.first, count=access.size // 4)
    return None if combine is None else make_step(instruction, _atomic(site, data, target, combine))


def _fetch(site: _Site, wave: Wave) -> tuple[NDArray[np.uint8], int, NDArray[np.uint64]]:
    """Lanes by bytes, zero beyond the end of a buffer resource; the number of the access; the addresses."""
    memory, (address, room) = wave.memory, site.addresses(wave)
    out = np.zeros((wave.lanes, site.size), np.uint8)
    number = memory.order.begin(wave, site.instruction, MemoryUse.READ, site.scope)
    unit = site.size if room is None or bool((room >= site.size).all()) else min(4, site.size)
    for at in range(0, site.size, unit):
        wanted = wave.active if room is None else wave.active & (room >= at + unit)
        place, reached = memory.places(address + np.uint64(at), unit, wanted, site.instruction)
        out[reached, at : at + unit] = memory.get(place, unit)
        out[wanted & ~reached, at : at + unit] = 0xFF
        memory.order.touch(number, place, unit)
    return out, number, address


def _load(site: _Site, data: Operand, access: MemAccess) -> Act:
    first = data.first

    def act(wave: Wave) -> None:
        fetched, number, _ = _fetch(site, wave)
        issued, old = wave.mask, wave.other_half(first)

        def finish() -> None:
            registers = to_registers(access, fetched, old)
            np.copyto(wave.v[first : first + data.count], registers, where=True if issued is None else issued)

        cover = partial(wave.memory.order.cover, number)
        wave.launch(site.instruction, cover, rows=data.rows, finish=finish)

    return act


def _store(site: _Site, data: Operand, access: MemAccess) -> Act:
    first, size = data.first, site.size

    def act(wave: Wave) -> None:
        memory, (address, room) = wave.memory, site.addresses(wave)
        octets = to_bytes(access, wave.v[first : first + data.count])
        number = memory.order.begin(wave, site.instruction, MemoryUse.WRITE, site.scope)
        unit = size if room is None else min(4, size)
        for at in range(0, size, unit):
            wanted = wave.active if room is None else wave.active & (room >= at + unit)
            place, reached = memory.places(address + np.uint64(at), unit, wanted, site.instruction)
            part = octets[reached, at : at + unit]
            memory.order.touch(number, place, unit, memory.get(place, unit) == part)
            memory.put(place, part)
        wave.launch(site.instruction, partial(memory.order.cover, number))

    return act


def _atomic(site: _Site, data: Operand, target: Operand | None, combine: Combine) -> Act:
    size, instruction = site.size, site.instruction

    def act(wave: Wave) -> None:
        memory, (address, room) = wave.memory, site.addresses(wave)
        wanted = wave.active if room is None else wave.active & (room >= size)
        if (address[wanted] % np.uint64(size)).any():
            report_misaligned(wave, instruction, f"its address is not a multiple of {size}")
            wanted = wanted & (address % np.uint64(size) == 0)
        place, reached = memory.places(address, size, wanted, instruction)
        given = np.ascontiguousarray(wave.v[data.first : data.first + data.count].T).view(f"<u{size}")
        found = np.zeros((wave.lanes, size), np.uint8)
        found[wanted & ~reached] = 0xFF
        cover = _change_memory(wave, instruction, place, reached, combine, given, found, returns=target is not None)
        issued = wave.active

        def finish() -> None:
            if target is not None:
                rows = slice(target.first, target.first + target.count)
                np.copyto(wave.v[rows], found.view(np.uint32).T, where=issued)

        wave.launch(instruction, cover, rows=() if target is None else target.rows, finish=finish)

    return act


def _dma(site: _Site, offset: int, architecture: Architecture) -> Act:
    """Loads from memory to LDS: lane i writes at M0 + offset + i * size, whatever its source address.

    M0's upper bits are ignored where 16 bits address all of LDS (CDNA3 ISA), else M0 is taken whole.
    """
    size = site.size
    mask = SHORT_M0 - 1 if architecture.lds_bytes.value <= SHORT_M0 else 0xFFFF_FFFF

    def act(wave: Wave) -> None:
        lds = wave.lds
        fetched, read, address = _fetch(site, wave)
        start = (wave.s[M0] & mask) + offset
        if start & 3:
            report_misaligned(wave, site.instruction, "m0 plus its offset is not a multiple of 4")
            start &= ~3
        at = start + np.arange(wave.lanes) * size
        active = wave.active.copy()
        active[active] = lds.within(at[active], size, site.instruction)
        index = (at[:, None] + np.arange(size))[active]
        source = np.where(active, address, 0).tobytes() + at.tobytes() + active.tobytes()
        number = lds.order.begin_load(index, wave.number, wave.epoch, site.instruction, source)
        serial = lds.begin(index, wave.number, dma=True)

        def finish() -> None:
            lds.bytes[index] = fetched[active]
            lds.end(index, serial)

        covers = partial(lds.order.cover, number), partial(wave.memory.order.cover, read)
        wave.launch(site.instruction, *covers, finish=finish)

    return act
