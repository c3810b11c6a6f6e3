"""Every interleaving, one by one: takes two waves' steps of a loop by values, gives whether any reads a wrong version.

A state is where each wave stands, which of its memory ops have not taken effect yet, and what LDS and registers hold.
An op takes effect at some moment between its issue and the wait that covers it.  This is slow and simple; it decides
whether the walk of `tests/oracle/wave.py` may be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.oracle.step import LDS, Content, Counters, Kind, Spot, Step, Unset
from tests.oracle.wave import Memory, Place, Wave

_MOST_STATES = 20_000


class TooManyStatesError(Exception):
    """More states than there is deadline for."""


class _At(NamedTuple):
    """Where a wave stands: its next step, the ops that have not taken effect, and its registers."""

    step: int
    pending: tuple[int, ...]
    registers: frozenset[tuple[Spot, Content]]


_State = tuple[tuple[_At, ...], frozenset[tuple[Spot, Content]]]


class Exploration:
    """All states of a workgroup whose waves, each of one of these roles, run these steps."""

    def __init__(
        self,
        programs: Sequence[Sequence[Step]],
        roles: Sequence[int],
        barriers: Mapping[str, Place],
        *,
        tracked: bool,
        counters: Counters,
    ) -> None:
        self.roles, self.barriers = roles, barriers
        self.programs = [[step for step in steps if step.kind is not Kind.END] for steps in programs]
        self.counters = counters
        self.tracked = tracked
        nobody = Wave(0, (), Memory({}), tracked=tracked, counters=counters)
        self.results = [[tuple(step.does(nobody, ())) if step.does else () for step in each] for each in self.programs]
        self.initial: dict[Spot, Content] = {}
        for steps in self.programs:
            for step in steps:
                for source in step.sources:
                    if source.wanted is not None and source.wanted.iteration < 0:
                        self.initial.setdefault(source.spot, source.wanted)

    def goes_wrong(self) -> bool:
        """Some interleaving gives some op another version than it wants."""
        start: _State = (tuple(_At(0, (), frozenset()) for _ in self.programs), frozenset())
        seen = {start}
        todo = [start]
        while todo:
            state = todo.pop()
            for following in self._following(state):
                if following is None:
                    return True
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
            if len(seen) > _MOST_STATES:
                raise TooManyStatesError
        return False

    def _following(self, state: _State) -> Iterator[_State | None]:
        waves, _ = state
        for wave, at in enumerate(waves):
            for pending in self._may_take_effect(wave, at):
                yield self._effect(state, wave, pending)
            if self._next(wave, at) is not None and self._may_issue(waves, wave):
                yield self._issue(state, wave)

    def _next(self, wave: int, at: _At) -> Kind | None:
        steps = self.programs[wave]
        return steps[at.step].kind if at.step < len(steps) else None

    def _may_take_effect(self, wave: int, at: _At) -> Iterator[int]:
        """LDS ops in order, loads into one register file in order; a DMA whenever it likes."""
        steps = self.programs[wave]
        for place, number in enumerate(at.pending):
            step = steps[number]
            before = [steps[other] for other in at.pending[:place] if steps[other].counter == step.counter]
            if not step.in_lds_order:
                in_order = self.counters.in_order(step.counter)
                before = [other for other in before if in_order and _registers(other) and _registers(step)]
            if not before:
                yield number

    def _may_issue(self, waves: Sequence[_At], wave: int) -> bool:
        """A wait holds its wave until what it covers has taken effect, as does the compiler's own; a barrier, too."""
        at, steps = waves[wave], self.programs[wave]
        step = steps[at.step]
        if step.awaits:
            number = 1 + sum(other.awaits == step.awaits for other in steps[: at.step])
            arriving = [n for n, role in enumerate(self.roles) if role in self.barriers[step.awaits].arriving]
            return all(self._arrived(other, waves[other], step.awaits) >= number for other in arriving)
        if step.kind is Kind.WAIT:
            if step.left and not self.counters.in_order(step.counter):
                return True
            younger = 0
            for number in reversed(range(at.step)):
                if steps[number].kind is Kind.WORK and steps[number].counter == step.counter:
                    if younger >= step.left and number in at.pending:
                        return False
                    younger += steps[number].tokens
            return True
        return not self.tracked or step.kind is not Kind.WORK or not self._compiler_holds(wave, at, step)

    def _arrived(self, wave: int, at: _At, barrier: str) -> int:
        """How often a wave has arrived; one that stands at a barrier, waiting, has arrived there if it ever does."""
        steps = self.programs[wave]
        standing = at.step < len(steps) and bool(steps[at.step].awaits)
        return sum(step.arrives == barrier for step in steps[: at.step + standing])

    def _compiler_holds(self, wave: int, at: _At, step: Step) -> bool:
        """The compiler's own wait, for registers that the step uses and an op fills; it counts on the order."""
        steps = self.programs[wave]
        used = {source.spot for source in step.sources}
        for number, op in enumerate(steps[: at.step]):
            lands = set(_registers(op)) if op.counter else set()
            overtakes = op.counter != step.counter or not self.counters.in_order(op.counter)
            if not lands & used and not (lands & set(step.targets) and overtakes):
                continue
            behind = [other.counter for other in steps[number + 1 : at.step] if other.kind is Kind.WORK]
            counted = self.counters.in_order(op.counter) or op.counter not in behind
            if counted and any(steps[other].counter == op.counter for other in at.pending if other <= number):
                return True
        return False

    def _issue(self, state: _State, wave: int) -> _State | None:
        waves, lds = state
        at = waves[wave]
        step = self.programs[wave][at.step]
        after = at._replace(step=at.step + 1)
        if step.kind is Kind.WORK:
            held = dict(at.registers)
            for source in step.sources:
                if source.spot[0] != LDS and held.get(source.spot, self._first(source.spot)) != source.wanted:
                    return None
            if step.counter:
                after = after._replace(pending=(*at.pending, at.step))
            else:
                held.update(zip(step.targets, self.results[wave][at.step], strict=True))
                after = after._replace(registers=frozenset(held.items()))
        return (*waves[:wave], after, *waves[wave + 1 :]), lds

    def _effect(self, state: _State, wave: int, number: int) -> _State | None:
        waves, lds = state
        at = waves[wave]
        step = self.programs[wave][number]
        slices, held = dict(lds), dict(at.registers)
        for source in step.sources:
            if source.spot[0] == LDS:
                for each in range(len(waves)):
                    if slices.get((each, *source.spot), self._first(source.spot)) != source.wanted:
                        return None
        for spot, content in zip(step.targets, self.results[wave][number], strict=True):
            if spot[0] == LDS:
                slices[wave, *spot] = content
            else:
                held[spot] = content
        pending = tuple(other for other in at.pending if other != number)
        after = at._replace(pending=pending, registers=frozenset(held.items()))
        return (*waves[:wave], after, *waves[wave + 1 :]), frozenset(slices.items())

    def _first(self, spot: Spot) -> Content:
        return self.initial.get(spot, Unset.UNTOUCHED)


def _registers(step: Step) -> tuple[Spot, ...]:
    return tuple(spot for spot in step.targets if spot[0] != LDS)
