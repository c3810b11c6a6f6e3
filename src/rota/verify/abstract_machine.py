"""The abstract machine that the proof runs entries on.

All waves of a role execute the same entries, so one queue per role and counter represents them all. A role's clock
counts the barriers at which its waves have arrived. An access is in flight from the clock of its issue to the clock of
the wait that covers it. What a role knows of another role, or of its own other waves, is a clock that all of them have
certainly reached: that of the last arrival it waited for (docs/machine_model.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import NamedTuple

from rota.errors import Finding
from rota.program.entry import Entry, Place, Space, Version
from rota.program.kinds import Phase
from rota.program.lowered import LoweredProgram


class Taken:
    """The tiles 0 .. `upto` - 1 and those in `beyond`; small, because a loop takes its tiles nearly in order."""

    __slots__ = ("beyond", "upto")

    def __init__(self, upto: int = 0, beyond: frozenset[int] = frozenset()) -> None:
        self.upto = upto
        self.beyond = set(beyond)

    def add(self, tile: int) -> bool:
        """Take a tile in; False if it was in already."""
        if tile < self.upto or tile in self.beyond:
            return False
        self.beyond.add(tile)
        while self.upto in self.beyond:
            self.beyond.remove(self.upto)
            self.upto += 1
        return True

    def skip(self) -> int:
        """Give up on the lowest missing tile and return it."""
        missing = self.upto
        self.add(missing)
        return missing

    def relative(self, base: int, stale: int) -> tuple[int, ...]:
        """A description that repeats from trip to trip if the loop takes its tiles regularly.

        Tiles further back than `stale` are all alike: an accumulator that lacks one of them is wrong already.
        """
        return (max(self.upto - base, stale), *sorted({max(tile - base, stale) for tile in self.beyond}))

    def fork(self) -> Taken:
        return Taken(self.upto, frozenset(self.beyond))


# What roles know of each other.
#
# A role's clock is its arrivals at any barrier. A role that has waited at a barrier n times knows that every role
# that arrives there has done so n times; with several barriers it also knows what these roles knew when they
# arrived.


class _Arrival(NamedTuple):
    """The clock of a role right after it arrived, and what the role knew by then."""

    clock: int
    knew: tuple[int, ...]


class Meetings:
    """What each role knows of the others' clocks, between two entries."""

    def __init__(self, program: LoweredProgram) -> None:
        self.program = program
        roles = len(program.roles)
        self.barriers = {barrier.name: barrier for barrier in program.barriers}
        self.alone = len(self.barriers) == 1  # then a role's n-th arrival is its n-th clock
        only = next(iter(self.barriers.values()), None)
        self.arrives = [self.alone and only is not None and role in only.arriving for role in range(roles)]
        self.clocks = [0] * roles
        self.passed = [0] * roles
        self.knows = [[0] * roles for _ in range(roles)]  # with one barrier it follows from what was passed
        self.known = [0] * roles  # of each role, by all whose knowledge matters
        sharing = {role for role in range(roles) if any(_shares(each, role) for each in program.entries)}
        self.sharing = tuple(sorted(sharing)) or tuple(range(roles))  # what other roles know orders nothing
        self.waited = {name: [0] * roles for name in self.barriers}
        self.arrived = {name: [0] * roles for name in self.barriers}
        self.logs: dict[tuple[str, int, int], _Arrival] = {}

    def pass_barrier(self, entry: Entry) -> Iterable[Finding]:
        """Roles arrive, or continue after the others have arrived; a barrier that is one instruction does both."""
        return self._pass_single(entry) if self.alone else self._pass(entry)

    def _pass_single(self, entry: Entry) -> Iterable[Finding]:
        """With a single barrier, a role that has waited n times knows that all have arrived there n times."""
        effect, clocks = entry.effect, self.clocks
        roles = range(len(clocks)) if entry.roles is None else entry.roles
        if effect.arrives is not None:
            for role in roles:
                clocks[role] += 1
        if effect.awaits is not None:
            passed = self.passed
            for role in roles:
                passed[role] += 1
            self.known = self._all_arrived(min(passed[role] for role in self.sharing))
        return ()

    def _all_arrived(self, times: int) -> list[int]:
        """What is known when every arriving role has reached the single barrier `times` times."""
        return [times if arrives else 0 for arrives in self.arrives]

    def _pass(self, entry: Entry) -> Iterator[Finding]:
        effect, roles = entry.effect, entry.roles
        for role in range(len(self.clocks)) if roles is None else roles:
            if effect.arrives is not None:
                self._arrive(effect.arrives, role)
        for role in range(len(self.clocks)) if roles is None else roles:
            if effect.awaits is not None:
                yield from self._wait(effect.awaits, role, entry)
        self.known = [min(each) for each in zip(*(self.knows[role] for role in self.sharing), strict=True)]

    def known_to(self, roles: Sequence[int]) -> Sequence[int]:
        """The clocks that all of these roles know of."""
        if self.alone:
            return self._all_arrived(min(self.passed[role] for role in roles))
        if len(roles) == 1:
            return self.knows[roles[0]]
        return [min(each) for each in zip(*(self.knows[role] for role in roles), strict=True)]

    def _arrive(self, name: str, role: int) -> None:
        self.clocks[role] += 1
        self.arrived[name][role] += 1
        if self.barriers[name].waiting:  # otherwise nobody ever asks
            self.logs[name, role, self.arrived[name][role]] = _Arrival(self.clocks[role], tuple(self.knows[role]))

    def _wait(self, name: str, role: int, entry: Entry) -> Iterator[Finding]:
        self.waited[name][role] += 1
        number, knows = self.waited[name][role], self.knows[role]
        for other in self.barriers[name].arriving:
            arrival = self.logs.get((name, other, number))
            if arrival is None:
                yield _too_early(self.program, entry, role, other)
                continue
            knows[other] = max(knows[other], arrival.clock)
            for third, clock in enumerate(arrival.knew):
                knows[third] = max(knows[third], clock)
        self._forget(name)

    def _forget(self, name: str) -> None:
        """Drop arrivals that every role has waited for."""
        barrier = self.barriers[name]
        passed = min((self.waited[name][role] for role in barrier.waiting), default=0)
        for role in barrier.arriving:
            self.logs.pop((name, role, passed), None)

    def fork(self) -> Meetings:
        other = copy(self)
        other.clocks = list(self.clocks)
        other.passed = list(self.passed)
        other.knows = [list(each) for each in self.knows]
        other.known = list(self.known)
        other.waited = {name: list(counts) for name, counts in self.waited.items()}
        other.arrived = {name: list(counts) for name, counts in self.arrived.items()}
        other.logs = dict(self.logs)
        return other

    def state(self) -> tuple[object, ...]:
        """A description that repeats at every trip of a loop whose roles keep step."""
        clocks = self.clocks
        if self.alone:
            last = max(clocks)
            arrived = (clock - last if arrives else 0 for clock, arrives in zip(clocks, self.arrives, strict=True))
            return tuple(_since(passed, last) for passed in self.passed), tuple(arrived)
        relative = tuple(tuple(map(_since, each, clocks)) for each in self.knows)
        first = {name: self.arrived[name][next(iter(each.arriving), 0)] for name, each in self.barriers.items()}
        counts = tuple(
            (
                name,
                tuple(self.arrived[name][role] - first[name] for role in each.arriving),
                tuple(self.waited[name][role] - first[name] for role in each.waiting),
            )
            for name, each in self.barriers.items()
        )
        logs = frozenset(
            ((name, role, number - first[name], arrival.clock - clocks[role]), tuple(map(_since, arrival.knew, clocks)))
            for (name, role, number), arrival in self.logs.items()
        )
        return relative, counts, logs


def _shares(entry: Entry, role: int) -> bool:
    """True if the role touches LDS in this entry."""
    effect = entry.effect
    return entry.executed_by(role) and any(place.space is Space.LDS for place in (*effect.reads, *effect.writes))


def _since(known: int, clock: int) -> int | None:
    """How long ago a known clock was.  A role that knows of none never knows less later, so None needs no age."""
    return known - clock if known else None


def _too_early(program: LoweredProgram, entry: Entry, role: int, other: int) -> Finding:
    names = [each.name for each in program.roles]
    return Finding(
        "B103",
        f"{entry.op} waits for {names[other]}, which arrives only later in the program's order",
        concerns=(entry.concern(f"{entry.phase.value.lower()}, executed by {names[role]}"),),
        evidence=(("waits", names[role]), ("arrives later", names[other])),
        fixes=("let the role arrive earlier, or the other wait later",),
    )


_NOT_EXECUTED = -1  # a clock before all others: what a role never does is over in it


class Access:
    """One dynamic execution of a memory op; `done[r]` is the clock at which role r's wait covered it.

    `place` is the entry's phase and its index there; `run` and `number` say when it issued.
    """

    __slots__ = ("done", "entry", "issued", "number", "place", "run")

    def __init__(
        self, entry: Entry, at: tuple[tuple[Phase, int], int, int], issued: tuple[int, ...], done: list[int | None]
    ) -> None:
        self.entry = entry
        self.place, self.run, self.number = at
        self.issued = issued
        self.done = done

    def over_for(self, known: Sequence[int]) -> bool:
        """True if the access completed in every role before the known clock of that role."""
        for done, clock in zip(self.done, known, strict=True):  # noqa: SIM110  # a generator costs more than the loop
            if done is None or done >= clock:
                return False
        return True

    @property
    def covered(self) -> bool:
        """True if a wait has covered it in every role."""
        return None not in self.done

    def in_flight_for(self, entry: Entry) -> bool:
        """True if it may be in flight in a role that executes the entry; waits of other roles prove nothing here."""
        if None not in self.done:
            return False
        return entry.roles is None or any(self.done[role] is None for role in entry.roles)


class LastWait(NamedTuple):
    entry: Entry
    number: int


class AbstractMachine:
    """Clocks, queues and contents between two entries.  Mutable: the proof forks it at the loop edge."""

    def __init__(self, program: LoweredProgram) -> None:
        self.program = program
        self.machine = program.machine
        self.everyone = tuple(range(len(program.roles)))
        self.names = tuple(counter.name for counter in self.machine.counters)
        self.no_wait = {counter.name: counter.holds.value for counter in self.machine.counters}
        self.meetings = Meetings(program)
        self.number = 0
        self.place = (Phase.PROLOGUE, 0)
        self.run = 0
        self.queues: dict[str, list[deque[Access]]] = {c: [deque() for _ in self.everyone] for c in self.names}
        self.pending: dict[str, list[int]] = {c: [0 for _ in self.everyone] for c in self.names}
        self.fullest: dict[str, tuple[int, Entry | None]] = dict.fromkeys(self.names, (0, None))
        self.last_wait: dict[tuple[str, int], LastWait] = {}
        self.writer: dict[Place, Access] = {}
        self.readers: dict[Place, list[Access]] = {}
        self.loading: dict[Place, Access] = {}
        self.holds: dict[Place, int] = {}
        self.blocks: dict[Place, tuple[str, int]] = {}
        self.versions: dict[Place, Version] = {}
        self.fetched: dict[Place, int] = {}
        self.taken: dict[tuple[Place, tuple[Place, ...]], Taken] = {}
        self.executed: dict[str, Taken] = {}

    @property
    def clocks(self) -> list[int]:
        return self.meetings.clocks

    def known_to(self, entry: Entry) -> Sequence[int]:
        """The clock that every role has certainly reached when the entry issues, whichever wave issues it."""
        return self.meetings.known if entry.roles is None else self.meetings.known_to(entry.roles)

    def wait(self, entry: Entry) -> None:
        """Complete the oldest ops until the wait's count of tokens is left.  A count of all ones waits for nothing."""
        counter, count = entry.effect.counter, entry.effect.wait_value
        if counter is None or count >= self.no_wait[counter]:
            return
        last, counts = LastWait(entry, self.number), not count or self.machine.counts_in_order(counter)
        queues = self.queues[counter]
        for role in self.everyone if entry.roles is None else entry.roles:
            self.last_wait[counter, role] = last
            if counts and queues[role]:  # else it is unknown which ops are left
                self._complete(counter, queues[role], role, count)

    def start(self, entry: Entry) -> None:
        """Put an op in flight, or complete it at once, in everything it reads and writes."""
        access = self._issue(entry)
        effect = entry.effect
        for place in effect.reads:
            if place.space is Space.LDS:
                self.readers.setdefault(place, []).append(access)
        for place in effect.writes:
            if place.space is Space.LDS:
                self.writer[place], self.readers[place] = access, []
            elif place.space is not Space.MEMORY:
                self.loading[place] = access

    def _issue(self, entry: Entry) -> Access:
        """Put a memory op in flight in every role that executes it; a compute completes at once."""
        effect, clocks = entry.effect, self.meetings.clocks
        counter = effect.counter
        done: list[int | None] = [*clocks] if effect.kind.computes else [None] * len(clocks)
        if entry.roles is not None:
            done = [each if role in entry.roles else _NOT_EXECUTED for role, each in enumerate(done)]
        access = Access(entry, (self.place, self.run, self.number), tuple(clocks), done)
        if counter is not None and not effect.kind.computes:
            queues, pending = self.queues[counter], self.pending[counter]
            for role in self.everyone if entry.roles is None else entry.roles:
                queues[role].append(access)
                pending[role] += effect.tokens
                if pending[role] > self.fullest[counter][0]:
                    self.fullest[counter] = (pending[role], entry)
        return access

    def cover(self, access: Access, entry: Entry) -> None:
        """Apply a compiler's own wait before `entry`: `access` and everything older on its counter complete.

        Only the roles of `entry` execute that wait.
        """
        counter = access.entry.effect.counter
        if counter is None:
            return
        for role in self.everyone if entry.roles is None else entry.roles:
            queue = self.queues[counter][role]
            while access.done[role] is None and queue:
                self._pop(counter, queue, role)

    def younger_tokens(self, access: Access, role: int) -> int:
        """How many tokens were issued after `access` and are still in a role's queue."""
        counter = access.entry.effect.counter
        if counter is None:
            return 0
        return sum(o.entry.effect.tokens for o in self.queues[counter][role] if o.number > access.number)

    def weakest_cover(self, access: Access, entry: Entry) -> int:
        """The largest count of a wait before `entry` that covers `access` in every role that executes both."""
        counter = access.entry.effect.counter
        if counter is None or not self.machine.counts_in_order(counter):
            return 0
        return min((self.younger_tokens(access, role) for role in self._uncovered(access, entry)), default=0)

    def can_count(self, access: Access, entry: Entry) -> bool:
        """True if a wait before `entry` can cover `access` and spare younger ops, or nothing younger is in flight."""
        counter = access.entry.effect.counter
        if counter is not None and self.machine.counts_in_order(counter):
            return True
        return not any(self.younger_tokens(access, role) for role in self._uncovered(access, entry))

    def _uncovered(self, access: Access, entry: Entry) -> Iterator[int]:
        roles = self.everyone if entry.roles is None else entry.roles
        return (role for role in roles if access.done[role] is None)

    def _complete(self, counter: str, queue: deque[Access], role: int, count: int) -> None:
        """An op is complete when the wait's count is at most the number of younger tokens."""
        pending = self.pending[counter]
        while queue and count <= pending[role] - queue[0].entry.effect.tokens:
            self._pop(counter, queue, role)

    def _pop(self, counter: str, queue: deque[Access], role: int) -> None:
        access = queue.popleft()
        access.done[role] = self.meetings.clocks[role]
        self.pending[counter][role] -= access.entry.effect.tokens

    def fork(self) -> AbstractMachine:
        """A copy that evolves on its own; tables that share an access share its copy."""
        copies: dict[int, Access] = {}

        def twin(access: Access) -> Access:
            made = copies.get(id(access))
            if made is None:
                made = Access(access.entry, (access.place, access.run, access.number), access.issued, list(access.done))
                copies[id(access)] = made
            return made

        other = AbstractMachine(self.program)
        other.meetings = self.meetings.fork()
        other.number = self.number
        other.place = self.place
        other.run = self.run
        other.queues = {c: [deque(map(twin, queue)) for queue in queues] for c, queues in self.queues.items()}
        other.pending = {counter: list(tokens) for counter, tokens in self.pending.items()}
        other.fullest = dict(self.fullest)
        other.last_wait = dict(self.last_wait)
        other.writer = {place: twin(access) for place, access in self.writer.items()}
        other.readers = {place: list(map(twin, accesses)) for place, accesses in self.readers.items()}
        other.loading = {place: twin(access) for place, access in self.loading.items()}
        other.holds = dict(self.holds)
        other.blocks = dict(self.blocks)
        other.versions = dict(self.versions)
        other.fetched = dict(self.fetched)
        other.taken = {key: taken.fork() for key, taken in self.taken.items()}
        other.executed = {name: taken.fork() for name, taken in self.executed.items()}
        return other

    def enter_again(self) -> None:
        """Run the loop once more: ops in flight stay in flight, but every place needs a new value."""
        self.run += 1
        self.forget_past()
        for contents in (self.holds, self.blocks, self.versions, self.fetched, self.taken, self.executed):
            contents.clear()

    def forget_past(self) -> None:
        """Drop what no later entry can collide with, so that the loop edge has finitely many states.

        Completed accesses precede everything that is still to issue. Reads complete in order, so the newest of several
        reads by one entry represents them all.
        """
        known = self.meetings.known
        self.writer = {place: access for place, access in self.writer.items() if not access.over_for(known)}
        kept = {place: {a.place: a for a in reads if not a.over_for(known)} for place, reads in self.readers.items()}
        self.readers = {place: list(reads.values()) for place, reads in kept.items() if reads}
        self.loading = {place: access for place, access in self.loading.items() if not access.covered}

    def state(self, base: int) -> tuple[object, ...]:
        """Everything the future depends on, relative to the current clocks and K-tile.

        Three cut-offs keep the number of states finite. Clocks before the ones that every role knows of are alike,
        since no later access can issue in them. So are K-tiles too old for any compute to want, and tiles further ahead
        than any trip count has. A queue is described by the ops that may still matter, each with the tokens issued
        after it, up to the largest count that a wait can have.
        """
        known = self.meetings.known
        stale = -4 * max(self.program.tiles_per_trip, 1)
        ahead = self.program.tiles_outside - stale

        def seen(access: Access) -> tuple[object, ...]:
            done = tuple(
                None if clock is None else max(clock - low, -1) for clock, low in zip(access.done, known, strict=True)
            )
            return (access.place, done)

        wanted = {id(access) for access in (*self.writer.values(), *self.loading.values())}
        wanted.update(id(access) for reads in self.readers.values() for access in reads)

        def pending(counter: str, queue: deque[Access]) -> Iterator[tuple[object, ...]]:
            younger, most = 0, self.machine.largest_wait(counter)
            for access in reversed(queue):
                if id(access) in wanted:
                    yield (*seen(access), min(younger, most))
                younger += access.entry.effect.tokens

        return (
            self.meetings.state(),
            tuple(tuple(pending(counter, queue)) for counter, queues in self.queues.items() for queue in queues),
            frozenset((place, seen(access)) for place, access in self.writer.items()),
            frozenset((place, tuple(map(seen, accesses))) for place, accesses in self.readers.items()),
            frozenset((place, seen(access)) for place, access in self.loading.items()),
            frozenset((place, min(max(tile - base, stale), ahead)) for place, tile in self.holds.items()),
            frozenset(self.blocks.items()),
            frozenset((place, v.name, max(v.iteration - base, stale)) for place, v in self.versions.items()),
            frozenset((name, taken.relative(base, stale)) for name, taken in self.executed.items()),
            frozenset((place, min(max(tile - base, stale), ahead)) for place, tile in self.fetched.items()),
            frozenset((key, taken.relative(base, stale)) for key, taken in self.taken.items()),
        )
