"""Vector instructions that are skipped: takes instructions with s_setvskip, gives twice as many without that mode.

While VSKIP is on, vector instructions are passed over as if they were not there: they neither count nor wait (CDNA3
ISA, "S_SETVSKIP").  The second half of what is given is the code as it is then, with s_nop for each of them;
s_setvskip is a branch from one half to the other, so that nothing else has to know of the mode.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rota.isa.wave.operand import unknown

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction

SKIPPING = "skipping"
"""A modifier that no listing has: of the s_setvskip in the second half, which goes back where its bit is 0."""
_VECTOR = ("v_", "ds_", "buffer_", "tbuffer_", "global_", "flat_", "scratch_", "image_", "exp")
_MODE = re.compile(r"hwreg\(HW_REG_MODE(?:, *(?P<first>\d+), *(?P<bits>\d+))?\)")
_VSKIP = 28  # its bit
_BY_REGISTER = frozenset({"s_setpc_b64", "s_swappc_b64", "s_call_b64"})


def without_skipping(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The same instructions if none sets VSKIP, else both halves; a jump by register would not know its half.

    What s_setreg makes of that bit is followed only where it stays 0.
    """
    skips = any(each.opcode == "s_setvskip" for each in instructions)
    for each in instructions:
        if each.opcode.startswith("s_setreg") and _may_set(each, skips=skips):
            raise unknown(each, "VSKIP, a bit of MODE,")
    if not skips:
        return tuple(instructions)
    for each in instructions:
        if each.opcode in _BY_REGISTER:
            raise unknown(each, "way in code that sets VSKIP")
    count = len(instructions)
    plain = [
        replace(each, target=count + number + 1) if each.opcode == "s_setvskip" else each
        for number, each in enumerate(instructions)
    ]
    return (*plain, *(_skipped(each, number, count) for number, each in enumerate(instructions)))


def _may_set(instruction: Instruction, *, skips: bool) -> bool:
    """May an s_setreg change VSKIP?  Where s_setvskip has set it, a 0 would be a change too."""
    found = _MODE.search(instruction.text)
    first, bits = (int(found["first"] or 0), int(found["bits"] or 32)) if found else (0, 0)
    if not first <= _VSKIP < first + bits:
        return False
    try:
        return skips or bool(int(instruction.operands[-1], 0) >> _VSKIP - first & 1)
    except ValueError:  # a register
        return True


def _skipped(instruction: Instruction, number: int, count: int) -> Instruction:
    if instruction.opcode == "s_setvskip":
        return replace(instruction, target=number + 1, modifiers=(SKIPPING,))
    if instruction.opcode.startswith(_VECTOR):
        return replace(instruction, opcode="s_nop", operands=("0",), modifiers=(), target=None)
    return instruction if instruction.target is None else replace(instruction, target=instruction.target + count)
