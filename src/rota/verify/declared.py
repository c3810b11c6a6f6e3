"""What was asked for: takes a schedule's declaration, gives what its entries must add up to, and entries that differ.

A proof that looks at the program alone doesn't miss what is missing everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rota.declare.config import PipelineConfig
from rota.declare.effects import Action, Counter, Effect, Place, Space, Version
from rota.declare.op import OpDesc
from rota.declare.values import Home, LoopOp, LoopSpec, Work
from rota.declare.vocabulary import OpRole
from rota.errors import Finding
from rota.program.loop import LoopSteps, Step
from rota.verify.values import AccumulatorKey, accumulator_key

_ACTIONS = {
    Work.FRAGMENT: Action.LDS_READ,
    Work.STORE: Action.LDS_WRITE,
    Work.MMA: Action.COMPUTE,
    Work.VALU: Action.COMPUTE,
}
_COUNTERS = {
    Action.DMA: Counter.VM,
    Action.GLOBAL_TO_REGISTER: Counter.VM,
    Action.LDS_READ: Counter.LGKM,
    Action.LDS_WRITE: Counter.LGKM,
    Action.COMPUTE: None,
}


def accumulators(config: PipelineConfig, body: Sequence[OpDesc]) -> tuple[AccumulatorKey, ...]:
    """By stages: every cell of the MMA grid; of a single buffer, every slice of K that its body reads or computes."""
    if config.depth >= 2:
        grid = [(row, column) for row in range(config.m_mmas) for column in range(config.n_mmas)]
        return tuple((Place(Space.ACCUMULATOR, -1, row, column), 0) for row, column in grid)
    slices = sorted({op.subtile for op in body if op.role in (OpRole.FRAGMENT_LOAD, OpRole.COMPUTE)})
    return tuple((Place(Space.ACCUMULATOR, -1, 0, 0), each) for each in slices)


def outside_the_grid(steps: LoopSteps, config: PipelineConfig, body: Sequence[OpDesc]) -> Iterator[Finding]:
    """By stages: a compute that belongs to no cell of the grid that was declared."""
    declared = set(accumulators(config, body))
    for step in _all(steps):
        if step.effect.action is Action.COMPUTE and config.depth >= 2 and accumulator_key(step) not in declared:
            yield Finding(
                code="V109",
                message=f"{step.entry.op} computes {step.effect.writes[0]}; "
                f"the grid has {config.m_mmas} x {config.n_mmas} cells",
                concerns=(step.concern(),),
                evidence=(("rows", config.m_mmas), ("columns", config.n_mmas)),
            )


def strangers(steps: LoopSteps) -> Iterator[Finding]:
    """By stages: an entry that claims to be an op of a loop by values, of which there is none."""
    for step in _all(steps):
        if step.effect.instance is not None:
            yield _unlike(step, "stands for", "no loop by values", step.effect.instance.name)


def unlike_declared(steps: LoopSteps, loop: LoopSpec) -> Iterator[Finding]:
    """By values: an entry that doesn't do what its op declares, or stands for none."""
    ops = {op.name: _Declared(loop, op) for op in loop.ops}
    for step in _all(steps):
        effect = step.effect
        if effect.action in (Action.WAIT, Action.BARRIER, Action.NOTHING) and effect.instance is None:
            continue
        instance = effect.instance
        if instance is None or instance.name not in ops:
            yield _unlike(step, "stands for", "an op of the loop", str(instance and instance.name))
            continue
        yield from (_unlike(step, *each) for each in ops[instance.name].differences(effect, instance.iteration))


class _Operand(NamedTuple):
    """A place that an op must read or write: whose version how many iterations back, and where that lies."""

    value: str
    distance: int
    space: Space
    number: int
    part: int

    def is_at(self, place: Place, version: Version, iteration: int) -> bool:
        return (
            version.name == self.value
            and version.iteration == iteration - self.distance
            and place.space is self.space
            and place.channel == self.number
            and place.subtile == self.part
        )

    def __str__(self) -> str:
        back = f", {self.distance} iterations back" if self.distance else ""
        return f"part {self.part} of {self.value}{back}"


class _Declared:
    """What every entry of one op must do, worked out from its declaration alone."""

    def __init__(self, loop: LoopSpec, op: LoopOp) -> None:
        self.loop = loop
        self.op = op
        homes = {value.name: value.home for value in loop.values}
        self.numbers = {value.name: number for number, value in enumerate(loop.values)}
        to_lds = any(homes[name] is Home.LDS for name in op.writes)
        self.action = _ACTIONS.get(op.work, Action.DMA if to_lds else Action.GLOBAL_TO_REGISTER)
        self.counter = _COUNTERS[self.action]
        self.tokens = op.instructions if self.counter else 0
        self.wants = tuple(
            operand for read in op.reads for operand in self._operands(read.value, read.distance, homes[read.value])
        )
        self.makes = tuple(
            operand
            for name in op.writes
            if homes[name] is not Home.ACCUMULATOR
            for operand in self._operands(name, 0, homes[name])
            if homes[name] is not Home.LDS or loop.writers(name)[operand.part] is op
        )
        sums = [self.numbers[name] for name in op.writes if homes[name] is Home.ACCUMULATOR]
        self.sums = tuple(Place(Space.ACCUMULATOR, -1, number, 0) for number in sums)

    def _operands(self, name: str, distance: int, home: Home) -> Iterator[_Operand]:
        number = self.numbers[self.loop.registers_of(name)[0]]
        parts = len(self.loop.writers(name)) if home is Home.LDS else 1
        space = Space.LDS if home is Home.LDS else Space.REGISTER
        return (_Operand(name, distance, space, number, part) for part in range(parts))

    def differences(self, effect: Effect, iteration: int) -> Iterator[tuple[str, object, object]]:
        """What the entry does, what is declared, where the two are not the same."""
        if effect.action is not self.action:
            yield "is", self.action.value, effect.action.value
        if effect.counter is not self.counter or effect.tokens != self.tokens:
            yield "counts", _tokens(self.tokens, self.counter), _tokens(effect.tokens, effect.counter)
        for what, due, found, places in (
            ("reads", self.wants, effect.wants, effect.reads),
            ("writes", self.makes, effect.makes, effect.writes[: len(effect.makes)]),
        ):
            same = len(due) == len(found) == len(places) and all(
                operand.is_at(*held, iteration) and held[0] == place
                for operand, held, place in zip(due, found, places, strict=True)
            )
            if not same:
                yield what, _listed(due), _listed(f"{version} in {place}" for place, version in found)
        if effect.writes[len(effect.makes) :] != self.sums:
            yield "adds to", _listed(self.sums), _listed(effect.writes[len(effect.makes) :])


def _tokens(number: int, counter: Counter | None) -> str:
    return f"{number} on {counter.value}" if counter else "nothing"


def _listed(things: Iterable[object]) -> str:
    return ", ".join(map(str, things)) or "nothing"


def _unlike(step: Step, what: str, due: object, found: object) -> Finding:
    return Finding(
        code="V110",
        message=f"{step.entry.op} is not the op that the loop declares",
        concerns=(step.concern(),),
        evidence=((f"it {what}", str(found)), ("declared", str(due))),
    )


def _all(steps: LoopSteps) -> Iterator[Step]:
    yield from steps.prologue
    yield from steps.kernel
    yield from steps.epilogue
