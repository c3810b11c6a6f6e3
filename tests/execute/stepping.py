"""The machine model once more, naively: takes a program, gives a machine that is stepped op by op and keeps K-tiles.

It knows no times and no arrays, and reads the entries themselves, not a trace; the executor is checked against it.
"""

from __future__ import annotations

import random
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass, field

from rota.program.entry import Entry, Place
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import Lowerable, TileSum

POISON = None
Tile = int | None
Content = tuple[Tile, ...]  # per slice

_IDLE = (OpKind.NOTHING, OpKind.PRIORITY, OpKind.FENCE, OpKind.HINT)
_DS = (OpKind.LDS_READ, OpKind.LDS_WRITE)


@dataclass(eq=False)
class Flight:
    """A memory op that was issued."""

    wave: int
    number: int
    entry: Entry
    tile: Tile = POISON
    landed: int | None = None


@dataclass
class Machine:
    """A workgroup in the middle of its work."""

    loop: Lowerable
    trip_count: int
    waves: int
    compiler_waits: bool = True
    events: int = 0
    flights: list[list[Flight]] = field(default_factory=list)
    at: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.program = self.loop.lowered
        self.size = self.waves * len(self.program.roles)
        self.tiles = self.program.total_tiles(self.trip_count)
        self.programs = [list(self._program(wave // self.waves)) for wave in range(self.size)]
        self.writing: dict[Place, set[int]] = {}
        for wave, steps in enumerate(self.programs):
            for place in {place for entry, _ in steps for place in entry.effect.writes}:
                self.writing.setdefault(place, set()).add(wave)
        self.flights = [[] for _ in range(self.size)]
        self.at = [0] * self.size
        self.arrived: list[Tally[str]] = [Tally() for _ in range(self.size)]
        self.waited: list[Tally[str]] = [Tally() for _ in range(self.size)]
        self.registers: list[dict[Place, tuple[Flight, Content]]] = [{} for _ in range(self.size)]
        self.writes: dict[tuple[Place, int], list[Flight]] = {}
        self.sums: list[dict[Place, list[tuple[tuple[Place, ...], Content, Content]]]] = [{} for _ in range(self.size)]

    def _program(self, role: int) -> Iterator[tuple[Entry, int]]:
        trips = [(Phase.PROLOGUE, 0), *((Phase.KERNEL, trip + 1) for trip in range(self.trip_count))]
        for phase, trip in [*trips, (Phase.EPILOGUE, self.trip_count + 1)]:
            for entry in self.program.phase(phase):
                if entry.effect.kind not in _IDLE and entry.executed_by(role):
                    yield entry, trip

    def finished(self, wave: int) -> bool:
        return self.at[wave] == len(self.programs[wave]) and not self.held_at_barrier(wave)

    def held_at_barrier(self, wave: int) -> bool:
        """Has it waited more often than some wave that arrives there has arrived?"""
        for barrier in self.program.barriers:
            for role in barrier.arriving:
                for other in range(role * self.waves, (role + 1) * self.waves):
                    if self.waited[wave][barrier.name] > self.arrived[other][barrier.name]:
                        return True
        return False

    def must_land_first(self, wave: int) -> list[Flight]:
        """What the wave's next step waits for."""
        entry, _ = self.programs[wave][self.at[wave]]
        effect = entry.effect
        if effect.kind is OpKind.WAIT and effect.counter is not None:
            counter = self.program.machine.counter(effect.counter)
            if effect.wait_value >= counter.holds.value or (effect.wait_value and not counter.in_order):
                return []
            return [
                flight
                for flight in self.under_way(wave, effect.counter)
                if self._younger_tokens(flight) >= effect.wait_value
            ]
        if self.compiler_waits and effect.kind in (OpKind.MMA, OpKind.LDS_WRITE):
            loads = [self.registers[wave][place][0] for place in effect.reads if place in self.registers[wave]]
            return [
                flight
                for load in loads
                if load.landed is None
                for flight in self.under_way(wave, load.entry.effect.counter)
                if flight.number <= load.number
            ]
        return []

    def under_way(self, wave: int, counter: str | None) -> list[Flight]:
        return [f for f in self.flights[wave] if f.landed is None and f.entry.effect.counter == counter]

    def _younger_tokens(self, flight: Flight) -> int:
        counter = flight.entry.effect.counter
        later = self.flights[flight.wave][flight.number + 1 :]
        return sum(f.entry.effect.tokens for f in later if f.entry.effect.counter == counter)

    def execute(self, wave: int) -> None:
        """The wave's next step, which nothing may hold up."""
        assert not self.held_at_barrier(wave), "a step behind a barrier that not all waves have reached"
        assert not self.must_land_first(wave), "a wait is left while something it covers is in flight"
        entry, trip = self.programs[wave][self.at[wave]]
        self.at[wave] += 1
        effect = entry.effect
        if effect.kind is OpKind.BARRIER:
            self.arrived[wave].update([effect.arrives] if effect.arrives else [])
            self.waited[wave].update([effect.awaits] if effect.awaits else [])
        elif effect.kind is OpKind.MMA:
            operands = [self.registers[wave].get(place, (None, (POISON,)))[1] for place in effect.reads]
            self.sums[wave].setdefault(effect.writes[0], []).append((effect.reads, operands[0], operands[-1]))
        elif effect.kind is not OpKind.WAIT:
            self._issue(wave, entry, trip)

    def _issue(self, wave: int, entry: Entry, trip: int) -> None:
        flight = Flight(wave, len(self.flights[wave]), entry)
        (target,) = entry.effect.writes
        if entry.effect.kind is OpKind.LDS_WRITE:
            (content,) = {self.registers[wave].get(place, (None, (POISON,)))[1] for place in entry.effect.reads}
            (flight.tile,) = content
        elif entry.effect.kind is not OpKind.LDS_READ:
            same = [f for f in self.flights[wave] if f.entry.effect.writes == entry.effect.writes]
            fetches = entry.effect.fetches
            tile = len(same) if fetches is None else self.program.k_of(entry.phase, trip) + fetches
            flight.tile = tile if 0 <= tile < self.tiles else POISON
        self.flights[wave].append(flight)
        if entry.effect.kind in (OpKind.DMA, OpKind.LDS_WRITE):
            self.writes.setdefault((target, wave), []).append(flight)
        else:
            self.registers[wave][target] = (flight, (POISON,))

    def may_land(self, flight: Flight) -> bool:
        """DMAs in any order, ds ops and register loads in their own."""
        kind = flight.entry.effect.kind
        line = _DS if kind in _DS else (kind,)
        older = self.flights[flight.wave][: flight.number]
        return kind is OpKind.DMA or all(f.landed is not None for f in older if f.entry.effect.kind in line)

    def land(self, flight: Flight) -> None:
        self.events += 1
        flight.landed = self.events
        (target,) = flight.entry.effect.writes
        content: Content = (flight.tile,)
        if flight.entry.effect.kind is OpKind.LDS_READ:
            (source,) = flight.entry.effect.reads
            writing = sorted(self.writing.get(source, ()))
            content = tuple(self._seen(flight, source, wave) for wave in writing) or (POISON,)
        holder = self.registers[flight.wave].get(target)
        if holder is not None and holder[0] is flight:
            self.registers[flight.wave][target] = (flight, content)

    def _seen(self, reader: Flight, place: Place, wave: int) -> Tile:
        writes = [
            write
            for write in self.writes.get((place, wave), ())
            if not (
                wave == reader.wave and write.number > reader.number and write.entry.effect.kind is OpKind.LDS_WRITE
            )
        ]
        if not writes or any(write.landed is None for write in writes):
            return POISON
        return max(writes, key=lambda write: write.landed or 0).tile

    def right(self) -> bool:
        """The accumulators of every wave that computes took in every K-tile once, in one piece and on both sides."""
        asked = self.program.semantics
        assert isinstance(asked, TileSum)
        for wave, sums in enumerate(self.sums):
            for accumulator in {product.accumulator for product in asked.products}:
                if wave not in self.writing.get(accumulator, range(self.size)):
                    continue
                slices = [product.operands for product in asked.products if product.accumulator == accumulator]
                wanted = {(operands, tile, tile) for operands in slices for tile in range(self.tiles)}
                taken = []
                for operands, a, b in sums.get(accumulator, []):
                    if len(set(a)) != 1 or len(set(b)) != 1:
                        return False
                    taken.append((operands, a[0], b[0]))
                if len(taken) != len(wanted) or set(taken) != wanted:
                    return False
        return True


def random_run(machine: Machine, seed: int) -> bool | None:
    """Step waves and land ops at random to the end; None if the waves wait for each other forever."""
    dice = random.Random(seed)
    eagerness = dice.choice((0.0, 0.05, 0.3, 0.8))
    speeds = [1.0] * machine.size
    while not all(map(machine.finished, range(machine.size))):
        if dice.random() < 0.2:  # the waves that are fast change from time to time
            speeds = [dice.choice((1.0, 30.0, 1000.0)) for _ in range(machine.size)]
        able = [w for w in range(machine.size) if not machine.finished(w) and not machine.held_at_barrier(w)]
        if not able:
            return None
        (wave,) = dice.choices(able, [speeds[w] for w in able])
        flying = [f for flights in machine.flights for f in flights if f.landed is None and machine.may_land(f)]
        if flying and dice.random() < eagerness:
            machine.land(dice.choice(flying))
            continue
        while needed := machine.must_land_first(wave):
            machine.land(dice.choice([flight for flight in needed if machine.may_land(flight)]))
        machine.execute(wave)
    return machine.right()
