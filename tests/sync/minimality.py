"""Is a repair the least there is: takes a program, gives what it costs and all that it could do without."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from rota import CompiledSchedule, Phase, Repair, verify
from rota.program.entry import BARRIER, Entry, wait_effect, wait_op
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable, LoweredProgram
from rota.sync.repair import repair
from tests.sync.brute_force import Cost, Program, cheapest, races
from tests.sync.drawn import Drawn, drawn


class Verdict(NamedTuple):
    """What became of one drawn program: was it racy, did brute force finish, and what is wrong, if anything."""

    racy: bool
    tried: bool
    complaint: str


def judged(seed: int, longest: int) -> Verdict:
    """Repair the program of a seed and compare: with the proof, with an exhaustive search."""
    made = drawn(seed, longest)
    racy = bool(races(Program(made)))
    if racy != racy_by_proof(made):
        return Verdict(racy, tried=False, complaint="brute force and proof disagree about the program as drawn")
    fixed = mended(made)
    best = cheapest(made)
    if races(Program(fixed)) or racy_by_proof(fixed):
        return Verdict(racy, tried=True, complaint="still racy")
    found = cost_of(fixed.lowered, fixed.repairs)
    if best is not None and best != found:
        return Verdict(racy, tried=True, complaint=f"costs {found}, brute force {best}")
    return Verdict(racy, tried=best is not None, complaint="")


def mended(made: Drawn) -> Drawn:
    """The program with its repairs, shown to be the least."""
    done = repair(made.lowered)
    assert not done.cut_short
    return made.synchronised(done)


def racy_by_proof(made: Lowerable) -> bool:
    """Does the proof find a race or a wait that can't be encoded (whatever it says about values)?"""
    return any(finding.code.startswith(("R", "L")) for finding in verify(made).errors)


def cost_of(fixed: LoweredProgram, repairs: tuple[Repair, ...]) -> Cost:
    """Barriers, waits, how many of them in the loop, strength lost."""
    barriers = [r for r in repairs if r.op == BARRIER]
    loss = 0
    for change in (r for r in repairs if r.op != BARRIER):
        effect = listed(fixed, change.phase)[change.slot].effect
        assert effect.counter is not None
        before = change.count_before if change.before else fixed.machine.largest_wait(effect.counter)
        loss += before - effect.wait_value
    in_loop = sum(r.phase is Phase.KERNEL for r in repairs)
    return len(barriers), len(repairs) - len(barriers), in_loop, loss


def listed(program: LoweredProgram, phase: Phase) -> list[Entry]:
    """The entries of a phase as the schedule numbers them."""
    return [entry for entry in program.phase(phase) if entry.listed]


def with_less(compiled: CompiledSchedule, *, barriers: bool = True) -> Iterator[tuple[Repair, LoweredProgram]]:
    """The program with each change left out, and with each wait's count one larger, one at a time."""
    program = compiled.lowered
    for change in compiled.repairs:
        entry = listed(program, change.phase)[change.slot]
        counter, count = entry.effect.counter, entry.effect.wait_value + 1
        if entry.op.kind is not OpKind.BARRIER:
            assert counter is not None
            weaker = replace(entry, op=wait_op(counter, count), effect=wait_effect(counter, count))
            yield change, _with(program, entry, weaker)
        if barriers or entry.op.kind is not OpKind.BARRIER:
            yield change, _with(program, entry, change.taken_back(entry) if change.before else None)


def _with(program: LoweredProgram, entry: Entry, other: Entry | None) -> LoweredProgram:
    """Something else, or nothing, where an entry stands."""
    entries = list(program.phase(entry.phase))
    place = next(n for n, each in enumerate(entries) if each is entry)
    entries[place : place + 1] = [] if other is None else [other]
    return program.with_phases({entry.phase: entries})
