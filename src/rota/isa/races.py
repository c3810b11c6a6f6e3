"""Races: accesses of LDS and of global memory that nothing keeps apart, in any interleaving."""

from __future__ import annotations

import enum
import re
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.errors import Finding, Severity
from rota.isa.disassembly import Instruction
from rota.isa.opcodes import IsaFlow, IsaUnit
from rota.isa.wave.meeting import NO_TOKENS, WaveMeetings
from rota.isa.wave.wave import Faults, Wave
from rota.targets.memory_model import HandOverPiece

Evidence = tuple[tuple[str, str], ...]
Octets = NDArray[np.int64]
Places = NDArray[np.int64]

# Races on LDS: the rules, which every engine that judges accesses follows to the letter.
#
# A wave's *epoch* is the number of barriers it has reached. An access has the epoch of its issue and, once a wait of
# its wave covers it, the epoch of that wait. Access `o` of one wave is *before* access `n` of another, in every
# interleaving, iff the wait that covers `o` is in an earlier epoch than the issue of `n`; an uncovered access is before
# nothing. LDS instructions of one wave are ordered among themselves. Its loads to LDS (DMA) are ordered with nothing,
# so a wait must separate them from any other access of the wave to the same bytes.
#
# A byte records its last plain write `W` and whether that changed it, each wave's last plain read `R[v]` and last
# atomic `A[v]`, and whether it was ever written, `I`. At the issue of access `n` by wave `w`, for each of its bytes:
#
# - a read looks at `W`, `A[v]`, and at `I` if W = A = 0; then `R[w] = n`
# - a write looks at all `R[v]`, `W`, `A[v]`; then `W = n`, `I = true`
# - an atomic looks at all `R[v]`, `W`, and at `I` as a read does; then `A[w] = n`, `I = true`
#
# Each access `o` that it looks at is judged:
#
# - Another wave's `o` that is not before `n` is an I109. It is an I304, a warning, if both are plain writes of
#   registers with equal bytes, or one instruction that loads the same words to the same bytes. The later of such loads
#   represents the earlier ones: an access after it must be after all of them.
# - The same wave's `o`, not covered by a wait, is an I106 if `o` or `n` is a DMA.
# - A byte that is read while `I` is false is an I301.
#
# An I109 says what it *rests on*: "no barrier" if both were issued in one epoch. Otherwise there is a barrier without a
# wait before it: "policy" if `o` is an LDS read and `n` writes registers (never for a DMA, which takes another path to
# LDS), else "no wait before the barrier". It also says whether it was *seen*: a read landed while another wave's write
# was changing its bytes (it returns poison), or two writes differ. If only timing separated the two, it says whether
# the write changed a byte, so that another order changes the result. A DMA and an atomic count as changing their bytes.
#
# Where waves also meet at named barriers, or at words of LDS that count arrivals, epochs don't say who comes after
# whom: there access `o` of wave `u` is before access `n` of wave `w` iff `w` knows of a release of `u` after the wait
# that covers `o` (`rota.isa.wave.meeting`). LDS instructions before an arrival are over at it. Polls don't race with
# arrivals.
#
# One number per byte and wave suffices: a wave's reads are covered in order (a flat read, which isn't, keeps its place
# in `R[w]` until it is covered), and a write that is ordered after an earlier one represents it for all later accesses.
# Of a byte that two waves race for, only the first race is reported, and an I109 may hide an I106. A run visits one
# interleaving; this check finds the races of the others, as long as they don't change the control flow.

_NONE = 0  # the number of no access
_BEFORE_ALL, NEVER = -1, 1 << 30  # epochs: of no access, and of a wait that hasn't come
SEEN_VALUE = "in this order: they overlapped, and the read returns either value"
SEEN_WRITES = "in this order: the values differ, and the later one stays"
SEEN_NOT = "not in this order: only timing kept them apart, and another order changes the result"
SEEN_NO_CHANGE = "not in this order: only timing kept them apart; here the bytes didn't change"


class LdsAccess(NamedTuple):
    wave: int
    epoch: int
    instruction: Instruction
    writes: bool
    reads: bool
    dma: bool = False
    source: bytes = b""  # of a DMA: which lanes load which words to where
    arrives: bool = False  # at a word that counts arrivals


class AccessOrder:
    """Numbers the accesses; each byte records its last write, and each wave's last read and last atomic."""

    def __init__(self, size: int, waves: int, faults: Faults, meetings: WaveMeetings | None = None) -> None:
        self._faults = faults
        self._meetings = meetings
        self._accesses: list[LdsAccess] = []  # the first is number 1
        self._covered = np.array([_BEFORE_ALL], np.int32)  # by access, the epoch of the wait or arrival that covers it
        self._waited = np.array([True])  # by access, whether a wait of its wave covers it
        self._owners = np.array([0], np.int32)  # by access, its wave
        self._open: list[list[int]] = [[] for _ in range(waves)]  # where there are meetings: what no wait covers yet
        self._tokens: dict[int, int] = {}  # by asynchronous access, the token of the arrival at which it is over
        self._written = np.zeros(size, np.int32)
        self._read = np.zeros((size, waves), np.int32)
        self._atomic: NDArray[np.int32] | None = None  # as _read, from the first atomic on
        self._flat: list[int] = []  # flat reads that may not be covered yet
        self._same: dict[int, int] = {}  # by load to LDS, another wave's load before it, of the same words
        self._known = np.zeros(size, np.bool_)  # something was written
        self._changed = np.zeros(size, np.bool_)  # by the last write

    def begin_read(
        self, index: Octets, wave: int, epoch: int, instruction: Instruction, *, flat: bool = False, dma: bool = False
    ) -> int:
        """Checks a read against the last write and the atomics of its bytes, and that something was written.

        A read by a `flat` instruction or by an asynchronous copy (`dma`) returns in no order with others.
        """
        access = LdsAccess(wave, epoch, instruction, writes=False, reads=True, dma=dma)
        self._check(access, index, self._written[index], ~self._changed[index])
        self._check_atomics(access, index)
        self._check_written(access, index)
        number = self._append(access)
        in_flight = [each for each in self._flat if not self._waited[each]]
        if in_flight:
            index = index[~np.isin(self._read[index, wave], in_flight)]
        self._flat = [*in_flight, number] if flat or dma else in_flight
        self._read[index, wave] = number
        return number

    def begin_write(
        self, index: Octets, wave: int, epoch: int, instruction: Instruction, *, equal: NDArray[np.bool_] | None = None
    ) -> int:
        """Checks a write against all reads and writes of its bytes; it leaves the `equal` bytes unchanged."""
        return self._begin_write(index, LdsAccess(wave, epoch, instruction, writes=True, reads=False), equal)

    def begin_load(self, index: Octets, wave: int, epoch: int, instruction: Instruction, source: bytes) -> int:
        """Checks a load from memory to LDS (DMA) as a write; `source` identifies what each lane loads."""
        access = LdsAccess(wave, epoch, instruction, writes=True, reads=False, dma=True, source=source)
        before = set(np.unique(self._written[index]).tolist()) - {_NONE}
        number = self._begin_write(index, access)
        late = [each for each in before if not self._is_over(access, each)]
        same = [each for each in late if _loads_same_words(access, self._at(each))]
        if same:
            self._same[number] = same[0]  # all of its bytes are that one's
        return number

    def _begin_write(self, index: Octets, access: LdsAccess, equal: NDArray[np.bool_] | None = None) -> int:
        self._check(access, index, self._read[index], equal)
        self._check(access, index, self._written[index], equal)
        self._check_atomics(access, index)
        self._written[index] = number = self._append(access)
        self._known[index] = True
        self._changed[index] = True if equal is None else ~equal
        return number

    def begin_atomic(self, index: Octets, wave: int, epoch: int, instruction: Instruction) -> int:
        """Checks an atomic against plain accesses only; atomics may run in any order."""
        access = LdsAccess(wave, epoch, instruction, writes=True, reads=True)
        self._check(access, index, self._read[index])
        return self._begin_atomic(access, index)

    def begin_arrival(self, index: Octets, wave: int, epoch: int, instruction: Instruction) -> int:
        """Checks an arrival against plain writes only; who polls may do so at any time."""
        return self._begin_atomic(LdsAccess(wave, epoch, instruction, writes=True, reads=True, arrives=True), index)

    def _begin_atomic(self, access: LdsAccess, index: Octets) -> int:
        self._check(access, index, self._written[index])
        self._check_written(access, index)
        if self._atomic is None:
            self._atomic = np.zeros_like(self._read)
        self._atomic[index, access.wave] = number = self._append(access)
        self._known[index] = True
        return number

    def cover(self, number: int, epoch: int) -> None:
        self._covered[number] = min(self._covered[number], epoch)
        self._waited[number] = True

    def cover_plain(self, wave: int, epoch: int) -> None:
        """A wave arrives: its LDS instructions so far are over then, since a wave's are performed in order."""
        self._open[wave] = [each for each in self._open[wave] if not self._waited[each]]
        for each in self._open[wave]:
            if not self._at(each).dma:
                self._covered[each] = min(self._covered[each], epoch)

    def give_token(self, wave: int, token: int, which: Callable[[Instruction], bool]) -> None:
        """The wave's asynchronous accesses of these instructions are over for whoever knows the token."""
        for each in self._open[wave]:
            if not self._waited[each] and self._at(each).dma and which(self._at(each).instruction):
                self._tokens[each] = token

    def mark_seen(self, number: int, index: Octets) -> None:
        """Upgrades known races of a read to "seen": it landed with bytes that a write was changing."""
        read = self._at(number)
        others = set(np.unique(self._written[index]).tolist())
        if self._atomic is not None:
            others |= set(np.unique(self._atomic[index]).tolist())
        for other in others - {_NONE}:
            if self._at(other).wave != read.wave:
                earlier, later = sorted((number, other))
                against = self._at(earlier).instruction
                self._faults.confirm("I109", self._at(later).instruction, ("seen", SEEN_VALUE), other=against)

    def _append(self, access: LdsAccess) -> int:
        self._accesses.append(access)
        number = len(self._accesses)
        if number == len(self._covered):
            self._covered = np.concatenate([self._covered, np.full(number, NEVER, np.int32)])
            self._waited = np.concatenate([self._waited, np.zeros(number, np.bool_)])
            self._owners = np.concatenate([self._owners, np.zeros(number, np.int32)])
        self._owners[number] = access.wave
        if self._meetings is not None:
            self._open[access.wave].append(number)
        return number

    def _limits(self, access: LdsAccess, earlier: NDArray[np.int32]) -> Any:  # noqa: ANN401  # one, or one for each
        """What covers an earlier access must be below its limit, or it may not be over."""
        if self._meetings is None:
            return access.epoch
        return self._meetings.known[access.wave].releases[self._owners[earlier]]

    def _is_over(self, access: LdsAccess, number: int) -> bool:
        """True if another wave's access is before this one in every interleaving."""
        if self._meetings is None:
            return bool(self._covered[number] < access.epoch)
        releases, tokens = self._meetings.known[access.wave]
        return bool(self._covered[number] < releases[self._owners[number]]) or self._tokens.get(number) in tokens

    def _has_ended(self, access: LdsAccess, number: int) -> bool:
        """True if this wave knows that an access of its own is over: by a wait, or by the arrival of its copy."""
        tokens = NO_TOKENS if self._meetings is None else self._meetings.known[access.wave].tokens
        return bool(self._waited[number]) or self._tokens.get(number) in tokens

    def _check_atomics(self, access: LdsAccess, index: Octets) -> None:
        if self._atomic is not None:
            self._check(access, index, self._atomic[index])

    def _check_written(self, access: LdsAccess, index: Octets) -> None:
        known = self._known[index]
        if not known.all():
            message = f"{access.instruction.opcode} reads LDS that nothing was written to"
            evidence = ("wave", access.wave), ("bytes", describe_bytes(index[~known]))
            self._faults.add("I301", access.instruction, message, *evidence)

    def _check(
        self, access: LdsAccess, index: Octets, earlier: NDArray[np.int32], equal: NDArray[np.bool_] | None = None
    ) -> None:
        """Checks an access against `earlier` ones of the bytes in `index`: one per byte, or one per byte and wave."""
        late = self._covered[earlier] >= self._limits(access, earlier)
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
                if other.arrives and not access.writes:
                    pass
                elif other.wave != access.wave and not self._is_over(access, each):
                    self._report_race(access, other, octets, same=equal is not None and bool(equal[hit].all()))
                elif other.wave == access.wave and (access.dma or other.dma) and not self._has_ended(access, each):
                    self._report_overtaking(access, other, octets)
                each = self._same.get(each)

    def _at(self, number: int) -> LdsAccess:
        return self._accesses[number - 1]

    def _report_race(self, access: LdsAccess, other: LdsAccess, octets: Octets, *, same: bool) -> None:
        close = access.epoch == other.epoch
        verb, noun = "writes" if access.writes else "reads", "write" if other.writes else "read"
        plain = not (access.dma or other.dma or (access.reads and access.writes) or (other.reads and other.writes))
        both = access.writes and other.writes and plain
        ends = ("wave", access.wave), ("other wave", other.wave), ("bytes", describe_bytes(octets))
        here, there = access.instruction, other.instruction
        if (same and both) or _loads_same_words(access, other):
            report_equal_values(self._faults, here, there, *ends, dma=access.dma)
            return
        missing, rule = "a wait for it before the barrier", "no wait before the barrier"
        if close:
            missing, rule = "a wait for it, and a barrier after that", "no barrier"
        elif not other.writes and not access.dma:
            rule = "policy: an LDS read is over before the barrier after which its bytes are written"
        seen = SEEN_WRITES if both else SEEN_NO_CHANGE if same and plain else SEEN_NOT
        why = ("missing", missing), ("rests on", rule), ("seen", seen)
        message = f"{here.opcode} {verb} LDS; no wait and barrier keep it after another wave's {noun}"
        self._faults.add("I109", here, message, *ends, *why, other=there)

    def _report_overtaking(self, access: LdsAccess, other: LdsAccess, octets: Octets) -> None:
        """Reports a DMA and another access of its wave, at the read if there is one, else at the later write."""
        early, against = (other, access) if not other.writes else (access, other)
        what = "writes LDS while another write to it" if early.writes else "reads LDS while a write to it"
        message = f"{early.instruction.opcode} {what} is in flight"
        evidence = ("wave", early.wave), ("bytes", describe_bytes(octets))
        self._faults.add("I106", early.instruction, message, *evidence, other=against.instruction)


def _loads_same_words(access: LdsAccess, other: LdsAccess) -> bool:
    """True if two waves load the same words to the same bytes, by one instruction and in one epoch."""
    if access.wave == other.wave or access.epoch != other.epoch:
        return False
    return access.dma and access.instruction is other.instruction and access.source == other.source


def report_equal_values(
    faults: Faults, here: Instruction, there: Instruction, *evidence: tuple[str, str | int], dma: bool = False
) -> None:
    """An I304 of two waves that write the same to LDS, or load the same words there."""
    does = "loads to LDS what another wave loads there" if dma else "writes what another wave has written"
    message = f"{here.opcode} {does}; nothing orders the two"
    faults.add("I304", here, message, *evidence, other=there, severity=Severity.WARNING)


def describe_bytes(octets: Octets) -> str:
    distinct = np.unique(octets)
    return describe_range(len(distinct), int(distinct[0]), int(distinct[-1]))


def describe_range(count: int, first: int, last: int) -> str:
    return f"{first} to {last}" if count == last - first + 1 else f"{count} of {first} to {last}"


# Races on global memory. Accesses are recorded while waves run, and judged byte by byte when their workgroup ends
# (`close`) or the launch does (`finish`).
#
# Two accesses of a byte conflict if one of them writes, unless both are *shared*: atomics, loads and stores with sc1
# (or glc, if scalar), and within a workgroup those with sc0, which is how compilers spell atomic loads and stores. A
# conflict that nothing orders is a fault, or an I304 if both write the same value.
#
# *Within a workgroup* the rules are those of LDS: another wave's access is before this one iff the wait that covers it
# is in an earlier epoch. A wave's own accesses are in order. I302.
#
# *Between workgroups* only release and acquire order anything. I303. The release is a shared write, the acquire a later
# shared read, or an atomic that returns, of the same address. The release follows accesses that its wave has waited
# for, and those that another wave of its workgroup has waited for in an earlier epoch. The acquire precedes accesses
# that its wave issues after the wait for it, and those that other waves issue in a later epoch.
#
# Where workgroups have caches of their own (`Architecture.memory_model`), a plain store is published only by a
# write-back: one that its wave issues after it, or another wave after a wait for the store and a barrier, and that is
# over before the release, by a wait for 0. A plain load is fetched anew only if an invalidate follows the acquire and
# its wait, and precedes the load; nothing need wait for the invalidate, since memory ops of a wave don't overtake it.
# Accesses with sc1 pass the caches, and stores read none. The scalar cache has an invalidate of its own.
#
# Not covered: orders through a third workgroup by two different addresses; of several workgroups that read a byte
# before one writes it, all but the last.


class MemoryUse(enum.Enum):
    READ = "read"
    WRITE = "write"
    ATOMIC = "atomic"
    BLIND_ATOMIC = "atomic without return"
    WRITE_BACK = "write-back of caches"
    INVALIDATE = "invalidate of caches"
    SCALAR_INVALIDATE = "invalidate of the scalar cache"

    @property
    def writes(self) -> bool:
        return self in _WRITING

    @property
    def atomic(self) -> bool:
        return self in {MemoryUse.ATOMIC, MemoryUse.BLIND_ATOMIC}


_WRITING = frozenset({MemoryUse.WRITE, MemoryUse.ATOMIC, MemoryUse.BLIND_ATOMIC})
_RETURNING = frozenset({MemoryUse.READ, MemoryUse.ATOMIC})


class Scope(enum.IntEnum):
    """Who sees an access at once, by its cache bits."""

    WAVE = 0
    WORKGROUP = 1
    DEVICE = 2


def scope_of(flags: Iterable[str]) -> Scope:
    given = set(flags)
    if given & _OF_DEVICE:
        return Scope.DEVICE
    return Scope.WORKGROUP if given & _OF_WORKGROUP else Scope.WAVE


_LOOKED_AT = 64  # stores and loads of a flag, the last ones, that may explain a finding
_OF_CACHES = frozenset({MemoryUse.WRITE_BACK, MemoryUse.INVALIDATE, MemoryUse.SCALAR_INVALIDATE})
_OF_DEVICE = frozenset({"sc1", "glc", "scope:SCOPE_DEV", "scope:SCOPE_SYS"})
_OF_WORKGROUP = frozenset({"sc0", "scope:SCOPE_SE"})  # a cluster's, which is at least one workgroup


@dataclass(frozen=True, slots=True, kw_only=True)
class OneEnd:
    """One of two accesses of memory that nothing orders."""

    instruction: Instruction
    workgroup: tuple[int, int, int]
    wave: int


@dataclass(slots=True, eq=False)
class _Access:
    group: int
    wave: int
    epoch: int
    instruction: Instruction
    use: MemoryUse
    scope: Scope
    time: int
    covered: int = NEVER  # the epoch of the wait
    over: int = NEVER  # when that wait was, in accesses
    places: list[tuple[Places, int, NDArray[np.bool_] | None]] = field(default_factory=list)
    known: NDArray[np.int32] | None = None  # of other waves' releases, where epochs don't say who is before whom

    def comes_after(self, other: _Access) -> bool:
        """True if another wave of the workgroup waited for its access, and then let this one go on."""
        return other.covered < (self.epoch if self.known is None else int(self.known[other.wave]))

    @property
    def is_scalar(self) -> bool:
        return self.instruction.spec.unit is IsaUnit.SMEM

    @property
    def passes_caches(self) -> bool:
        """True if it reaches memory that all workgroups share by itself; no document says so of scalar accesses."""
        return self.scope is Scope.DEVICE and not self.is_scalar

    def bytes(self) -> tuple[Places, NDArray[np.bool_]]:
        if not self.places:
            return np.zeros(0, np.int64), np.zeros(0, np.bool_)
        octets = [(place[:, None] + np.arange(size)).reshape(-1) for place, size, _ in self.places]
        equal = [
            np.zeros(len(each), np.bool_) if same is None else same.reshape(-1)
            for each, (_, _, same) in zip(octets, self.places, strict=True)
        ]
        return np.concatenate(octets), np.concatenate(equal)


class GlobalOrder:
    """The accesses of a launch, and each byte's last write and read by workgroups that have ended."""

    def __init__(self, starts: tuple[int, ...], size: int, faults: Faults) -> None:
        self._faults = faults
        self._starts = starts
        self._size = size
        self._accesses: list[_Access] = []  # of all workgroups, without their places once judged
        self._groups: dict[tuple[int, int, int], int] = {}
        self._names: list[tuple[int, int, int]] = []
        self._open: dict[int, list[int]] = {}  # by workgroup, the numbers of accesses that are not judged yet
        self._shared: dict[int, list[int]] = {}  # by place, the shared accesses
        self._single: dict[int, list[int]] = {}  # by place, plain accesses of that place alone, as of a flag
        self._caches: dict[int, list[_Access]] = {}  # by workgroup, what it does with caches, if they are looked at
        self._has_caches = False
        self._explained: set[tuple[int, int]] = set()  # the lines of accesses that nothing orders
        self._writer: NDArray[np.int32] | None = None  # by byte, of workgroups that are done
        self._reader: NDArray[np.int32] | None = None

    def begin(self, wave: Wave, instruction: Instruction, use: MemoryUse, scope: Scope = Scope.WAVE) -> int:
        group = self._groups.get(wave.workgroup)
        if group is None:
            group = self._groups[wave.workgroup] = len(self._names)
            self._names.append(wave.workgroup)
        number = len(self._accesses)
        seen = Scope.DEVICE if use.atomic else scope
        known = None if wave.meetings is None else wave.meetings.known[wave.number].releases
        access = _Access(group, wave.number, wave.epoch, instruction, use, seen, number, known=known)
        self._accesses.append(access)
        self._has_caches |= bool(wave.architecture.memory_model)
        if use in _OF_CACHES:
            self._caches.setdefault(group, []).append(access)
        else:
            self._open.setdefault(group, []).append(number)
        return number

    def touch(self, number: int, place: Places, size: int, equal: NDArray[np.bool_] | None = None) -> None:
        """Adds `size` bytes at each place to an access; it leaves the `equal` bytes unchanged."""
        if place.size:
            access = self._accesses[number]
            access.places.append((place, size, equal))
            if access.scope is not Scope.WAVE:
                for each in np.unique(place).tolist():
                    self._shared.setdefault(each, []).append(number)
            elif place[0] == place[-1] and (place == place[0]).all():
                self._single.setdefault(int(place[0]), []).append(number)

    def cover(self, number: int, epoch: int) -> None:
        access = self._accesses[number]
        access.covered, access.over = epoch, len(self._accesses)

    def close(self, workgroup: tuple[int, int, int]) -> None:
        group = self._groups.get(workgroup)
        if group in self._open:
            self._judge(self._open.pop(group))

    def finish(self) -> None:
        while self._open:
            self._judge(self._open.pop(min(self._open)))

    def _judge(self, numbers: list[int]) -> None:
        accesses = [self._accesses[number] for number in numbers]
        if any(access.use.writes for access in accesses):
            self._within(accesses)
        self._between(accesses)
        for access in accesses:
            access.places = []

    def _within(self, accesses: list[_Access]) -> None:
        """Replays in order the accesses to bytes that several waves use and at least one writes."""
        used = [(access, *access.bytes()) for access in accesses]
        low, high = np.full(self._size, 127, np.int8), np.full(self._size, -1, np.int8)
        written = np.zeros(self._size, np.bool_)
        for access, octets, _ in used:
            low[octets] = np.minimum(low[octets], access.wave)
            high[octets] = np.maximum(high[octets], access.wave)
            written[octets] |= access.use.writes
        asked = written & (low < high)
        if not asked.any():
            return
        compact = np.cumsum(asked) - 1
        tables = _Tables(int(compact[-1]) + 1, 1 + max(access.wave for access in accesses))
        for access, octets, equal in used:
            picked = asked[octets]
            if picked.any():
                at = compact[octets[picked]]
                for table, same in tables.find_conflicts(access, at, equal[picked]):
                    self._replay(access, table, octets[picked], same)
                tables.note(access, at)

    def _replay(
        self, access: _Access, table: NDArray[np.int64], octets: Places, equal: NDArray[np.bool_] | None
    ) -> None:
        for number in np.unique(table[table >= 0]).tolist():
            other = self._accesses[number]
            apart = other.wave == access.wave or access.comes_after(other)
            if not apart and not self._is_synchronised(access, other):
                where = table == number
                hit = where if where.ndim == 1 else where.any(axis=-1)
                self._report_race(access, other, octets[hit], same=equal is not None and bool(equal[hit].all()))

    def _between(self, accesses: list[_Access]) -> None:
        """Checks against the last write and the last read of each byte by earlier workgroups."""
        if self._writer is None or self._reader is None:
            self._writer, self._reader = np.full(self._size, -1, np.int32), np.full(self._size, -1, np.int32)
        if len(self._names) > 1:
            for access in accesses:
                octets, equal = access.bytes()
                for table, same in ((self._writer, equal), *(((self._reader, None),) if access.use.writes else ())):
                    earlier = table[octets]
                    for number in np.unique(earlier[earlier >= 0]).tolist():
                        other = self._accesses[number]
                        if self._is_synchronised(access, other):
                            continue
                        hit = earlier == number
                        plain = access.use is other.use is MemoryUse.WRITE
                        unchanged = same is not None and plain and bool(same[hit].all())
                        self._report_race(access, other, octets[hit], same=unchanged)
        for access in accesses:
            (self._writer if access.use.writes else self._reader)[access.bytes()[0]] = access.time

    def _is_synchronised(self, access: _Access, other: _Access) -> bool:
        """True if cache bits or atomics order the two, with or without a barrier."""
        wanted = Scope.WORKGROUP if access.group == other.group else Scope.DEVICE
        if min(access.scope, other.scope) >= wanted:
            return True
        return self._is_ordered(access, other, wanted) or self._is_ordered(other, access, wanted)

    def _is_ordered(self, first: _Access, second: _Access, wanted: Scope) -> bool:
        """True if a shared write after the first and a shared read before the second order them."""
        for numbers in self._shared.values():
            shared = [each for each in (self._accesses[number] for number in numbers) if each.scope >= wanted]
            writes = [each for each in shared if each.group == first.group and each.use.writes]
            later = [each for each in writes if each.time > first.time]
            released = [each.time for each in later if not self._lacks_before(first, each, wanted)]
            if released and any(
                each.group == second.group
                and each.use in _RETURNING
                and each.time > min(released)
                and not self._lacks_after(each, second, wanted)
                for each in shared
            ):
                return True
        return False

    def _lacks_before(self, first: _Access, release: _Access, wanted: Scope) -> tuple[HandOverPiece, ...]:
        """What is missing for a shared write to publish an access of its workgroup."""
        lacks = [HandOverPiece.STORE_SCOPE] if release.scope < wanted else []
        is_late = not _is_before(first, release)
        if is_late:
            lacks.append(_what_is_late(first, release, HandOverPiece.DATA_WAIT, HandOverPiece.BARRIER_BEFORE))
        if self._has_caches and wanted is Scope.DEVICE and first.use.writes and not first.passes_caches:
            works = [each for each in self._caches.get(first.group, ()) if each.use is MemoryUse.WRITE_BACK]
            wide = [each for each in works if each.scope is Scope.DEVICE and each.time > first.time]
            if not (is_late and any(_is_before(each, release) for each in wide)):  # else the store alone is late
                lacks += _find_write_back(works, first, release)
        return tuple(lacks)

    def _lacks_after(self, acquire: _Access, second: _Access, wanted: Scope) -> tuple[HandOverPiece, ...]:
        """What is missing for a shared read to let an access of its workgroup see what was published."""
        lacks = [HandOverPiece.LOAD_SCOPE] if acquire.scope < wanted else []
        if not _is_before(acquire, second):
            lacks.append(_what_is_late(acquire, second, HandOverPiece.LOAD_WAIT, HandOverPiece.BARRIER_AFTER))
        reads = second.use is MemoryUse.READ and not second.passes_caches
        if self._has_caches and wanted is Scope.DEVICE and reads:
            kinds = [MemoryUse.INVALIDATE, *([MemoryUse.SCALAR_INVALIDATE] if second.is_scalar else [])]
            for kind in kinds:
                works = [each for each in self._caches.get(second.group, ()) if each.use is kind]
                lacks += _find_invalidate(works, acquire, second)
        return tuple(lacks)

    def _explain(self, first: _Access, second: _Access) -> _Attempt | None:
        """The flag that comes nearest to ordering two accesses, and what it lacks."""
        best: _Attempt | None = None
        for place, numbers in self._shared.items():
            used = [self._accesses[number] for number in (*numbers, *self._single.get(place, ()))]
            sets = [each for each in used if each.group == first.group and each.use.writes and each.time > first.time]
            gets = [each for each in used if each.group == second.group and each.use in _RETURNING]
            last = [each for each in gets if each.time < second.time][-_LOOKED_AT:]
            for release, acquire in product(sets[-_LOOKED_AT:], last):
                if release.time > acquire.time or max(release.scope, acquire.scope) is not Scope.DEVICE:
                    continue
                lacks = (
                    *self._lacks_before(first, release, Scope.DEVICE),
                    *self._lacks_after(acquire, second, Scope.DEVICE),
                )
                if best is None or len(lacks) < len(best.lacks):
                    best = _Attempt(release=release, acquire=acquire, lacks=lacks)
        return best

    def _report_race(self, access: _Access, other: _Access, octets: Places, *, same: bool) -> None:
        ends = self._end_of(access), self._end_of(other)
        where = int(octets.min()), int(octets.max())
        if same:
            self.report_equal_stores(*ends, where)
            return
        verb = "writes" if access.use.writes else "reads"
        noun = "write" if other.use.writes else "read"
        if access.group != other.group:
            lines = access.instruction.line, other.instruction.line
            if lines not in self._explained:  # of later ones of these instructions, nothing is reported
                self._explained.add(lines)
                attempt = self._explain(other, access) or self._explain(access, other)
                why = _describe_scopes(access, other) if attempt is None else attempt.evidence
                self._add("I303", f"{verb} memory; nothing orders it with another {{}}'s {noun}", ends, where, why)
        else:
            self._add("I302", f"{verb} memory; no wait and barrier keep it after another {{}}'s {noun}", ends, where)

    def _end_of(self, access: _Access) -> OneEnd:
        return OneEnd(instruction=access.instruction, workgroup=self._names[access.group], wave=access.wave)

    def report_equal_stores(self, here: OneEnd, there: OneEnd, octets: tuple[int, int]) -> None:
        """An I304 of two waves, of one workgroup or of two, that write the same to these places."""
        self._add("I304", "writes what another {} has written; nothing orders the two", (here, there), octets)

    def _add(
        self, code: str, message: str, ends: tuple[OneEnd, OneEnd], octets: tuple[int, int], why: Evidence = ()
    ) -> None:
        here, there = ends
        across = here.workgroup != there.workgroup
        named, other = (", ".join(map(str, each.workgroup)) for each in (here, there))
        groups = (("workgroup", named), *((("other workgroup", other),) if across else ()))
        first, last = octets
        buffer = bisect_right(self._starts, first) - 1
        start = self._starts[buffer]
        self._faults.add(
            code,
            here.instruction,
            f"{here.instruction.opcode} {message.format('workgroup' if across else 'wave')}",
            *groups,
            ("wave", here.wave),
            ("other wave", there.wave),
            ("bytes", f"{first - start} to {last - start} of buffer {buffer}"),
            *why,
            other=there.instruction,
            severity=Severity.WARNING if code == "I304" else Severity.ERROR,
        )


class _Tables:
    """For each byte the last plain write, and each wave's last plain read and atomic."""

    def __init__(self, size: int, waves: int) -> None:
        self._write = np.full(size, -1, np.int64)
        self._read, self._atomic = np.full((size, waves), -1, np.int64), np.full((size, waves), -1, np.int64)

    def find_conflicts(
        self, access: _Access, at: Places, equal: NDArray[np.bool_]
    ) -> list[tuple[NDArray[np.int64], NDArray[np.bool_] | None]]:
        """Earlier accesses that may conflict, and for a plain write which bytes it leaves unchanged."""
        tables: list[tuple[NDArray[np.int64], NDArray[np.bool_] | None]]
        tables = [(self._write[at], equal if access.use is MemoryUse.WRITE else None)]
        if access.use.writes:
            tables.append((self._read[at], None))
        if not access.use.atomic:
            tables.append((self._atomic[at], None))
        return tables

    def note(self, access: _Access, at: Places) -> None:
        if access.use.atomic:
            self._atomic[at, access.wave] = access.time
        elif access.use.writes:
            self._write[at] = access.time
        else:
            self._read[at, access.wave] = access.time


def _is_before(first: _Access, second: _Access) -> bool:
    """True if a wait covers the first before the second is issued, in the same wave or across a barrier."""
    return first.over <= second.time if first.wave == second.wave else second.comes_after(first)


def _follows(work: _Access, first: _Access) -> bool:
    """True if caches are written back after an access: its wave's ops stay in order, another one's need a wait."""
    return first.time < work.time if first.wave == work.wave else work.comes_after(first)


def _what_is_late(first: _Access, second: _Access, wait: HandOverPiece, barrier: HandOverPiece) -> HandOverPiece:
    """Why the first isn't before the second: another wave of the same epoch needs a barrier, all others a wait."""
    return barrier if first.wave != second.wave and first.epoch >= second.epoch else wait


def _find_write_back(works: Sequence[_Access], first: _Access, release: _Access) -> list[HandOverPiece]:
    """What the write-backs of a workgroup lack to publish a store; no source says what publishes a scalar one."""
    if first.is_scalar:
        return [HandOverPiece.WRITE_BACK]
    wide = [each for each in works if each.scope is Scope.DEVICE and _follows(each, first)]
    if any(_is_before(each, release) for each in wide):
        return []
    for each in wide:
        if each.time < release.time:
            return [_what_is_late(each, release, HandOverPiece.WRITE_BACK_WAIT, HandOverPiece.BARRIER_BEFORE)]
    narrow = any(_follows(each, first) and each.time < release.time for each in works)
    return [HandOverPiece.WRITE_BACK_SCOPE if narrow else HandOverPiece.WRITE_BACK]


def _find_invalidate(works: Sequence[_Access], acquire: _Access, second: _Access) -> list[HandOverPiece]:
    """What the invalidates of a workgroup lack for a load to see what was published."""
    between = [each for each in works if acquire.time < each.time < second.time]
    wide = [each for each in between if each.scope is Scope.DEVICE]
    if any(_is_before(acquire, each) and _is_before(each, second) for each in wide):
        return []
    if any(_is_before(each, second) for each in wide):
        return [HandOverPiece.WAIT_BEFORE_INVALIDATE]
    if any(_is_before(acquire, each) for each in wide):
        return [HandOverPiece.BARRIER_AFTER]
    return [HandOverPiece.INVALIDATE_SCOPE if between else HandOverPiece.INVALIDATE]


def _describe_scopes(access: _Access, other: _Access) -> Evidence:
    """What is missing if only one of a store and a load is seen by the whole device: the two don't make a flag."""
    narrow, wide = sorted((access, other), key=lambda each: each.scope)
    pair = MemoryUse.READ in {narrow.use, wide.use} and not narrow.use.atomic and not wide.use.atomic
    if not pair or narrow.scope is Scope.DEVICE or wide.scope is not Scope.DEVICE:
        return ()
    return (("missing", (HandOverPiece.STORE_SCOPE if narrow.use.writes else HandOverPiece.LOAD_SCOPE).value),)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """A flag that orders two accesses, but for what it lacks."""

    release: _Access
    acquire: _Access
    lacks: tuple[HandOverPiece, ...]

    @property
    def evidence(self) -> Evidence:
        missing = ", ".join(dict.fromkeys(each.value for each in self.lacks))
        ends = (("flag's store", self.release), ("flag's load", self.acquire))
        return (
            *((name, f"{each.instruction.text} ({each.instruction.place})") for name, each in ends),
            *((("missing", missing),) if missing else ()),
        )


# Races with one cause. If a wait or barrier is missing, every access before it races with every one after it: many
# pairs of instructions, one fault. Pairs have one cause if they break the same rule between the same two stretches of
# code and, if the line table is known, between the same two source lines. A stretch ends at a barrier, a branch and a
# branch target: within one, a single wait serves all.

_RACES = frozenset({"I106", "I109", "I302", "I303", "I304"})
_WITHIN = frozenset({IsaFlow.NEXT, IsaFlow.WAIT, IsaFlow.CALL, IsaFlow.TRAP})
_RANGE = re.compile(r"(\d+) to (\d+)(?P<where>.*)$")
_SPACE = re.compile(r"^\S+ ")


def number_stretches(instructions: Sequence[Instruction]) -> dict[int, int]:
    """Numbers the stretches of code between barriers and branches; returns the number for each line."""
    targets = {each.target for each in instructions}
    found, number = {}, 0
    for place, each in enumerate(instructions):
        number += place in targets
        found[each.line] = number
        number += each.spec.flow not in _WITHIN
    return found


def cause_of(finding: Finding, stretch: dict[int, int]) -> Hashable:
    """A key that is equal for races with one cause; None for other findings."""
    if finding.code not in _RACES or len(finding.concerns) != 2:  # both ends
        return None
    ends = tuple((stretch.get(end.index or 0), end.source) for end in finding.concerns)
    evidence = dict(finding.evidence)
    what = _SPACE.sub("", finding.message)  # without the opcode
    region = _RANGE.search(str(evidence.get("bytes", "")))
    return finding.code, what, evidence.get("rests on"), region["where"] if region else "", ends


def summarise_races(findings: Sequence[Finding]) -> str:
    """Sums up races with one cause: how many pairs, and their instructions, bytes and waves."""
    places = [{each.concerns[end].index or 0: each.concerns[end].number for each in findings} for end in (0, 1)]
    ends = [" to ".join(dict.fromkeys((each[min(each)], each[max(each)]))) for each in places]
    evidence = [dict(finding.evidence) for finding in findings]
    waves = []
    for role in ("wave", "other wave"):
        names = sorted({str(each[role]) for each in evidence if role in each}, key=lambda name: (len(name), name))
        waves += [f"wave{'s' * (len(names) > 1)} {', '.join(names)}"] if names else []
    by = " with ".join(waves)
    ranges = [found for each in evidence if (found := _RANGE.search(str(each.get("bytes", ""))))]
    low, high = min(int(each[1]) for each in ranges), max(int(each[2]) for each in ranges)
    return f"{len(findings)} pairs in all, {ends[0]} with {ends[1]}; bytes from {low} to {high}; first seen by {by}"
