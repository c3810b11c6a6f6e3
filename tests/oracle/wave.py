"""One run of a workgroup: takes each role's steps, raises if any interleaving goes wrong.

Waves meet only at barriers and never wait for each other's memory ops.  So it is enough to walk one wave of each role
once, every op as late as its waits allow, and to note at each step how far the waves of every role must have come by
then: as far as the arrivals that were waited for.  Two accesses of two waves can meet unless one of the waves knows the
other's to be over.  What no two of these can fight over has one outcome, which the same walk computes.
`tests/oracle/plain.py` explores the interleavings themselves.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

from tests.oracle.step import LDS, Content, Counters, Kind, Source, Spot, Step, Unset, WrongError


class Place(NamedTuple):
    """A barrier: the roles that arrive."""

    arriving: tuple[int, ...]


class Touch:
    """An access to a spot of LDS: issued at a step, over at another, if at any, by what its wave knew then of all."""

    __slots__ = ("flight", "knew", "role", "step", "writes")

    def __init__(self, flight: Flight, role: int, step: int, knew: Sequence[int], *, writes: bool) -> None:
        self.flight, self.role, self.step, self.knew, self.writes = flight, role, step, tuple(knew), writes

    def before(self, other: Touch) -> bool:
        """Whoever makes the other access knows that this one is over in every wave of its role."""
        return self.flight.over_at is not None and self.flight.over_at < other.knew[self.role]


class Flight:
    """A memory op in flight: LDS spots it reads and writes, and what will land in which registers."""

    __slots__ = ("by", "counter", "in_lds_order", "lands", "name", "over_at", "reads", "tokens", "writes")

    def __init__(self, step: Step) -> None:
        self.name = step.name
        self.counter = step.counter
        self.tokens = step.tokens
        self.reads = frozenset(source.spot for source in step.sources if source.spot[0] == LDS)
        self.writes = frozenset(spot for spot in step.targets if spot[0] == LDS)
        self.lands: dict[Spot, Content] = {}
        self.in_lds_order = step.in_lds_order
        self.by = step.by
        self.over_at: int | None = None  # the step by which it is


class Memory:
    """LDS: what each role's slice of a spot holds, and since which run of the loop; only the roles that fill it count.

    `filling` says for a spot which roles these are.
    """

    def __init__(self, filling: Mapping[Spot, Sequence[int]]) -> None:
        self.filling = filling
        self.slices: dict[Spot, dict[int, tuple[int, Content]]] = {}

    def write(self, spot: Spot, role: int, run: int, content: Content) -> None:
        """One role's waves fill their slices."""
        self._slices(spot)[role] = (run, content)

    def read(self, source: Source, run: int) -> Content:
        """All slices, which have to be of one version; what was there before is what the first reader wants."""
        slices = self._slices(source.spot)
        held = [content if since == run else Unset.UNTOUCHED for since, content in slices.values()]
        if source.wanted is not None and source.wanted.iteration < 0 and set(held) <= {Unset.UNTOUCHED}:
            slices.update(dict.fromkeys(slices, (run, source.wanted)))
            return source.wanted
        if not held:
            return Unset.UNTOUCHED
        return held[0] if all(each == held[0] for each in held) else Unset.GARBAGE

    def _slices(self, spot: Spot) -> dict[int, tuple[int, Content]]:
        roles = self.filling.get(spot, (0,))
        return self.slices.setdefault(spot, dict.fromkeys(roles, (0, Unset.UNTOUCHED)))


class Wave:
    """A wave that stands for all waves of its role."""

    def __init__(self, role: int, steps: Sequence[Step], memory: Memory, *, tracked: bool, counters: Counters) -> None:
        self.role = role
        self.steps = list(steps)
        self.memory = memory
        self.tracked = tracked
        self.counters = counters
        self.queues: dict[str, deque[Flight]] = {name: deque() for name in counters.no_wait}
        self.tokens = dict.fromkeys(counters.no_wait, 0)
        self.registers: dict[Spot, Content] = {}
        self.loading: dict[Spot, list[Flight]] = {}
        self.at = 0
        self.knows: list[int] = []  # of each role, how many steps all of its other waves have certainly made
        self.arrivals: dict[tuple[str, int], tuple[int, ...]] = {}
        self.arrived: Counter[str] = Counter()
        self.arrived_at = -1  # the step with which it arrived last
        self.waited: Counter[str] = Counter()
        self.touches: dict[Spot, list[Touch]] = {}
        self.wrong: WrongError | None = None
        self.runs = 0  # of the loop, before this one
        # What the meanings keep count of.
        self.done: Counter[tuple[object, int]] = Counter()
        self.fetched: Counter[object] = Counter()

    @property
    def finished(self) -> bool:
        """At its end."""
        return self.at == len(self.steps)

    def run(self, others: Sequence[Wave], barriers: Mapping[str, Place]) -> bool:
        """Up to a barrier that not all have arrived at, or to the end, or to what goes wrong; did it get anywhere?"""
        start = self.at
        try:
            while not self.finished and self.wrong is None and self._step(self.steps[self.at], others, barriers):
                self.at += 1
        except WrongError as wrong:
            self.wrong = wrong
        return self.at > start

    def _step(self, step: Step, others: Sequence[Wave], barriers: Mapping[str, Place]) -> bool:
        if step.kind is Kind.BARRIER:
            return self._meet(step, others, barriers)
        if step.kind is Kind.WORK:
            self._work(step)
        elif step.kind is Kind.WAIT:
            self._wait(step)
        elif step.kind is Kind.END:
            self._end(step)
        return True

    def _meet(self, step: Step, others: Sequence[Wave], barriers: Mapping[str, Place]) -> bool:
        """Arrive, once; go on when all have, who then have done all that they had done when they arrived."""
        number = self.waited[step.awaits] + 1
        if step.arrives and self.arrived_at != self.at:
            self.arrived_at = self.at
            self.arrived[step.arrives] += 1
            reached = [*self.knows]
            reached[self.role] = self.at  # of its other waves it knows less, but this one arrives in any case
            self.arrivals[step.arrives, self.arrived[step.arrives]] = tuple(reached)
        if not step.awaits:
            return True
        waves = [others[role] for role in barriers[step.awaits].arriving]
        if any(wave.arrived[step.awaits] < number for wave in waves):
            return False
        self.waited[step.awaits] += 1
        for wave in waves:
            theirs = wave.arrivals[step.awaits, number]
            self.knows = [max(pair) for pair in zip(self.knows, theirs, strict=True)]
        return True

    def _end(self, step: Step) -> None:
        """All is computed; what the next run begins with is put in place, and what is in flight is still in flight."""
        if step.does:
            step.does(self, ())
        self.runs += 1
        self.done.clear()
        self.fetched.clear()
        self.registers.clear()
        for spot, flights in self.loading.items():
            for flight in flights:
                flight.lands[spot] = Unset.GARBAGE

    def at_the_end(self, spot: Spot) -> Content:
        """What registers hold once everything has landed."""
        under_way = self.loading.get(spot)
        return under_way[-1].lands[spot] if under_way else self.registers.get(spot, Unset.UNTOUCHED)

    def _wait(self, step: Step) -> None:
        if step.left >= self.counters.no_wait[step.counter]:
            raise WrongError("encoding", f"{step.name} has no encoding")
        if step.left and not self.counters.in_order(step.counter):
            return  # something is over, nobody knows what
        while self.queues[step.counter]:
            oldest = self.queues[step.counter][0]
            if self.tokens[step.counter] - oldest.tokens < step.left:
                return
            self._land(oldest)

    def _land(self, oldest: Flight) -> None:
        """The oldest op of its counter is over, and what it brings is in its registers."""
        self.queues[oldest.counter].popleft()
        self.tokens[oldest.counter] -= oldest.tokens
        oldest.over_at = self.at
        for spot, content in oldest.lands.items():
            self.loading[spot].remove(oldest)
            self.registers[spot] = content

    def _settle(self, spot: Spot, flights: Sequence[Flight]) -> None:
        """Where the compiler tracks registers, it waits for what is in flight to a spot, and counts on the order."""
        for flight in flights:
            youngest = flight.over_at is not None or flight is self.queues[flight.counter][-1]
            if not youngest and not self.counters.in_order(flight.counter):
                raise WrongError("register", f"{spot} is used while {flight.name} fills it, for all its compiler knows")
            while flight.over_at is None:
                self._land(self.queues[flight.counter][0])

    def _work(self, step: Step) -> None:
        self._keeps_order(step)
        found = [self._look(step, source) for source in step.sources]
        results = step.does(self, found) if step.does else ()
        flight = Flight(step) if step.counter else None
        for spot, content in zip(step.targets, results, strict=True):
            if spot[0] == LDS:
                self.memory.write(spot, self.role, self.runs, content)
            elif flight is None:
                self._set(spot, content)
            else:
                self._load(spot, content, flight)
        if flight is not None:
            self.queues[flight.counter].append(flight)
            self.tokens[flight.counter] += flight.tokens
            for spot in flight.reads | flight.writes:
                writes = spot in flight.writes
                self.touches.setdefault(spot, []).append(Touch(flight, self.role, self.at, self.knows, writes=writes))

    def _look(self, step: Step, source: Source) -> Content:
        held = self.memory.read(source, self.runs) if source.spot[0] == LDS else self._register(step, source)
        if source.wanted is not None and held != source.wanted:
            raise WrongError("value", f"{step.name} wants {source.wanted} in {source.spot}, which holds {held}")
        return held

    def _register(self, step: Step, source: Source) -> Content:
        under_way = self.loading.get(source.spot)
        if under_way:
            if not self.tracked:
                raise WrongError("register", f"{step.name} uses {source.spot} while {under_way[-1].name} fills it")
            self._settle(source.spot, list(under_way))
        wanted = source.wanted
        if wanted is not None and wanted.iteration < 0:
            self.registers.setdefault(source.spot, wanted)
        return self.registers.get(source.spot, Unset.UNTOUCHED)

    def _set(self, spot: Spot, content: Content) -> None:
        """A result is there at once; what is still in flight to its registers could land on top of it."""
        self._overtake(spot, self.loading.get(spot, ()))
        self.registers[spot] = content

    def _load(self, spot: Spot, content: Content, flight: Flight) -> None:
        """Ops of one counter land in its order; those of two counters in any."""
        in_order = self.counters.in_order(flight.counter)
        under_way = self.loading.get(spot, ())
        self._overtake(spot, [each for each in under_way if each.counter != flight.counter or not in_order])
        flight.lands[spot] = content
        self.loading.setdefault(spot, []).append(flight)

    def _overtake(self, spot: Spot, under_way: Sequence[Flight]) -> None:
        """Whoever writes registers that an op fills waits for it, or its compiler does, read or not."""
        if under_way and not self.tracked:
            raise WrongError("landing", f"{under_way[-1].name} may land on what is written to {spot}")
        self._settle(spot, list(under_way))

    def _keeps_order(self, step: Step) -> None:
        """A DMA keeps no order with its own wave's other accesses; LDS reads and writes keep theirs."""
        written = {spot for spot in step.targets if spot[0] == LDS}
        read = {source.spot for source in step.sources if source.spot[0] == LDS}
        if not written and not read:
            return
        for queue in self.queues.values():
            for other in queue:
                if step.in_lds_order and other.in_lds_order:
                    continue
                if not other.writes.isdisjoint(read) or not other.reads.isdisjoint(written):
                    raise WrongError("own order", f"{step.name} issues while {other.name} of its own wave is in flight")
                if not other.writes.isdisjoint(written):
                    raise WrongError("own writes", f"{step.name} may land before {other.name} of its own wave")


def run(
    programs: Sequence[Sequence[Step]], barriers: Mapping[str, Place], *, tracked: bool, counters: Counters
) -> list[Wave]:
    """All roles to their end; raises `WrongError`."""
    memory = Memory(_filling(programs))
    waves = [Wave(role, steps, memory, tracked=tracked, counters=counters) for role, steps in enumerate(programs)]
    for wave in waves:
        wave.knows = [0] * len(waves)
    while sum(wave.run(waves, barriers) for wave in waves):
        pass
    for spot in _fought_over(waves):
        raise WrongError("race", f"a wave can read {spot} while another one writes its slice of it")
    for wrong in (wave.wrong for wave in waves if wave.wrong is not None):  # after the races, which may have caused it
        raise wrong
    if not all(wave.finished for wave in waves):
        raise WrongError("barriers", "one role waits at a barrier that another never reaches")
    return waves


def _filling(programs: Sequence[Sequence[Step]]) -> dict[Spot, tuple[int, ...]]:
    filling: dict[Spot, set[int]] = {}
    for step in (step for steps in programs for step in steps):
        for spot in step.targets:
            filling.setdefault(spot, set()).update(step.by)
    return {spot: tuple(sorted(roles)) for spot, roles in filling.items()}


def _fought_over(waves: Sequence[Wave]) -> Iterator[Spot]:
    """Spots that one wave can read while another one writes; or that waves of different roles can write at once."""
    for one, other in combinations_with_replacement(waves, 2):
        for spot, touches in one.touches.items():
            for first in touches:
                for second in other.touches.get(spot, ()):
                    both_write = first.writes and second.writes and first.flight.by == second.flight.by
                    harmless = both_write or not (first.writes or second.writes)
                    if not harmless and not first.before(second) and not second.before(first):
                        yield spot
