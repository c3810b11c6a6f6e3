"""Is a kernel launched as it was compiled: takes its facts and instructions and a machine, gives a finding per misfit.

The notes say what the compiler meant; the descriptor is what the hardware is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.errors import Finding
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.code.disassembly import Instruction
from rota.isa.code.misfit import told_otherwise
from rota.program.machine import Machine


def misfits(facts: KernelFacts, instructions: Sequence[Instruction], machine: Machine) -> list[Finding]:
    """All findings about one kernel that is to run on a machine."""
    return [*_of_machine(facts, machine), *told_otherwise(facts, instructions)]


def _of_machine(facts: KernelFacts, machine: Machine) -> Iterator[Finding]:
    if facts.arch != machine.arch:
        yield Finding(
            code="I111",
            message=f"the code object is for {facts.arch}, the schedule for {machine.arch}",
            evidence=(("code object", facts.arch), ("schedule", machine.arch)),
        )
    needed, there = max(facts.descriptor.lds_bytes, facts.lds_bytes), machine.lds_bytes.value
    if needed > there:
        yield Finding(
            code="I207",
            message=f"the kernel takes more LDS than a workgroup has on {machine.arch}",
            evidence=(("LDS bytes", f"{needed}, at most {there}"),),
        )
