"""Is a repair the least there is: takes a program, gives what it costs and all that it could do without."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from rota import CompiledSchedule, FrameworkTag, OpDesc, Phase, Repair, verify
from rota.sync.repair import repair
from tests.sync.brute_force import Cost, Program, cheapest, races
from tests.sync.drawn import drawn

_LARGEST = {FrameworkTag.WAIT_VM: 62, FrameworkTag.WAIT_LGKM: 14}


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
    found = cost_of(fixed.repairs)
    if best is not None and best != found:
        return Verdict(racy, tried=True, complaint=f"costs {found}, brute force {best}")
    return Verdict(racy, tried=best is not None, complaint="")


def mended(made: CompiledSchedule) -> CompiledSchedule:
    """The program with its repairs, shown to be the least."""
    done = repair(made, made.machine, compiler_waits=made.compiler_tracks_registers)
    assert not done.cut_short
    return replace(
        made,
        prologue=done.prologue,
        kernel=done.kernel,
        epilogue=done.epilogue,
        warp_stagger_index=done.warp_stagger_index,
        repairs=done.repairs,
    )


def racy_by_proof(made: CompiledSchedule) -> bool:
    """Does the proof find a race or a wait that can't be encoded (whatever it says about values)?"""
    return any(finding.code.startswith(("R", "L")) for finding in verify(made).errors)


def cost_of(repairs: tuple[Repair, ...]) -> Cost:
    """Barriers, waits, how many of them in the loop, strength lost."""
    barriers = [r for r in repairs if r.op == OpDesc.barrier()]
    waits = [r for r in repairs if r.op != OpDesc.barrier()]
    loss = sum((r.before.wait_value if r.before else _LARGEST[FrameworkTag(r.op.tag)]) - r.op.wait_value for r in waits)
    return len(barriers), len(waits), sum(r.phase is Phase.KERNEL for r in repairs), loss


def with_less(compiled: CompiledSchedule, *, barriers: bool = True) -> Iterator[tuple[Repair, CompiledSchedule]]:
    """The program with each change left out, and with each wait's count one larger, one at a time."""
    for change in compiled.repairs:
        is_barrier = change.op == OpDesc.barrier()
        if not is_barrier:
            yield change, _with(compiled, change, change.op.but(wait_value=change.op.wait_value + 1))
        if barriers or not is_barrier:
            yield change, _with(compiled, change, change.before)


def _with(compiled: CompiledSchedule, change: Repair, op: OpDesc | None) -> CompiledSchedule:
    """Something else, or nothing, where a change stands."""
    entries = list(compiled.phase(change.phase))
    entries[change.slot : change.slot + 1] = [] if op is None else [replace(entries[change.slot], op=op, effect=None)]
    index = compiled.warp_stagger_index
    if op is None and change.phase is Phase.PROLOGUE and change.slot < index:
        index -= 1
    return replace(compiled.with_phase(change.phase, entries), warp_stagger_index=index)
