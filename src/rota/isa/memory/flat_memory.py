"""Flat instructions: takes a flat_ load, store or atomic, gives a `Step` (CDNA3 ISA, "Flat Memory").

An address inside the shared aperture means LDS, one inside the private aperture the lane's private memory, any other
one global memory.  Flat instructions count in vmcnt and in lgkmcnt, and come back in no order: only waits for none of
either kind, both of them, promise anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.memory.apertures import APERTURE, PRIVATE_BASE, SHARED_BASE
from rota.isa.memory.atomic_ops import Combine, memory_atomic
from rota.isa.memory.lds_access import reach, uneven
from rota.isa.memory.vector_addresses import read_modifiers
from rota.isa.memory.widths import Width, width_of
from rota.isa.races.global_order import MemoryUse, Scope, scope_of
from rota.isa.wave.operand import Operand, parse_operand, unknown
from rota.isa.wave.step import Act, Step, make_step
from rota.isa.wave.wave import Pending

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

    Lanes = NDArray[np.bool_]

_OPCODE = re.compile(r"^flat_(?P<verb>load|store)_(?P<width>\w+)$")


def decode_flat(instruction: Instruction) -> Step | None:
    """The step of a flat instruction, or None."""
    if not instruction.opcode.startswith("flat_"):
        return None
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    modifiers = read_modifiers(instruction)
    if not modifiers.flags <= {"sc0", "sc1", "nt"}:
        raise unknown(instruction, "modifier")
    flat = _Flat(instruction=instruction, offset=modifiers.offset, scope=scope_of(modifiers.flags))
    if (atomic := memory_atomic(instruction.opcode)) is not None:
        return _decode_atomic(flat, operands, atomic, returns="sc0" in modifiers.flags)
    found = _OPCODE.match(instruction.opcode)
    width = width_of(found["verb"], found["width"]) if found else None
    if found is None or width is None:
        return None
    if found["verb"] == "load":
        return make_step(instruction, _load(flat, operands, width), reads=operands[1:], writes=operands[:1])
    return make_step(instruction, _store(flat, operands, width), reads=operands)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flat:
    instruction: Instruction
    offset: int
    scope: Scope

    def split(self, wave: Wave, lane: Operand) -> tuple[NDArray[np.uint64], Lanes, Lanes, Lanes]:
        """Addresses, and the active lanes that mean global memory, LDS and private memory."""
        low, high = wave.v[lane.first].astype(np.uint64), wave.v[lane.first + 1].astype(np.uint64)
        address = (low | high << np.uint64(32)) + np.uint64(self.offset & 0xFFFF_FFFF_FFFF_FFFF)
        part = address // np.uint64(APERTURE)
        in_lds = wave.active & (part == SHARED_BASE // APERTURE)
        private = wave.active & (part == PRIVATE_BASE // APERTURE)
        return address, wave.active & ~in_lds & ~private, in_lds, private


def _places_in_lds(
    wave: Wave, flat: _Flat, address: NDArray[np.uint64], lanes: Lanes, size: int
) -> tuple[NDArray[np.int64], Lanes]:
    near = np.where(lanes, address % np.uint64(APERTURE), np.uint64(0)).astype(np.int64)
    index, inside = reach(wave, flat.instruction, near, np.arange(size, dtype=np.int64))
    return index, lanes & inside


def _launch(
    wave: Wave,
    flat: _Flat,
    rows: tuple[int, ...],
    finish: Callable[[], None],
    covers: Sequence[Callable[[int], None]],
) -> None:
    def cover(epoch: int) -> None:
        for each in covers:
            each(epoch)

    wave.launch("flat", Pending(instruction=flat.instruction, rows=rows, finish=finish, cover=cover))


def _load(flat: _Flat, operands: tuple[Operand, ...], width: Width) -> Act:
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
        covers = [partial(memory.order.cover, number)]
        if in_private.any():
            near = (address % np.uint64(APERTURE)).astype(np.int64)
            index, lanes = wave.private.index(wave, instruction, near, size, in_private)
            out[lanes] = wave.private.get(index, lanes)[lanes]
        if in_lds.any():
            index, lanes = _places_in_lds(wave, flat, address, in_lds, size)
            read = lds.order.begin_read(index[lanes], wave.number, wave.epoch, instruction, flat=True)
            octets, marked = lds.sample(index[lanes], wave.number)
            if marked.any():
                lds.order.disturbed(read, index[lanes][marked])
            out[lanes] = np.where(marked, np.uint8(0xFF), octets)
            covers.append(partial(lds.order.cover, read))
        old = wave.other_half(first)

        def finish() -> None:
            np.copyto(wave.v[first : first + target.count], width.registers(out, old), where=issued)

        _launch(wave, flat, target.rows, finish, covers)

    return act


def _store(flat: _Flat, operands: tuple[Operand, ...], width: Width) -> Act:
    lane, source = operands
    instruction, size = flat.instruction, width.size

    def act(wave: Wave) -> None:
        memory, lds = wave.memory, wave.lds
        address, outside, in_lds, in_private = flat.split(wave, lane)
        data = width.stored(wave.v[source.first : source.first + source.count])[:, :size]
        number = memory.order.begin(wave, instruction, MemoryUse.WRITE, flat.scope)
        place, reached = memory.places(address, size, outside, instruction)
        memory.order.touch(number, place, size, memory.get(place, size) == data[reached])
        memory.put(place, data[reached])
        covers = [partial(memory.order.cover, number)]
        finish: Callable[[], None] = lambda: None  # noqa: E731  # replaced where LDS is written
        if in_private.any():
            near = (address % np.uint64(APERTURE)).astype(np.int64)
            index, lanes = wave.private.index(wave, instruction, near, size, in_private)
            wave.private.put(index, lanes, data)
        if in_lds.any():
            index, lanes = _places_in_lds(wave, flat, address, in_lds, size)
            touched = index[lanes]
            equal = lds.bytes[touched] == data[lanes]
            write = lds.order.begin_write(touched, wave.number, wave.epoch, instruction, equal=equal)
            changed = touched[~equal]
            serial = lds.begin(changed, wave.number)
            lds.bytes[touched] = data[lanes]
            finish = partial(lds.end, changed, serial)
            covers.append(partial(lds.order.cover, write))
        _launch(wave, flat, (), finish, covers)

    return act


def _decode_atomic(
    flat: _Flat, operands: tuple[Operand, ...], atomic: tuple[Combine, int, bool], *, returns: bool
) -> Step:
    combine, size, compares = atomic
    target, rest = (operands[0], operands[1:]) if returns else (None, operands)
    lane, data = rest
    if data.count != (2 if compares else 1) * size // 4:
        raise unknown(flat.instruction, f"operand {data.text!r}")
    act = _atomic(flat, lane, data, target, atomic=(combine, size))
    return make_step(flat.instruction, act, reads=rest, writes=() if target is None else (target,))


def _atomic(flat: _Flat, lane: Operand, data: Operand, target: Operand | None, *, atomic: tuple[Combine, int]) -> Act:
    instruction, (combine, size) = flat.instruction, atomic

    def act(wave: Wave) -> None:
        memory, lds, issued = wave.memory, wave.lds, wave.active
        address, outside, in_lds, in_private = flat.split(wave, lane)
        if in_private.any():
            uneven(wave, instruction, "atomics don't reach private memory")
        even = address % np.uint64(size) == 0
        if ((outside | in_lds) & ~even).any():
            uneven(wave, instruction, f"its address is not a multiple of {size}")
        given = np.ascontiguousarray(wave.v[data.first : data.first + data.count].T).view(f"<u{size}")
        found = np.full((LANES, size), 0xFF, np.uint8)
        number = memory.order.begin(
            wave, instruction, MemoryUse.ATOMIC if target is not None else MemoryUse.BLIND_ATOMIC
        )
        place, reached = memory.places(address, size, outside & even, instruction)
        memory.order.touch(number, place, size)
        covers = [partial(memory.order.cover, number)]
        ends: list[Callable[[], None]] = []
        for each, at in zip(np.flatnonzero(reached).tolist(), place.tolist(), strict=True):
            spot = np.array([at])
            found[each] = memory.get(spot, size)[0]
            memory.put(spot, _combined(combine, found[each], given[each], size)[None])
        if in_lds.any():
            index, lanes = _places_in_lds(wave, flat, address, in_lds & even, size)
            change = lds.order.begin_atomic(index[lanes], wave.number, wave.epoch, instruction)
            serial = lds.begin(index[lanes], wave.number)
            ends.append(partial(lds.end, index[lanes], serial))
            covers.append(partial(lds.order.cover, change))
            for each in np.flatnonzero(lanes).tolist():
                found[each] = lds.bytes[index[each]]
                lds.bytes[index[each]] = _combined(combine, found[each], given[each], size)

        def finish() -> None:
            for end in ends:
                end()
            if target is not None:
                rows = slice(target.first, target.first + target.count)
                np.copyto(wave.v[rows], found.view(np.uint32).T, where=issued)

        _launch(wave, flat, () if target is None else target.rows, finish, covers)

    return act


def _combined(combine: Combine, old: NDArray[np.uint8], given: NDArray[np.uint64], size: int) -> NDArray[np.uint8]:
    new = combine(int.from_bytes(old.tobytes(), "little"), *(int(each) for each in given))
    return np.frombuffer(new.to_bytes(size, "little"), np.uint8)
