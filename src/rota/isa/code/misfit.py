"""Is a kernel launched as it was compiled: takes its descriptor, notes and instructions, gives a finding per misfit.

The notes say what the compiler meant; the descriptor is what the hardware is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rota.errors import Finding
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.code.disassembly import Instruction

_REGISTERS = re.compile(r"(?<!\w)(?P<file>[vas])(?:\[\d+:(?P<last>\d+)\]|(?P<one>\d+))(?!\w)")


def told_otherwise(facts: KernelFacts, instructions: Sequence[Instruction]) -> list[Finding]:
    """All findings about one kernel, wherever it is to run."""
    return [*_of_notes(facts), *_of_instructions(facts, instructions)]


def _of_notes(facts: KernelFacts) -> Iterator[Finding]:
    """Memory is the same number in both; registers are allocated in granules, and may be more than are used.

    Hardware doesn't ask how many bytes of arguments there are; hand-written descriptors leave the number at 0.
    """
    descriptor = facts.descriptor
    named = sum(size for _, size in facts.user_sgprs)
    for what, told, noted, fits in (
        ("bytes of LDS", descriptor.lds_bytes, facts.lds_bytes, descriptor.lds_bytes == facts.lds_bytes),
        ("bytes of private memory", descriptor.private_bytes, facts.private_bytes,
         descriptor.private_bytes == facts.private_bytes),
        ("bytes of arguments", descriptor.kernarg_bytes, facts.kernarg_bytes,
         descriptor.kernarg_bytes in {0, facts.kernarg_bytes}),
        ("vector registers", descriptor.vgprs, facts.vgprs, facts.vgprs <= descriptor.vgprs),
        ("scalar registers", descriptor.sgprs, facts.sgprs, facts.sgprs <= descriptor.sgprs),
    ):  # fmt: skip
        if not fits:
            yield _misfit(f"the kernel descriptor has {told} {what}, the notes {noted}", told, ("notes", noted))
    if descriptor.user_sgprs != named:
        message = f"the kernel descriptor counts {descriptor.user_sgprs} user SGPRs and enables {named}"
        yield _misfit(message, descriptor.user_sgprs, ("enabled", named))


def _of_instructions(facts: KernelFacts, instructions: Sequence[Instruction]) -> Iterator[Finding]:
    descriptor = facts.descriptor
    highest: dict[str, tuple[int, Instruction]] = {}
    for instruction in instructions:
        for operand in instruction.operands:
            for found in _REGISTERS.finditer(operand):
                number = int(found["last"] or found["one"])
                if number >= highest.get(found["file"], (0, instruction))[0]:
                    highest[found["file"]] = number, instruction
    rooms = {
        "v": min(descriptor.vgprs, descriptor.accum_offset),
        "a": descriptor.vgprs - descriptor.accum_offset,
        "s": descriptor.sgprs,
    }
    for file, (number, instruction) in highest.items():
        if number >= rooms[file]:
            yield _misfit(
                f"an instruction uses {file}{number}; the kernel descriptor leaves room for {max(rooms[file], 0)}",
                rooms[file],
                ("highest register", f"{file}{number}"),
                instruction,
            )
    shared = next((each for each in instructions if each.opcode == "s_barrier" or each.opcode.startswith("ds_")), None)
    if descriptor.tg_split and (shared is not None or descriptor.lds_bytes):
        message = "the kernel descriptor lets the waves of a workgroup run on several compute units, without LDS"
        yield _misfit(message, "tg_split 1", ("due", "tg_split 0"), shared)


def _misfit(
    message: str, told: int | str, other: tuple[str, int | str], instruction: Instruction | None = None
) -> Finding:
    using = [] if instruction is None else [instruction]
    return Finding(
        code="I209",
        message=message,
        concerns=tuple(each.concern() for each in using),
        evidence=(("descriptor", told), other),
    )
