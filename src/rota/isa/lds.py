"""The local data share of a workgroup: takes reads and writes that take time, gives data, or poison where they meet.

A word carries a mark while a write to it is under way.  A read needs its words unmarked and unchanged from its issue to
its landing; where they are not, any value could have come back, so poison does.  LDS instructions of one wave are
ordered among themselves, so a wave's own writes don't disturb its reads; loads from memory are ordered with nothing.
What would meet in another interleaving is for `memory_order` to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rota.isa.memory_order import AccessOrder, under_way
from rota.isa.wave import POISON, Faults

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.disassembly import Instruction

    Words = NDArray[np.int64]

MOST_WAVES = 16  # of a workgroup
FREE, BY_DMA = 0, -1  # marks; wave w writes with mark w + 1


class Lds:
    """Words, and per word a mark, who wrote it last, and the number of that write."""

    def __init__(self, size: int, faults: Faults, waves: int = MOST_WAVES) -> None:
        self._faults = faults
        # One word even without any LDS: what lies out of bounds is reported, and then read from somewhere.
        self.words = np.full(max((size + 3) // 4, 1), POISON, np.uint32)
        self.bytes = self.words.view(np.uint8)
        self._marks = np.zeros(len(self.words), np.int16)
        self._last = np.zeros(len(self.words), np.int16)
        self._serials = np.zeros(len(self.words), np.int64)
        self._serial = 0
        self.size = size
        self.order = AccessOrder(len(self.words), waves, faults)

    def sample(self, index: Words, wave: int) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        """The words now, and which of them another write is under way to."""
        marks = self._marks[index]
        return self.words[index], (marks != FREE) & (marks != wave + 1)

    def since(
        self, before: NDArray[np.uint32], index: Words, wave: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        """What a read brings that began with `before`: words disturbed since are said to be; the wave's own are not."""
        now, marked = self.sample(index, wave)
        own = self._last[index] == wave + 1
        return np.where(own, before, now), marked | ((now != before) & ~own)

    def begin(self, index: Words, wave: int, instruction: Instruction, *, dma: bool = False) -> int:
        """Marks words that a write is under way to; gives the number of the write."""
        mark = BY_DMA if dma else wave + 1
        marks = self._marks[index]
        met = (marks != FREE) & (dma | (marks != mark))
        if met.any():
            under_way(self._faults, instruction, wave, index[met], writes=True)
        self._marks[index] = self._last[index] = mark
        self._serial += 1
        self._serials[index] = self._serial
        return self._serial

    def end(self, index: Words, serial: int) -> None:
        """Takes the marks of a write away."""
        self._marks[index[self._serials[index] == serial]] = FREE  # unless a later write has taken them over

    def within(self, address: NDArray[np.int64], size: int, instruction: Instruction) -> NDArray[np.bool_]:
        """Which lanes stay inside the allocation."""
        inside: NDArray[np.bool_] = (address >= 0) & (address + size <= self.size)
        if not inside.all():
            self._faults.add(
                "I105",
                instruction,
                f"{instruction.opcode} leaves LDS",
                ("address", f"{int(address[~inside][0]):#x}"),
                ("LDS bytes", self.size),
            )
        return inside
