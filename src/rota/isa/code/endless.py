"""Code that has no way to an end: takes a kernel's instructions, gives the numbers of those that lead to none.

A wave that comes to one of them runs for ever, whatever its registers hold; nobody has to wait for that to show.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rota.isa.code.flow import falls_through

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction


def without_end(instructions: Sequence[Instruction]) -> frozenset[int]:
    """The numbers from which neither an end, nor a trap, nor a jump that a register decides can be come to."""
    into: dict[int, list[int]] = defaultdict(list)
    ending = []
    for number, each in enumerate(instructions):
        follows = falls_through(each.opcode) or each.opcode == "s_call_b64"
        leads = [] if each.target is None else [each.target]
        leads += [number + 1] if follows and number + 1 < len(instructions) else []
        for to in leads:
            into[to].append(number)
        if not leads:
            ending.append(number)
    reached = set(ending)
    while ending:
        for before in into[ending.pop()]:
            if before not in reached:
                reached.add(before)
                ending.append(before)
    return frozenset(range(len(instructions))) - reached
