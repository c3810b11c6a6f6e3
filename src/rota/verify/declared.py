"""What was asked for: takes a schedule's declaration, gives what its entries must add up to, and entries that differ.

A proof that looks at the program alone doesn't miss what is missing everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rota.declare.config import PipelineConfig
from rota.declare.effects import Action, Counter, Effect, Place, Space, Version, effect_of
from rota.declare.op import OpDesc
from rota.declare.values import Home, LoopOp, LoopSpec, Work
from rota.declare.vocabulary import OpRole
from rota.errors import Finding
from rota.program.loop import LoopSteps, ScheduledLoop, Step
from rota.verify.values import AccumulatorKey, accumulator_key

_ACTIONS = {
    Work.FRAGMENT: Action.LDS_READ,
    Work.STORE: Action.LDS_WRITE,
    Work.MMA: Action.COMPUTE,
    Work.VALU: Action.COMPUTE,
}
_ROLES = {
    Work.LOAD: OpRole.GLOBAL_LOAD,
    Work.FRAGMENT: OpRole.FRAGMENT_LOAD,
    Work.STORE: OpRole.SHARED_STORE,
    Work.MMA: OpRole.COMPUTE,
    Work.VALU: OpRole.VALU_COMPUTE,
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


def results(loop: LoopSpec) -> tuple[str, ...]:
    """By values: what whoever comes behind the loop finds in registers, the last version of every carried value.

    Where another value takes over the registers in each iteration, that one is left in them.
    """
    registers = {value.name for value in loop.values if value.home is Home.REGISTERS}
    taken_over = {value.into for value in loop.values}
    carried = dict.fromkeys(read.value for op in loop.ops for read in op.reads if read.distance)
    return tuple(name for name in carried if name in registers and name not in taken_over)


def contradicted(steps: LoopSteps, schedule: ScheduledLoop, loop: LoopSpec | None) -> Iterator[Finding]:
    """An entry that claims to do something else than its op: source is written from the op, not from the claim.

    Only the ops of a loop by values say themselves what they do; they are held against its declaration instead.
    """
    knobs = schedule.schedule_config
    for step in _all(steps):
        op, claimed = step.entry.op, step.entry.effect
        if claimed is None or (loop is not None and not op.is_framework):
            continue
        meant = effect_of(op, schedule.config, (knobs.lgkm_per_load_a, knobs.lgkm_per_load_b))
        if meant != claimed:
            yield _unlike(step, "claims to be", _in_words(meant), _in_words(claimed))


def _in_words(effect: Effect) -> str:
    places = f" of {_listed((*effect.reads, *effect.writes))}" if effect.reads or effect.writes else ""
    waits = f" ({effect.wait_value})" if effect.action is Action.WAIT else ""
    stands = f" for {effect.instance}" if effect.instance else ""
    return f"{effect.action.value}{waits}{places}{stands}"


def unlike_declared(steps: LoopSteps, loop: LoopSpec) -> Iterator[Finding]:
    """By values: an entry that doesn't do what its op declares, or stands for none."""
    places = _Places(loop)
    ops = {op.name: _Declared(places, op, number) for number, op in enumerate(loop.ops)}
    for step in _all(steps):
        effect = step.effect
        if effect.action in (Action.WAIT, Action.BARRIER, Action.NOTHING) and effect.instance is None:
            continue
        instance = effect.instance
        if instance is None or instance.name not in ops:
            yield _unlike(step, "stands for", "an op of the loop", str(instance and instance.name))
            continue
        declared = ops[instance.name]
        yield from (_unlike(step, *each) for each in declared.differences(effect, instance.iteration))
        if not declared.is_named_by(step.entry.op):
            yield _unlike(
                step, "is written as", declared.name, f"{step.entry.op.role.value} number {step.entry.op.subtile}"
            )


_Held = tuple[Place, Version]


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


class _Places:
    """Where the values of a loop lie: their homes, numbers and parts."""

    def __init__(self, loop: LoopSpec) -> None:
        self.homes = {value.name: value.home for value in loop.values}
        self.numbers = {value.name: number for number, value in enumerate(loop.values)}
        self.writers: dict[str, list[str]] = {value.name: [] for value in loop.values}
        for op in loop.ops:
            for name in op.writes:
                self.writers[name].append(op.name)
        self.first = dict[str, str]()  # whose registers a value takes over, in the end
        for value in loop.values:
            self.first[value.name] = self.first.get(value.into, value.name)

    def operands(self, name: str, distance: int) -> Iterator[_Operand]:
        """All parts of a value."""
        in_lds = self.homes[name] is Home.LDS
        number, space = self.numbers[self.first[name]], Space.LDS if in_lds else Space.REGISTER
        parts = len(self.writers[name]) if in_lds else 1
        return (_Operand(name, distance, space, number, part) for part in range(parts))


class _Declared:
    """What every entry of one op must do, worked out from its declaration alone."""

    def __init__(self, places: _Places, op: LoopOp, number: int) -> None:
        self.name, self.number, self.role = op.name, number, _ROLES[op.work]
        homes = places.homes
        to_lds = any(homes[name] is Home.LDS for name in op.writes)
        self.action = _ACTIONS.get(op.work, Action.DMA if to_lds else Action.GLOBAL_TO_REGISTER)
        self.counter = _COUNTERS[self.action]
        self.tokens = op.instructions if self.counter else 0
        self.wants = tuple(each for read in op.reads for each in places.operands(read.value, read.distance))
        made = [name for name in op.writes if homes[name] is not Home.ACCUMULATOR]
        self.makes = tuple(
            each
            for name in made
            for each in places.operands(name, 0)
            if homes[name] is not Home.LDS or places.writers[name][each.part] == op.name
        )
        sums = [places.numbers[name] for name in op.writes if homes[name] is Home.ACCUMULATOR]
        self.sums = tuple(Place(Space.ACCUMULATOR, -1, number, 0) for number in sums)

    def is_named_by(self, op: OpDesc) -> bool:
        """Source is written, and pictures are drawn, by the op's number and role."""
        return op.subtile == self.number and op.role is self.role

    def differences(self, effect: Effect, iteration: int) -> Iterator[tuple[str, object, object]]:
        """What the entry does, what is declared, where the two are not the same."""
        if effect.action is not self.action:
            yield "is", self.action.value, effect.action.value
        if effect.counter is not self.counter or effect.tokens != self.tokens:
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
