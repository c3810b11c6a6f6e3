"""LDS instructions: takes a ds_read or ds_write, gives a `Step` (CDNA3 ISA, "Local Data Share")."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.memory_order import under_way
from rota.isa.operand import Operand, parse_operand, unknown
from rota.isa.step import Act, Step, make_step
from rota.isa.wave import ALL, POISON, Pending, misaligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.disassembly import Instruction
    from rota.isa.lds import Lds
    from rota.isa.wave import Wave

_WORDS = re.compile(r"^ds_(?P<verb>read|write)(?P<two>2?)(?P<far>st64)?_b(?P<bits>32|64|96|128)$")
_SHORT: dict[str, Any] = {
    "ds_read_u8": np.uint8, "ds_read_i8": np.int8, "ds_read_u16": np.uint16, "ds_read_i16": np.int16,
    "ds_write_b8": np.uint8, "ds_write_b16": np.uint16, "ds_write_b16_d16_hi": np.uint16,
    "ds_read_u16_d16": np.uint16, "ds_read_u16_d16_hi": np.uint16,
}  # fmt: skip


def decode_shared(instruction: Instruction) -> Step | None:
    """The step of an LDS instruction, or None."""
    if not instruction.opcode.startswith("ds_"):
        return None
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    if (found := _WORDS.match(instruction.opcode)) is not None:
        words = int(found["bits"]) // 32
        places = _places(instruction, words, found)
        if found["verb"] == "read":
            return make_step(instruction, _read(instruction, operands, places), reads=operands[1:], writes=operands[:1])
        return make_step(instruction, _write(instruction, operands, places), reads=operands)
    if instruction.opcode == "ds_bpermute_b32":
        return make_step(instruction, _gather(instruction, operands), reads=operands[1:], writes=operands[:1])
    if instruction.opcode in _SHORT:
        return _short(instruction, operands)
    return None


def _offsets(instruction: Instruction) -> dict[str, int]:
    found = {}
    for modifier in instruction.modifiers:
        name, _, value = modifier.partition(":")
        if name not in {"offset", "offset0", "offset1"}:
            raise unknown(instruction, f"modifier {modifier!r}")
        found[name] = int(value, 0)
    return found


def _places(instruction: Instruction, words: int, found: re.Match[str]) -> tuple[int, ...]:
    """Byte offsets of an instruction's words, in the order of its registers."""
    offsets = _offsets(instruction)
    if not found["two"]:
        return tuple(offsets.get("offset", 0) + 4 * word for word in range(words))
    unit = 4 * words * (64 if found["far"] else 1)
    starts = (offsets.get("offset0", 0) * unit, offsets.get("offset1", 0) * unit)
    return tuple(start + 4 * word for start in starts for word in range(words))


def _index(
    wave: Wave, instruction: Instruction, row: int, places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Word numbers, places by lanes, and the lanes that take part; the very `ALL` if no lane stands aside."""
    address = wave.v[row].astype(np.int64)
    taking, aligned = wave.active, (address + places[0]) & 3 == 0
    reach = address + places.max()
    if taking is ALL and reach.max() + 4 <= wave.lds.size and aligned.all():
        return (address + places[:, None]) >> 2, taking
    inside = taking.copy()
    inside[inside] = wave.lds.within(reach[inside], 4, instruction)
    if not aligned[taking].all():
        misaligned(wave, instruction, "its address")
    inside &= aligned
    return np.where(inside, address + places[:, None], 0) >> 2, inside


def _read(instruction: Instruction, operands: tuple[Operand, ...], offsets: tuple[int, ...]) -> Act:
    target, row, places = operands[0], operands[1].first, np.array(offsets, np.int64)
    first, last = target.first, target.first + len(offsets)

    def act(wave: Wave) -> None:
        lds = wave.lds
        index, active = _index(wave, instruction, row, places)
        before, marked = lds.sample(index, wave.number)
        issued = wave.active

        def finish() -> None:
            now, disturbed = lds.since(before, index, wave.number)
            bad = marked | disturbed
            if active is not ALL:
                bad &= active
            if bad.any():
                under_way(wave.faults, instruction, wave.number, index[bad])
                now[bad] = POISON
            if active is ALL:
                wave.v[first:last] = now
            else:
                now[:, issued & ~active] = POISON
                np.copyto(wave.v[first:last], now, where=issued)

        touched = index if active is ALL else index[:, active]
        number = lds.order.begin_read(touched, wave.number, wave.epoch, instruction)
        cover = partial(lds.order.cover, number)
        wave.launch("ds", Pending(instruction=instruction, rows=target.rows, finish=finish, cover=cover))

    return act


def _write(instruction: Instruction, operands: tuple[Operand, ...], offsets: tuple[int, ...]) -> Act:
    row, sources, places = operands[0].first, operands[1:], np.array(offsets, np.int64)
    rows = [r for source in sources for r in source.rows]

    def act(wave: Wave) -> None:
        lds = wave.lds
        index, active = _index(wave, instruction, row, places)
        index = index[:, active]
        number = lds.order.begin_write(index, wave.number, wave.epoch, instruction)
        serial = lds.begin(index, wave.number, instruction)
        lds.words[index] = wave.v[rows][:, active]
        finish, cover = partial(lds.end, index, serial), partial(lds.order.cover, number)
        wave.launch("ds", Pending(instruction=instruction, rows=(), finish=finish, cover=cover))

    return act


def _gather(instruction: Instruction, operands: tuple[Operand, ...]) -> Act:
    """Each lane takes the register of the lane that its address names; inactive lanes give zero.  No memory is used."""
    target, address, source = operands
    offset = _offsets(instruction).get("offset", 0)

    def act(wave: Wave) -> None:
        issued = wave.active
        given = np.where(issued, wave.v[source.first], np.uint32(0))
        taken = given[(wave.v[address.first] + np.uint32(offset)) >> np.uint32(2) & np.uint32(63)]

        def finish() -> None:
            np.copyto(wave.v[target.first], taken, where=issued)

        wave.launch("ds", Pending(instruction=instruction, rows=target.rows, finish=finish))

    return act


def _short(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    """Bytes and halves: written at once, since a mark belongs to a whole word that two waves may share."""
    dtype = np.dtype(_SHORT[instruction.opcode])
    offset = _offsets(instruction).get("offset", 0)
    high = instruction.opcode.endswith("_hi")
    reading = instruction.opcode.startswith("ds_read")
    row, data = (operands[1].first, operands[0]) if reading else (operands[0].first, operands[1])

    def place(wave: Wave, lds: Lds) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        address = wave.v[row].astype(np.int64) + offset
        active = wave.active.copy()
        active[active] = lds.within(address[active], dtype.itemsize, instruction)
        return address[active][:, None] + np.arange(dtype.itemsize), active

    def read(wave: Wave) -> None:
        lds = wave.lds
        octets, active = place(wave, lds)
        half = "d16" in instruction.opcode
        old = wave.v[data.first].copy()

        def finish() -> None:
            value = np.zeros(64, np.uint32)
            value[active] = lds.bytes[octets].copy().view(dtype)[:, 0].astype(np.int32).view(np.uint32)
            index = octets[:, 0] >> 2
            _, marked = lds.sample(index, wave.number)
            if marked.any():
                under_way(wave.faults, instruction, wave.number, index[marked])
            if half:
                value = (value << 16 | old & 0xFFFF) if high else (value & 0xFFFF | old & np.uint32(0xFFFF0000))
            np.copyto(wave.v[data.first], value, where=active)

        wave.launch("ds", Pending(instruction=instruction, rows=data.rows, finish=finish))

    def write(wave: Wave) -> None:
        lds = wave.lds
        octets, active = place(wave, lds)
        value = wave.v[data.first][active] >> np.uint32(16 if high else 0)
        lds.bytes[octets] = value.astype(dtype)[:, None].view(np.uint8)
        wave.launch("ds", Pending(instruction=instruction, rows=(), finish=lambda: None))

    if reading:
        return make_step(instruction, read, reads=operands[1:], writes=operands[:1])
    return make_step(instruction, write, reads=operands)
