"""Why an entry stands where it stands: takes a schedule or program, gives for each entry what it needs and follows.

Found by walking the loop, three trips deep, with the last writer and the last readers of every place: what a reader of
the listing would trace by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import NamedTuple

from rota.program.effects import WORKGROUP, Effect, Place, Space
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable, LoweredProgram, TileSum
from rota.view.pictured import Key, Subject, subject_of

_TRIPS = 3
_MOST_NAMED = 4
_ALL = -1  # stands for a role where places are shared


class Reason(NamedTuple):
    """An entry with what made its operands (latest first), its K-tile's place in the trip, and its story in words."""

    entry: Entry
    needs: tuple[Key, ...]
    stage: int
    source: str
    lines: tuple[str, ...]


class _Ran(NamedTuple):
    """An entry as it ran, in running order."""

    order: int
    key: Key
    trip: int
    entry: Entry


def reasons_of(schedule: Lowerable) -> Mapping[Key, Reason]:
    """One reason per entry; where the stagger's extra barrier shares an entry's slot, the entry's."""
    subject = subject_of(schedule)
    walk, program = _Walk(subject), subject.program
    walk.run(program.prologue, 0)
    for trip in range(_TRIPS):
        walk.run(program.kernel, trip)
    walk.run(program.epilogue, _TRIPS)
    return walk.reasons


class _Walk:
    """The state of the walk: who wrote each place last, and who read it since.

    Registers and counters belong to a wave, so each role has its own; of an entry that several roles execute, the first
    one's is told.
    """

    def __init__(self, subject: Subject) -> None:
        self.reasons: dict[Key, Reason] = {}
        self._subject = subject
        self._roles = tuple(range(len(subject.program.roles)))
        self._tile = _tiles_of(subject.program)
        self._writers: dict[tuple[int, Place], _Ran] = {}
        self._readers: dict[tuple[int, Place], list[_Ran]] = {}
        self._pending: dict[tuple[int, str], list[_Ran]] = {}
        self._count = 0

    def run(self, entries: tuple[Entry, ...], trip: int) -> None:
        """One phase, or one trip of the kernel; a later trip's reasons replace an earlier one's."""
        for entry in entries:
            key = Key(entry.phase, entry.time_slot)
            self._count += 1
            ran = _Ran(self._count, key, trip, entry)
            self.reasons[key] = self._reason(ran)
            self._record(ran)

    def _record(self, ran: _Ran) -> None:
        effect = ran.entry.effect
        roles = self._roles if ran.entry.roles is None else ran.entry.roles
        for place in effect.reads:
            for where in _where(place, roles):
                self._readers.setdefault(where, []).append(ran)
        for place in effect.writes:
            for where in _where(place, roles):
                self._writers[where] = ran
                self._readers[where] = []
        if effect.counter is not None:
            for role in roles:
                pending = self._pending.setdefault((role, effect.counter), [])
                pending += [ran] * effect.tokens
                if effect.kind is OpKind.WAIT:
                    del pending[: max(len(pending) - effect.wait_value, 0)]

    def _reason(self, ran: _Ran) -> Reason:
        entry, effect = ran.entry, ran.entry.effect
        role = 0 if entry.roles is None else entry.roles[0]
        reads = [where for p in effect.reads if p.space is not Space.ACCUMULATOR for where in _where(p, (role,))]
        makers = _latest_first(self._writers[where] for where in reads if where in self._writers)
        users = _latest_first(
            user for place in effect.writes if place.space is Space.LDS for user in self._readers.get((_ALL, place), ())
        )
        lines = [f"added: {self._subject.added[ran.key]}"] if ran.key in self._subject.added else []
        if makers:
            lines.append("uses what " + _named(makers, ran) + (" brings" if len(makers) == 1 else " bring"))
        if users:
            lines.append("overwrites a buffer last read by " + _named(users[:1], ran))
        if effect.kind is OpKind.WAIT and effect.counter is not None:
            lines.append(self._waited(self._pending.get((role, effect.counter), []), effect, ran))
        lines += self._met(effect)
        lines += filter(None, [self._subject.planned(entry.op)])
        if entry.origin is not None and not entry.origin.repair:
            lines.append(f"made by: {entry.origin.cause}")
        source = entry.op.source
        return Reason(
            entry=entry,
            needs=tuple(maker.key for maker in makers),
            stage=self._tile(effect, self.reasons[makers[0].key].stage if makers else 0),
            source=f"{'/'.join(PurePath(source.file).parts[-2:])}:{source.line}" if source else "",
            lines=tuple(lines),
        )

    @staticmethod
    def _waited(pending: list[_Ran], effect: Effect, ran: _Ran) -> str:
        over = pending[: max(len(pending) - effect.wait_value, 0)]
        count = f"{len(pending)} of {effect.counter} are pending"
        if not over:
            return f"{count} here, so it holds nobody up"
        return f"waits for {_named(_latest_first(over), ran)}: {count}, {effect.wait_value} may stay"

    def _met(self, effect: Effect) -> list[str]:
        """Whom an entry meets, where that isn't everybody at the one barrier, with one instruction."""
        program = self._subject.program
        if effect.kind is not OpKind.BARRIER or effect.arrives == effect.awaits == WORKGROUP:
            return []
        lines = [f"arrives at {effect.arrives}"] if effect.arrives is not None else []
        barrier = program.barrier(effect.awaits) if effect.awaits is not None else None
        if barrier is not None:
            who = " and ".join(program.roles[role].name for role in barrier.arriving)
            lines.append(f"waits at {barrier.name} until {who} arrived")
        return lines


def _where(place: Place, roles: Iterable[int]) -> tuple[tuple[int, Place], ...]:
    return tuple((role, place) for role in roles) if place.space.is_private else ((_ALL, place),)


_Tile = Callable[[Effect, int], int]


def _tiles_of(program: LoweredProgram) -> _Tile:
    """Which K-tile of the trip an entry works for, which is also its buffer where tiles have as many copies.

    An op of a loop by values says its iteration.  An op on tiles works for the buffer that it reads or writes, any
    other for the K-tile of its operands.
    """

    def by_iteration(effect: Effect, _operands: int) -> int:
        return effect.instance.iteration % program.tiles_per_trip

    def by_buffer(effect: Effect, operands: int) -> int:
        return next((p.copy for p in (*effect.reads, *effect.writes) if p.space is Space.LDS), operands)

    return by_buffer if isinstance(program.semantics, TileSum) else by_iteration


def _latest_first(runs: Iterable[_Ran]) -> list[_Ran]:
    unique = {ran.order: ran for ran in runs}
    return [unique[order] for order in sorted(unique, reverse=True)]


def _named(runs: list[_Ran], reader: _Ran) -> str:
    texts = []
    for ran in runs[:_MOST_NAMED]:
        back = reader.trip - ran.trip
        same = ran.key.phase is reader.key.phase
        where = (
            ""
            if same and back == 0
            else " of the trip before"
            if same and back == 1
            else f" ({ran.key.phase.value.lower()})"
        )
        texts.append(f"{ran.key} {ran.entry.op}{where}")
    more = len(runs) - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
