"""How a wave uses LDS: takes addresses and data per lane, gives memory ops under way that are watched byte by byte.

Reads and writes may start at any byte: amdhsa runs with unaligned access on (LLVM, "unaligned-access-mode").  Atomics
and transposed reads need their natural alignment.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.memory.lds import POISON_BYTE
from rota.isa.wave.wave import ALL, Pending

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

    Octets = NDArray[np.uint8]
    # Takes the bytes that came back, lanes by bytes, gives the registers, rows by lanes.
    Arrange = Callable[[Octets], NDArray[np.uint32]]


_LDS_ADDRESS = 0xFFFF_FFFF  # addresses and offsets are added in 32 bits


def reach(
    wave: Wave, instruction: Instruction, address: NDArray[np.int64], places: NDArray[np.int64], align: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Byte numbers, lanes by places, and the lanes that take part; the very `ALL` if no lane stands aside."""
    lds, taking = wave.lds, wave.active
    index = (address[:, None] + places) & _LDS_ADDRESS
    inside: NDArray[np.bool_] = np.asarray((index < lds.size).all(axis=1))
    if taking is ALL and align == 1 and inside.all():
        return index, taking
    if not inside[taking].all():
        lds.leaves(index[taking & ~inside][0, 0], instruction)
    inside &= taking
    if align > 1 and (index[inside, 0] % align).any():
        uneven(wave, instruction, f"its address is not a multiple of {align}")
        inside &= index[:, 0] % align == 0
    return np.where(inside[:, None], index, 0), inside


def uneven(wave: Wave, instruction: Instruction, what: str) -> None:
    """Remembers that an instruction addresses memory between the places that it can use."""
    wave.faults.add("I105", instruction, f"{instruction.opcode}: {what}", ("wave", wave.number))


def read(
    wave: Wave,
    instruction: Instruction,
    index: NDArray[np.int64],
    lanes: NDArray[np.bool_],
    *,
    rows: tuple[int, ...],
    arrange: Arrange,
) -> None:
    """Begins a read; `arrange` turns its bytes into registers when it lands."""
    lds, number = wave.lds, wave.number
    whole = lanes is ALL
    touched = index if whole else index[lanes]
    access = lds.order.begin_read(touched, number, wave.epoch, instruction)
    before, marked = lds.sample(touched, number)
    issued = wave.active

    def finish() -> None:
        now, disturbed = lds.since(before, touched, number)
        bad = marked | disturbed
        if bad.any():
            lds.order.disturbed(access, touched[bad])
            now[bad] = POISON_BYTE
        if not whole:
            spread = np.full((LANES, index.shape[1]), POISON_BYTE, np.uint8)
            spread[lanes] = now
            now = spread
        np.copyto(wave.v[rows[0] : rows[0] + len(rows)], arrange(now), where=True if issued is ALL else issued)

    cover = partial(lds.order.cover, access)
    wave.launch("ds", Pending(instruction=instruction, rows=rows, finish=finish, cover=cover))


def write(
    wave: Wave, instruction: Instruction, index: NDArray[np.int64], lanes: NDArray[np.bool_], data: Octets
) -> None:
    """Begins a write of `data`, lanes by bytes; a higher lane wins where two write to one byte."""
    lds = wave.lds
    if lanes is not ALL:
        index, data = index[lanes], data[lanes]
    equal = lds.bytes[index] == data
    access = lds.order.begin_write(index, wave.number, wave.epoch, instruction, equal=equal)
    changed = index[~equal]
    serial = lds.begin(changed, wave.number)
    lds.bytes[index] = data
    finish, cover = partial(lds.end, changed, serial), partial(lds.order.cover, access)
    wave.launch("ds", Pending(instruction=instruction, rows=(), finish=finish, cover=cover))


def change(
    wave: Wave,
    instruction: Instruction,
    index: NDArray[np.int64],
    lanes: NDArray[np.bool_],
    *,
    rows: tuple[int, ...],
    step: Callable[[int, bytes], bytes],
) -> None:
    """Begins an atomic: lane by lane, the bytes become what `step` makes of them; `rows` get what was there."""
    lds, issued = wave.lds, wave.active
    touched = index[lanes]
    access = lds.order.begin_atomic(touched, wave.number, wave.epoch, instruction)
    serial = lds.begin(touched, wave.number)
    found = np.full(index.shape, POISON_BYTE, np.uint8)
    for lane in np.flatnonzero(lanes).tolist():
        place = slice(int(index[lane, 0]), int(index[lane, 0]) + index.shape[1])
        old = lds.bytes[place].tobytes()
        found[lane] = np.frombuffer(old, np.uint8)
        lds.bytes[place] = np.frombuffer(step(lane, old), np.uint8)

    def finish() -> None:
        lds.end(touched, serial)
        if rows:
            np.copyto(wave.v[rows[0] : rows[0] + len(rows)], found.view(np.uint32).T, where=issued)

    cover = partial(lds.order.cover, access)
    wave.launch("ds", Pending(instruction=instruction, rows=rows, finish=finish, cover=cover))
