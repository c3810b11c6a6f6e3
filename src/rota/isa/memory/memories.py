"""Global memory and LDS, with reads and writes that take time.

A byte of LDS carries a mark while a write that changes it is in flight. A read needs its bytes unmarked and unchanged
from its issue to its landing; otherwise any value could have come back, so poison does. LDS instructions of one wave
are ordered among themselves, so a wave's own writes don't disturb its reads; loads from memory are ordered with
nothing. `rota.isa.races` judges what could collide in another interleaving, and reports every fault.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.isa.disassembly import Instruction
from rota.isa.opcodes import MemAccess
from rota.isa.races import AccessOrder, GlobalOrder
from rota.isa.wave.meeting import WORD_BYTES, Knowledge, WaveMeetings
from rota.isa.wave.wave import Faults

Octets = NDArray[np.int64]
_HIGH = np.uint32(0xFFFF_0000)


def to_registers(access: MemAccess, octets: NDArray[np.uint8], old: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Rows by lanes, from what was loaded, lanes by bytes; `old` is what the register held."""
    if access.size >= 4:
        return octets.view(np.uint32).T
    kind = np.dtype(f"<{'i' if access.signed else 'u'}{access.size}")
    value: NDArray[np.uint32] = octets.view(kind)[:, 0].astype(np.int32).view(np.uint32)
    if access.half:
        low, high = (old, value << np.uint32(16)) if access.high else (value, old)
        value = low & ~_HIGH | high & _HIGH
    return value[None]


def to_bytes(access: MemAccess, registers: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Lanes by bytes, from rows by lanes; a whole word even if fewer bytes are stored."""
    values = np.ascontiguousarray(registers.T)
    return (values >> np.uint32(16) if access.high else values).view(np.uint8)


BASE = 0x7E00_0000_0000
_GAP = 1 << 16  # between buffers, so that a small overrun hits no other one


class Memory:
    """Buffers with gaps between them, in one array of bytes; a *place* is a byte's index in it."""

    def __init__(self, buffers: Sequence[NDArray[Any]], faults: Faults, skews: Sequence[int] = ()) -> None:
        """A buffer starts at a multiple of 64 KiB, plus its `skews` bytes."""
        self.faults = faults
        self._starts: list[int] = []
        self._ends: list[int] = []
        at = _GAP
        for number, buffer in enumerate(buffers):
            at += skews[number] if number < len(skews) else 0
            self._starts.append(at)
            self._ends.append(at + buffer.nbytes)
            at = (at + buffer.nbytes + 2 * _GAP - 1) // _GAP * _GAP
        self.block = np.zeros(at, np.uint8)  # all buffers and the gaps between them
        self._words = self.block.view(np.uint32)
        self._shapes = [(buffer.shape, buffer.dtype) for buffer in buffers]
        for start, buffer in zip(self._starts, buffers, strict=True):
            self.block[start : start + buffer.nbytes] = np.ascontiguousarray(buffer).reshape(-1).view(np.uint8)
        self.order = GlobalOrder(tuple(self._starts), at, faults)

    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.array(self._starts, np.int64), np.array(self._ends, np.int64)

    def address(self, number: int) -> int:
        return BASE + self._starts[number]

    def fill(self, number: int, contents: bytes) -> None:
        start = self._starts[number]
        self.block[start : start + len(contents)] = np.frombuffer(contents, np.uint8)

    def contents(self) -> tuple[NDArray[Any], ...]:
        return tuple(
            self.block[start:end].view(dtype).reshape(shape).copy()
            for start, end, (shape, dtype) in zip(self._starts, self._ends, self._shapes, strict=True)
        )

    def scalar_place(self, address: int, count: int, instruction: Instruction) -> int | None:
        """The place of `count` words; reports an I105 and returns None if no buffer holds them."""
        place = (address - BASE) & ~3
        if not self._inside(place, place + 4 * count):
            self._report_outside(instruction, address)
            return None
        return place

    def get(self, place: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
        if size % 4 == 0 and not (place & 3).any():
            words: NDArray[np.uint32] = self._words[(place >> 2)[:, None] + np.arange(size >> 2)]
            return words.view(np.uint8)
        octets: NDArray[np.uint8] = self.block[place[:, None] + np.arange(size)]
        return octets

    def put(self, place: NDArray[np.int64], data: NDArray[np.uint8]) -> None:
        """Writes places by bytes; the later place wins at equal addresses."""
        size = data.shape[1]
        if size % 4 == 0 and not (place & 3).any():
            self._words[(place >> 2)[:, None] + np.arange(size >> 2)] = np.ascontiguousarray(data).view(np.uint32)
        else:
            self.block[place[:, None] + np.arange(size)] = data

    def places(
        self, address: NDArray[np.uint64], size: int, active: NDArray[np.bool_], instruction: Instruction
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The places of the active lanes inside buffers, and which lanes those are; others are an I105."""
        place = (address - np.uint64(BASE)).view(np.int64)
        used = place[active]
        if not used.size or self._inside(int(used.min()), int(used.max()) + size):
            return used, active
        inside = np.array([self._inside(int(at), int(at) + size) for at in place])
        reached = active & inside
        if (active & ~inside).any():
            self._report_outside(instruction, int(address[active & ~inside][0]))
        return place[reached], reached

    def _inside(self, start: int, end: int) -> bool:
        number = bisect_right(self._starts, start) - 1
        return number >= 0 and end <= self._ends[number]

    def _report_outside(self, instruction: Instruction, address: int) -> None:
        near = bisect_right(self._starts, address - BASE) - 1
        past = address - BASE - self._ends[near]
        where = f"{past} bytes after the end of buffer {near}" if past >= 0 else f"too near the end of buffer {near}"
        if near < 0:
            where = "before any buffer"
        message = f"{instruction.opcode} accesses an address outside every buffer"
        self.faults.add("I105", instruction, message, ("address", f"{address:#x}"), ("where", where))


MOST_WAVES = 16  # of a workgroup
FREE, BY_DMA = 0, -1  # marks; wave w writes with mark w + 1
POISON_BYTE = 0xFF


class Lds:
    """The local data share of a workgroup; each byte has a mark, its last writer and the number of that write."""

    def __init__(
        self, size: int, faults: Faults, waves: int = MOST_WAVES, meetings: WaveMeetings | None = None
    ) -> None:
        self._faults = faults
        # At least one word, because a read out of bounds is reported and then reads something.
        room = max((size + 3) // 4 * 4, 4)
        self.bytes = np.full(room, POISON_BYTE, np.uint8)
        self.words = self.bytes.view(np.uint32)
        self._marks = np.zeros(room, np.int16)
        self._last = np.zeros(room, np.int16)
        self._serials = np.zeros(room, np.int64)
        self._serial = 0
        self.size = size
        self.meetings = meetings
        self._counting: NDArray[np.bool_] | None = None  # bytes of words that count arrivals
        self.order = AccessOrder(room, waves, faults, meetings)

    def sample(self, index: Octets, wave: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The bytes, and which of them another wave's write is changing."""
        marks = self._marks[index]
        return self.bytes[index], (marks != FREE) & (marks != wave + 1)

    def read_since(
        self, before: NDArray[np.uint8], index: Octets, wave: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The bytes at the landing of a read that sampled `before`, and which of them another wave disturbed."""
        now, marked = self.sample(index, wave)
        own = self._last[index] == wave + 1
        if self._counting is None:
            return np.where(own, before, now), marked | ((now != before) & ~own)
        counting = self._counting[index]
        if counting.any() and self.meetings is not None:
            self.meetings.read(wave, index[counting].tolist())
        return np.where(own & ~counting, before, now), marked | ((now != before) & ~own & ~counting)

    def arrive(self, place: int, count: int, knowledge: Knowledge) -> int:
        """Counts arrivals at a word; returns what it was."""
        if self._counting is None:
            self._counting = np.zeros(len(self.bytes), np.bool_)
        octets = slice(place, place + WORD_BYTES)
        self._counting[octets] = True
        old = int.from_bytes(self.bytes[octets].tobytes(), "little")
        if self.meetings is not None:
            new = self.meetings.arrive(place, old, count, knowledge)
            self.bytes[octets] = np.frombuffer(new.to_bytes(WORD_BYTES, "little"), np.uint8)
        return old

    def begin(self, index: Octets, wave: int, *, dma: bool = False) -> int:
        """Marks bytes as being written; returns the number of the write."""
        self._marks[index] = self._last[index] = BY_DMA if dma else wave + 1
        self._serial += 1
        self._serials[index] = self._serial
        return self._serial

    def end(self, index: Octets, serial: int) -> None:
        self._marks[index[self._serials[index] == serial]] = FREE  # unless a later write has taken them over

    def within(self, address: NDArray[np.int64], size: int, instruction: Instruction) -> NDArray[np.bool_]:
        inside: NDArray[np.bool_] = (address >= 0) & (address + size <= self.size)
        if not inside.all():
            self.report_outside(int(address[~inside][0]), instruction)
        return inside

    def report_outside(self, address: int, instruction: Instruction) -> None:
        message = f"{instruction.opcode} accesses LDS outside the workgroup's allocation"
        self._faults.add("I105", instruction, message, ("address", f"{address:#x}"), ("LDS bytes", self.size))
