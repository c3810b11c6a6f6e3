"""Which LDS accesses are kept apart: takes accesses and the epochs of their waits, gives faults for any interleaving.

The rules, which every engine that judges accesses follows to the letter:

A wave's *epoch* is the number of barriers it has reached.  An access has the epoch of its issue and, once a wait of its
wave has covered it, the epoch of that wait.  Access `o` of one wave is *before* access `n` of another, in every
interleaving, iff the wait that covers `o` stands in an earlier epoch than the issue of `n`; an access that no wait has
covered yet is before nothing.  LDS instructions of one wave are ordered among themselves; its loads to LDS (DMA) are
ordered with nothing, so that a wait must stand between them and any other access of the wave to the same bytes.

A byte knows the number of its last plain write `W` and whether that changed it, of each wave's last plain read `R[v]`,
of each wave's last atomic `A[v]`, and whether anything was ever written to it, `I`.  At the issue of access `n` by wave
`w`, for each of its bytes:

====== ======================================== =======================
access looked at, in this order                 then
====== ======================================== =======================
read   `W`, `A[v]`, and `I` if W = A = 0        `R[w] = n`
write  all `R[v]`, `W`, `A[v]`                  `W = n`, `I = true`
atomic all `R[v]`, `W`; `I` as a read does      `A[w] = n`, `I = true`
====== ======================================== =======================

Each access `o` that is looked at is judged:

- another wave's, not before `n`: I109.  Both are plain writes of registers and the bytes that both write are equal, or
  both are one instruction that loads the same words to the same bytes: I304 instead, a warning.  Of such loads, the
  later one looks out for the earlier ones as well: who comes to the bytes afterwards needs all of them behind it.
  Atomics never look at atomics.
- the same wave's, `o` or `n` is a DMA, and no wait has covered `o`: I106.
- a byte is read while `I` is false: I301.

An I109 says what it *rests on*: "no barrier" if both were issued in one epoch.  Else a barrier stands between, but no
wait before it: "policy" if `o` is an LDS read and `n` writes registers (a DMA is never excused: its way to LDS is
another one), "no wait before the barrier" in all other cases.

It says whether it was *seen* as well.  Wrong in the order that was executed: a read landed with bytes of which another
wave's write had a change under way between its issue and its landing (it brings poison), or two writes differ.  All
others are separated only by how long things take; of these it says whether the write changed any of the bytes, so that
another order brings another value.  A DMA and an atomic count as changing what they write.

One number per byte and wave suffices: a wave's reads are covered in their order (a flat read, which isn't, keeps its
place in `R[w]` until it is covered), and a write that is kept apart from an earlier one stands for it towards all that
follow.  Of a byte that two waves race for, the first race is told, and an I106 may be hidden behind an I109.  A run
visits one interleaving; this check finds the races of the others, as long as they don't change where the waves go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rota.errors import Severity
from rota.isa.wave.wave import Faults

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction

    Octets = NDArray[np.int64]

_NONE = 0  # the number of no access
_BEFORE_ALL, NEVER = -1, 1 << 30  # epochs: of no access, and of a wait that hasn't come
SEEN_VALUE = "in this order: they met, and what the read brings could be either"
SEEN_WRITES = "in this order: the values differ, and the later one stays"
SEEN_NOT = "not in this order: separated only by how long things take, and another order brings another value"
SEEN_NO_CHANGE = "not in this order: separated only by how long things take; here the bytes didn't change"


class LdsAccess(NamedTuple):
    """One instruction of one wave that uses LDS."""

    wave: int
    epoch: int
    instruction: Instruction
    writes: bool
    reads: bool
    dma: bool = False
    source: bytes = b""  # of a DMA: which lanes load which words to where


class AccessOrder:
    """Accesses are numbered; a byte knows the number of its last write, and of each wave's last read and atomic."""

    def __init__(self, size: int, waves: int, faults: Faults) -> None:
        self._faults = faults
        self._accesses: list[LdsAccess] = []  # the first is number 1
        self._covered = np.array([_BEFORE_ALL], np.int32)  # by access, the epoch of the wait that covers it
        self._written = np.zeros(size, np.int32)
        self._read = np.zeros((size, waves), np.int32)
        self._atomic: NDArray[np.int32] | None = None  # as _read, from the first atomic on
        self._flat: list[int] = []  # flat reads that may not be covered yet
        self._same: dict[int, int] = {}  # by load to LDS, another wave's load before it, of the same words
        self._known = np.zeros(size, np.bool_)  # something was written
        self._changed = np.zeros(size, np.bool_)  # by the last write

    def begin_read(self, index: Octets, wave: int, epoch: int, instruction: Instruction, *, flat: bool = False) -> int:
        """A read needs the last write of its bytes behind it, and one to have been."""
        access = LdsAccess(wave, epoch, instruction, writes=False, reads=True)
        self._check(access, index, self._written[index], ~self._changed[index])
        self._check_atomics(access, index)
        self._check_known(access, index)
        number = self._numbered(access)
        under_way = [each for each in self._flat if self._covered[each] == NEVER]
        if under_way:
            index = index[~np.isin(self._read[index, wave], under_way)]
        self._flat = [*under_way, number] if flat else under_way
        self._read[index, wave] = number
        return number

    def begin_write(
        self,
        index: Octets,
        wave: int,
        epoch: int,
        instruction: Instruction,
        *,
        equal: NDArray[np.bool_] | None = None,
    ) -> int:
        """A write needs all reads and the last write of its bytes behind it; `equal` bytes stay as they are."""
        return self._begin_write(index, LdsAccess(wave, epoch, instruction, writes=True, reads=False), equal)

    def begin_load(self, index: Octets, wave: int, epoch: int, instruction: Instruction, source: bytes) -> int:
        """A load from memory to LDS, which is a write like others; `source` says from where each lane loads."""
        access = LdsAccess(wave, epoch, instruction, writes=True, reads=False, dma=True, source=source)
        before = set(np.unique(self._written[index]).tolist()) - {_NONE}
        number = self._begin_write(index, access)
        same = [each for each in before if self._covered[each] >= epoch and _of_same_words(access, self._at(each))]
        if same:
            self._same[number] = same[0]  # all of its bytes are that one's
        return number

    def _begin_write(self, index: Octets, access: LdsAccess, equal: NDArray[np.bool_] | None = None) -> int:
        self._check(access, index, self._read[index], equal)
        self._check(access, index, self._written[index], equal)
        self._check_atomics(access, index)
        self._written[index] = number = self._numbered(access)
        self._known[index] = True
        self._changed[index] = True if equal is None else ~equal
        return number

    def begin_atomic(self, index: Octets, wave: int, epoch: int, instruction: Instruction) -> int:
        """An atomic access needs all plain ones behind it, and goes with other atomics in any order."""
        access = LdsAccess(wave, epoch, instruction, writes=True, reads=True)
        self._check(access, index, self._read[index])
        self._check(access, index, self._written[index])
        self._check_known(access, index)
        if self._atomic is None:
            self._atomic = np.zeros_like(self._read)
        self._atomic[index, wave] = number = self._numbered(access)
        self._known[index] = True
        return number

    def cover(self, number: int, epoch: int) -> None:
        """A wait has covered an access."""
        self._covered[number] = epoch

    def disturbed(self, number: int, index: Octets) -> None:
        """The read of that number landed with bytes that a write changed: what is known of the two was seen."""
        read = self._accesses[number - 1]
        others = set(np.unique(self._written[index]).tolist())
        if self._atomic is not None:
            others |= set(np.unique(self._atomic[index]).tolist())
        for other in others - {_NONE}:
            if self._accesses[other - 1].wave != read.wave:
                earlier, later = sorted((number, other))
                told, against = self._accesses[later - 1].instruction, self._accesses[earlier - 1].instruction
                self._faults.confirm("I109", told, ("seen", SEEN_VALUE), other=against)

    def _numbered(self, access: LdsAccess) -> int:
        self._accesses.append(access)
        number = len(self._accesses)
        if number == len(self._covered):
            self._covered = np.concatenate([self._covered, np.full(number, NEVER, np.int32)])
        return number

    def _check_atomics(self, access: LdsAccess, index: Octets) -> None:
        if self._atomic is not None:
            self._check(access, index, self._atomic[index])

    def _check_known(self, access: LdsAccess, index: Octets) -> None:
        known = self._known[index]
        if not known.all():
            unwritten(self._faults, access.instruction, access.wave, index[~known])

    def _check(
        self, access: LdsAccess, index: Octets, earlier: NDArray[np.int32], equal: NDArray[np.bool_] | None = None
    ) -> None:
        """`earlier` are the accesses of the bytes in `index`, one per byte, or one per byte and wave."""
        late = self._covered[earlier] >= access.epoch
        if self._same:
            late |= np.isin(earlier, list(self._same))
        if not late.any():
            return
        for number in np.unique(earlier[late]).tolist():
            where = earlier == number
            hit = where if where.ndim == index.ndim else where.any(axis=-1)
            octets = index[hit]
            each: int | None = number
            while each is not None:
                other = self._at(each)
                if other.wave != access.wave and self._covered[each] >= access.epoch:
                    self._races(access, other, octets, same=equal is not None and bool(equal[hit].all()))
                elif other.wave == access.wave and (access.dma or other.dma) and self._covered[each] == NEVER:
                    self._overtakes(access, other, octets)
                each = self._same.get(each)

    def _at(self, number: int) -> LdsAccess:
        return self._accesses[number - 1]

    def _races(self, access: LdsAccess, other: LdsAccess, octets: Octets, *, same: bool) -> None:
        """`same`: the write that is one of the two, the later one of both, changed nothing."""
        close = access.epoch == other.epoch
        verb, noun = "writes" if access.writes else "reads", "write" if other.writes else "read"
        plain = not (access.dma or other.dma or (access.reads and access.writes) or (other.reads and other.writes))
        both = access.writes and other.writes and plain
        ends = ("wave", access.wave), ("other wave", other.wave), ("bytes", span(octets))
        if (same and both) or _of_same_words(access, other):
            does = (
                "loads to LDS what another wave loads there" if access.dma else "writes what another wave has written"
            )
            self._faults.add(
                "I304",
                access.instruction,
                f"{access.instruction.opcode} {does}; nothing orders the two",
                *ends,
                other=other.instruction,
                severity=Severity.WARNING,
            )
            return
        seen = SEEN_WRITES if both else SEEN_NO_CHANGE if same and plain else SEEN_NOT
        self._faults.add(
            "I109",
            access.instruction,
            f"{access.instruction.opcode} {verb} LDS; no wait and barrier keep it behind another wave's {noun}",
            *ends,
            ("missing", "a wait for it, and a barrier behind that" if close else "a wait for it before the barrier"),
            ("rests on", _rests_on(access, other)),
            ("seen", seen),
            other=other.instruction,
        )

    def _overtakes(self, access: LdsAccess, other: LdsAccess, octets: Octets) -> None:
        """A wave's load to LDS and another access of it: told of the read, or of the later write."""
        told, against = (other, access) if not other.writes else (access, other)
        what = "writes LDS while another write to it" if told.writes else "reads LDS while a write to it"
        self._faults.add(
            "I106",
            told.instruction,
            f"{told.instruction.opcode} {what} is under way",
            ("wave", told.wave),
            ("bytes", span(octets)),
            other=against.instruction,
        )


def _of_same_words(access: LdsAccess, other: LdsAccess) -> bool:
    """Do two waves load the same words to the same bytes, by one instruction and in one stretch between barriers?"""
    apart = access.wave != other.wave and access.epoch == other.epoch
    return apart and access.dma and access.instruction is other.instruction and access.source == other.source


def _rests_on(access: LdsAccess, other: LdsAccess) -> str:
    """Which rule is broken; see the module's docstring."""
    if other.epoch == access.epoch:
        return "no barrier"
    if not other.writes and not access.dma:
        return "policy: an LDS read is over before the barrier behind which its bytes are written"
    return "no wait before the barrier"


def unwritten(faults: Faults, instruction: Instruction, wave: int, octets: Octets) -> None:
    """Remembers that LDS is read where nobody has written."""
    faults.add(
        "I301",
        instruction,
        f"{instruction.opcode} reads LDS that nothing was written to",
        ("wave", wave),
        ("bytes", span(octets)),
    )


def span(octets: Octets) -> str:
    """The bytes of a set, as few words as it takes."""
    distinct = np.unique(octets)
    first, last = int(distinct[0]), int(distinct[-1])
    if len(distinct) == last - first + 1:
        return f"{first} to {last}"
    return f"{len(distinct)} of {first} to {last}"
