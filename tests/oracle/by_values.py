"""What entries of a loop declared by values do: takes the `LoopSpec` and copies, gives steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read
from tests.oracle.step import LDS, REGISTER, Content, Does, Kind, Meaning, Source, Spot, Step, Version, WrongError

if TYPE_CHECKING:
    from rota.program.entry import Effect, Entry
    from rota.program.lowered import LoweredProgram
    from tests.oracle.wave import Wave

_LDS_READS = (OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED)
_IN_LDS_ORDER = (*_LDS_READS, OpKind.LDS_WRITE)
_COMPUTES = (OpKind.MMA, OpKind.VALU, OpKind.TRANSCENDENTAL)
_OUT = (OpKind.GLOBAL_STORE, OpKind.ATOMIC)
_UNVERSIONED = (Home.ACCUMULATOR, Home.MEMORY)
_READ = {
    OpKind.DMA: {Home.REGISTERS},  # its address
    OpKind.GLOBAL_LOAD: {Home.REGISTERS},
    OpKind.LDS_WRITE: {Home.REGISTERS},
    **{key: {Home.LDS, Home.REGISTERS} for key in _LDS_READS},
    **{key: {Home.REGISTERS} for key in _COMPUTES},
    **{key: {Home.REGISTERS} for key in _OUT},  # a sum isn't there before the loop is over
}
_WRITTEN = {
    OpKind.DMA: {Home.LDS},
    OpKind.GLOBAL_LOAD: {Home.REGISTERS},
    OpKind.LDS_WRITE: {Home.LDS},
    **{key: {Home.REGISTERS} for key in _LDS_READS},
    **{key: {Home.REGISTERS, Home.ACCUMULATOR} for key in _COMPUTES},
    **{key: {Home.MEMORY} for key in _OUT},
}


class _Entry(NamedTuple):
    """An entry, relative to the trip's k."""

    op: LoopOp
    iteration: int
    sources: tuple[tuple[Spot, str, int], ...]
    targets: tuple[tuple[Spot, str], ...]


class ByValues(Meaning):
    """Every op once per iteration, each finding the versions that running the loop in order would give it."""

    def __init__(self, program: LoweredProgram, loop: LoopSpec) -> None:
        self.loop = loop
        self.doing = program.doing
        self.ops = {op.name: op for op in loop.ops}
        self.counters = {kind: counter.name for counter in program.machine.counters for kind in counter.counts}
        self.homes = {value.name: value.home for value in loop.values}
        self.first = {value.name: _first(loop, value.name) for value in loop.values}
        self.parts = {value.name: [op.name for op in loop.ops if value.name in op.writes] for value in loop.values}
        self.known: dict[int, _Entry] = {}
        self.steps: dict[tuple[int, int], Step] = {}
        for op in loop.ops:
            check_homes(op, self.homes)

    def step(self, entry: Entry, k: int) -> Step:
        """The entry's op at its iteration."""
        step = self.steps.get((id(entry), k))
        if step is None:
            step = self.steps[id(entry), k] = self._step(entry, k)
        return step

    def _step(self, entry: Entry, k: int) -> Step:
        known = self.known.get(id(entry))
        if known is None:
            known = self.known[id(entry)] = self._entry(entry)
        op, iteration = known.op, known.iteration + k
        counter = "" if op.kind in _COMPUTES else self.counters.get(op.kind, "")
        return Step(
            name=f"{op.name} of iteration {iteration}",
            kind=Kind.WORK,
            counter=counter,
            tokens=op.instructions if counter else 0,
            sources=tuple(Source(spot, Version(value, at + k)) for spot, value, at in known.sources),
            targets=tuple(spot for spot, _ in known.targets),
            does=_made(op.name, iteration, tuple(Version(value, iteration) for _, value in known.targets)),
            in_lds_order=op.kind in _IN_LDS_ORDER,
            by=self.doing(op.name),
        )

    def check(self, wave: Wave, tiles: int) -> None:
        """Exactly once per iteration, in every role that does it."""
        own = [op for op in self.loop.ops if wave.role in self.doing(op.name)]
        if wave.done.total() != tiles * len(own):
            raise WrongError("count", f"{wave.done.total()} ops ran in {tiles} iterations of {len(own)}")
        declared: set[tuple[object, int]] = {(op.name, at) for op in own for at in range(tiles)}
        for instance in declared | wave.done.keys():
            if wave.done[instance] != (instance in declared):
                raise WrongError("count", f"{instance} ran {wave.done[instance]} times of {tiles} iterations")
        self._results(wave, tiles)

    def _results(self, wave: Wave, tiles: int) -> None:
        """Whoever comes after the loop finds the last version of what it carries, unless its registers were taken."""
        taken = {value.into for value in self.loop.values}
        carried = {read.value for op in self.loop.ops for read in op.reads if read.distance} - taken
        left = [wave.at_the_end(spot) for spot in {*wave.registers, *wave.loading}]
        makers = {value: op.name for op in self.loop.ops for value in op.writes}
        for value in (each for each in carried if wave.role in self.doing(makers[each])):
            if self.homes[value] is Home.REGISTERS and tiles > 0 and Version(value, tiles - 1) not in left:
                raise WrongError("result", f"{value} of iteration {tiles - 1} is due, and nothing holds it")

    def _entry(self, entry: Entry) -> _Entry:
        effect = entry.effect
        op = self.ops.get(entry.op.name)
        if op is None or effect.instance is None:
            raise WrongError("count", f"{entry} stands for no op of the loop")
        if effect.instance.name != op.name:
            raise WrongError("count", f"{entry} stands for op {op.name} and for {effect.instance.name}")
        iteration = effect.instance.iteration
        slots = _slots(effect)
        sources = [
            (spot, read.value, iteration - read.distance)
            for read in op.reads
            if self.homes[read.value] is not Home.INPUT
            for spot in self._spots(read.value, iteration - read.distance, slots, self._read(read))
        ]
        targets = [
            (spot, value)
            for value in op.writes
            if self.homes[value] not in _UNVERSIONED
            for spot in self._spots(value, iteration, slots, [op.name])
        ]
        return _Entry(op, iteration, tuple(sources), tuple(targets))

    def _read(self, read: Read) -> list[str]:
        """The ops that write what is read: of a slice, only its own."""
        writers = self.parts[read.value]
        return [name for part, name in enumerate(writers) if not read.parts or part in read.parts]

    def _spots(self, value: str, iteration: int, slots: dict[tuple[str, int], int], parts: Iterable[str]) -> list[Spot]:
        first = self.first[value]
        slot = slots.get((value, iteration))
        if slot is None:
            raise WrongError("claim", f"nothing says which copy of {value} is meant")
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
    return {(version.name, version.iteration): place.copy for place, version in named}


def _first(loop: LoopSpec, name: str) -> str:
    """The value whose registers, and number of copies, this one has."""
    into = {value.name: value.into for value in loop.values}
    while into[name]:
        name = into[name]
    return name


def check_homes(op: LoopOp, homes: dict[str, Home]) -> None:
    """Raises `WrongError` where no machine has an instruction that reads and writes there."""
    if op.kind in _LDS_READS and Home.LDS not in {homes[read.value] for read in op.reads}:
        raise WrongError("home", f"{op.name} reads no tile")
    for read in op.reads:
        if homes[read.value] not in _READ[op.kind] | {Home.INPUT}:
            raise WrongError("home", f"{op.name} can't read {read.value} where it is, in {homes[read.value].value}")
    for value in op.writes:
        if homes[value] not in _WRITTEN[op.kind]:
            raise WrongError("home", f"{op.name} can't write {value} where it is, in {homes[value].value}")
