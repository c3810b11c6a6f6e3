"""A kernel ready to run: takes its facts and its instructions, gives a `KernelProgram` of decoded steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

from rota.errors import Finding, IsaError, Severity
from rota.isa.binary.kernel_facts import LANES, KernelFacts
from rota.isa.code.disassembly import Instruction, read_listing
from rota.isa.code.endless import without_end
from rota.isa.hazards.spacing_reader import spacing_of
from rota.isa.memory.shared_memory import decode_shared
from rota.isa.memory.vector_memory import decode_memory
from rota.isa.mfma.matrix import decode_matrix
from rota.isa.valu.vector import decode_vector
from rota.isa.wave.control import decode_control
from rota.isa.wave.float_mode import unlike_ours
from rota.isa.wave.mode import aware
from rota.isa.wave.operand import unknown
from rota.isa.wave.scalar import decode_scalar
from rota.isa.wave.skip import without_skipping
from rota.isa.wave.step import Step
from rota.isa.wave.wave import COUNTERS
from rota.targets.architecture import Architecture
from rota.targets.registry import architecture_named, known_architectures

# Loads that come back in order with others on their counter, and keep nothing of what their registers held.
_IN_ORDER = re.compile(r"(?:(?:buffer|global|scratch)_load|ds_read2?(?:st64)?)_(?!.*d16)")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProgram:
    """Decoded once, run under as many interleavings as wanted; `findings` are what a reader of results must know.

    From the instructions that `endless` numbers no way leads to an end.  `image` is what is loaded with the code.
    """

    facts: KernelFacts
    architecture: Architecture
    steps: tuple[Step, ...]
    findings: tuple[Finding, ...] = ()
    endless: frozenset[int] = frozenset()
    image: bytes = b""


def load_program(facts: KernelFacts, listing: str | tuple[Instruction, ...], *, image: bytes = b"") -> KernelProgram:
    """Decodes a kernel; every instruction that isn't known is named, all of them at once.

    `image` is that of its code object, for kernels with constants or variables of their own.
    """
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
    instructions = read_listing(listing, facts.name, entry=facts.entry) if isinstance(listing, str) else listing
    instructions = without_skipping(instructions)
    places: dict[int, int] = {}
    for number, each in enumerate(instructions):
        if each.address is not None:
            places.setdefault(each.address, number)
    steps: list[Step] = []
    refused: dict[str, list[Finding]] = {}
    for instruction in instructions:
        try:
            steps.append(replace(decode(instruction, architecture, places), instruction=instruction))
        except IsaError as error:
            refused.setdefault(error.findings[0].message, []).append(error.findings[0])
    if refused:
        raise IsaError(*(_counted(each) for each in refused.values()))
    unlike = unlike_ours(facts)
    if any(finding.severity is Severity.ERROR for finding in unlike):
        raise IsaError(*unlike)
    return KernelProgram(
        facts=facts,
        architecture=architecture,
        steps=tuple(steps),
        findings=unlike,
        endless=without_end(instructions),
        image=image,
    )


def _counted(findings: list[Finding]) -> Finding:
    """The first of findings that say the same, with their number."""
    return replace(findings[0], evidence=(*findings[0].evidence, ("sites", len(findings))))


def _runs(architecture: Architecture) -> bool:
    """Has it the waves and the counters that the interpreter knows?"""
    counters = {counter.name for counter in architecture.counters}
    return architecture.lanes.value == LANES and counters == set(COUNTERS)


def decode(
    instruction: Instruction, architecture: Architecture, places: Mapping[int, int] = MappingProxyType({})
) -> Step:
    """One instruction as a step; one that isn't known is an error.

    `places` are the numbers of the kernel's instructions by address: jumps go there that a register names.
    """
    step = _decode(instruction, architecture, places)
    if instruction.opcode.startswith("s_"):
        return step
    return aware(step, lambda each: _decode(each, architecture, places))


@cache
def _extensions() -> frozenset[str]:
    """Instructions that not every machine has."""
    return frozenset(name for each in known_architectures() for name in each.extensions)


def _decode(instruction: Instruction, architecture: Architecture, places: Mapping[int, int]) -> Step:
    opcode = instruction.mnemonic
    if opcode in _extensions() and opcode not in architecture.extensions:
        raise unknown(instruction, f"place on {architecture.name}, which lacks it, so it")
    try:
        step = (
            decode_control(instruction, places, architecture)
            or decode_matrix(instruction, architecture)
            or decode_shared(instruction, architecture)
            or decode_memory(instruction, architecture)
            or decode_vector(instruction, architecture)
            or decode_scalar(instruction)
        )
    except (LookupError, ValueError) as error:  # an operand too few, or no number where one is due
        raise unknown(instruction, "form") from error
    if step is None:
        raise unknown(instruction)
    touches = step.sources if _IN_ORDER.match(instruction.opcode) else step.touches
    return replace(step, touches=touches, spacing=spacing_of(instruction, architecture))
