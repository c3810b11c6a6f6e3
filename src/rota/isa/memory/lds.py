"""The local data share of a workgroup: takes reads and writes that take time, gives data, or poison where they meet.

A byte carries a mark while a write that changes it is under way.  A read needs its bytes unmarked and unchanged from
its issue to its landing; where they are not, any value could have come back, so poison does.  LDS instructions of one
wave are ordered among themselves, so a wave's own writes don't disturb its reads; loads from memory are ordered with
nothing.  What would meet in another interleaving is for `order` to say, and every fault comes from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rota.isa.races.memory_order import AccessOrder
from rota.isa.wave.wave import Faults

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction

    Octets = NDArray[np.int64]

MOST_WAVES = 16  # of a workgroup
FREE, BY_DMA = 0, -1  # marks; wave w writes with mark w + 1
POISON_BYTE = 0xFF


class Lds:
    """Bytes, and per byte a mark, who wrote it last, and the number of that write."""

    def __init__(self, size: int, faults: Faults, waves: int = MOST_WAVES) -> None:
        self._faults = faults
        # One word even without any LDS: what lies out of bounds is reported, and then read from somewhere.
        room = max((size + 3) // 4 * 4, 4)
        self.bytes = np.full(room, POISON_BYTE, np.uint8)
        self.words = self.bytes.view(np.uint32)
        self._marks = np.zeros(room, np.int16)
        self._last = np.zeros(room, np.int16)
        self._serials = np.zeros(room, np.int64)
        self._serial = 0
        self.size = size
        self.order = AccessOrder(room, waves, faults)

    def sample(self, index: Octets, wave: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The bytes now, and which of them another write is under way to."""
        marks = self._marks[index]
        return self.bytes[index], (marks != FREE) & (marks != wave + 1)

    def since(self, before: NDArray[np.uint8], index: Octets, wave: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """What a read brings that began with `before`: bytes disturbed since are said to be; the wave's own are not."""
        now, marked = self.sample(index, wave)
        own = self._last[index] == wave + 1
        return np.where(own, before, now), marked | ((now != before) & ~own)

    def begin(self, index: Octets, wave: int, *, dma: bool = False) -> int:
        """Marks bytes that a write is under way to; gives the number of the write."""
        self._marks[index] = self._last[index] = BY_DMA if dma else wave + 1
        self._serial += 1
        self._serials[index] = self._serial
        return self._serial

    def end(self, index: Octets, serial: int) -> None:
        """Takes the marks of a write away."""
        self._marks[index[self._serials[index] == serial]] = FREE  # unless a later write has taken them over

    def within(self, address: NDArray[np.int64], size: int, instruction: Instruction) -> NDArray[np.bool_]:
        """Which lanes stay inside the allocation."""
        inside: NDArray[np.bool_] = (address >= 0) & (address + size <= self.size)
        if not inside.all():
            self.leaves(int(address[~inside][0]), instruction)
        return inside

    def leaves(self, address: int, instruction: Instruction) -> None:
        """Remembers that an instruction uses an address behind the allocation."""
        self._faults.add(
            "I105",
            instruction,
            f"{instruction.opcode} leaves LDS",
            ("address", f"{address:#x}"),
            ("LDS bytes", self.size),
        )
