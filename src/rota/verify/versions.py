"""Dataflow of a loop's values: takes the machine before an op, gives a finding where a version isn't the one due.

If every op is executed once per iteration and finds in every place the version it wants, the loop computes what its
iterations would compute one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from rota.errors import Concern, Finding
from rota.program.effects import Place, Space, Version
from rota.program.entry import Entry
from rota.program.loop_spec import LoopSpec
from rota.program.lowered import LoweredProgram
from rota.program.phase import Phase
from rota.verify.abstract_machine import AbstractMachine
from rota.verify.accumulate import Taken
from rota.verify.declared import results, unlike_declared
from rota.verify.hazards import named
from rota.verify.impossible import impossible


class VersionContents:
    """Follows the versions of values from the ops that make them to those that want them."""

    proves = (
        "values: every op runs once per iteration and finds the version of each value that it wants; "
        "after the loop the last version of every carried value is there"
    )

    def __init__(self, program: LoweredProgram, semantics: LoopSpec) -> None:
        self.program, self.semantics = program, semantics
        self.first_iterations = first_iterations(program)
        self.ops = tuple(op.name for op in semantics.ops)
        self.results = results(semantics)

    @cached_property
    def initial(self) -> tuple[Place, ...]:
        """Places whose content before the loop is wanted; only a loop that is entered again asks for them."""
        return initial_places(self.program)

    def declared(self) -> Iterator[Finding]:
        """Entries that don't do what their op declares."""
        return unlike_declared(self.program, self.semantics)

    def impossible(self) -> Iterator[Finding]:
        """Numbers that no kernel could have."""
        return impossible(self.semantics, self.program.machine)

    def move(self, machine: AbstractMachine, step: Entry, k: int) -> Iterator[Finding]:
        """The op has run: what it wanted, and what it made."""
        yield from wrong_versions(machine, step, k)
        yield from execute_once(machine, step, k)

    def hopeless(self, machine: AbstractMachine, base: int) -> Iterator[Finding]:
        """Nothing: what an op missed is told at once."""
        return iter(())

    def ended(self, machine: AbstractMachine, total: int) -> Iterator[Finding]:
        """Ops that were not executed once per iteration, and results that are gone."""
        yield from all_executed(machine, self.ops, total)
        yield from left_behind(machine, self.results, total)


def wrong_versions(machine: AbstractMachine, step: Entry, k: int) -> Iterator[Finding]:
    """Every place that the op reads holds the version it wants.

    A place that nothing has written holds what was put there before the loop: the initial version that is the first to
    be wanted of it, and no other.
    """
    for place, wanted in step.effect.wants:
        due = wanted.at(k)
        found = machine.versions.get(place)
        if found is None and due.iteration < 0:
            machine.versions[place] = due
        elif found != due:
            lost = due.iteration < 0
            yield Finding(
                code="V106",
                message=f"{step.op} wants {'the initial ' if lost else ''}{due.name}, "
                f"but {named(place, step)} hold{'s' if place.space is Space.LDS else ''} another version",
                concerns=(step.concern(),),
                evidence=(("due", str(due)), ("found", str(found or "nothing"))),
            )


def initial_places(program: LoweredProgram) -> tuple[Place, ...]:
    """Places whose content before the loop some op wants, at some trip count."""
    reach = first_iterations(program, Phase)
    found: dict[Place, None] = {}
    for phase in Phase:
        trips = range(1) if phase is Phase.PROLOGUE else range(1, reach + 2)
        for trip in trips:
            k = program.k_of(phase, trip)
            wants = (want for step in program.phase(phase) for want in step.effect.wants)
            found |= {place: None for place, wanted in wants if wanted.at(k).iteration < 0}
    return tuple(found)


def first_iterations(program: LoweredProgram, phases: Iterable[Phase] = (Phase.KERNEL, Phase.EPILOGUE)) -> int:
    """From this k on every op of these phases wants versions of iterations that were really executed."""
    wants = (want for phase in phases for step in program.phase(phase) for _, want in step.effect.wants)
    return max((-want.iteration for want in wants), default=0)


def execute_once(machine: AbstractMachine, step: Entry, k: int) -> Iterator[Finding]:
    """No op is executed twice for one iteration."""
    instance = step.effect.instance
    number = instance.at(k).iteration
    if not machine.executed.setdefault(instance.name, Taken()).add(number):
        yield Finding(
            code="V107",
            message=f"{step.op} is executed a second time for iteration {number}",
            concerns=(step.concern(),),
            evidence=(("iteration", number),),
        )
    for place, made in step.effect.makes:
        machine.versions[place] = made.at(k)


def left_behind(machine: AbstractMachine, results: Iterable[str], total: int) -> Iterator[Finding]:
    """At the end the last version of every carried value is there for the code after the loop."""
    held = set(machine.versions.values())
    for name in results if total else ():
        last = Version(name, total - 1)
        if last not in held:
            yield Finding(
                code="V112",
                message=f"after the loop nothing holds the last {name}",
                concerns=(Concern(label=name),),
                evidence=(("due", str(last)), ("iterations", total)),
            )


def all_executed(machine: AbstractMachine, declared: Iterable[str], total: int) -> Iterator[Finding]:
    """At the end every op that was declared has been executed for the iterations 0 .. total - 1, and no other."""
    for name in dict.fromkeys((*declared, *machine.executed)):
        taken = machine.executed.get(name, Taken())
        if taken.upto != total or taken.beyond:
            yield Finding(
                code="V107",
                message=f"{name} is not executed once for each of {total} iterations",
                concerns=(Concern(label=name),),
                evidence=(("iterations from 0 without a gap", taken.upto), ("due", total)),
            )
