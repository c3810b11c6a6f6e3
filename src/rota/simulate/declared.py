"""A loop declared by values as it was scheduled: takes its declaration and steps, gives what is executed in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rota.declare.effects import Action
from rota.declare.values import Home, LoopOp, LoopSpec
from rota.declare.vocabulary import Phase
from rota.errors import Concern, DeclarationError, Finding, did_you_mean
from rota.program.loop import LoopSteps, Step
from rota.simulate.meaning import Meaning
from rota.simulate.reference import check_spec
from rota.simulate.trace import Workgroup

_DATA = (Action.DMA, Action.GLOBAL_TO_REGISTER, Action.LDS_READ, Action.LDS_WRITE, Action.COMPUTE)


def is_by_values(steps: LoopSteps) -> bool:
    """Does any entry say which op of which iteration it stands for?"""
    return any(step.effect.instance for phase in Phase for step in steps.phase(phase))


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A loop by values as it was declared and scheduled; every entry stands for an op of `spec`."""

    spec: LoopSpec
    meaning: Meaning
    steps: LoopSteps

    def __post_init__(self) -> None:
        check_spec(self.spec)
        ops = {op.name: op for op in self.spec.ops}
        for step in (step for phase in Phase for step in self.steps.phase(phase) if step.effect.action in _DATA):
            effect, instance = step.effect, step.effect.instance
            if instance is None or instance.name not in ops:
                raise _foreign(step, "D105", f"no op of {self.spec.name}", did_you_mean(step.entry.op.label, ops))
            op = ops[instance.name]
            parts = sum(map(self.parts, (read.value for read in op.reads)))
            if len(effect.reads) != parts or len(effect.writes) != len(op.writes):
                raise _foreign(step, "D104", f"{parts} places to read and {len(op.writes)} to write")

    def op(self, name: str) -> LoopOp:
        """The op of that name."""
        return next(op for op in self.spec.ops if op.name == name)

    def parts(self, value: str) -> int:
        """Places that hold the value: a tile has as many as ops write it."""
        return len(self.spec.writers(value)) if self.spec.value(value).home is Home.LDS else 1

    def outputs(self, op: LoopOp) -> list[str]:
        """The values that an op writes, in the order of its effect's places: accumulators come last."""
        return sorted(op.writes, key=lambda value: self.spec.value(value).home is Home.ACCUMULATOR)

    def carried(self) -> tuple[str, ...]:
        """Register values that a later iteration reads."""
        names = dict.fromkeys(read.value for op in self.spec.ops for read in op.reads if read.distance)
        return tuple(name for name in names if self.spec.value(name).home is Home.REGISTERS)


def _foreign(step: Step, code: str, expected: str, fixes: tuple[str, ...] = ()) -> DeclarationError:
    entry = step.entry
    return DeclarationError(
        Finding(
            code=code,
            message=f"{entry} of the {entry.phase.value.lower()} doesn't belong to the loop that was declared",
            concerns=(Concern(label=str(entry.op), index=entry.time_slot, source=entry.op.source),),
            evidence=(("the declaration has", expected),),
            fixes=fixes,
        )
    )


class Moment(NamedTuple):
    """An op of one iteration as the groups execute it: each at its own ordinal, None where a group doesn't."""

    step: Step
    op: LoopOp
    iteration: int
    ordinals: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.step.entry} of iteration {self.iteration}"


def moments_of(loop: Declared, group: Workgroup) -> Iterator[Moment]:
    """Everything that the groups execute, in program order, which is the same for all of them."""
    place = {id(step): number for phase in Phase for number, step in enumerate(loop.steps.phase(phase))}
    ordinals: dict[tuple[int, int], list[int | None]] = {}
    executed: dict[tuple[int, int], tuple[Step, LoopOp, int]] = {}
    for number, trace in enumerate(group.traces):
        for ordinal, (step, trip) in enumerate(trace.steps):
            instance = step.effect.instance
            if instance is not None:
                key = (trip, place[id(step)])
                iteration = loop.steps.k_of(step.entry.phase, trip) + instance.iteration
                executed[key] = (step, loop.op(instance.name), iteration)
                ordinals.setdefault(key, [None] * len(group.traces))[number] = ordinal
    for key, (step, op, iteration) in sorted(executed.items(), key=lambda item: item[0]):
        yield Moment(step, op, iteration, tuple(ordinals[key]))
