"""Barriers under way: takes arrivals and waits of waves, gives who continues, and since when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from rota.cycles.instructions import Code, MeetingPoint
from rota.cycles.wave_state import ModelWave
from rota.errors import Finding


class Sleeper(NamedTuple):
    """A wave that waits for the `meeting`-th time at a barrier; `arrives` if it arrived there with the same entry."""

    wave: ModelWave
    since: int
    key: int
    meeting: int
    arrives: bool


@dataclass(slots=True)
class Gathering:
    """One barrier under way: how often each wave has arrived and waited, and when each meeting was complete.

    The n-th wait of a wave of `waiting` ends when all of `awaited`, those that still run, have arrived n times.
    """

    name: str
    awaited: set[int]
    waiting: tuple[int, ...]
    arrivals: list[int]
    waits: list[int]
    complete: list[int] = field(default_factory=list)
    sleepers: list[Sleeper] = field(default_factory=list)

    @classmethod
    def at(cls, point: MeetingPoint, waves: int) -> Gathering:
        """Nobody has arrived yet."""
        return cls(point.name, set(point.arriving), point.waiting, [0] * waves, [0] * waves)

    def arrive(self, wave: int, time: int) -> None:
        """One more arrival; perhaps the last of a meeting."""
        self.arrivals[wave] += 1
        if self.arrivals[wave] == len(self.complete) + 1:
            self._close(time)

    def leave(self, wave: int, time: int) -> None:
        """A wave that has ended is not waited for."""
        self.awaited.discard(wave)
        self._close(time)

    def leaving(self, time: int) -> list[tuple[Sleeper, int]]:
        """Sleepers whose meeting is complete, and since when; with nobody left to wait for, all of them."""
        met = len(self.complete)
        if not self.sleepers or (self.awaited and min(each.meeting for each in self.sleepers) > met):
            return []
        free = [each for each in self.sleepers if each.meeting <= met or not self.awaited]
        self.sleepers = [each for each in self.sleepers if self.awaited and each.meeting > met]
        return [(each, self.complete[each.meeting - 1] if each.meeting <= met else time) for each in free]

    def _close(self, time: int) -> None:
        """Note the meetings that are complete now."""
        arrivals = self.arrivals
        met = min([arrivals[wave] for wave in self.awaited], default=0)
        if met > len(self.complete):
            self.complete += [time] * (met - len(self.complete))


def deadlock(code: Code, gatherings: Iterable[Gathering]) -> Finding:
    """Nothing is left to happen, and some waves sleep at barriers."""
    asleep = [(gathering, each) for gathering in gatherings for each in gathering.sleepers]
    entries = {each.key: code.entries[each.key] for _, each in asleep}
    return Finding(
        code="B101",
        message=f"{code.name}: waves wait at a barrier forever",
        concerns=tuple(entry.concern() for entry in entries.values() if entry is not None),
        evidence=tuple(
            (f"wave {each.wave.number} waits at", f"{gathering.name}, meeting {each.meeting}; {_met(gathering)}")
            for gathering, each in asleep
        ),
    )


def _met(gathering: Gathering) -> str:
    return f"{len(gathering.complete)} complete"
