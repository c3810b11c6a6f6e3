"""Repairs by trying everything: takes a small program, gives the cost of the cheapest insertions at any gap.

Cost is (barriers added, waits added or strengthened, how many of these stand in the loop, strength lost), compared in
that order, as `rota.sync.repair` does.  Whether a program is safe is decided here, by running it for the trip counts 0
to 4 as docs/machine_model.md describes; nothing is shared with `rota.sync` or `rota.verify`.

The search leans on one fact: with every chosen wait a full drain and the barriers fixed, a race is mended by one wait
or not at all, so that the waits needed are those that hit, for every race, one of the waits that mend it alone.
"""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rota.program.entry import Entry, Place, Space
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import Lowerable, LoweredProgram

Cost = tuple[int, int, int, int]
_TRIPS = range(5)


class Gap(NamedTuple):
    """In front of a phase's entry, or at its end."""

    phase: Phase
    slot: int


class Site(NamedTuple):
    """A place for a wait: a gap, or the wait that stands after it."""

    gap: Gap
    counter: str
    stands: bool


class Race(NamedTuple):
    """Two accesses, by their numbers in the run with so many trips."""

    trips: int
    earlier: int
    later: int


@dataclass(slots=True)
class _Access:
    number: int
    counter: str
    tokens: int
    ordered: bool
    done: list[int | None]

    def over_before(self, epoch: int) -> bool:
        return all(done is not None and done < epoch for done in self.done)

    @property
    def covered(self) -> bool:
        return None not in self.done


@dataclass(slots=True)
class Program:
    """A program; `gaps` are all places for something new, `sites` all places for a stronger or new wait."""

    loop: Lowerable
    lowered: LoweredProgram = field(init=False)
    phases: dict[Phase, tuple[Entry, ...]] = field(init=False)
    no_wait: dict[str, int] = field(init=False)
    unordered: frozenset[str] = field(init=False)
    gaps: tuple[Gap, ...] = field(init=False)
    sites: tuple[Site, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.lowered = self.loop.lowered
        counters = self.lowered.machine.counters
        self.phases = {phase: self.lowered.phase(phase) for phase in Phase}
        self.no_wait = {counter.name: counter.holds.value for counter in counters}
        self.unordered = frozenset(counter.name for counter in counters if not counter.in_order)
        self.gaps = tuple(Gap(phase, slot) for phase in Phase for slot in range(len(self.phases[phase]) + 1))
        new = [Site(gap, counter, stands=False) for gap in self.gaps for counter in self.no_wait]
        standing = [
            Site(Gap(phase, slot), entry.effect.counter, stands=True)
            for phase in Phase
            for slot, entry in enumerate(self.phases[phase])
            if entry.effect.kind is OpKind.WAIT and entry.effect.counter is not None
        ]
        self.sites = (*new, *standing)

    def most(self, site: Site) -> int:
        """The count that a site has, or as good as has, before it is changed."""
        largest = self.no_wait[site.counter] - 1
        stands = self.phases[site.gap.phase][site.gap.slot].effect.wait_value if site.stands else largest
        return min(stands, largest)

    def run(self, trips: int) -> Iterator[tuple[Gap, Entry | None]]:
        """Prologue, kernel as often as asked for, epilogue: each gap with the entry after it."""
        for phase, times in ((Phase.PROLOGUE, 1), (Phase.KERNEL, trips), (Phase.EPILOGUE, 1)):
            for _ in range(times):
                for slot, entry in enumerate(self.phases[phase]):
                    yield Gap(phase, slot), entry
                yield Gap(phase, len(self.phases[phase])), None


class _Run:
    """One run: every role entry by entry, with all that is in flight.

    All roles meet at one barrier; a split barrier's arrival and wait stand side by side, as one.
    """

    def __init__(self, program: Program, trips: int) -> None:
        self.program, self.trips = program, trips
        self.epochs = [0] * len(program.lowered.roles)
        self.pending: dict[str, list[list[_Access]]] = {c: [[] for _ in self.epochs] for c in program.no_wait}
        self.writer: dict[Place, _Access] = {}
        self.readers: dict[Place, list[_Access]] = {}
        self.loading: dict[Place, _Access] = {}
        self.younger: dict[Site, set[int]] = {}

    def races(self, barriers: Mapping[Gap, int], waits: Mapping[Site, int]) -> Iterator[Race]:
        for number, (gap, entry) in enumerate(self.program.run(self.trips)):
            for counter in self.program.no_wait:
                site = Site(gap, counter, stands=False)
                if site in waits:
                    self._wait(site, waits[site], None)
            self._pass(barriers.get(gap, 0), None)
            if entry is None:
                continue
            effect = entry.effect
            if effect.kind is OpKind.WAIT:
                site = Site(gap, effect.counter or "", stands=True)
                self._wait(site, waits.get(site, effect.wait_value), entry.roles)
            elif effect.kind is OpKind.BARRIER:
                self._pass(int(effect.awaits is not None), entry.roles)
            else:
                yield from (Race(self.trips, earlier, number) for earlier in self._access(entry, number))

    def _pass(self, barriers: int, roles: tuple[int, ...] | None) -> None:
        self.epochs = [epoch + barriers * (roles is None or r in roles) for r, epoch in enumerate(self.epochs)]

    def _wait(self, site: Site, count: int, roles: tuple[int, ...] | None) -> None:
        if count >= self.program.no_wait[site.counter]:
            return
        for role, queue in enumerate(self.pending[site.counter]):
            tokens = [access.tokens for access in queue]
            self.younger.setdefault(site, set()).update(sum(tokens[n + 1 :]) for n in range(len(tokens)))
            if (roles is None or role in roles) and not (count and site.counter in self.program.unordered):
                while queue and sum(access.tokens for access in queue[1:]) >= count:
                    queue.pop(0).done[role] = self.epochs[role]

    def _access(self, entry: Entry, number: int) -> Iterator[int]:
        effect, now = entry.effect, min(self.epochs)
        for place in (*effect.reads, *effect.writes):
            loader = self.loading.get(place)
            # What is only written may land after an older load on the same counter.
            used = (
                place in effect.reads
                or loader is None
                or effect.counter != loader.counter
                or effect.counter in self.program.unordered
            )
            if place.space is Space.REGISTER and loader is not None and not loader.covered and used:
                if self._compiler_waits_for(loader):
                    self._finish(loader)
                else:
                    yield loader.number
        access = None
        if effect.counter is not None:
            ordered = effect.kind is OpKind.LDS_WRITE
            access = _Access(number, effect.counter, effect.tokens, ordered, [None] * len(self.epochs))
        for place in (place for place in effect.reads if place.space is Space.LDS):
            writer = self.writer.get(place)
            if writer is not None and not writer.over_before(now):
                yield writer.number
            if access is not None:
                self.readers.setdefault(place, []).append(access)
        for place in effect.writes:
            if place.space is Space.LDS and access is not None:
                yield from (each.number for each in self.readers.get(place, ()) if not each.over_before(now))
                writer = self.writer.get(place)
                if writer is not None and not writer.covered and not (writer.ordered and access.ordered):
                    yield writer.number
                self.writer[place], self.readers[place] = access, []
            elif access is not None:
                self.loading[place] = access
            else:
                self.loading.pop(place, None)
        if access is not None:
            for queue in self.pending[access.counter]:
                queue.append(access)

    def _compiler_waits_for(self, loader: _Access) -> bool:
        """A compiler that tracks registers counts on the order of the counter, too."""
        queues = zip(loader.done, self.pending[loader.counter], strict=True)
        youngest = all(queue[-1] is loader for done, queue in queues if done is None)
        tracks = self.program.lowered.compiler_tracks_registers
        return tracks and (youngest or loader.counter not in self.program.unordered)

    def _finish(self, access: _Access) -> None:
        for role, queue in enumerate(self.pending[access.counter]):
            while access.done[role] is None:
                queue.pop(0).done[role] = self.epochs[role]


def races(
    program: Program, barriers: Mapping[Gap, int] | None = None, waits: Mapping[Site, int] | None = None
) -> set[Race]:
    """Every race of the program with these changes, at any of the trip counts."""
    return {race for trips in _TRIPS for race in _Run(program, trips).races(barriers or {}, waits or {})}


def cheapest(loop: Lowerable, most_barriers: int = 3) -> Cost | None:
    """The least cost, or None if it takes more barriers than the limit."""
    program = Program(loop)
    for number in range(most_barriers + 1):
        placements = _placements(program, number)
        if placements:
            return number, *_cheapest_waits(program, placements)
    return None


def _placements(program: Program, number: int) -> list[Mapping[Gap, int]]:
    """All choices of so many barriers that are enough where everything is drained everywhere.

    A race that is left then needs a barrier somewhere between its ends.
    """
    drains = dict.fromkeys(program.sites, 0)
    order = {trips: [gap for gap, _ in program.run(trips)] for trips in _TRIPS}
    found: list[Mapping[Gap, int]] = []
    tried: set[tuple[Gap, ...]] = set()

    def choose(chosen: tuple[Gap, ...]) -> None:
        if chosen in tried:
            return
        tried.add(chosen)
        wrong = races(program, Multiset(chosen), drains)
        between = [frozenset(order[race.trips][race.earlier + 1 : race.later + 1]) for race in wrong]
        if not wrong:
            found.append(Multiset(chosen))
        elif len(chosen) + _apart(between) <= number:
            fewest = min(between, key=len)
            for gap in sorted(fewest, key=str):
                choose(tuple(sorted((*chosen, gap), key=str)))

    choose(())
    return found


def _cheapest_waits(program: Program, placements: Sequence[Mapping[Gap, int]]) -> tuple[int, int, int]:
    menders = [_menders(program, placed) for placed in placements]
    for number in range(len(program.sites) + 1):
        found = [
            (placed, chosen)
            for placed, each in zip(placements, menders, strict=True)
            for chosen in _hitting(each, number)
        ]
        if found:
            least = min(_in_loop(*pair) for pair in found)
            best = [pair for pair in found if _in_loop(*pair) == least]
            return number, least, min(_least_loss(program, placed, chosen) for placed, chosen in best)
    raise AssertionError("every wait a drain was enough before")


def _menders(program: Program, placed: Mapping[Gap, int]) -> list[frozenset[Site]]:
    """For each race with these barriers, the waits of which each mends it."""
    wrong = races(program, placed)
    left = {site: races(program, placed, {site: 0}) for site in program.sites} if wrong else {}
    every = {frozenset(site for site, still in left.items() if race not in still) for race in wrong}
    return [each for each in every if not any(other < each for other in every)]


def _hitting(sets: Sequence[frozenset[Site]], number: int) -> set[frozenset[Site]]:
    """All choices of at most so many sites of which every set has one."""
    found: set[frozenset[Site]] = set()
    tried: set[frozenset[Site]] = set()

    def choose(chosen: frozenset[Site]) -> None:
        if chosen in tried:
            return
        tried.add(chosen)
        missed = [each for each in sets if not each & chosen]
        if not missed:
            found.add(chosen)
        elif len(chosen) + _apart(missed) <= number:
            for site in min(missed, key=len):
                choose(chosen | {site})

    choose(frozenset())
    return found


def _apart(sets: Iterable[frozenset[Hashable]]) -> int:
    """At least so many choices are needed, as so many sets have none in common."""
    taken: set[Hashable] = set()
    count = 0
    for each in sorted(sets, key=len):
        if taken.isdisjoint(each):
            taken |= each
            count += 1
    return count


def _in_loop(placed: Mapping[Gap, int], chosen: Iterable[Site]) -> int:
    barriers = sum(count for gap, count in placed.items() if gap.phase is Phase.KERNEL)
    return barriers + sum(site.gap.phase is Phase.KERNEL for site in chosen)


def _least_loss(program: Program, placed: Mapping[Gap, int], chosen: Iterable[Site]) -> int:
    """Every combination of counts that tell two queues apart, each site's as weak as the others' drains allow."""
    sites = tuple(chosen)
    waits = dict.fromkeys(sites, 0)
    assert not races(program, placed, waits)
    runs = [_Run(program, trips) for trips in _TRIPS]
    for run in runs:
        for _ in run.races(placed, {site: program.no_wait[site.counter] - 1 for site in program.sites}):
            pass
    counts = {
        site: sorted({min(n, program.most(site)) for run in runs for n in run.younger.get(site, {0})}, reverse=True)
        for site in sites
    }
    best = sum(program.most(site) for site in sites)

    def weaken(rest: tuple[Site, ...], lost: int) -> None:
        nonlocal best
        if lost >= best:
            return
        if not rest:
            best = lost
            return
        site, *others = rest
        for count in counts[site]:
            waits[site] = count
            if not races(program, placed, waits):
                weaken(tuple(others), lost + program.most(site) - count)
        waits[site] = 0

    weaken(sites, 0)
    return best
