"""Registers above v255: which bank of 256 an operand's eight bits mean, carried along the control flow.

`s_set_vgpr_msb` sets four banks: of the first, second and third source, and of the target (LLVM pull 191352). A memory
instruction takes its address for the first source, data that it stores for the second and third, what it loads for the
target; buffers name what they move as the target, whichever way it goes (LLVM, AMDGPULowerVGPREncoding). The state
lies in MODE, and gfx1250 writes it by accident, too: `s_setreg` of MODE writes the banks whatever field it names (LLVM
pulls 174681, 218941), and `s_set_vgpr_msb` right after that has no effect (LLVM pulls 184904, 209524). So each bank is
a set of possible ones, and an operand whose bank isn't certain is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rota.errors import IsaError
from rota.isa.disassembly import CodeLine, Instruction, instruction_of, split_line
from rota.isa.opcodes import IsaUnit, Opcode, Trait, opcode_named, returns_value
from rota.isa.registers import ACC

Banks = tuple[frozenset[int], ...]  # of the three sources and the target, in the order of their bits
SOURCE, TARGET, SLOTS = 0, 3, 4
NAMES = ("first source", "second source", "third source", "target")
_START: Banks = (frozenset({0}),) * SLOTS
_ANY: Banks = (frozenset(range(4)),) * SLOTS
_VECTOR = re.compile(r"(?<![\w.])v(?:(?P<one>\d+)|\[(?P<first>\d+):(?P<last>\d+)\])(?!\w)")
_MODE = re.compile(r"hwreg\(HW_REG_WAVE_MODE(?:, *(?P<first>\d+), *(?P<bits>\d+))?\)")
_BANK_BITS = 0xFF << 12  # of MODE


def select_banks(instructions: Sequence[Instruction], *, banked: bool) -> tuple[Instruction, ...]:
    """The instructions with the numbers of the registers that they use.

    `s_set_vgpr_msb` has no effect on what follows any more, and becomes an s_nop that keeps its text. Raises I113 where
    the bank of an operand depends on the path, or on something that isn't known.
    """
    sets = any(Trait.SETS_BANKS in each.spec.traits for each in instructions)
    if not banked or not (sets or any(map(_may_set, instructions))):
        return tuple(instructions)
    for each in instructions:
        if each.spec.flow.is_indirect or each.spec.flow.is_call:
            message = f"{each.opcode} may go where other banks of registers are selected"
            raise IsaError.of("I113", message, concerns=(each.concern(),), evidence=(("why", "a jump by registers"),))
    before = _follow(instructions)
    return tuple(_select(each, banks) for each, banks in zip(instructions, before, strict=True))


def _follow(instructions: Sequence[Instruction]) -> list[Banks | None]:
    """The possible banks before each instruction; None where no path goes."""
    before: list[Banks | None] = [None] * len(instructions)
    places = {each.address: number for number, each in enumerate(instructions) if each.address is not None}
    before[0] = _START
    work = [(0, _START)]
    while work:
        number, banks = work.pop()
        each = instructions[number]
        after = _banks_after(each, banks, instructions[number - 1] if number else None)
        following = number + 1 if each.follows is None else places.get(each.follows)
        leads = [each.target, following if each.spec.flow.falls_through else None]
        for to in leads:
            if to is None or to >= len(instructions):
                continue
            old = before[to]
            new = after if old is None else tuple(a | b for a, b in zip(old, after, strict=True))
            if new != old:
                before[to] = new
                work.append((to, new))
    return before


def _banks_after(each: Instruction, banks: Banks, previous: Instruction | None) -> Banks:
    if Trait.SETS_BANKS in each.spec.traits:
        bits = int(each.operands[0], 0)  # the high byte repeats the state before, for trap handlers
        new = tuple(frozenset({bits >> 2 * slot & 3}) for slot in range(SLOTS))
        dropped = previous is not None and _writes_mode(previous)
        return tuple(a | b for a, b in zip(banks, new, strict=True)) if dropped else new
    if not _writes_mode(each):
        return banks
    return _ANY if _may_set(each) else tuple(bank | {0} for bank in banks)


def _writes_mode(instruction: Instruction) -> bool:
    return Trait.SETS_MODE in instruction.spec.traits and _MODE.search(instruction.text) is not None


def _may_set(instruction: Instruction) -> bool:
    """True if it writes MODE, and maybe a bank other than 0."""
    found = _MODE.search(instruction.text)
    if found is None or Trait.SETS_MODE not in instruction.spec.traits:
        return False
    try:
        value = int(instruction.operands[-1], 0)
    except ValueError:  # a register
        return True
    first, bits = int(found["first"] or 0), int(found["bits"] or 32)
    return bool((value | (value & (1 << bits) - 1) << first) & _BANK_BITS)


def _select(each: Instruction, banks: Banks | None) -> Instruction:
    if banks is None:
        return each
    if Trait.SETS_BANKS in each.spec.traits:
        return replace(each, opcode="s_nop", operands=("0",))
    if banks == _START or _VECTOR.search(each.text) is None:
        return each
    parts = []
    for part in split_line(each.text):
        name, operands, modifiers = part
        slots = _slots(opcode_named(name), len(operands), tuple(modifiers))
        named = [_rename(each, text, slot, banks) for text, slot in zip(operands, slots, strict=True)]
        parts.append(" ".join((f"{name} {', '.join(named)}", *modifiers)))
    line = CodeLine(number=each.line, text=" :: ".join(parts), follows=each.follows or 0, words=each.encoding)
    return instruction_of(line, each.address, each.target, each.symbol, each.source)


def _slots(spec: Opcode, count: int, modifiers: tuple[str, ...]) -> Iterator[int | None]:
    """Which bank each operand takes; None for the scales of a product, which are in the first bank always.

    That LLVM 22 gives scales no bank agrees with shipped kernels: they copy scales to v246 and on before products whose
    other operands are above.
    """
    access = spec.access
    leading: list[int | None] = []
    if spec.unit is IsaUnit.MATRIX and not spec.targets:
        leading = [None] * count
    elif access is None:
        vector = spec.unit.computes_lanes
        targets = 0 if Trait.COMPARES_EXEC in spec.traits and count == 2 else 1 if spec.swaps else spec.targets
        leading = [TARGET] * (targets if vector else 0)
    elif access.buffer or (access.asynchronous and access.to_lds) or returns_value(access, modifiers):
        leading = [TARGET]
    sources = range(SOURCE, TARGET)
    return iter([*leading, *sources, *([None] * count)][:count])


def _rename(instruction: Instruction, text: str, slot: int | None, banks: Banks) -> str:
    if slot is None or banks[slot] == {0} or (found := _VECTOR.search(text)) is None:
        return text
    if len(banks[slot]) > 1:
        several = " or ".join(map(str, sorted(banks[slot])))
        message = f"which register {text!r} is in {instruction.text!r} depends on the path or on a write of MODE"
        raise IsaError.of(
            "I113",
            message,
            concerns=(instruction.concern(),),
            evidence=(("operand", text), ("place", NAMES[slot]), ("bank of 256 registers", several)),
            fixes=(
                "set the banks with s_set_vgpr_msb wherever paths with different banks join",
                "put an s_nop between s_setreg of MODE and s_set_vgpr_msb, and set the banks again after s_setreg",
            ),
        )
    (bank,) = banks[slot]
    first, last = int(found["one"] or found["first"]) + ACC * bank, int(found["one"] or found["last"]) + ACC * bank
    name = f"v{first}" if found["one"] else f"v[{first}:{last}]"
    return text[: found.start()] + name + text[found.end() :]
