"""What was declared: takes a program's semantics, gives what its entries must add up to, and entries that differ.

A proof that looks at the program alone doesn't notice what is missing everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rota.errors import Finding
from rota.program.effects import Effect, Place, Space, Version
from rota.program.entry import ARRIVE, AWAIT, BARRIER, Entry, wait_op
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec
from rota.program.lowered import LoweredProgram
from rota.program.machine import Machine

_UNVERSIONED = {Home.ACCUMULATOR: Space.ACCUMULATOR, Home.MEMORY: Space.MEMORY}
"""Homes that take in what every iteration brings, and of which none is read again in the loop."""

_SIDES = {BARRIER.name: (True, True), ARRIVE.name: (True, False), AWAIT.name: (False, True)}
"""Whether a barrier of that name arrives, and whether it waits; any other name says nothing."""


def results(loop: LoopSpec) -> tuple[str, ...]:
    """What the code after the loop finds in registers, the last version of every carried value.

    Where another value takes over the registers in each iteration, that one is left in them.
    """
    registers = {value.name for value in loop.values if value.home is Home.REGISTERS}
    taken_over = {value.into for value in loop.values}
    carried = dict.fromkeys(read.value for op in loop.ops for read in op.reads if read.distance)
    return tuple(name for name in carried if name in registers and name not in taken_over)


def contradicted(program: LoweredProgram) -> Iterator[Finding]:
    """An entry whose op says something other than its effect; lists name the one, source is written from the other."""
    for step in program.entries:
        if step.op.kind is not step.effect.kind:
            yield unlike(step, "does", step.op.kind.does, step.effect.kind.does)
        elif step.op.kind is OpKind.WAIT:
            named = wait_op(step.effect.counter or "", step.effect.wait_value).name
            if step.op.name != named:
                yield unlike(step, "waits for", step.op.name, named)
        elif step.op.kind is OpKind.BARRIER and step.op.name in _SIDES:
            sides = step.effect.arrives is not None, step.effect.awaits is not None
            if sides != _SIDES[step.op.name]:
                yield unlike(step, "arrives, and waits", _SIDES[step.op.name], sides)


def unlike_declared(program: LoweredProgram, loop: LoopSpec) -> Iterator[Finding]:
    """An entry that doesn't do what its op declares, or stands for none."""
    places = _Places(loop)
    ops = {op.name: _Declared(places, op, program.machine) for op in loop.ops}
    for step in program.entries:
        effect = step.effect
        instance = effect.instance
        if effect.kind.synchronises and not instance.name:
            continue
        if instance.name not in ops:
            yield unlike(step, "stands for", "an op of the loop", instance.name or "none")
            continue
        declared = ops[instance.name]
        yield from (unlike(step, *each) for each in declared.differences(effect, instance.iteration))
        if step.op.name != declared.name or step.op.kind is not declared.kind:
            yield unlike(step, "is written as", declared.name, f"{step.op.kind.word} {step.op.name}")


_Held = tuple[Place, Version]


class _Operand(NamedTuple):
    """A place that an op must read or write: whose version how many iterations back, and where that lies."""

    value: str
    distance: int
    space: Space
    name: str
    part: int

    def is_at(self, place: Place, version: Version, iteration: int) -> bool:
        return (
            version.name == self.value
            and version.iteration == iteration - self.distance
            and place.space is self.space
            and place.name == self.name
            and place.part == self.part
        )

    def __str__(self) -> str:
        back = f", {self.distance} iterations back" if self.distance else ""
        return f"part {self.part} of {self.value}{back}"


class _Places:
    """Where the values of a loop lie: their homes, numbers and parts."""

    def __init__(self, loop: LoopSpec) -> None:
        self.homes = {value.name: value.home for value in loop.values}
        self.writers: dict[str, list[str]] = {value.name: [] for value in loop.values}
        for op in loop.ops:
            for name in op.writes:
                self.writers[name].append(op.name)
        self.first = dict[str, str]()  # whose registers a value takes over, in the end
        for value in loop.values:
            self.first[value.name] = self.first.get(value.into, value.name)

    def operands(self, name: str, distance: int, parts: tuple[int, ...] = ()) -> Iterator[_Operand]:
        """These parts of a value; all, if none are named."""
        in_lds = self.homes[name] is Home.LDS
        space = Space.LDS if in_lds else Space.REGISTER
        every = range(len(self.writers[name]) if in_lds else 1)
        return (_Operand(name, distance, space, self.first[name], part) for part in parts or every)


class _Declared:
    """What every entry of one op must do, worked out from its declaration alone."""

    def __init__(self, places: _Places, op: LoopOp, machine: Machine) -> None:
        self.name, self.kind = op.name, op.kind
        homes = places.homes
        self.counter = machine.counter_of(op.kind)
        self.tokens = op.instructions if self.counter else 0
        self.wants = tuple(each for read in op.reads for each in places.operands(read.value, read.distance, read.parts))
        made = [name for name in op.writes if homes[name] not in _UNVERSIONED]
        self.makes = tuple(
            each
            for name in made
            for each in places.operands(name, 0)
            if homes[name] is not Home.LDS or places.writers[name][each.part] == op.name
        )
        self.sums = tuple(Place(_UNVERSIONED[homes[name]], name) for name in op.writes if homes[name] in _UNVERSIONED)

    def differences(self, effect: Effect, iteration: int) -> Iterator[tuple[str, object, object]]:
        """What the entry does, what is declared, where the two are not the same."""
        if effect.kind is not self.kind:
            yield "is", self.kind.does, effect.kind.does
        if effect.counter != self.counter or effect.tokens != self.tokens:
            yield "counts", _tokens(self.tokens, self.counter), _tokens(effect.tokens, effect.counter)
        if not _same(self.wants, effect.wants, effect.reads, iteration):
            yield "reads", _listed(self.wants), _held(effect.wants)
        if not _same(self.makes, effect.makes, effect.writes[: len(effect.makes)], iteration):
            yield "writes", _listed(self.makes), _held(effect.makes)
        if effect.writes[len(effect.makes) :] != self.sums:
            yield "adds to", _listed(self.sums), _listed(effect.writes[len(effect.makes) :])


def _same(due: Sequence[_Operand], found: Sequence[_Held], places: Sequence[Place], iteration: int) -> bool:
    if not len(due) == len(found) == len(places):
        return False
    for operand, (place, version), touched in zip(due, found, places, strict=True):
        if place != touched or not operand.is_at(place, version, iteration):
            return False
    return True


def _held(found: Iterable[_Held]) -> str:
    return _listed(f"{version} in {place}" for place, version in found)


def _tokens(number: int, counter: str | None) -> str:
    return f"{number} on {counter}" if counter else "nothing"


def _listed(things: Iterable[object]) -> str:
    return ", ".join(map(str, things)) or "nothing"


def unlike(step: Entry, what: str, due: object, found: object) -> Finding:
    """An entry that is not what was declared: what it does, and what is due."""
    return Finding(
        code="V110",
        message=f"{step.op} is not the op that the loop declares",
        concerns=(step.concern(),),
        evidence=((f"it {what}", str(found)), ("declared", str(due))),
    )
