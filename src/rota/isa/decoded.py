"""A kernel ready to run: takes its facts and its instructions, gives a `KernelProgram` of decoded steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rota.errors import Finding, IsaError
from rota.isa.control import decode_control
from rota.isa.disassembly import Instruction, read_listing
from rota.isa.kernel_facts import LANES, KernelFacts
from rota.isa.matrix import decode_matrix
from rota.isa.mode import aware
from rota.isa.operand import unknown
from rota.isa.scalar import decode_scalar
from rota.isa.shared_memory import decode_shared
from rota.isa.spacing import spacing_of
from rota.isa.step import Step
from rota.isa.vector import decode_vector
from rota.isa.vector_memory import decode_memory
from rota.isa.wave import COUNTERS
from rota.targets.architecture import Architecture
from rota.targets.registry import architecture_named, known_architectures


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProgram:
    """Decoded once, run under as many interleavings as wanted."""

    facts: KernelFacts
    architecture: Architecture
    steps: tuple[Step, ...]


def load_program(facts: KernelFacts, listing: str | tuple[Instruction, ...]) -> KernelProgram:
    """Decodes a kernel; every instruction that isn't known is named, all of them at once."""
    architecture = architecture_named(facts.arch)
    if architecture is None or not _runs(architecture):
        names = sorted(each.arch for each in known_architectures() if _runs(each))
        raise IsaError(
            Finding(
                code="I111",
                message=f"the interpreter doesn't know {facts.arch}",
                fixes=(f"known: {', '.join(names)}",),
            )
        )
    instructions = read_listing(listing, facts.name) if isinstance(listing, str) else listing
    steps: list[Step] = []
    refused: dict[str, Finding] = {}
    for instruction in instructions:
        try:
            steps.append(decode(instruction, architecture))
        except IsaError as error:
            refused.setdefault(error.findings[0].message, error.findings[0])
    if refused:
        raise IsaError(*refused.values())
    return KernelProgram(facts=facts, architecture=architecture, steps=tuple(steps))


def _runs(architecture: Architecture) -> bool:
    """Has it the waves and the counters that the interpreter knows?"""
    counters = {counter.name for counter in architecture.counters}
    return architecture.lanes.value == LANES and counters == set(COUNTERS)


def decode(instruction: Instruction, architecture: Architecture) -> Step:
    """One instruction as a step; one that isn't known is an error."""
    step = _decode(instruction, architecture)
    return step if instruction.opcode.startswith("s_") else aware(step, lambda each: _decode(each, architecture))


def _decode(instruction: Instruction, architecture: Architecture) -> Step:
    try:
        step = (
            decode_control(instruction)
            or decode_matrix(instruction, architecture)
            or decode_shared(instruction)
            or decode_memory(instruction)
            or decode_vector(instruction, architecture)
            or decode_scalar(instruction)
        )
    except (LookupError, ValueError) as error:  # an operand too few, or no number where one is due
        raise unknown(instruction, "form") from error
    if step is None:
        raise unknown(instruction)
    return replace(step, spacing=spacing_of(instruction, architecture))
