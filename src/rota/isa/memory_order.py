"""Which LDS accesses are kept apart: takes accesses and the epochs of their waits, gives faults for any interleaving.

A wave's epoch is the number of barriers it has reached.  An access of one wave happens before one of another, whatever
the interleaving, iff the wait that covers it stands in an earlier epoch than the other's issue; one that no wait has
covered yet happens before nothing.  LDS instructions of one wave are ordered among themselves, its loads to LDS with
nothing: a wait must stand between.  A run visits one interleaving; this check finds the races of the others, as long as
they don't change where the waves go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rota.isa.wave import Faults

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.disassembly import Instruction

    Words = NDArray[np.int64]

_NONE = 0  # the number of no access
_BEFORE_ALL, _NEVER = -1, 1 << 30  # epochs: of no access, and of a wait that hasn't come


class _Access(NamedTuple):
    wave: int
    instruction: Instruction
    writes: bool
    dma: bool


class AccessOrder:
    """Accesses are numbered; a word knows the number of its last write, and of each wave's last read.

    These suffice: a wave's reads are covered in their order, and a write that is kept apart from an earlier one stands
    for it towards all that follow.
    """

    def __init__(self, words: int, waves: int, faults: Faults) -> None:
        self._faults = faults
        self._accesses: list[_Access] = []  # the first is number 1
        self._covered = np.array([_BEFORE_ALL], np.int32)  # by access, the epoch of the wait that covers it
        self._written = np.full(words, _NONE, np.int32)
        self._read = np.full((words, waves), _NONE, np.int32)

    def begin_read(self, index: Words, wave: int, epoch: int, instruction: Instruction) -> int:
        """A read needs the last write of its words behind it."""
        access = _Access(wave, instruction, writes=False, dma=False)
        self._check(access, epoch, index, self._written[index])
        self._read[index, wave] = number = self._numbered(access)
        return number

    def begin_write(self, index: Words, wave: int, epoch: int, instruction: Instruction, *, dma: bool = False) -> int:
        """A write needs all reads and the last write of its words behind it."""
        access = _Access(wave, instruction, writes=True, dma=dma)
        self._check(access, epoch, index, self._read[index])
        self._check(access, epoch, index, self._written[index])
        self._written[index] = number = self._numbered(access)
        return number

    def cover(self, number: int, epoch: int) -> None:
        """A wait has covered an access."""
        self._covered[number] = epoch

    def _numbered(self, access: _Access) -> int:
        self._accesses.append(access)
        number = len(self._accesses)
        if number == len(self._covered):
            self._covered = np.concatenate([self._covered, np.full(number, _NEVER, np.int32)])
        return number

    def _check(self, access: _Access, epoch: int, index: Words, earlier: NDArray[np.int32]) -> None:
        """`earlier` are the accesses of the words in `index`, one per word, or one per word and wave."""
        late = self._covered[earlier] >= epoch
        if not late.any():
            return
        for number in np.unique(earlier[late]):
            other = self._accesses[number - 1]
            if other.wave != access.wave:
                self._races(access, other, covered=self._covered[number] != _NEVER)
            elif (access.dma or other.dma) and self._covered[number] == _NEVER:
                where = earlier == number
                self._overtakes(access, other, index[where if where.ndim == index.ndim else where.any(axis=-1)])

    def _races(self, access: _Access, other: _Access, *, covered: bool) -> None:
        verb, noun = "writes" if access.writes else "reads", "write" if other.writes else "read"
        self._faults.add(
            "I109",
            access.instruction,
            f"{access.instruction.opcode} {verb} LDS; no wait and barrier keep it behind another wave's {noun}",
            ("wave", access.wave),
            ("other wave", other.wave),
            ("missing", "a barrier behind its wait" if covered else "a wait for it, and a barrier behind that"),
            other=other.instruction,
        )

    def _overtakes(self, access: _Access, other: _Access, words: Words) -> None:
        """A wave's load to LDS and another access of it: told of the read, or of the later write."""
        told, against = (other, access) if not other.writes else (access, other)
        under_way(self._faults, told.instruction, told.wave, words, writes=told.writes, other=against.instruction)


def under_way(
    faults: Faults,
    instruction: Instruction,
    wave: int,
    words: Words,
    *,
    writes: bool = False,
    other: Instruction | None = None,
) -> None:
    """Remembers that LDS is read or written while a write to it is under way."""
    what = "writes LDS while another write to it" if writes else "reads LDS while a write to it"
    faults.add(
        "I106",
        instruction,
        f"{instruction.opcode} {what} is under way",
        ("wave", wave),
        ("first byte", int(words.min()) * 4),
        other=other,
    )
