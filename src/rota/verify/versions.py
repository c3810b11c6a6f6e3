"""Dataflow of a loop declared by values: takes the machine before an op, gives a finding where it isn't the one due.

If every op is executed once per iteration and finds in every place the version it wants, the loop computes what its
iterations would compute one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.declare.effects import Version
from rota.errors import Concern, Finding
from rota.program.loop import LoopSteps, Step
from rota.verify.accumulate import Taken
from rota.verify.machine import AbstractMachine


def wrong_versions(machine: AbstractMachine, step: Step, k: int) -> Iterator[Finding]:
    """Every place that the op reads holds the version it wants; before the first iteration any content will do."""
    for place, wanted in step.effect.wants:
        due = wanted.at(k)
        found = machine.versions.get(place)
        if due.iteration >= 0 and found != due:
            yield Finding(
                code="V106",
                message=f"{step.entry.op} wants {due.name}, but {place} holds another version",
                concerns=(step.concern(),),
                evidence=(("due", str(due)), ("found", str(found or "nothing"))),
            )


def first_iterations(steps: LoopSteps) -> int:
    """From this k on every op of the loop and behind it wants versions of iterations that were really executed."""
    wants = (want for step in (*steps.kernel, *steps.epilogue) for _, want in step.effect.wants)
    return max((-want.iteration for want in wants), default=0)


def execute_once(machine: AbstractMachine, step: Step, instance: Version, k: int) -> Iterator[Finding]:
    """No op is executed twice for one iteration."""
    number = instance.at(k).iteration
    if not machine.executed.setdefault(instance.name, Taken()).add(number):
        yield Finding(
            code="V107",
            message=f"{step.entry.op} is executed a second time for iteration {number}",
            concerns=(step.concern(),),
            evidence=(("iteration", number),),
        )
    for place, made in step.effect.makes:
        machine.versions[place] = made.at(k)


def all_executed(machine: AbstractMachine, steps: LoopSteps, total: int) -> Iterator[Finding]:
    """At the end every op has been executed for the iterations 0 .. total - 1, and no other."""
    instances = [s.effect.instance for s in (*steps.prologue, *steps.kernel, *steps.epilogue) if s.effect.instance]
    for name in dict.fromkeys(instance.name for instance in instances):
        taken = machine.executed.get(name, Taken())
        if taken.upto != total or taken.beyond:
            yield Finding(
                code="V107",
                message=f"{name} is not executed once for each of {total} iterations",
                concerns=(Concern(label=name),),
                evidence=(("iterations from 0 without a gap", taken.upto), ("due", total)),
            )
