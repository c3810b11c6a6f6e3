"""What the compiler adds to a Gluon kernel: takes its plan, gives the waits that LLVM puts before matrix instructions.

LLVM follows the LDS reads that it takes to be under way, and waits for one before its registers are used.  It doesn't
see waits that are lines of assembly, but those that it adds itself, and the one that a barrier of Gluon's takes for
all reads before it.  (LLVM, SIInsertWaitcnts: where ways meet, the newest read of each register counts.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rota.emit.addition import Addition
from rota.emit.gemm.gemm_factors import Factor
from rota.emit.gemm.gemm_instructions import LdsRead, Mfma
from rota.emit.gemm.gemm_plan import GemmPlan, Register, target
from rota.program.kinds import OpKind
from rota.program.phase import Phase

_LARGEST = 15  # that lgkmcnt's field of four bits says; LLVM waits for fewer than that


class _Step(NamedTuple):
    """What LLVM sees of one instruction: the registers it reads into or uses, or a barrier."""

    number: int
    reads: tuple[Register, ...] = ()
    uses: tuple[Register, ...] = ()
    drains: bool = False


@dataclass(slots=True)
class _UnderWay:
    """For each register that is being read into, how many reads began after its own."""

    newer: dict[Register, int] = field(default_factory=dict)

    def read(self, register: Register) -> None:
        self.newer = {each: count + 1 for each, count in self.newer.items()}
        self.newer[register] = 0

    def needed(self, uses: Sequence[Register]) -> int | None:
        counts = [self.newer[each] for each in uses if each in self.newer]
        return min(*counts, _LARGEST - 1) if counts else None

    def wait(self, count: int) -> None:
        self.newer = {each: newer for each, newer in self.newer.items() if newer < count}

    def met(self, other: _UnderWay) -> _UnderWay:
        either = self.newer.keys() | other.newer.keys()
        none = max((*self.newer.values(), *other.newer.values()), default=0)
        return _UnderWay({each: min(self.newer.get(each, none), other.newer.get(each, none)) for each in either})


_Found = dict[tuple[Phase, int, bool], int]


def additions(plan: GemmPlan) -> tuple[Addition, ...]:
    """All of them, in the order of the code."""
    steps = {phase: tuple(_steps(plan, phase)) for phase in Phase}
    found: _Found = {}
    before = _run(Phase.PROLOGUE, steps[Phase.PROLOGUE], _UnderWay(), found)
    entering = before
    while True:
        leaving = _run(Phase.KERNEL, steps[Phase.KERNEL], entering, found)
        again = entering.met(leaving)
        if again == entering:
            break
        entering = again
    _run(Phase.EPILOGUE, steps[Phase.EPILOGUE], before.met(leaving), found)
    order = list(Phase)
    keys = sorted(found, key=lambda key: (order.index(key[0]), key[1], not key[2]))
    return tuple(
        Addition(phase=key[0], before=key[1], counter="lgkmcnt", count=found[key], at_barrier=key[2]) for key in keys
    )


def _run(phase: Phase, steps: Sequence[_Step], state: _UnderWay, found: _Found) -> _UnderWay:
    """What is under way behind the steps; a wait that was found for one way in stays for all of them."""
    state = _UnderWay(dict(state.newer))
    for step in steps:
        key = phase, step.number, step.drains
        needed = (0 if state.newer else None) if step.drains else state.needed(step.uses)
        if needed is not None or key in found:
            needed = min(each for each in (needed, found.get(key)) if each is not None)
            found[key] = needed
            state.wait(needed)
        for register in step.reads:
            state.read(register)
    return state


def _steps(plan: GemmPlan, phase: Phase) -> Iterator[_Step]:
    number = 0
    for entry in plan.program.phase(phase):
        if entry.op.kind is OpKind.BARRIER:
            yield _Step(number, drains=True)
        elif entry.op.kind is OpKind.PRIORITY:
            number += 1
        for each in plan.binding.instructions(entry):
            if isinstance(each, LdsRead):
                yield _Step(number, reads=(target(each),))
            elif isinstance(each, Mfma):
                yield _Step(number, uses=tuple(use for operand in Factor for use in plan.factor(each, operand)))
            number += 1
