"""A wave on its way through a loop: takes the loop's steps, entry by entry, gives the time that passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rota.cycles.paced_loop import LDS, MATH, MATRIX, TURNS, WAIT, IssueRun, IssueStep, PacedLoop


class WavePace:
    """The wave under way: the time, when units are free, registers ready and tokens given back."""

    __slots__ = (
        "_arriving",
        "_done",
        "_free",
        "_issue",
        "_issued",
        "_loop",
        "_path",
        "_port",
        "_ready",
        "_waited",
        "time",
    )

    def __init__(self, loop: PacedLoop) -> None:
        self._loop = loop
        self.time = self._port = self._path = 0
        self._waited = -1  # when the wave had last waited
        self._free, self._ready = [0, 0], [0] * loop.registers
        self._done, self._issued = [[0] * count for count in loop.pending], list(loop.pending)
        self._arriving: list[tuple[int, int, list[int]]] = []  # when, how long it holds the port, whose token it is
        self._issue: tuple[Callable[[Any], bool], ...]  # by the step's form
        self._issue = (self._math, self._memory, self._memory, self._wait, self._turns, self._run)

    def trip(self, order: Sequence[int]) -> None:
        """Once through the loop."""
        for entry in order:
            self.issue(entry)
        self.time += self._loop.edge

    def issue(self, entry: int) -> bool:
        """The instructions of an entry, one after the other: is any of them late?"""
        issue, late = self._issue, False
        for step in self._loop.entries[entry]:
            self.time += step[1]
            late |= issue[step[0]](step)
        return late

    def stall(self, entry: int) -> int:
        """Clocks that the wave would stand before the first instruction of an entry if it came next."""
        for step in self._loop.entries[entry][:1]:
            form, lead, held, _, needs, _, place = step.first if isinstance(step, IssueRun) else step
            time = until = self.time + lead
            if form == MATH:
                until = max(time, self._free[place])
            elif form != TURNS:
                oldest = self._issued[place] - (held + 1 if form == WAIT else self._loop.holds[place])
                until = max(time, self._given_back(place, oldest))
            for register, extra in needs:
                until = max(until, self._ready[register] + extra)
            return until - time
        return 0

    def busy_yet(self, entry: int) -> int:
        """Clocks until the matrix unit is free, when the wave comes to the first instruction of an entry."""
        return self._free[MATRIX] - self.time - sum(step.lead for step in self._loop.entries[entry][:1])

    def _given_back(self, place: int, token: int) -> int:
        """When a token comes back; of a load that has not landed, when it would if the port were free."""
        tokens = self._done[place]
        if token < len(tokens):
            return tokens[token] if token >= 0 else 0
        under_way = [arrival + busy for arrival, busy, whose in self._arriving if whose is tokens]
        return under_way[token - len(tokens)]

    def _math(self, step: IssueStep) -> bool:
        """Late is what the wave stood for, or a matrix instruction that the unit stood idle for."""
        _, _, held, after, needs, makes, place = step
        free, ready, turn, time = self._free, self._ready, self._loop.turn, self.time
        until = free[place] if free[place] > time else time  # noqa: FURB136  # in the innermost loop, a call counts
        for register, extra in needs:
            until = max(until, ready[register] + extra)
        until += -until % turn
        late = until > (time if place != MATRIX or self._loop.turns_are_scarce else free[place])
        free[place] = until + held
        for register in makes:
            ready[register] = until + after
        self.time = until + turn
        return late

    def _run(self, step: IssueRun) -> bool:
        """As `_math` would take them one by one."""
        _, _, first, makes, rest, every = step
        late = self._math(first)
        self.time += rest
        self._free[first.place] += rest
        for register in makes:
            self._ready[register] = self.time - self._loop.turn + first.after
        waves_turn = first.place != MATRIX or self._loop.turns_are_scarce
        return late or every > (self._loop.turn if waves_turn else first.held)

    def _wait(self, step: IssueStep) -> bool:
        """A wait directly behind another is a field of the same instruction, where there is such a one."""
        _, _, held, _, _, _, place = step
        if self.time == self._waited and self._loop.fused_waits:
            self.time -= self._loop.turn
        late = self._come_down(place, self._issued[place] - held - 1)
        self.time += self._loop.turn
        self._waited = self.time
        return late

    def _memory(self, step: IssueStep) -> bool:
        """An op needs room in its counter; what a load brings takes the port of LDS when it arrives."""
        form, _, held, after, needs, makes, place = step
        late = self._come_down(place, self._issued[place] - self._loop.holds[place])
        time, ready = self.time, self._ready
        for register, extra in needs:
            time = max(time, ready[register] + extra)
        time += -time % self._loop.turn
        self._issued[place] += 1
        tokens = self._done[place]
        if form == LDS:
            self._port = max(self._port, time) + held
            finish = self._port + after
            tokens.append(max(finish, tokens[-1]) if tokens else finish)
        else:
            self._path = max(self._path, time) + held
            finish = self._path + self._loop.latency
            self._arriving.append((finish, after, tokens))
        for register in makes:
            ready[register] = finish
        self.time = time + self._loop.turn
        return late

    def _come_down(self, place: int, oldest: int) -> bool:
        """Stand until a token is given back; true if that takes time."""
        tokens, arriving = self._done[place], self._arriving
        while arriving and (arriving[0][0] <= self.time or oldest >= len(tokens)):
            arrival, busy, whose = arriving.pop(0)
            self._port = max(self._port, arrival) + busy
            whose.append(max(self._port, whose[-1]) if whose else self._port)
        if oldest < 0 or tokens[oldest] <= self.time:
            return False
        self.time = tokens[oldest] + -tokens[oldest] % self._loop.turn
        return True

    def _turns(self, _step: IssueStep) -> bool:
        return False
