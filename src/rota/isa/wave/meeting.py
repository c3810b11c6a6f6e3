"""Where waves of a workgroup meet beside its own barrier: named barriers, and words of LDS that count arrivals.

What a wave has done before such a meeting is over for those that come after it, and for no others: so each wave keeps
what it knows of every other one, as vector clocks do. A *release* of a wave is a signal or an arrival, numbered from 1
on; an access that a wait of its wave covers is over at the next release. An asynchronous copy may end at an arrival of
its own, which says nothing of the rest of the wave: that is a *token* (LLVM, "AMDGPU Execution Synchronization"; for
the words of LDS Triton, BarrierOpToLLVM.cpp).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WORD_BYTES, PENDING, PHASE, INITIAL = 8, (1 << 29) - 1, 29, 32  # of a word that counts arrivals


NO_TOKENS: frozenset[int] = frozenset()


class Knowledge(NamedTuple):
    """Of each wave how many releases are known, and which tokens."""

    releases: NDArray[np.int32]
    tokens: frozenset[int] = NO_TOKENS

    def join(self, other: Knowledge) -> Knowledge:
        return Knowledge(np.maximum(self.releases, other.releases), self.tokens | other.tokens)


@dataclass(slots=True, kw_only=True)
class _Named:
    """A barrier of some waves: how many arrivals end a phase, and what those of this phase and the last one knew."""

    members: int
    arrived: int = 0
    phases: int = 0
    gathered: Knowledge
    ended: Knowledge


@dataclass(slots=True, kw_only=True)
class _Counting:
    """What the arrivals of a word's unfinished phase knew, and those of all phases before."""

    gathered: Knowledge
    ended: Knowledge


@dataclass(slots=True, kw_only=True, eq=False)
class WaveMeetings:
    """What the waves of a workgroup know of each other, and the barriers at which they learn it."""

    waves: int
    known: list[Knowledge] = field(init=False)
    joined: list[int] = field(init=False)  # by wave, the named barrier; 0 is none
    awaited: list[tuple[int, int]] = field(init=False)  # by wave, the barrier that it waits at, and the phase
    _own: list[list[Knowledge]] = field(init=False)  # by wave, at its signals of the workgroup's barrier
    _named: dict[int, _Named] = field(default_factory=dict)
    _words: dict[int, _Counting] = field(default_factory=dict)
    _tokens: int = 0

    def __post_init__(self) -> None:
        self.known = [self._nothing() for _ in range(self.waves)]
        self.joined, self.awaited = [0] * self.waves, [(0, 0)] * self.waves
        self._own = [[] for _ in range(self.waves)]

    def _nothing(self) -> Knowledge:
        return Knowledge(np.zeros(self.waves, np.int32))

    def release(self, wave: int) -> Knowledge:
        """Numbers a release of a wave; returns what it hands over."""
        releases = self.known[wave].releases.copy()
        releases[wave] += 1
        self.known[wave] = self.known[wave]._replace(releases=releases)
        return self.known[wave]

    def acquire(self, wave: int, other: Knowledge) -> None:
        self.known[wave] = self.known[wave].join(other)

    # The workgroup's barrier.

    def signal_all(self, wave: int) -> None:
        self._own[wave].append(self.release(wave))

    def meet_all(self, wave: int, epoch: int) -> None:
        """A wave goes on from the workgroup's barrier number `epoch`; a wave that has ended is missing there."""
        for each in self._own:
            if len(each) >= epoch:
                self.acquire(wave, each[epoch - 1])

    # Named barriers.

    def initialise(self, number: int, members: int) -> None:
        nothing = self._nothing()
        self._named[number] = _Named(members=members, gathered=nothing, ended=nothing)

    def signal(self, wave: int, number: int, members: int = 0) -> bool:
        """Arrives at a named barrier, which has `members` from now on if that isn't 0; False if nobody set it up."""
        if members and number not in self._named:
            self.initialise(number, members)
        barrier = self._named.get(number)
        if barrier is None:
            return False
        barrier.members = members or barrier.members
        barrier.gathered = barrier.gathered.join(self.release(wave))
        barrier.arrived += 1
        if barrier.arrived >= barrier.members:
            barrier.ended, barrier.gathered = barrier.gathered, self._nothing()
            barrier.arrived, barrier.phases = 0, barrier.phases + 1
        return True

    def phase_of(self, number: int) -> int:
        return self._named[number].phases if number in self._named else 0

    def may_go_on(self, wave: int) -> bool:
        """True once the phase that the wave waits for has ended; then it knows what the others knew."""
        number, phase = self.awaited[wave]
        barrier = self._named.get(number)
        if barrier is None or barrier.phases <= phase:
            return False
        self.acquire(wave, barrier.ended)
        return True

    # Words of LDS.

    def arrive(self, place: int, word: int, count: int, knowledge: Knowledge) -> int:
        """The word after `count` arrivals, less one phase's worth for each phase that they end."""
        words = self._words.setdefault(place, _Counting(gathered=self._nothing(), ended=self._nothing()))
        words.gathered = words.gathered.join(knowledge)
        pending, phase, initial = word & PENDING, word >> PHASE & 7, word >> INITIAL
        for _ in range(count):
            if pending:
                pending -= 1
                continue
            pending, phase = initial & PENDING, phase + 1 & 7
            words.ended, words.gathered = words.ended.join(words.gathered), self._nothing()
        return pending | phase << PHASE | initial << INITIAL

    def read(self, wave: int, octets: Iterable[int]) -> None:
        """A wave has read bytes of LDS: if a word is there, it knows what came before the ends of its phases."""
        for place, words in self._words.items():
            if any(place <= each < place + WORD_BYTES for each in octets):
                self.acquire(wave, words.ended)

    def make_token(self) -> int:
        self._tokens += 1
        return self._tokens

    def state(self) -> tuple[object, ...]:
        """What decides how waves go on, beside their registers and LDS."""
        named = tuple((number, each.members, each.arrived, each.phases) for number, each in sorted(self._named.items()))
        return named, tuple(self.joined), tuple(self.awaited)
