"""One run of a workgroup, barrier by barrier: takes each group's steps, raises if any interleaving goes wrong.

Waves meet only at barriers and never wait for each other's memory ops.  So, by induction over barriers, the states that
two waves can be in together are all pairs of the states that each can be in between the same two barriers.  It is
enough to walk one wave of each group once, every op as late as its waits allow, and to list for each segment between
two barriers what can be under way in it; two waves of one group have equal lists.  What no two of these can fight over
has one outcome, which the same walk computes.  `tests/oracle/plain.py` explores the interleavings themselves.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from itertools import product

from tests.oracle.step import LDS, LGKM, VM, Content, Counters, Kind, Source, Spot, Step, Unset, WrongError


class Flight:
    """A memory op under way: LDS spots it reads and writes, and what will land in which registers."""

    __slots__ = ("counter", "lands", "name", "over", "reads", "tokens", "writes")

    def __init__(self, step: Step) -> None:
        self.name = step.name
        self.counter = step.counter
        self.tokens = step.tokens
        self.reads = frozenset(source.spot for source in step.sources if source.spot[0] == LDS)
        self.writes = frozenset(spot for spot in step.targets if spot[0] == LDS)
        self.lands: dict[Spot, Content] = {}
        self.over = False


class Memory:
    """LDS: what each group's slice of a spot holds, and since which run of the loop."""

    def __init__(self, groups: int) -> None:
        self.groups = groups
        self.slices: dict[Spot, list[tuple[int, Content]]] = {}

    def write(self, spot: Spot, group: int, run: int, content: Content) -> None:
        """One group's waves fill their slices."""
        self._slices(spot)[group] = (run, content)

    def read(self, source: Source, run: int) -> Content:
        """All slices, which have to be of one version; what was there before is what the first reader wants."""
        slices = self._slices(source.spot)
        held = [content if since == run else Unset.UNTOUCHED for since, content in slices]
        if source.wanted is not None and source.wanted.iteration < 0 and set(held) == {Unset.UNTOUCHED}:
            slices[:] = [(run, source.wanted)] * self.groups
            return source.wanted
        return held[0] if all(each == held[0] for each in held) else Unset.GARBAGE

    def _slices(self, spot: Spot) -> list[tuple[int, Content]]:
        return self.slices.setdefault(spot, [(0, Unset.UNTOUCHED)] * self.groups)


class Wave:
    """A wave that stands for its whole group."""

    def __init__(self, group: int, steps: Sequence[Step], memory: Memory, *, tracked: bool, counters: Counters) -> None:
        self.group = group
        self.steps = iter(steps)
        self.memory = memory
        self.tracked = tracked
        self.counters = counters
        self.queues: dict[str, deque[Flight]] = {VM: deque(), LGKM: deque()}
        self.tokens = {VM: 0, LGKM: 0}
        self.registers: dict[Spot, Content] = {}
        self.loading: dict[Spot, list[Flight]] = {}
        self.reading: set[Spot] = set()  # in this segment
        self.writing: set[Spot] = set()
        self.finished = False
        self.runs = 0  # of the loop, before this one
        # What the meanings keep count of.
        self.done: Counter[tuple[object, int]] = Counter()
        self.fetched: Counter[int] = Counter()

    def run(self) -> list[WrongError]:
        """Up to the next barrier, or to the end, or to what goes wrong."""
        try:
            self._run()
        except WrongError as wrong:
            return [wrong]
        return []

    def _run(self) -> None:
        self.reading = {spot for queue in self.queues.values() for flight in queue for spot in flight.reads}
        self.writing = {spot for queue in self.queues.values() for flight in queue for spot in flight.writes}
        for step in self.steps:
            if step.kind is Kind.BARRIER:
                return
            if step.kind is Kind.WORK:
                self._work(step)
            elif step.kind is Kind.WAIT:
                self._wait(step)
            elif step.kind is Kind.END:
                self._end(step)
        self.finished = True

    def _end(self, step: Step) -> None:
        """All is computed; what the next run begins with is put in place, and what is under way is still under way."""
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
        oldest.over = True
        for spot, content in oldest.lands.items():
            self.loading[spot].remove(oldest)
            self.registers[spot] = content

    def _settle(self, spot: Spot, flights: Sequence[Flight]) -> None:
        """Where the compiler tracks registers, it waits for what is under way to a spot, and counts on the order."""
        for flight in flights:
            youngest = flight.over or flight is self.queues[flight.counter][-1]
            if not youngest and not self.counters.in_order(flight.counter):
                raise WrongError("register", f"{spot} is used while {flight.name} fills it, for all its compiler knows")
            while not flight.over:
                self._land(self.queues[flight.counter][0])

    def _work(self, step: Step) -> None:
        self._keeps_order(step)
        found = [self._look(step, source) for source in step.sources]
        results = step.does(self, found) if step.does else ()
        flight = Flight(step) if step.counter else None
        for spot, content in zip(step.targets, results, strict=True):
            if spot[0] == LDS:
                self.memory.write(spot, self.group, self.runs, content)
            elif flight is None:
                self._set(spot, content)
            else:
                self._load(spot, content, flight)
        if flight is not None:
            self.queues[flight.counter].append(flight)
            self.tokens[flight.counter] += flight.tokens
            self.reading |= flight.reads
            self.writing |= flight.writes

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
        """A result is there at once; what is still under way to its registers could land on top of it."""
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
                if LGKM == step.counter == other.counter:
                    continue
                if not other.writes.isdisjoint(read) or not other.reads.isdisjoint(written):
                    raise WrongError("own order", f"{step.name} issues while {other.name} of its own wave is under way")
                if not other.writes.isdisjoint(written):
                    raise WrongError("own writes", f"{step.name} may land before {other.name} of its own wave")


def run(programs: Sequence[Sequence[Step]], *, tracked: bool, counters: Counters) -> list[Wave]:
    """All groups to their end, segment by segment; raises `WrongError`."""
    memory = Memory(len(programs))
    waves = [Wave(group, steps, memory, tracked=tracked, counters=counters) for group, steps in enumerate(programs)]
    while not all(wave.finished for wave in waves):
        if any(wave.finished for wave in waves):
            raise WrongError("barriers", "one group waits at a barrier that the other never reaches")
        found = [wrong for wave in waves for wrong in wave.run()]
        for reader, writer in product(waves, waves):
            for spot in reader.reading & writer.writing:
                raise WrongError("race", f"a wave can read {spot} while another one writes its slice of it")
        for wrong in found:  # after the races, which may have caused it
            raise wrong
    return waves
