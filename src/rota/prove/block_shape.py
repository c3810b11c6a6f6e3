"""The block of a launch: takes what was asked for and what a kernel states, gives its sizes, and whether it is assumed.

Where nobody says the shape of a block, it may not matter, if the kernel doesn't look at y and z.
A work item's x, y and z stand in `v0`, ten bits each, and compilers often ask for all three and mask x out.  So bits
that y and z may decide are followed through masks and shifts; the first instruction of another kind that reads one ends
the search.  Only straight code of all lanes makes a register clean again: elsewhere, what was left there counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rota.errors import Finding, Severity
from rota.isa.binary.kernel_facts import MOST_WORK_ITEMS, KernelFacts
from rota.isa.code.disassembly import Instruction
from rota.prove.alarm import UNDECIDED, lacks
from rota.prove.operation import bits, rows_of
from rota.prove.symbol import M32

Triple = tuple[int, int, int]
_OF_BLOCKS = frozenset({"I105", "I109"})  # findings about which bytes of LDS work items use, and which waves there are
_SAY_BLOCK = "say how it is launched: --block 256, --block 16x16, or `reqd_work_group_size` in the source"
_START = {0: M32 & ~0x3FF}
_JUMPS = ("s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call")
_ENCODINGS = ("_e32", "_e64")
_INTEGER = re.compile(r"\d+|0x[0-9a-f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenBlock:
    """Work items in x, y and z, what a verdict tells of them, and, if nobody said them, what was assumed."""

    sizes: Triple
    told: tuple[str, ...] = ()
    assumed: str = ""

    def rested(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """What an assumed block decides isn't decided: another block may not have it."""
        return tuple(
            replace(
                each,
                severity=Severity.WARNING,
                evidence=(*each.evidence, (UNDECIDED, self.assumed)),
                fixes=(*each.fixes, _SAY_BLOCK),
            )
            if self.assumed and each.code in _OF_BLOCKS and lacks(each) is None
            else each
            for each in findings
        )


def choose_block(
    facts: KernelFacts, instructions: Sequence[Instruction], block: int | Triple | None = None
) -> ChosenBlock:
    """As asked for, as the kernel demands, or else the largest that it takes."""
    required, most = facts.required_workgroup, facts.max_workgroup
    if isinstance(block, tuple):
        return ChosenBlock(sizes=block, told=(f"a workgroup has {_told(block)} work items, as asked for",))
    if required is not None and len(required) == 3 and all(required) and block in {None, math.prod(required)}:
        return ChosenBlock(sizes=(required[0], required[1], required[2]))
    shaped = facts.workitem_ids > 0 and looks_further(instructions)
    chosen = (most if block is None else block, 1, 1)
    if block is None:  # the most of any kernel is what an author doesn't have to say
        told = f"a workgroup has {most} work items in one dimension, the most that the kernel takes"
        unsaid = most == MOST_WORK_ITEMS or shaped
        assumed = f"the block, which was taken as {_told(chosen)}" if unsaid else ""
    elif shaped:
        told = f"a workgroup has {block} work items, as asked for, in one dimension"
        assumed = f"the shape of a block: {block} work items were taken as {_told(chosen)}"
    else:
        told, assumed = f"a workgroup has {_told(chosen)} work items, as asked for", ""
    return ChosenBlock(sizes=chosen, told=(told,), assumed=assumed)


def _told(block: Triple) -> str:
    return " x ".join(map(str, block))


class _Source:
    """An operand: a number, or bits of a register that y and z may decide."""

    def __init__(self, text: str, tainted: dict[int, int]) -> None:
        # A float such as 1.0 is a constant too, but any of its bits may be one.
        self.number = int(text, 0) & M32 if _INTEGER.fullmatch(text) else None
        self.taint = 0
        for row in rows_of(bits(text)):
            self.taint |= tainted.get(row, 0)

    @property
    def may(self) -> int:
        """The bits that may be one."""
        return M32 if self.number is None else self.number


def looks_further(instructions: Sequence[Instruction]) -> bool:
    """May it look at more than a work item's x?"""
    tainted, straight = dict(_START), True
    for each in instructions:
        straight = straight and not each.opcode.startswith(_JUMPS) and "exec" not in each.text
        sources = [_Source(text, tainted) for text in each.operands]
        name = each.opcode
        for encoding in _ENCODINGS:
            name = name.removesuffix(encoding)
        vector = name.startswith("v_")
        follow = _FOLLOWED.get(name, _table(each) if name == "v_bitop3_b32" else None)
        read = sources[1:] if vector else sources
        taint = 0
        if any(source.taint for source in read):
            if follow is None or any(source.number is None for source in read[:1] if "rev" in name):
                return True
            taint = follow(*read) & M32
        for row in rows_of(bits(each.operands[0])) if vector and each.operands else ():
            tainted[row] = taint if straight else tainted.get(row, 0) | taint
    return False


def _masked(a: _Source, b: _Source) -> int:
    return a.taint & b.may | b.taint & a.may


def _upwards(*sources: _Source) -> int:
    """Of a sum: a carry goes to all bits above."""
    taint = 0
    for each in sources:
        taint |= each.taint
    return M32 & -(taint & -taint)


def _table(instruction: Instruction) -> Callable[..., int]:
    """v_bitop3_b32: a bit of an operand counts where the others leave it a say."""
    table = int(instruction.modifiers[0].partition(":")[2], 0)

    def follow(*sources: _Source) -> int:
        found = 0
        for place, source in enumerate(sources):
            for row in range(8):
                weight = 4 >> place
                if row & weight or (table >> row ^ table >> (row | weight)) & 1 == 0:
                    continue
                where = source.taint
                for other, each in enumerate(sources):
                    if other != place and each.number is not None:
                        where &= each.number if row & 4 >> other else ~each.number
                found |= where
        return found

    return follow


_FOLLOWED: dict[str, Callable[..., int]] = {
    "v_mov_b32": lambda a: a.taint,
    "v_and_b32": _masked,
    "v_and_or_b32": lambda a, b, c: _masked(a, b) | c.taint,
    "v_or_b32": lambda a, b: a.taint | b.taint,
    "v_or3_b32": lambda a, b, c: a.taint | b.taint | c.taint,
    "v_xor_b32": lambda a, b: a.taint | b.taint,
    "v_add_u32": _upwards,
    "v_lshlrev_b32": lambda by, a: a.taint << (by.number & 31),
    "v_lshrrev_b32": lambda by, a: a.taint >> (by.number & 31),
    "v_lshl_or_b32": lambda a, by, c: (a.taint << (by.number & 31) if by.number is not None else M32) | c.taint,
    "v_bfe_u32": lambda a, at, size: (
        M32 if at.number is None or size.number is None else a.taint >> at.number & (1 << size.number) - 1
    ),
}
"""What y and z may decide of a result; an instruction that isn't here is one that looks at them."""
