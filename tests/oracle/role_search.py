"""Every execution, one by one: takes a draft's streams, gives an execution that goes wrong, or None.

A state is where each wave stands, which of its memory ops have yet to take effect, and what its registers and all
slices of LDS hold.  From a state a wave may go on, if no wait or barrier holds it, or one of its memory ops may take
effect.  This is slow and simple, and has no clocks; it decides whether those of `role_machine.py` may be trusted.
There is one wave for each role, and a second one for each role in turn.

Fewer states show the same: a step that reads and writes no registers in flight may be made as soon as it can be, since
whatever could have happened before it can happen after it.  `every=True` does without this argument.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rota.program.entry import Place, Space
from rota.program.kinds import OpKind
from tests.oracle.role_steps import DS, Step, Streams, Version

MOST_STATES = 15_000


class TooManyStatesError(Exception):
    """More states than there is deadline for."""


class _Found(Exception):  # noqa: N818  # nobody sees it
    """Something is wrong."""


class _At(NamedTuple):
    """Where a wave stands; the steps that have yet to take effect, and to return; by which step each register was."""

    step: int
    pending: tuple[int, ...]
    returning: tuple[int, ...]
    registers: tuple[int, ...]


class _State(NamedTuple):
    """The waves, and for each slice of a part of a tile the step of its wave that filled it; -1 is none."""

    waves: tuple[_At, ...]
    slices: tuple[int, ...]


class _Waited(NamedTuple):
    """What a step waits for on a counter: with so many tokens left."""

    counter: str
    left: int


class Role:
    """One role's steps, with what doesn't depend on the execution."""

    def __init__(self, steps: Sequence[Step], streams: Streams) -> None:
        self.steps = steps
        self.in_order = {name: counter.in_order for name, counter in streams.counters.items()}
        self.holds = {name: counter.holds.value for name, counter in streams.counters.items()}
        self.places = sorted({place for step in steps for place, _ in (*step.reads, *step.makes) if _private(place)})
        self.number = {place: number for number, place in enumerate(self.places)}
        self.arrivals: dict[str, list[int]] = {name: [0] for name in streams.arriving}
        for step in steps:
            for name, count in self.arrivals.items():
                count.append(count[-1] + (step.arrives == name))
        self.awaited = [sum(s.awaits == step.awaits for s in steps[: at + 1]) for at, step in enumerate(steps)]
        self.waits = [[*self._waits(at, step, streams)] for at, step in enumerate(steps)]
        self.loads = [step.counter != "" and step.kind is not OpKind.WAIT for step in steps]

    def _waits(self, at: int, step: Step, streams: Streams) -> Iterator[_Waited]:
        """The wait that is planned; or those of the compiler, for the last load into each register that is touched."""
        if step.kind is OpKind.WAIT:
            yield _Waited(step.counter, step.left)
        if not streams.draft.compiler_tracks_registers or step.begins:
            return
        read = {place for place, _ in step.reads if _private(place)}
        for place in read | {place for place, _ in step.makes if _private(place)}:
            last = max((n for n in range(at) if place in dict(self.steps[n].makes)), default=None)
            if last is None or not self.steps[last].counter:
                continue
            counter = self.steps[last].counter
            if place not in read and step.counter == counter and self.in_order[counter]:
                continue
            behind = [other for other in self.steps[last + 1 : at] if other.counter == counter]
            tokens = sum(other.tokens for other in behind if other.kind is not OpKind.WAIT)
            yield _Waited(counter, min(tokens, self.holds[counter] - 1))

    def version(self, place: Place, step: int) -> Version | None:
        """What a step left in a place."""
        return None if step < 0 else dict(self.steps[step].makes)[place]


def _private(place: Place) -> bool:
    return place.space is Space.REGISTER


class Search:
    """All executions of some waves, given by their roles."""

    def __init__(self, streams: Streams, runs: Sequence[int], waves: Sequence[int], *, every: bool = False) -> None:
        roles = [Role(steps, streams) for steps in streams.of(runs)]
        self.runs, self.streams, self.every = runs, streams, every
        self.numbers = waves
        self.waves = [roles[role] for role in waves]
        self.arriving = {
            name: [n for n, role in enumerate(waves) if role in arriving] for name, arriving in streams.arriving.items()
        }
        tiles = {p for role in roles for step in role.steps for p, _ in (*step.reads, *step.makes) if not _private(p)}
        self.slice: dict[tuple[Place, int], int] = {}
        self.owners: dict[Place, list[int]] = {}
        self.first: dict[Place, Version] = {}
        for place in sorted(tiles):
            owners = streams.owners[place.name, place.part]
            self.owners[place] = [n for n, role in enumerate(waves) if role in owners]
            for wave in range(len(waves)):
                self.slice[place, wave] = len(self.slice)
        for role in roles:
            for place, version in (held for step in role.steps for held in step.reads):
                if version.iteration < 0 and not version.run and not _private(place):
                    self.first.setdefault(place, version)

    def wrong(self, most: int = MOST_STATES) -> list[str] | None:
        """The events of an execution that goes wrong, or None."""
        start = _State(tuple(_At(0, (), (), (-1,) * len(role.places)) for role in self.waves), (-1,) * len(self.slice))
        came: dict[_State, tuple[_State | None, str]] = {start: (None, "start")}
        todo = [start]
        while todo:
            state = todo.pop()
            following = self._following(state)
            moved = False
            try:
                for event, after in following:
                    moved = True
                    if after not in came:
                        came[after] = (state, event)
                        todo.append(after)
                if not moved:
                    self._check_end(state)
            except _Found as found:
                return [*_path(came, state), str(found)]
            if len(came) > most:
                raise TooManyStatesError
        return None

    def _following(self, state: _State) -> Iterator[tuple[str, _State]]:
        choices = []
        for number, (at, role) in enumerate(zip(state.waves, self.waves, strict=True)):
            if at.step < len(role.steps) and self._may_go(state, number):
                choices.append(number)
                if not self.every and not self._touches_loads(at, role):
                    yield self._go(state, number)
                    return
        for number in choices:
            yield self._go(state, number)
        for number, (at, role) in enumerate(zip(state.waves, self.waves, strict=True)):
            for step in at.pending:
                if self._may_land(at, role, step):
                    yield self._land(state, number, step)
            for step in at.returning:
                yield self._return(state, number, step)

    def _touches_loads(self, at: _At, role: Role) -> bool:
        step = role.steps[at.step]
        touched = {place for place, _ in (*step.reads, *step.makes)}
        return any(touched & dict(role.steps[n].makes).keys() for n in (*at.pending, *at.returning))

    def _may_go(self, state: _State, number: int) -> bool:
        at, role = state.waves[number], self.waves[number]
        step = role.steps[at.step]
        if step.awaits:
            times = role.awaited[at.step]
            others = self.arriving[step.awaits]
            return all(self.waves[n].arrivals[step.awaits][state.waves[n].step] >= times for n in others)
        return all(self._is_over(at, role, wait) for wait in role.waits[at.step])

    def _is_over(self, at: _At, role: Role, wait: _Waited) -> bool:
        """No more tokens are left: on a counter in order those of the youngest ops, otherwise one of each at least."""
        under_way = [n for n in (*at.pending, *at.returning) if role.steps[n].counter == wait.counter]
        if not role.in_order[wait.counter]:
            return len(under_way) <= wait.left
        behind = 0
        for n in reversed(range(at.step)):
            if role.loads[n] and role.steps[n].counter == wait.counter:
                if behind >= wait.left and n in under_way:
                    return False
                behind += role.steps[n].tokens
        return True

    def _go(self, state: _State, number: int) -> tuple[str, _State]:
        at, role = state.waves[number], self.waves[number]
        step = role.steps[at.step]
        event = f"{self._who(number)}: {step.name}"
        for place, due in step.registers_read:
            found = role.version(place, at.registers[role.number[place]])
            if found != due:
                raise _Found(f"{event} wants {due} in {place}, finds {found}")
        after = at._replace(step=at.step + 1)
        if role.loads[at.step]:
            after = after._replace(pending=(*at.pending, at.step))
        elif step.makes:
            after = after._replace(registers=self._filled(at, role, at.step))
        return event, self._with(state, number, after)

    def _filled(self, at: _At, role: Role, number: int) -> tuple[int, ...]:
        held = list(at.registers)
        for place, _ in role.steps[number].makes:
            if _private(place):
                if held[role.number[place]] > number:
                    raise _Found(f"{role.steps[number].name} lands on a later version in {place}")
                held[role.number[place]] = number
        return tuple(held)

    def _may_land(self, at: _At, role: Role, number: int) -> bool:
        """LDS instructions in their order, loads into registers in their counter's; a DMA whenever it likes."""
        step = role.steps[number]
        for other in at.pending:
            if other >= number:
                break
            before = role.steps[other]
            if step.kind in DS and before.kind in DS:
                return False
            fills = any(_private(place) for place, _ in step.makes) and any(_private(p) for p, _ in before.makes)
            if fills and step.counter == before.counter and role.in_order[step.counter]:
                return False
        return True

    def _land(self, state: _State, number: int, landing: int) -> tuple[str, _State]:
        """The op reads or writes LDS, and is over; what comes back without order comes back later."""
        at, role = state.waves[number], self.waves[number]
        step = role.steps[landing]
        event = f"{self._who(number)}: {step.name} takes effect"
        for place, due in step.lds_read:
            for owner in self.owners[place]:
                held = state.slices[self.slice[place, owner]]
                found = self.waves[owner].version(place, held) if held >= 0 else self.first.get(place)
                if found != due:
                    raise _Found(f"{event}: it wants {due} in {place}, and finds {found} of {self._who(owner)}")
        slices = list(state.slices)
        for place, _ in step.makes:
            if not _private(place):
                if slices[self.slice[place, number]] > landing:
                    raise _Found(f"{event} on a later version in {place}")
                slices[self.slice[place, number]] = landing
        after = at._replace(pending=tuple(n for n in at.pending if n != landing))
        if step.lds_read and not role.in_order[step.counter]:
            after = after._replace(returning=(*at.returning, landing))
        else:
            after = after._replace(registers=self._filled(at, role, landing))
        return event, self._with(state._replace(slices=tuple(slices)), number, after)

    def _return(self, state: _State, number: int, landing: int) -> tuple[str, _State]:
        at, role = state.waves[number], self.waves[number]
        left = tuple(n for n in at.returning if n != landing)
        after = at._replace(returning=left, registers=self._filled(at, role, landing))
        return f"{self._who(number)}: {role.steps[landing].name} returns", self._with(state, number, after)

    def _check_end(self, state: _State) -> None:
        for number, (at, role) in enumerate(zip(state.waves, self.waves, strict=True)):
            if at.step < len(role.steps):
                raise _Found(f"{self._who(number)} stays at {role.steps[at.step].name}")
            left = {role.version(place, held) for place, held in zip(role.places, at.registers, strict=True)}
            missing = set(self.streams.results(self.numbers[number], self.runs)) - left
            if missing:
                raise _Found(f"{self._who(number)} ends without {min(missing)}")

    def _who(self, number: int) -> str:
        return f"wave {number} (role {self.numbers[number]})"

    @staticmethod
    def _with(state: _State, number: int, after: _At) -> _State:
        return state._replace(waves=(*state.waves[:number], after, *state.waves[number + 1 :]))


def _path(came: dict[_State, tuple[_State | None, str]], state: _State) -> list[str]:
    events: list[str] = []
    at: _State | None = state
    while at is not None:
        at, event = came[at]
        events.append(event)
    return events[::-1]


def workgroups(streams: Streams) -> Iterator[tuple[int, ...]]:
    """A wave of each role, and a second one for each role in turn that has several; at least one workgroup."""
    roles = streams.draft.roles
    everyone = range(len(roles))
    twins = [role for role in everyone if roles[role].waves is None or roles[role].waves != 1]
    yield from (tuple(sorted((*everyone, role))) for role in twins)
    if not twins:
        yield tuple(everyone)


def goes_wrong(
    streams: Streams, runs: Sequence[int], *, every: bool = False, most: int = MOST_STATES
) -> list[str] | None:
    """An execution of some workgroup that goes wrong, event by event, or None."""
    for waves in workgroups(streams):
        found = Search(streams, runs, waves, every=every).wrong(most)
        if found is not None:
            return found
    return None
