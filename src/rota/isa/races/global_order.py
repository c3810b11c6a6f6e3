"""Which accesses of global memory are kept apart: takes accesses as waves make them, gives faults for any interleaving.

Accesses are written down while waves run and judged, byte by byte, when their workgroup is done (`close`) or the launch
is (`finish`).

Two accesses of a byte conflict if one of them writes, unless both are *shared*.  Atomics are shared, loads and stores
with sc1 (or glc, if scalar) as well, and within a workgroup those with sc0: that is how compilers spell atomic loads
and stores.  A conflict is a fault if nothing orders it.

*Within a workgroup* the rules are those of LDS (`memory_order`): another wave's access is before this one iff the wait
that covers it stands in an earlier epoch.  A wave's own accesses are in order.  I302.

*Between waves and workgroups* a shared write and a later shared read, or an atomic that returns, of the same address
order what came before the one with what follows the other: accesses that a wait of the writing wave had covered by
then, or one in an earlier epoch of another wave of its workgroup, come before those that are issued once the read is
covered, by the same wave or in a later epoch.  There is no other order between workgroups.  I303.

Where both write the same value it is I304 instead.

Not covered: whether caches are written back and invalidated (buffer_wbl2, buffer_inv); orders that go through a third
workgroup by two different addresses; of several workgroups that read a byte before one writes it, only the last is
looked at.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rota.errors import Severity
from rota.isa.races.memory_order import NEVER
from rota.isa.wave.wave import Faults

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

    Places = NDArray[np.int64]


class MemoryUse(enum.Enum):
    """What an access does."""

    READ = "read"
    WRITE = "write"
    ATOMIC = "atomic"
    BLIND_ATOMIC = "atomic without return"

    @property
    def writes(self) -> bool:
        """Does it change memory?"""
        return self is not MemoryUse.READ

    @property
    def atomic(self) -> bool:
        """Does it read and change memory at once?"""
        return self in {MemoryUse.ATOMIC, MemoryUse.BLIND_ATOMIC}


class Scope(enum.IntEnum):
    """Who sees an access at once, by its cache bits."""

    WAVE = 0
    WORKGROUP = 1
    DEVICE = 2


def scope_of(flags: Iterable[str]) -> Scope:
    """The scope of a load or store with those flags."""
    given = set(flags)
    if given & {"sc1", "glc"}:
        return Scope.DEVICE
    return Scope.WORKGROUP if "sc0" in given else Scope.WAVE


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

    def bytes(self) -> tuple[Places, NDArray[np.bool_]]:
        """All bytes it uses, and which of them it left as they were."""
        if not self.places:
            return np.zeros(0, np.int64), np.zeros(0, np.bool_)
        octets = [(place[:, None] + np.arange(size)).reshape(-1) for place, size, _ in self.places]
        equal = [
            np.zeros(len(each), np.bool_) if same is None else same.reshape(-1)
            for each, (_, _, same) in zip(octets, self.places, strict=True)
        ]
        return np.concatenate(octets), np.concatenate(equal)


class GlobalOrder:
    """The accesses of a launch, and what is known of each byte from workgroups that are done."""

    def __init__(self, starts: tuple[int, ...], size: int, faults: Faults) -> None:
        self._faults = faults
        self._starts = starts
        self._size = size
        self._accesses: list[_Access] = []  # of all workgroups, without their places once judged
        self._groups: dict[tuple[int, int, int], int] = {}
        self._names: list[tuple[int, int, int]] = []
        self._open: dict[int, list[int]] = {}  # by workgroup, the numbers of accesses that are not judged yet
        self._shared: dict[int, list[int]] = {}  # by place, the shared accesses
        self._writer: NDArray[np.int32] | None = None  # by byte, of workgroups that are done
        self._reader: NDArray[np.int32] | None = None

    def begin(self, wave: Wave, instruction: Instruction, use: MemoryUse, scope: Scope = Scope.WAVE) -> int:
        """An access is issued; gives its number."""
        group = self._groups.get(wave.workgroup)
        if group is None:
            group = self._groups[wave.workgroup] = len(self._names)
            self._names.append(wave.workgroup)
        number = len(self._accesses)
        seen = Scope.DEVICE if use.atomic else scope
        self._accesses.append(_Access(group, wave.number, wave.epoch, instruction, use, seen, number))
        self._open.setdefault(group, []).append(number)
        return number

    def touch(self, number: int, place: Places, size: int, equal: NDArray[np.bool_] | None = None) -> None:
        """The access uses so many bytes at each place; `equal` ones it leaves as they were."""
        if place.size:
            access = self._accesses[number]
            access.places.append((place, size, equal))
            if access.scope is not Scope.WAVE:
                for each in np.unique(place).tolist():
                    self._shared.setdefault(each, []).append(number)

    def cover(self, number: int, epoch: int) -> None:
        """A wait has covered an access."""
        access = self._accesses[number]
        access.covered, access.over = epoch, len(self._accesses)

    def close(self, workgroup: tuple[int, int, int]) -> None:
        """A workgroup is done: it is judged alone, and against those before it."""
        group = self._groups.get(workgroup)
        if group in self._open:
            self._judge(self._open.pop(group))

    def finish(self) -> None:
        """The launch is done: judges the workgroups that nobody has closed."""
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
        """Bytes that several waves use and one writes are replayed in the order in which they were used."""
        used = [_Used(access, *access.bytes()) for access in accesses]
        asked = _contested(used, self._size)
        if not asked.any():
            return
        compact = np.cumsum(asked) - 1
        tables = _Tables(int(compact[-1]) + 1, 1 + max(access.wave for access in accesses))
        for access, octets, equal in used:
            picked = asked[octets]
            if picked.any():
                at = compact[octets[picked]]
                for table, same in tables.looked_at(access, at, equal[picked]):
                    self._replay(access, table, octets[picked], same)
                tables.note(access, at)

    def _replay(
        self, access: _Access, table: NDArray[np.int64], octets: Places, equal: NDArray[np.bool_] | None
    ) -> None:
        for number in np.unique(table[table >= 0]).tolist():
            other = self._accesses[number]
            apart = other.wave == access.wave or other.covered < access.epoch
            if not apart and not self._synchronised(access, other):
                where = table == number
                hit = where if where.ndim == 1 else where.any(axis=-1)
                self._races(access, other, octets[hit], same=equal is not None and bool(equal[hit].all()))

    def _between(self, accesses: list[_Access]) -> None:
        """Against the last write and the last read of each byte by workgroups before this one."""
        if self._writer is None or self._reader is None:
            self._writer, self._reader = np.full(self._size, -1, np.int32), np.full(self._size, -1, np.int32)
        if len(self._names) > 1:
            for access in accesses:
                octets, equal = access.bytes()
                for table, same in ((self._writer, equal), *(((self._reader, None),) if access.use.writes else ())):
                    earlier = table[octets]
                    for number in np.unique(earlier[earlier >= 0]).tolist():
                        other = self._accesses[number]
                        if self._synchronised(access, other):
                            continue
                        hit = earlier == number
                        alike = same is not None and _plain(access) and _plain(other) and bool(same[hit].all())
                        self._races(access, other, octets[hit], same=alike)
        for access in accesses:
            (self._writer if access.use.writes else self._reader)[access.bytes()[0]] = access.time

    def _synchronised(self, one: _Access, another: _Access) -> bool:
        """Do cache bits or atomics make the two right, whatever barriers do?"""
        wanted = Scope.WORKGROUP if one.group == another.group else Scope.DEVICE
        if min(one.scope, another.scope) >= wanted:
            return True
        return self._ordered(one, another, wanted) or self._ordered(another, one, wanted)

    def _ordered(self, first: _Access, second: _Access, wanted: Scope) -> bool:
        """Does a shared write behind the first and a shared read before the second order them?"""
        for numbers in self._shared.values():
            shared = [each for each in (self._accesses[number] for number in numbers) if each.scope >= wanted]
            released = [
                each.time for each in shared if each.group == first.group and each.use.writes and _released(first, each)
            ]
            if released and any(
                each.group == second.group
                and each.use in {MemoryUse.READ, MemoryUse.ATOMIC}
                and each.time > min(released)
                and _acquired(each, second)
                for each in shared
            ):
                return True
        return False

    def _races(self, access: _Access, other: _Access, octets: Places, *, same: bool) -> None:
        verb = "writes" if access.use.writes else "reads"
        noun = "write" if other.use.writes else "read"
        across = access.group != other.group
        if same:
            code, message = "I304", "writes what another {} has written; nothing orders the two"
        elif across:
            code, message = "I303", f"{verb} memory; nothing orders it with another {{}}'s {noun}"
        else:
            code, message = "I302", f"{verb} memory; no wait and barrier keep it behind another {{}}'s {noun}"
        groups = (
            (("workgroup", _name(self._names[access.group])), ("other workgroup", _name(self._names[other.group])))
            if across
            else (("workgroup", _name(self._names[access.group])),)
        )
        self._faults.add(
            code,
            access.instruction,
            f"{access.instruction.opcode} {message.format('workgroup' if across else 'wave')}",
            *groups,
            ("wave", access.wave),
            ("other wave", other.wave),
            ("bytes", self._where(octets)),
            other=other.instruction,
            severity=Severity.WARNING if same else Severity.ERROR,
        )

    def _where(self, octets: Places) -> str:
        first, last = int(octets.min()), int(octets.max())
        buffer = bisect_right(self._starts, first) - 1
        start = self._starts[buffer]
        return f"{first - start} to {last - start} of buffer {buffer}"


def _plain(access: _Access) -> bool:
    """Does it write what it was given, and nothing else?"""
    return access.use is MemoryUse.WRITE


class _Used(NamedTuple):
    access: _Access
    octets: Places
    equal: NDArray[np.bool_]


def _contested(used: list[_Used], size: int) -> NDArray[np.bool_]:
    """The bytes that several waves use and one writes."""
    low, high = np.full(size, 127, np.int8), np.full(size, -1, np.int8)
    written = np.zeros(size, np.bool_)
    for access, octets, _ in used:
        low[octets] = np.minimum(low[octets], access.wave)
        high[octets] = np.maximum(high[octets], access.wave)
        written[octets] |= access.use.writes
    return written & (low < high)


class _Tables:
    """By byte the last plain write, and each wave's last plain read and atomic."""

    def __init__(self, size: int, waves: int) -> None:
        self._write = np.full(size, -1, np.int64)
        self._read, self._atomic = np.full((size, waves), -1, np.int64), np.full((size, waves), -1, np.int64)

    def looked_at(
        self, access: _Access, at: Places, equal: NDArray[np.bool_]
    ) -> list[tuple[NDArray[np.int64], NDArray[np.bool_] | None]]:
        """What an access is judged against, and where it leaves bytes as a plain write before it had made them."""
        tables: list[tuple[NDArray[np.int64], NDArray[np.bool_] | None]]
        tables = [(self._write[at], equal if _plain(access) else None)]
        if access.use.writes:
            tables.append((self._read[at], None))
        if not access.use.atomic:
            tables.append((self._atomic[at], None))
        return tables

    def note(self, access: _Access, at: Places) -> None:
        """The access is the last of its kind."""
        if access.use.atomic:
            self._atomic[at, access.wave] = access.time
        elif access.use.writes:
            self._write[at] = access.time
        else:
            self._read[at, access.wave] = access.time


def _released(access: _Access, release: _Access) -> bool:
    if access.wave == release.wave:
        return access.over <= release.time
    return access.covered < release.epoch


def _acquired(acquire: _Access, access: _Access) -> bool:
    if access.wave == acquire.wave:
        return acquire.over <= access.time
    return acquire.covered < access.epoch


def _name(workgroup: tuple[int, int, int]) -> str:
    return ", ".join(str(each) for each in workgroup)
