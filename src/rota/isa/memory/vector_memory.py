"""Vector memory instructions: takes a load, store or atomic, gives a `Step` (CDNA3 ISA, "Vector Memory").

An access that passes the check of its buffer resource and yet belongs to no buffer is a fault, as on the machine.
Loads and stores may start at any byte, atomics at multiples of their size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.memory.atomic_ops import Combine, memory_atomic
from rota.isa.memory.flat_memory import decode_flat
from rota.isa.memory.lds_access import uneven
from rota.isa.memory.scalar_memory import decode_scalar_memory
from rota.isa.memory.scratch import decode_scratch
from rota.isa.memory.vector_addresses import Addresses, in_buffer, pointers, read_modifiers
from rota.isa.memory.widths import Width, width_of
from rota.isa.races.global_order import MemoryUse, Scope, scope_of
from rota.isa.wave.operand import M0, Operand, parse_operand, unknown
from rota.isa.wave.step import Act, Step, make_step
from rota.isa.wave.wave import Pending

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave
    from rota.targets.architecture import Architecture

_OPCODE = re.compile(r"^(?P<space>buffer|global)_(?P<verb>load|store)_(?P<lds>lds_)?(?P<width>\w+)$")
_HINTS = frozenset({"buffer_inv", "buffer_wbl2", "buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_invl2"})
_DMA_SIZES = frozenset({4, 12, 16})
_SHORT_M0 = 1 << 16  # LDS bytes that 16 bits of M0 can name
_LANE = np.arange(LANES, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Access:
    """What an instruction moves: bytes per lane, from or to which addresses, and how they lie in registers."""

    instruction: Instruction
    size: int
    addresses: Addresses
    scope: Scope


def decode_memory(instruction: Instruction, architecture: Architecture) -> Step | None:
    """The step of a vector or scalar memory instruction, or None."""
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
        reads = (*rest, parse_operand("m0", instruction))
        return make_step(instruction, _dma(access, modifiers.offset, architecture), reads=reads)
    if stores:
        return make_step(instruction, _store(access, data, width), reads=(*rest, data))
    reads = (*rest, data) if width.half else tuple(rest)
    return make_step(instruction, _load(access, data, width), reads=reads, writes=(data,))


def _access(instruction: Instruction, space: str, rest: list[Operand], size: int) -> _Access:
    modifiers = read_modifiers(instruction)
    if space == "buffer":
        where = in_buffer(rest, modifiers, instruction)
    else:
        where = pointers(rest[0], rest[1], modifiers.offset)
    return _Access(
        instruction=instruction,
        size=size,
        addresses=where,
        scope=scope_of(modifiers.flags),
    )


def _fetch(access: _Access, wave: Wave) -> tuple[NDArray[np.uint8], int, NDArray[np.uint64]]:
    """Lanes by bytes, zero where a buffer ends, the number of the access, and the addresses."""
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
        wave.launch("vm", Pending(instruction=access.instruction, rows=data.rows, finish=finish, cover=cover))

    return act


def _store(access: _Access, data: Operand, width: Width) -> Act:
    first, size = data.first, access.size

    def act(wave: Wave) -> None:
        memory, (address, room) = wave.memory, access.addresses(wave)
        octets = width.stored(wave.v[first : first + data.count])
        number = memory.order.begin(wave, access.instruction, MemoryUse.WRITE, access.scope)
        unit = size if room is None else min(4, size)
        for at in range(0, size, unit):
            wanted = wave.active if room is None else wave.active & (room >= at + unit)
            place, reached = memory.places(address + np.uint64(at), unit, wanted, access.instruction)
            part = octets[reached, at : at + unit]
            memory.order.touch(number, place, unit, memory.get(place, unit) == part)
            memory.put(place, part)
        cover = partial(memory.order.cover, number)
        wave.launch("vm", Pending(instruction=access.instruction, rows=(), finish=lambda: None, cover=cover))

    return act


def _decode_atomic(instruction: Instruction, combine: Combine, size: int, compares: bool) -> Step:
    """Data, and what is expected behind it; the old value returns if sc0 (glc) asks for it."""
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
    return make_step(instruction, act, reads=(*rest, data), writes=() if target is None else (target,))


def _atomic(access: _Access, data: Operand, target: Operand | None, combine: Combine) -> Act:
    size, instruction = access.size, access.instruction

    def act(wave: Wave) -> None:
        memory, (address, room) = wave.memory, access.addresses(wave)
        wanted = wave.active if room is None else wave.active & (room >= size)
        if (address[wanted] % np.uint64(size)).any():
            uneven(wave, instruction, f"its address is not a multiple of {size}")
            wanted = wanted & (address % np.uint64(size) == 0)
        place, reached = memory.places(address, size, wanted, instruction)
        given = np.ascontiguousarray(wave.v[data.first : data.first + data.count].T).view(f"<u{size}")
        found = np.zeros((LANES, size), np.uint8)
        found[wanted & ~reached] = 0xFF
        number = memory.order.begin(
            wave, instruction, MemoryUse.ATOMIC if target is not None else MemoryUse.BLIND_ATOMIC
        )
        memory.order.touch(number, place, size)
        for lane, at in zip(np.flatnonzero(reached).tolist(), place.tolist(), strict=True):
            spot = np.array([at])
            old = memory.get(spot, size)
            found[lane] = old[0]
            new = combine(int.from_bytes(old.tobytes(), "little"), *(int(each) for each in given[lane]))
            memory.put(spot, np.frombuffer(new.to_bytes(size, "little"), np.uint8)[None])
        issued = wave.active

        def finish() -> None:
            if target is not None:
                rows = slice(target.first, target.first + target.count)
                np.copyto(wave.v[rows], found.view(np.uint32).T, where=issued)

        rows = () if target is None else target.rows
        cover = partial(memory.order.cover, number)
        wave.launch("vm", Pending(instruction=instruction, rows=rows, finish=finish, cover=cover))

    return act


def _dma(access: _Access, offset: int, architecture: Architecture) -> Act:
    """Memory to LDS: lane i writes at M0 + offset + i * size, however the addresses are spread.

    Where 16 bits name all of LDS, M0's other bits are not used (CDNA3 ISA); where
    they don't, M0 is taken whole.
    """
    size = access.size
    mask = _SHORT_M0 - 1 if architecture.lds_bytes.value <= _SHORT_M0 else 0xFFFF_FFFF

    def act(wave: Wave) -> None:
        lds = wave.lds
        fetched, read, address = _fetch(access, wave)
        start = (wave.s[M0] & mask) + offset
        if start & 3:
            uneven(wave, access.instruction, "m0 and its offset are not a multiple of 4")
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

        def cover(epoch: int) -> None:
            lds.order.cover(number, epoch)
            wave.memory.order.cover(read, epoch)

        wave.launch("vm", Pending(instruction=access.instruction, rows=(), finish=finish, cover=cover))

    return act
