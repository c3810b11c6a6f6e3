"""Which LDS accesses of different waves are kept apart: takes accesses and epochs, gives faults for any interleaving.

A wave's epoch is the number of barriers it has passed.  An access of one wave happens before one of another, whatever
the interleaving, iff the wait that covers it stands in an earlier epoch than the other's issue.  A run visits one
interleaving; this check finds the races of the others, as long as they don't change where the waves go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rota.simulate.isa.wave import Faults

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.simulate.isa.listing import Instruction

    Words = NDArray[np.int64]

_WAVES = 1 << 16  # an access is one number: the epoch that covers it times this, and its wave
_SEVERAL = _WAVES - 1  # instead of a wave
_NEVER = _WAVES << 40  # a wait that hasn't come, in whatever epoch


class AccessOrder:
    """Per word its last write, and the last covered read since.

    Of several waves that read a word the one covered last decides; if another one was covered in the same epoch, then
    whoever writes next comes behind a read that is not its own.
    """

    def __init__(self, words: int, faults: Faults) -> None:
        self._faults = faults
        self._written = np.full(words, -1, np.int64)
        self._read = np.full(words, -1, np.int64)

    def begin_read(self, index: Words, wave: int, epoch: int, instruction: Instruction) -> None:
        """A read needs the last write of its words covered in an earlier epoch, unless it is its own."""
        self._check(self._written[index], wave, epoch, instruction, ("reads", "write"))

    def cover_read(self, index: Words, wave: int, epoch: int) -> None:
        """A wait has covered a read."""
        new, before = epoch * _WAVES + wave, self._read[index]
        after = np.maximum(before, new)
        shared = (before ^ new) < _WAVES
        if shared.any():
            after[shared & (before != new)] = epoch * _WAVES + _SEVERAL
        self._read[index] = after

    def begin_write(self, index: Words, wave: int, epoch: int, instruction: Instruction) -> None:
        """A write needs other waves' reads and writes of its words covered in earlier epochs."""
        self._check(self._read[index], wave, epoch, instruction, ("writes", "read"))
        self._check(self._written[index], wave, epoch, instruction, ("writes", "write"))
        self._written[index] = _NEVER + wave
        self._read[index] = -1

    def cover_write(self, index: Words, wave: int, epoch: int) -> None:
        """A wait has covered a write."""
        self._written[index] = epoch * _WAVES + wave

    def _check(
        self, others: NDArray[np.int64], wave: int, epoch: int, instruction: Instruction, what: tuple[str, str]
    ) -> None:
        late = others >= epoch * _WAVES
        if not late.any():
            return
        waves = others[late] % _WAVES
        waves = waves[waves != wave]
        if waves.size:
            self._faults.add(
                "I109",
                instruction,
                f"{instruction.opcode} {what[0]} LDS; no wait and barrier keep it behind another wave's {what[1]}",
                ("wave", wave),
                ("other wave", "several" if waves[0] == _SEVERAL else int(waves[0])),
            )
