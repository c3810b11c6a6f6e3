"""What entries of a loop declared by values do: takes the `LoopSpec` and copies, gives steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rota.declare.values import Home, LoopOp, LoopSpec, Work
from tests.oracle.step import (
    LDS,
    LGKM,
    REGISTER,
    VM,
    Content,
    Does,
    Kind,
    Meaning,
    Source,
    Spot,
    Step,
    Version,
    WrongError,
)

if TYPE_CHECKING:
    from rota import CompiledSchedule, ScheduleEntry
    from rota.declare.effects import Effect
    from tests.oracle.wave import Wave

_COUNTERS = {Work.LOAD: VM, Work.FRAGMENT: LGKM, Work.STORE: LGKM}
_READ = {
    Work.LOAD: {Home.REGISTERS},  # its address
    Work.FRAGMENT: {Home.LDS, Home.REGISTERS},
    Work.STORE: {Home.REGISTERS},
    Work.MMA: {Home.REGISTERS},
    Work.VALU: {Home.REGISTERS},
}
_WRITTEN = {
    Work.LOAD: {Home.LDS, Home.REGISTERS},
    Work.FRAGMENT: {Home.REGISTERS},
    Work.STORE: {Home.LDS},
    Work.MMA: {Home.REGISTERS, Home.ACCUMULATOR},
    Work.VALU: {Home.REGISTERS, Home.ACCUMULATOR},
}


class _Entry(NamedTuple):
    """An entry, relative to the trip's k."""

    op: LoopOp
    iteration: int
    sources: tuple[tuple[Spot, str, int], ...]
    targets: tuple[tuple[Spot, str], ...]


class ByValues(Meaning):
    """Every op once per iteration, each finding the versions that running the loop in order would give it."""

    def __init__(self, compiled: CompiledSchedule, loop: LoopSpec) -> None:
        self.loop = loop
        self.tiles_per_trip, self.tiles_outside = compiled.trip_tiles or (1, 0)
        self.copies = dict(compiled.placement.copies) if compiled.placement else {}
        self.homes = {value.name: value.home for value in loop.values}
        self.first = {value.name: _first(loop, value.name) for value in loop.values}
        self.parts = {value.name: [op.name for op in loop.ops if value.name in op.writes] for value in loop.values}
        self.known: dict[int, _Entry] = {}
        self.steps: dict[tuple[int, int], Step] = {}
        for op in loop.ops:
            check_homes(op, self.homes)

    def step(self, entry: ScheduleEntry, k: int) -> Step:
        """The entry's op at its iteration."""
        step = self.steps.get((id(entry), k))
        if step is None:
            step = self.steps[id(entry), k] = self._step(entry, k)
        return step

    def _step(self, entry: ScheduleEntry, k: int) -> Step:
        known = self.known.get(id(entry))
        if known is None:
            known = self.known[id(entry)] = self._entry(entry)
        op, iteration = known.op, known.iteration + k
        counter = _COUNTERS.get(op.work, "")
        return Step(
            name=f"{op.name} of iteration {iteration}",
            kind=Kind.WORK,
            counter=counter,
            tokens=op.instructions if counter else 0,
            sources=tuple(Source(spot, Version(value, at + k)) for spot, value, at in known.sources),
            targets=tuple(spot for spot, _ in known.targets),
            does=_made(op.name, iteration, tuple(Version(value, iteration) for _, value in known.targets)),
        )

    def check(self, wave: Wave, tiles: int) -> None:
        """Exactly once per iteration."""
        if wave.done.total() != tiles * len(self.loop.ops):
            raise WrongError("count", f"{wave.done.total()} ops ran in {tiles} iterations of {len(self.loop.ops)}")
        declared: set[tuple[object, int]] = {(op.name, at) for op in self.loop.ops for at in range(tiles)}
        for instance in declared | wave.done.keys():
            if wave.done[instance] != (instance in declared):
                raise WrongError("count", f"{instance} ran {wave.done[instance]} times of {tiles} iterations")
        self._results(wave, tiles)

    def _results(self, wave: Wave, tiles: int) -> None:
        """Whoever comes after the loop finds the last version of what it carries, unless its registers were taken."""
        taken = {value.into for value in self.loop.values}
        carried = {read.value for op in self.loop.ops for read in op.reads if read.distance} - taken
        for value in carried:
            if self.homes[value] is Home.REGISTERS and tiles > 0:
                (spot,) = self._spots(value, tiles - 1, {}, ())
                held = wave.at_the_end(spot)
                if held != Version(value, tiles - 1):
                    raise WrongError("result", f"{value} of iteration {tiles - 1} is due in {spot}, which holds {held}")

    def _entry(self, entry: ScheduleEntry) -> _Entry:
        effect = entry.effect
        number = entry.op.subtile
        if effect is None or effect.instance is None or number >= len(self.loop.ops):
            raise WrongError("count", f"{entry} stands for no op of the loop")
        op = self.loop.ops[number]
        if effect.instance.name != op.name:
            raise WrongError("count", f"{entry} stands for op {op.name} and for {effect.instance.name}")
        iteration = effect.instance.iteration
        slots = _slots(effect)
        sources = [
            (spot, read.value, iteration - read.distance)
            for read in op.reads
            if self.homes[read.value] is not Home.INPUT
            for spot in self._spots(read.value, iteration - read.distance, slots, self.parts[read.value])
        ]
        targets = [
            (spot, value)
            for value in op.writes
            if self.homes[value] is not Home.ACCUMULATOR
            for spot in self._spots(value, iteration, slots, [op.name])
        ]
        return _Entry(op, iteration, tuple(sources), tuple(targets))

    def _spots(self, value: str, iteration: int, slots: dict[tuple[str, int], int], parts: Iterable[str]) -> list[Spot]:
        first = self.first[value]
        slot = slots.get((value, iteration))
        if slot is None:
            slot = iteration % self.copies.get(first, 1)
        if self.homes[value] is Home.LDS:
            return [(LDS, value, slot, self.parts[value].index(part)) for part in parts]
        return [(REGISTER, first, slot)]


def _made(name: str, iteration: int, made: tuple[Version, ...]) -> Does:
    return partial(_make, name, iteration, made)


def _make(
    name: str, iteration: int, made: tuple[Version, ...], wave: Wave, found: Sequence[Content]
) -> Sequence[Content]:
    wave.done[name, iteration] += 1
    return made


def _slots(effect: Effect) -> dict[tuple[str, int], int]:
    """Which copy of a value an entry names, where it names one."""
    named = (*effect.wants, *effect.makes)
    return {(version.name, version.iteration): place.stage for place, version in named}


def _first(loop: LoopSpec, name: str) -> str:
    """The value whose registers, and number of copies, this one has."""
    into = {value.name: value.into for value in loop.values}
    while into[name]:
        name = into[name]
    return name


def check_homes(op: LoopOp, homes: dict[str, Home]) -> None:
    """Raises `WrongError` where no machine has an instruction that reads and writes there."""
    if op.work is Work.FRAGMENT and Home.LDS not in {homes[read.value] for read in op.reads}:
        raise WrongError("home", f"{op.name} reads no tile")
    for read in op.reads:
        if homes[read.value] not in _READ[op.work] | {Home.INPUT}:
            raise WrongError("home", f"{op.name} can't read {read.value} where it is, in {homes[read.value].value}")
    for value in op.writes:
        if homes[value] not in _WRITTEN[op.work]:
            raise WrongError("home", f"{op.name} can't write {value} where it is, in {homes[value].value}")
