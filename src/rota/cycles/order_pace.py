"""A loop's pace at a glance: takes a program's instructions, gives the clocks of a trip in any order of its entries.

The cycle model (`model`) runs every wave; a search that tries thousands of orders asks for less.  Here one wave stands
for all: what they share, it holds as long as all of them together, and at a barrier it waits for the last SIMD's turn.
Loads in front of the loop have landed when it begins.  This ranks orders; what a schedule takes, the model says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rota.cycles.instructions import CODE, EDGE, ENTER, SCALAR, Code, ModelInstruction
from rota.cycles.parameters import Parameters
from rota.program.kinds import OpKind, Unit

_TRIPS = 2  # ahead of the one that is taken; by then loads of the first have landed
_MATH, _LDS, _GLOBAL, _WAIT, _TURNS, _RUN = range(6)
_FORMS = {Unit.MMA: _MATH, Unit.VALU: _MATH, Unit.LDS: _LDS, Unit.DMA: _GLOBAL}
_KINDS = tuple(OpKind)
_MATRIX, _VECTOR = 0, 1


class IssueStep(NamedTuple):
    """One instruction, `lead` clocks after the one before; then as in `ModelInstruction`, for all waves together.

    `place` is the math unit or the counter.
    """

    form: int
    lead: int = 0
    held: int = 0
    after: int = 0
    needs: tuple[tuple[int, int], ...] = ()
    makes: tuple[int, ...] = ()
    place: int = 0


class IssueRun(NamedTuple):
    """Math instructions as one step: only the first may need something, and only the last makes something.

    The last is issued `rest` clocks after the first, `every` clocks after the one before it.
    """

    form: int
    lead: int
    first: IssueStep
    makes: tuple[int, ...]
    rest: int
    every: int


class OrderPace:
    """The kernel of a program whose waves all run the same entries, as one wave issues it."""

    def __init__(self, code: Code, parameters: Parameters) -> None:
        self.turn, self.latency = parameters.turn, parameters.dma_latency
        self.edge = parameters.turn * parameters.loop_edge
        self.holds = (*(counter.holds.value for counter in code.counters), 1 << 62)
        self.registers = len(code.registers)
        self.fused_waits = code.fused_waits
        self._computed = [counter < 0 for counter in code.register_counters]
        self._waves, self._sharers = code.waves, -(-code.waves // parameters.simds)
        # A wave of the first SIMD leaves at its next turn after the last one's arrival and the barrier's own time; of
        # waves that share a matrix unit each arrives an instruction's time behind the one before.
        written = code.instructions[0]
        longest = max((each.held for each in written if each.kind == CODE[OpKind.MMA]), default=0)
        late = parameters.simds - 1 + longest * (self._sharers - 1)
        self._barrier = -(-(parameters.barrier + late) // self.turn) * self.turn
        kinds = [instruction.kind for instruction in written]
        begins, ends = kinds.index(ENTER), kinds.index(EDGE)
        self.pending = [0] * len(self.holds)
        for step in self._steps(written[:begins]):
            if step.form in (_LDS, _GLOBAL):
                self.pending[step.place] += 1
        own: list[list[ModelInstruction]] = [[] for _ in range(code.keys[written[ends].key].slot)]
        for instruction in written[begins + 1 : ends]:
            own[code.keys[instruction.key].slot].append(instruction)
        single = [list(self._steps(each)) for each in own]
        self.entries = tuple(tuple(self._gathered(each)) for each in single)
        steps = [step for each in single for step in each]
        matrix = sum(step.held for step in steps if (step.form, step.place) == (_MATH, _MATRIX))
        turns = sum(step.lead + self.turn * (step.form != _TURNS) for step in steps) + self.edge
        self.turns_are_scarce, self.least = turns > matrix, max(turns, matrix)

    def settled(self, order: Sequence[int], ahead: Sequence[int] | None = None) -> WavePace:
        """A wave that has run through `ahead`, a part of the order's end, or twice through the whole order."""
        pace = WavePace(self)
        for trip in [order] * _TRIPS if ahead is None else [ahead]:
            pace.trip(trip)
        pace.late.clear()
        return pace

    def clocks(self, order: Sequence[int], ahead: Sequence[int] | None = None) -> int:
        """Clocks of a trip through the entries in this order, when the wave has settled."""
        pace = self.settled(order, ahead)
        start = pace.time
        pace.trip(order)
        return pace.time - start

    def late(self, order: Sequence[int], ahead: Sequence[int] | None = None) -> tuple[int, ...]:
        """Entries that time is lost for: the matrix unit's, or the wave's where it is short of turns."""
        pace = self.settled(order, ahead)
        pace.trip(order)
        return tuple(pace.late)

    def margins(
        self, order: Sequence[int], ahead: Sequence[int] | None, entries: Collection[int]
    ) -> tuple[tuple[int, int], ...]:
        """Of these entries, when each is about to be issued, for how long its matrix unit is busy yet.

        Less than 0 if the unit has been free for so long.
        """
        pace = self.settled(order, ahead)
        found = []
        for entry in order:
            if entry in entries:
                found.append((entry, pace.busy_yet(entry)))
            pace.issue(entry)
        return tuple(found)

    def _steps(self, instructions: Iterable[ModelInstruction]) -> Iterator[IssueStep]:
        """Instructions that only take turns count as time ahead of the next."""
        lead = 0
        for instruction in instructions:
            step = self._step(instruction)
            if step.form == _TURNS:
                lead += step.lead
            else:
                yield step._replace(lead=lead)
                lead = 0
        if lead:
            yield IssueStep(_TURNS, lead)

    def _gathered(self, steps: Iterable[IssueStep]) -> Iterator[IssueStep | IssueRun]:
        """A run of equal math instructions becomes one step: an entry may have hundreds of them."""
        run: list[IssueStep] = []
        for step in steps:
            if run and not (
                step.form == _MATH == run[-1].form
                and (step.held, step.after, step.place) == (run[-1].held, run[-1].after, run[-1].place)
                and not (step.lead or step.needs or run[-1].makes)
            ):
                yield self._as_one(run)
                run = []
            run.append(step)
        if run:
            yield self._as_one(run)

    def _as_one(self, run: Sequence[IssueStep]) -> IssueStep | IssueRun:
        first, *others = run
        if not others:
            return first
        every = max(-(-first.held // self.turn), 1) * self.turn
        return IssueRun(_RUN, first.lead, first, run[-1].makes, every * len(others), every)

    def _step(self, instruction: ModelInstruction) -> IssueStep:
        kind = None if instruction.kind >= SCALAR else _KINDS[instruction.kind]
        _, _, held, after, needs, makes, counter = instruction
        if kind is OpKind.BARRIER:
            return IssueStep(_TURNS, self._barrier)
        if kind is OpKind.WAIT:
            return IssueStep(_WAIT, held=held, place=counter)
        if kind is None or (kind.unit not in _FORMS and kind is not OpKind.NOTHING):
            return IssueStep(_TURNS, self.turn)
        computed = tuple(need for need in needs if self._computed[need[0]])  # waits see to the others
        form = _FORMS.get(kind.unit, _MATH)
        if form == _MATH:
            matrix = kind.unit is Unit.MMA
            busy = held if matrix or kind is OpKind.TRANSCENDENTAL else self.turn
            return IssueStep(form, 0, busy * self._sharers, after, computed, makes, _MATRIX if matrix else _VECTOR)
        every = self._waves
        return IssueStep(form, 0, held * every, after if form == _LDS else after * every, computed, makes, counter)


class WavePace:
    """The wave under way: the time, when units are free, registers ready and tokens given back."""

    __slots__ = (
        "_arriving",
        "_done",
        "_free",
        "_issue",
        "_issued",
        "_path",
        "_port",
        "_ready",
        "_waited",
        "_wave",
        "late",
        "time",
    )

    def __init__(self, wave: OrderPace) -> None:
        self._wave = wave
        self.time = self._port = self._path = 0
        self._waited = -1  # when the wave had last waited
        self._free, self._ready = [0, 0], [0] * wave.registers
        self._done, self._issued = [[0] * count for count in wave.pending], list(wave.pending)
        self._arriving: list[tuple[int, int, list[int]]] = []  # when, how long it holds the port, whose token it is
        self._issue: tuple[Callable[[Any], bool], ...]  # by the step's form
        self._issue = (self._math, self._memory, self._memory, self._wait, self._turns, self._run)
        self.late: list[int] = []

    def trip(self, order: Sequence[int]) -> None:
        """Once through the loop."""
        for entry in order:
            self.issue(entry)
        self.time += self._wave.edge

    def issue(self, entry: int) -> None:
        """The instructions of an entry, one after the other."""
        issue = self._issue
        for step in self._wave.entries[entry]:
            self.time += step[1]
            if issue[step[0]](step):
                self.late.append(entry)

    def stall(self, entry: int) -> int:
        """Clocks that the wave would stand before the first instruction of an entry if it came next."""
        for step in self._wave.entries[entry][:1]:
            form, lead, held, _, needs, _, place = step.first if isinstance(step, IssueRun) else step
            time = until = self.time + lead
            if form == _MATH:
                until = max(time, self._free[place])
            elif form != _TURNS:
                oldest = self._issued[place] - (held + 1 if form == _WAIT else self._wave.holds[place])
                until = max(time, self._given_back(place, oldest))
            for register, extra in needs:
                until = max(until, self._ready[register] + extra)
            return until - time
        return 0

    def busy_yet(self, entry: int) -> int:
        """Clocks until the matrix unit is free, when the wave comes to the first instruction of an entry."""
        return self._free[_MATRIX] - self.time - sum(step.lead for step in self._wave.entries[entry][:1])

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
        free, ready, turn, time = self._free, self._ready, self._wave.turn, self.time
        until = free[place] if free[place] > time else time  # noqa: FURB136  # in the innermost loop, a call counts
        for register, extra in needs:
            until = max(until, ready[register] + extra)
        until += -until % turn
        late = until > (time if place != _MATRIX or self._wave.turns_are_scarce else free[place])
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
            self._ready[register] = self.time - self._wave.turn + first.after
        waves_turn = first.place != _MATRIX or self._wave.turns_are_scarce
        return late or every > (self._wave.turn if waves_turn else first.held)

    def _wait(self, step: IssueStep) -> bool:
        """A wait directly behind another is a field of the same instruction, where there is such a one."""
        _, _, held, _, _, _, place = step
        if self.time == self._waited and self._wave.fused_waits:
            self.time -= self._wave.turn
        late = self._come_down(place, self._issued[place] - held - 1)
        self.time += self._wave.turn
        self._waited = self.time
        return late

    def _memory(self, step: IssueStep) -> bool:
        """An op needs room in its counter; what a load brings takes the port of LDS when it arrives."""
        form, _, held, after, needs, makes, place = step
        late = self._come_down(place, self._issued[place] - self._wave.holds[place])
        time, ready = self.time, self._ready
        for register, extra in needs:
            time = max(time, ready[register] + extra)
        time += -time % self._wave.turn
        self._issued[place] += 1
        tokens = self._done[place]
        if form == _LDS:
            self._port = max(self._port, time) + held
            finish = self._port + after
            tokens.append(max(finish, tokens[-1]) if tokens else finish)
        else:
            self._path = max(self._path, time) + held
            finish = self._path + self._wave.latency
            self._arriving.append((finish, after, tokens))
        for register in makes:
            ready[register] = finish
        self.time = time + self._wave.turn
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
        self.time = tokens[oldest] + -tokens[oldest] % self._wave.turn
        return True

    def _turns(self, _step: IssueStep) -> bool:
        return False


def in_lockstep(code: Code) -> bool:
    """Do all waves run the same entries?"""
    return len(set(code.roles)) == 1
