"""Modifiers of VALU instructions: takes the words behind the operands, gives them by name, and what op_sel chooses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rota.isa.wave.operand import unknown

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction


def fields_of(instruction: Instruction) -> dict[str, str]:
    """The modifiers by name; one without a value has the empty one."""
    return dict(modifier.partition(":")[::2] for modifier in instruction.modifiers)


def only(instruction: Instruction, known: Iterable[str]) -> dict[str, str]:
    """The modifiers by name; any but the known ones are an error."""
    fields = fields_of(instruction)
    if not fields.keys() <= set(known):
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    return fields


def flags(text: str, default: int, count: int) -> list[int]:
    """A list of bits such as [1,0]."""
    return [int(flag) for flag in text.strip("[]").split(",")] if text else [default] * count


def op_sel(instruction: Instruction, sources: int) -> tuple[int, int, int, int]:
    """The four bits of op_sel: three for sources and the last for the destination, which is printed last."""
    given = flags(only(instruction, ("op_sel",)).get("op_sel", ""), 0, 4)
    if len(given) == 4:
        return given[0], given[1], given[2], given[3]
    if len(given) == sources + 1 == 3:
        return given[0], given[1], 0, given[2]
    raise unknown(instruction, "op_sel")
