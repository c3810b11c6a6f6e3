"""The oracle of lowered programs with roles: takes a draft, gives what is wrong in some execution, or None.

An execution is an interleaving of the waves, and a moment at which each memory op takes effect.  A memory op takes
effect at some time after its issue, at the latest when a wait of its own wave covers it.  On a counter in order a wait
for n covers every op with n tokens or more after it; on one without order only a wait for 0 covers anything, since
which ops are over isn't known.  LDS instructions of one wave keep their order among themselves, loads into registers on
a counter in order land in order, a DMA keeps no order with anything.  Registers are read when an op issues.  A compiler
that tracks registers waits in front of whatever reads or writes registers that its own role's loads are filling, with
as many tokens left as its role has issued after the load.  The n-th wait at a barrier ends when every wave of every
role that arrives there has arrived n times.  Every wave of the roles that an op is for fills its own slice of a tile;
who reads a part reads all slices.

Two waves stand for each role that has several.  What goes wrong goes wrong in one wave, which finds in its registers or
in some wave's slice a version that it doesn't want: two waves, of one role or of two.  All others matter only as those
that barriers wait for, and as such a role's further waves may follow its first one step by step.  One wave per role is
too few: the slice that one wave overwrites while its twin of the same role still reads is the commonest race of all.

This module doesn't search (`role_search.py` does).  Waits and what they cover are fixed by each role's own list.  What
a wave knows of another one is fixed by the barriers that it has waited at: arrivals never depend on who is faster, so
vector clocks are exact.  Two accesses that no clock orders can meet in either order, and one of the two is wrong.
Where all are ordered, all executions find the same versions, and one of them is run: every op takes effect at once.

A full counter, which stalls the wave that issues more, is taken for one that doesn't.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rota.program.entry import Place
from rota.program.kinds import OpKind
from rota.program.machine import Counter
from tests.oracle.role_steps import DS, Draft, Step, Streams, Version, WrongError

TRIPS = range(5)
LATER = (5, 6, 7, 8, 11, 16)
_AGAIN = ((0,), (1,), (2,), (1, 1))  # trip counts of further runs, where the loop may be run again
_NEVER = 1 << 40


def judge(draft: Draft, trips: Iterable[int] = TRIPS) -> WrongError | None:
    """What is wrong, for the first of these trip counts at which something is."""
    try:
        streams = Streams(draft)
    except WrongError as wrong:
        return wrong
    for count in trips:
        try:
            streams.check_counts(count)
            for runs in all_runs(draft, count):
                check(streams, runs)
        except WrongError as wrong:
            wrong.add_note(f"{count} trips")
            return wrong
    return None


def all_runs(draft: Draft, trips: int) -> Iterator[tuple[int, ...]]:
    """The runs of a loop whose last, or first of several, has so many trips."""
    yield (trips,)
    if draft.reentrant:
        yield from ((trips, *others) for others in _AGAIN)


def check(streams: Streams, runs: Sequence[int]) -> None:
    """Raises `WrongError` if some execution of these runs goes wrong."""
    draft = streams.draft
    steps = streams.of(runs)
    lists = [_List(role, streams.counters, tracked=draft.compiler_tracks_registers) for role in steps]
    waves = [
        _Wave(role, lists[role])
        for role, each in enumerate(draft.roles)
        for _ in range(2 if each.waves is None else min(each.waves, 2))
    ]
    walk = _Walk(waves, streams)
    walk.run()
    _check_races(waves)
    walk.check([set(streams.results(role, runs)) for role in range(len(draft.roles))])


def is_unaware(draft: Draft) -> bool:
    """Does some role that touches LDS stop learning how far another one is?"""
    streams = Streams(draft)
    ends = []
    for runs in ((3,), (6,)):
        lists = [_List(role, streams.counters, tracked=draft.compiler_tracks_registers) for role in streams.of(runs)]
        waves = [_Wave(role, own) for role, own in enumerate(lists)]
        _Walk(waves, streams).run()
        ends.append([wave.knows for wave in waves])
    touching = [role for role, own in enumerate(lists) if any(step.lds_read or step.lds_made for step in own.steps)]
    return any(ends[0][one][two] == ends[1][one][two] for one in touching for two in touching if one != two)


class _List:
    """One role's steps, and for each the time at which it is over for certain.

    Step n issues at time 2n, and what a wait at step n covers is over at 2n + 1; a compiler's wait is in front of it.
    """

    def __init__(self, steps: Sequence[Step], counters: Mapping[str, Counter], *, tracked: bool) -> None:
        self.steps, self.counters, self.tracked = steps, counters, tracked
        self.over = [_NEVER] * len(steps)
        self.queues: dict[str, list[int]] = {name: [] for name in counters}
        self.loading: dict[Place, list[int]] = {}
        for at, step in enumerate(steps):
            if step.kind is OpKind.WAIT:
                self._wait(step.counter, step.left, 2 * at + 1)
            elif step.reads or step.makes or step.tokens:
                self._issue(at, step)

    def _issue(self, at: int, step: Step) -> None:
        for place, _ in step.registers_read:
            self._need(place, at, step, self.loading.get(place, ()))
        for place, _ in step.registers_made:
            loads = self.loading.setdefault(place, [])
            if loads:
                self._need(place, at, step, [load for load in loads if not self._lands_before(load, step)])
                loads[:] = [load for load in loads if self.over[load] == _NEVER]
            if step.counter:
                loads.append(at)
        if step.counter:
            self.queues[step.counter].append(at)
        else:
            self.over[at] = 2 * at

    def _lands_before(self, load: int, step: Step) -> bool:
        counter = self.steps[load].counter
        return counter == step.counter and self.counters[counter].in_order

    def _need(self, place: Place, at: int, step: Step, loads: Sequence[int]) -> None:
        """These loads into registers must be over before the step issues."""
        for load in reversed(loads):
            if self.over[load] == _NEVER and self.tracked and not step.begins:
                counter = self.steps[load].counter
                behind = sum(self.steps[other].tokens for other in self.queues[counter] if other > load)
                self._wait(counter, min(behind, self.counters[counter].holds.value - 1), 2 * at)
            if self.over[load] == _NEVER:
                raise WrongError("register", f"{step.name} touches {place} while {self.steps[load].name} is in flight")

    def _wait(self, counter: str, left: int, time: int) -> None:
        if left and not self.counters[counter].in_order:
            return
        queue = self.queues[counter]
        behind = sum(self.steps[at].tokens for at in queue)
        while queue and behind - self.steps[queue[0]].tokens >= left:
            behind -= self.steps[queue[0]].tokens
            self.over[queue.pop(0)] = time


class _Access(NamedTuple):
    """A wave's access to a part of a tile, with what it knew of the steps of all waves when it issued."""

    at: int
    knows: list[int]


class _Wave:
    """A wave in the one execution that is run."""

    def __init__(self, role: int, own: _List) -> None:
        self.role, self.own = role, own
        self.at = 0
        self.knows: list[int] = []  # how many steps each wave has certainly made
        self.arrivals: dict[str, list[tuple[int, ...]]] = {}
        self.waited = Tally[str]()
        self.registers: dict[Place, Version] = {}
        self.reads: dict[Place, list[_Access]] = {}  # of LDS
        self.writes: dict[Place, list[_Access]] = {}


class _Walk:
    """All waves to their ends, every op at once; clocks and contents on the way."""

    def __init__(self, waves: Sequence[_Wave], streams: Streams) -> None:
        self.waves = waves
        self.arriving = {
            name: [number for number, wave in enumerate(waves) if wave.role in roles]
            for name, roles in streams.arriving.items()
        }
        self.owners = {
            part: [number for number, wave in enumerate(waves) if wave.role in roles]
            for part, roles in streams.owners.items()
        }
        self.lds: dict[tuple[Place, int], Version] = {}
        self.first: dict[Place, Version] = {}
        self.wrong: WrongError | None = None
        for wave in waves:
            wave.knows = [0] * len(waves)

    def run(self) -> None:
        """As far as everybody can go on."""
        moved = True
        while moved:
            moved = False
            for number, wave in enumerate(self.waves):
                while wave.at < len(wave.own.steps) and self._step(number, wave, wave.own.steps[wave.at]):
                    wave.at += 1
                    moved = True

    def check(self, results: Sequence[set[Version]]) -> None:
        """Raises `WrongError` where a version was missing, or nobody could go on; races come first, as its causes."""
        if self.wrong is not None:
            raise self.wrong
        stuck = [wave for wave in self.waves if wave.at < len(wave.own.steps)]
        if stuck:
            raise WrongError("deadlock", f"role {stuck[0].role} stays at {stuck[0].own.steps[stuck[0].at].name}")
        for wave in self.waves:
            missing = results[wave.role] - set(wave.registers.values())
            if missing:
                raise WrongError("result", f"role {wave.role} ends without {min(missing)}")

    def _step(self, number: int, wave: _Wave, step: Step) -> bool:
        if step.arrives:
            knows = [*wave.knows]
            knows[number] = wave.at
            wave.arrivals.setdefault(step.arrives, []).append(tuple(knows))
        elif step.awaits:
            return self._await(wave, step.awaits)
        elif step.reads or step.makes:
            self._access(number, wave, step)
        return True

    def _await(self, wave: _Wave, name: str) -> bool:
        times = wave.waited[name]
        arrivals = [self.waves[other].arrivals.get(name, []) for other in self.arriving[name]]
        if any(len(each) <= times for each in arrivals):
            return False
        wave.waited[name] += 1
        wave.knows = [max(each) for each in zip(wave.knows, *(each[times] for each in arrivals), strict=True)]
        return True

    def _access(self, number: int, wave: _Wave, step: Step) -> None:
        for place, due in step.registers_read:
            if wave.registers.get(place) != due:
                self._missing(wave, step, place, due, wave.registers.get(place))
        for place, due in step.lds_read:
            wave.reads.setdefault(place, []).append(_Access(wave.at, wave.knows))
            for owner in self.owners[place.name, place.part]:
                if self._slice(place, owner, due) != due:
                    self._missing(wave, step, place, due, self._slice(place, owner, due))
        for place, made in step.registers_made:
            wave.registers[place] = made
        for place, made in step.lds_made:
            wave.writes.setdefault(place, []).append(_Access(wave.at, wave.knows))
            self.lds[place, number] = made

    def _missing(self, wave: _Wave, step: Step, place: Place, due: Version, found: Version | None) -> None:
        if self.wrong is None:
            message = f"{step.name} of role {wave.role} wants {due} in {place}, finds {found}"
            self.wrong = WrongError("value", message)

    def _slice(self, place: Place, owner: int, due: Version) -> Version | None:
        """What a wave's slice holds; before the first run the caller has put there what is the first to be wanted."""
        found = self.lds.get((place, owner))
        if found is None and due.iteration < 0 and not due.run:
            return self.first.setdefault(place, due)
        return found


def _check_races(waves: Sequence[_Wave]) -> None:
    """Raises `WrongError` for two accesses that can meet: of a wave, of it and its twin, of waves of two roles.

    Twins know the same of all others, so one of them is compared.
    """
    first = [number for number, wave in enumerate(waves) if not number or waves[number - 1].role != wave.role]
    for one in first:
        _check_own(waves[one])
        twin = one + 1 < len(waves) and waves[one + 1].role == waves[one].role
        for other in (*((one + 1,) if twin else ()), *(each for each in first if each > one)):
            _check_pair(waves, one, other)
            _check_pair(waves, other, one)


def _check_own(wave: _Wave) -> None:
    """Neither overtakes the other, of which one writes; LDS instructions never do."""
    over, steps = wave.own.over, wave.own.steps
    for place, writes in wave.writes.items():
        others = [(access.at, False) for access in wave.reads.get(place, ())]
        for write in writes:
            for at, both in (*others, *((access.at, True) for access in writes)):
                first, second = sorted((write.at, at))
                in_order = first == second or (steps[first].kind in DS and steps[second].kind in DS)
                if not in_order and over[first] > 2 * second:
                    does = "writes" if both else "reads and writes"
                    raise WrongError("race", f"a wave {does} {place} by {steps[second].name}, {steps[first].name}")


def _check_pair(waves: Sequence[_Wave], one: int, other: int) -> None:
    """What the first wave writes, and the other reads; each writes its own slice."""
    mine, theirs = waves[one], waves[other]
    over, their_over = mine.own.over, theirs.own.over
    for place, writes in mine.writes.items():
        for at, knows in writes:
            done, until = over[at], 2 * knows[other]
            for access in theirs.reads.get(place, ()):
                if done > 2 * access.knows[one] and their_over[access.at] > until:
                    write, read = mine.own.steps[at].name, theirs.own.steps[access.at].name
                    message = f"{write} of role {mine.role} can meet {read} of role {theirs.role}'s in {place}"
                    raise WrongError("race", message)
