"""Which waves come to an instruction: takes a kernel's instructions, gives it as far as a wave's number decides it.

A wave starts with its lanes' numbers in v0, in a workgroup of one dimension; arguments and memory are not known.  What
follows from known registers is computed, what a loop or a stretch that may be skipped writes is not known behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rota.errors import IsaError
from rota.isa.binary.kernel_facts import LANES
from rota.isa.decoded import decode
from rota.isa.memory.global_memory import Memory
from rota.isa.memory.lds import Lds
from rota.isa.wave.operand import SCALAR, named
from rota.isa.wave.wave import Faults, Wave

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.step import Step
    from rota.targets.architecture import Architecture

# Not memory, not matrices, not clocks; without those that write a part of a register.
_COMPUTED = re.compile(r"^(?:s_(?!load|store|buffer|scratch|atomic|mem|dcache)|v_(?!mfma|smfmac|writelane))")
# Behind these, other registers are meant than those that are named, or nothing is done at all.
_INDIRECT = ("s_set_gpr_idx", "s_setvskip", "s_movrel")
_EXEC = frozenset(named("exec").rows)


def waves_at(
    instructions: Sequence[Instruction],
    architecture: Architecture,
    waves: int,
    numbers: Sequence[int],
    *,
    reached: range = range(0),
) -> dict[int, frozenset[int] | None]:
    """For each instruction number the waves, of so many, that execute it; None where it depends on something else.

    What is to be found holds if the stretch `reached` is: branches from before it to behind it aren't taken.
    """
    indirect = any(each.opcode.startswith(_INDIRECT) for each in instructions)
    steps = [
        None if indirect and each.opcode.startswith(("v_", *_INDIRECT)) else _decoded(each, architecture)
        for each in instructions
    ]
    with np.errstate(all="ignore"):
        passed = [_Walk(steps, instructions, _started(wave, architecture), reached).passed() for wave in range(waves)]
    return {
        number: None
        if any(each[number] is None for each in passed)
        else frozenset(wave for wave, each in enumerate(passed) if each[number])
        for number in numbers
    }


def _decoded(instruction: Instruction, architecture: Architecture) -> Step | None:
    try:
        return decode(instruction, architecture)
    except IsaError:
        return None


def _started(number: int, architecture: Architecture) -> Wave:
    faults = Faults()
    wave = Wave(
        architecture=architecture,
        number=number,
        faults=faults,
        memory=Memory((), faults),
        lds=Lds(0, faults),
        at_issue=lambda: False,
    )
    wave.v[0] = number * LANES + np.arange(LANES)
    return wave


class _Walk:
    """One wave's way from top to bottom; loops are gone through once, from whatever their trips may have left."""

    def __init__(
        self, steps: Sequence[Step | None], instructions: Sequence[Instruction], wave: Wave, reached: range
    ) -> None:
        self._steps, self._instructions, self._wave, self._reached = steps, instructions, wave, reached
        self._loops = [
            range(each.target, end + 1)
            for end, each in enumerate(instructions)
            if each.target is not None and each.target <= end
        ]
        self._entered: set[range] = set()
        self._known = {0, *_EXEC}
        self._skippable = 0  # before this number, a branch that isn't known may have skipped everything

    def passed(self) -> list[bool | None]:
        """Whether the wave executes each instruction; None where that isn't known."""
        passed: list[bool | None] = [False] * len(self._steps)
        number = 0
        while number < len(self._steps):
            certain = number >= self._skippable
            passed[number] = True if certain else None
            if certain and self._instructions[number].opcode == "s_endpgm":
                break
            self._enter_loops(number)
            number = self._after(number, certain=certain)
        for loop in self._loops:
            passed[loop.start : loop.stop] = [each or None for each in passed[loop.start : loop.stop]]
        return passed

    def _enter_loops(self, number: int) -> None:
        for loop in self._loops:
            if number in loop and loop not in self._entered:
                self._entered.add(loop)
                for step in self._steps[loop.start : loop.stop]:
                    self._forget(step)

    def _after(self, number: int, *, certain: bool) -> int:
        """The number of the instruction to look at next."""
        step, target = self._steps[number], self._instructions[number].target
        if step is not None and target is not None:
            taken = (step.act(self._wave) is not None) if certain and step.sources <= self._known else None
            if taken and target > number:
                return target
            if taken is None and not self._leads_past(number, target):
                self._skippable = max(self._skippable, target)
        elif step is not None and certain and self._is_computed(step):
            step.act(self._wave)
            self._known |= step.results
        else:
            self._forget(step)
        return number + 1

    def _leads_past(self, number: int, target: int) -> bool:
        """Does a branch skip what is taken to be reached?"""
        return bool(self._reached) and number < self._reached.start and target >= self._reached.stop

    def _forget(self, step: Step | None) -> None:
        """What an instruction writes; one that isn't decoded may write anything."""
        self._known -= self._known.copy() if step is None else step.results

    def _is_computed(self, step: Step) -> bool:
        """Does the result follow from what is known?  Lanes that EXEC leaves out keep what they had."""
        instruction = step.instruction
        if _COMPUTED.match(instruction.opcode) is None or not step.sources <= self._known:
            return False
        if instruction.opcode.startswith("s_"):
            return True
        lanes = {row for row in step.results if row < SCALAR}
        whole = self._wave.mask is None or lanes <= self._known
        return whole and not instruction.modifiers and self._known >= _EXEC
