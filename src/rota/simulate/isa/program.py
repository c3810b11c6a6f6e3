"""A kernel ready to run: takes its facts and its instructions, gives a `KernelProgram` of decoded steps."""

from __future__ import annotations

from dataclasses import dataclass

from rota.errors import Finding, IsaError
from rota.simulate.isa.control import decode_control
from rota.simulate.isa.kernel import BY_ARCH, KernelFacts
from rota.simulate.isa.listing import Instruction, read_listing
from rota.simulate.isa.matrix import decode_matrix
from rota.simulate.isa.operand import unknown
from rota.simulate.isa.scalar import decode_scalar
from rota.simulate.isa.shared_memory import decode_shared
from rota.simulate.isa.step import Step
from rota.simulate.isa.vector import decode_vector
from rota.simulate.isa.vector_memory import decode_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProgram:
    """Decoded once, run under as many interleavings as wanted."""

    facts: KernelFacts
    steps: tuple[Step, ...]


def load_program(facts: KernelFacts, listing: str | tuple[Instruction, ...]) -> KernelProgram:
    """Decodes a kernel; every instruction that isn't known is named, all of them at once."""
    if facts.arch not in BY_ARCH:
        raise IsaError(
            Finding(
                code="I111",
                message=f"the interpreter doesn't know {facts.arch}",
                fixes=(f"known: {', '.join(sorted(BY_ARCH))}",),
            )
        )
    instructions = read_listing(listing, facts.name) if isinstance(listing, str) else listing
    steps: list[Step] = []
    refused: dict[str, Finding] = {}
    for instruction in instructions:
        try:
            steps.append(decode(instruction, facts.arch))
        except IsaError as error:
            refused.setdefault(error.findings[0].message, error.findings[0])
    if refused:
        raise IsaError(*refused.values())
    return KernelProgram(facts=facts, steps=tuple(steps))


def decode(instruction: Instruction, arch: str) -> Step:
    """One instruction as a step; one that isn't known is an error."""
    try:
        step = (
            decode_control(instruction)
            or decode_matrix(instruction, arch)
            or decode_shared(instruction)
            or decode_memory(instruction)
            or decode_vector(instruction)
            or decode_scalar(instruction)
        )
    except (LookupError, ValueError) as error:  # an operand too few, or no number where one is due
        raise unknown(instruction, "form") from error
    if step is None:
        raise unknown(instruction)
    return step
