"""The machine model once more, naively: takes a loop, gives a machine that is stepped op by op and keeps K-tiles.

It knows no times and no arrays, and reads the steps themselves, not a trace; the executor is checked against it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from rota.declare.effects import Action, Counter, Place
from rota.declare.vocabulary import Phase
from rota.program.loop import ScheduledLoop, Step, steps_of

POISON = None
Tile = int | None
Content = tuple[Tile, ...]  # per wave's slice

_NO_WAIT = {Counter.VM: 63, Counter.LGKM: 15}
_DS = (Action.LDS_READ, Action.LDS_WRITE)


@dataclass(eq=False)
class Flight:
    """A memory op that was issued."""

    wave: int
    number: int
    step: Step
    tile: Tile = POISON
    landed: int | None = None


@dataclass
class Machine:
    """A workgroup in the middle of its work."""

    loop: ScheduledLoop
    trip_count: int
    waves: int
    compiler_waits: bool = True
    events: int = 0
    flights: list[list[Flight]] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)
    at: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.steps = steps_of(self.loop)
        self.size = self.waves * self.steps.groups
        self.tiles = self.steps.total_tiles(self.trip_count)
        self.programs = [list(self._program(wave // self.waves)) for wave in range(self.size)]
        self.flights = [[] for _ in range(self.size)]
        self.passed = [0] * self.size
        self.at = [0] * self.size
        self.registers: list[dict[Place, tuple[Flight, Content]]] = [{} for _ in range(self.size)]
        self.writes: dict[tuple[Place, int], list[Flight]] = {}
        self.sums: list[dict[Place, list[tuple[int, Content, Content]]]] = [{} for _ in range(self.size)]

    def _program(self, group: int) -> Iterator[tuple[Step, int]]:
        trips = [(Phase.PROLOGUE, 0), *((Phase.KERNEL, trip + 1) for trip in range(self.trip_count))]
        for phase, trip in [*trips, (Phase.EPILOGUE, self.trip_count + 1)]:
            for step in self.steps.phase(phase):
                if step.effect.action is not Action.NOTHING and step.group in (None, group):
                    yield step, trip

    def finished(self, wave: int) -> bool:
        return self.at[wave] == len(self.programs[wave])

    def held_at_barrier(self, wave: int) -> bool:
        return self.passed[wave] > min(self.passed)

    def must_land_first(self, wave: int) -> list[Flight]:
        """What the wave's next step waits for."""
        step, _ = self.programs[wave][self.at[wave]]
        effect = step.effect
        if effect.action is Action.WAIT and effect.counter is not None:
            if effect.wait_value >= _NO_WAIT[effect.counter]:
                return []
            return [
                flight
                for flight in self.under_way(wave, effect.counter)
                if self._younger_tokens(flight) >= effect.wait_value
            ]
        if self.compiler_waits and effect.action in (Action.COMPUTE, Action.LDS_WRITE):
            loads = [self.registers[wave][place][0] for place in effect.reads if place in self.registers[wave]]
            return [
                flight
                for load in loads
                if load.landed is None
                for flight in self.under_way(wave, load.step.effect.counter)
                if flight.number <= load.number
            ]
        return []

    def under_way(self, wave: int, counter: Counter | None) -> list[Flight]:
        return [f for f in self.flights[wave] if f.landed is None and f.step.effect.counter is counter]

    def _younger_tokens(self, flight: Flight) -> int:
        counter = flight.step.effect.counter
        later = self.flights[flight.wave][flight.number + 1 :]
        return sum(f.step.effect.tokens for f in later if f.step.effect.counter is counter)

    def execute(self, wave: int) -> None:
        """The wave's next step, which nothing may hold up."""
        assert not self.held_at_barrier(wave), "a step behind a barrier that not all waves have reached"
        assert not self.must_land_first(wave), "a wait is left while something it covers is under way"
        step, trip = self.programs[wave][self.at[wave]]
        self.at[wave] += 1
        effect = step.effect
        if effect.action is Action.BARRIER:
            self.passed[wave] += 1
        elif effect.action is Action.COMPUTE:
            operands = [self.registers[wave].get(place, (None, (POISON,)))[1] for place in effect.reads]
            entry = (effect.reads[0].subtile, operands[0], operands[-1])
            self.sums[wave].setdefault(effect.writes[0], []).append(entry)
        elif effect.action is not Action.WAIT:
            self._issue(wave, step, trip)

    def _issue(self, wave: int, step: Step, trip: int) -> None:
        flight = Flight(wave, len(self.flights[wave]), step)
        (target,) = step.effect.writes
        if step.effect.action is Action.LDS_WRITE:
            (content,) = {self.registers[wave].get(place, (None, (POISON,)))[1] for place in step.effect.reads}
            (flight.tile,) = content
        elif step.effect.action is not Action.LDS_READ:
            same = [f for f in self.flights[wave] if f.step.effect.writes == step.effect.writes]
            fetches = step.effect.fetches
            tile = len(same) if fetches is None else self.steps.k_of(step.entry.phase, trip) + fetches
            flight.tile = tile if 0 <= tile < self.tiles else POISON
        self.flights[wave].append(flight)
        if step.effect.action in (Action.DMA, Action.LDS_WRITE):
            self.writes.setdefault((target, wave), []).append(flight)
        else:
            self.registers[wave][target] = (flight, (POISON,))

    def may_land(self, flight: Flight) -> bool:
        """DMAs in any order, ds ops and register loads in their own."""
        action = flight.step.effect.action
        line = _DS if action in _DS else (action,)
        older = self.flights[flight.wave][: flight.number]
        return action is Action.DMA or all(f.landed is not None for f in older if f.step.effect.action in line)

    def land(self, flight: Flight) -> None:
        self.events += 1
        flight.landed = self.events
        (target,) = flight.step.effect.writes
        content: Content = (flight.tile,)
        if flight.step.effect.action is Action.LDS_READ:
            (source,) = flight.step.effect.reads
            content = tuple(self._seen(flight, source, wave) for wave in range(self.size))
        holder = self.registers[flight.wave].get(target)
        if holder is not None and holder[0] is flight:
            self.registers[flight.wave][target] = (flight, content)

    def _seen(self, reader: Flight, place: Place, wave: int) -> Tile:
        writes = [
            write
            for write in self.writes.get((place, wave), ())
            if not (
                wave == reader.wave and write.number > reader.number and write.step.effect.action is Action.LDS_WRITE
            )
        ]
        if not writes or any(write.landed is None for write in writes):
            return POISON
        return max(writes, key=lambda write: write.landed or 0).tile

    def right(self) -> bool:
        """Every wave's accumulators took in every K-tile once, in one piece and on both sides."""
        config = self.loop.config
        if config.depth >= 2:
            cells = {(row, column) for row in range(config.m_mmas) for column in range(config.n_mmas)}
            wanted = {(tile, tile, 0) for tile in range(self.tiles)}
        else:
            reads = [f for f in self.flights[0] if f.step.effect.action is Action.LDS_READ]
            cells = {(0, 0)}
            parts = range(1 + max((f.step.effect.writes[0].subtile for f in reads), default=0))
            wanted = {(tile, tile, part) for tile in range(self.tiles) for part in parts}
        for sums in self.sums:
            by_cell = {(place.stage, place.subtile): entries for place, entries in sums.items()}
            for cell in cells:
                taken = []
                for part, a, b in by_cell.get(cell, []):
                    if len(set(a)) != 1 or len(set(b)) != 1:
                        return False
                    taken.append((a[0], b[0], part if config.depth < 2 else 0))
                if len(taken) != len(wanted) or set(taken) != wanted:
                    return False
        return True


def random_run(machine: Machine, seed: int) -> bool | None:
    """Step waves and land ops at random to the end; None if the waves wait for each other for ever."""
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
