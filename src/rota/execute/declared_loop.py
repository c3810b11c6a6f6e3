"""A loop by values as it was scheduled: takes its declaration and program, gives what is executed in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rota.errors import Concern, DeclarationError, Finding, did_you_mean
from rota.execute.reference import check_spec
from rota.execute.semantics import Semantics
from rota.execute.workgroup import Workgroup
from rota.program.entry import Entry
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read
from rota.program.lowered import LoweredProgram

_LAST = (Home.ACCUMULATOR, Home.MEMORY)
"""Homes whose places come last among those that an entry writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A loop by values as it was declared and scheduled; every entry stands for an op of `spec`."""

    spec: LoopSpec
    semantics: Semantics
    program: LoweredProgram

    def __post_init__(self) -> None:
        check_spec(self.spec)
        ops = {op.name: op for op in self.spec.ops}
        for entry in self.program.entries:
            effect, instance = entry.effect, entry.effect.instance
            if effect.kind.synchronises or effect.kind is OpKind.NOTHING:
                continue
            if instance.name not in ops:
                raise _foreign(entry, "D105", f"no op of {self.spec.name}", did_you_mean(entry.op.name, ops))
            op = ops[instance.name]
            parts = sum(len(self.parts(read)) for read in op.reads)
            if len(effect.reads) != parts or len(effect.writes) != len(op.writes):
                raise _foreign(entry, "D104", f"{parts} places to read and {len(op.writes)} to write")

    def parts(self, read: Read) -> tuple[int, ...]:
        """The places that hold what is read: a tile has as many as ops write it, and all are read if none are named."""
        whole = len(self.spec.writers(read.value)) if self.spec.value(read.value).home is Home.LDS else 1
        return read.parts or tuple(range(whole))

    def outputs(self, op: LoopOp) -> list[str]:
        """The values that an op writes, in the order of its effect's places: what only takes in comes last."""
        return sorted(op.writes, key=lambda value: self.spec.value(value).home in _LAST)

    def carried(self) -> tuple[str, ...]:
        """Register values that a later iteration reads."""
        names = dict.fromkeys(read.value for op in self.spec.ops for read in op.reads if read.distance)
        return tuple(name for name in names if self.spec.value(name).home is Home.REGISTERS)


def _foreign(entry: Entry, code: str, expected: str, fixes: tuple[str, ...] = ()) -> DeclarationError:
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
    """An op of one iteration as the roles execute it: each at its own ordinal, None where a role doesn't."""

    entry: Entry
    op: LoopOp
    iteration: int
    ordinals: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.entry} of iteration {self.iteration}"


def moments_of(loop: Declared, group: Workgroup) -> Iterator[Moment]:
    """Everything that the roles execute, in the order of the program's one list."""
    program = loop.program
    ops = {op.name: op for op in loop.spec.ops}
    ordinals: dict[tuple[int, int], list[int | None]] = {}
    executed: dict[tuple[int, int], tuple[Entry, LoopOp, int]] = {}
    for role, trace in enumerate(group.traces):
        for ordinal, ((entry, trip), position) in enumerate(zip(trace.steps, trace.positions, strict=True)):
            instance = entry.effect.instance
            if instance.name:
                key = (trip, position)
                iteration = program.k_of(entry.phase, trip) + instance.iteration
                executed[key] = (entry, ops[instance.name], iteration)
                ordinals.setdefault(key, [None] * len(group.traces))[role] = ordinal
    for key, (entry, op, iteration) in sorted(executed.items(), key=lambda item: item[0]):
        yield Moment(entry, op, iteration, tuple(ordinals[key]))
