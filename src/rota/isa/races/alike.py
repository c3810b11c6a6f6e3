"""Races with one cause: takes findings and the code they are about, gives which of them belong together.

Where a wait or barrier is missing, every access before it races with every one behind it: many pairs of instructions,
one fault.  Pairs are alike if they break the same rule between the same two stretches of code and, where the compiler
says so, come from the same two source lines.  A stretch ends at a barrier, a branch and a place that branches go to:
within one, a wait serves all.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from rota.errors import Finding

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction

_RACES = frozenset({"I106", "I109", "I302", "I303", "I304"})
_ENDS = re.compile(r"^s_(?:barrier|branch|cbranch\w*|endpgm|setpc_b64|swappc_b64)\b")
_RANGE = re.compile(r"(\d+) to (\d+)(?P<where>.*)$")
_SPACE = re.compile(r"^\S+ ")


def stretches(instructions: Sequence[Instruction]) -> dict[int, int]:
    """By the line of each instruction, the number of its stretch."""
    targets = {each.target for each in instructions}
    found, number = {}, 0
    for place, each in enumerate(instructions):
        number += place in targets
        found[each.line] = number
        number += _ENDS.match(each.opcode) is not None
    return found


def cause_of(finding: Finding, stretch: dict[int, int]) -> Hashable:
    """Equal for findings that are alike; None if it is no race between two instructions."""
    if finding.code not in _RACES or len(finding.concerns) != 2:  # both ends
        return None
    ends = tuple((stretch.get(end.index or 0), end.source) for end in finding.concerns)
    told = dict(finding.evidence)
    what = _SPACE.sub("", finding.message)  # without the opcode
    region = _RANGE.search(str(told.get("bytes", "")))
    return finding.code, what, told.get("rests on"), region["where"] if region else "", ends


def more_like_it(findings: Sequence[Finding]) -> str:
    """What findings that are alike say together: how many, where, which bytes and waves."""
    ends = [_between(sorted({finding.concerns[end].index or 0 for finding in findings}), "#") for end in (0, 1)]
    told = [dict(finding.evidence) for finding in findings]
    waves = [_waves({str(each[name]) for each in told if name in each}) for name in ("wave", "other wave")]
    by = " with ".join(each for each in waves if each)
    ranges = [found for each in told if (found := _RANGE.search(str(each.get("bytes", ""))))]
    low, high = min(int(each[1]) for each in ranges), max(int(each[2]) for each in ranges)
    return f"{len(findings)} pairs in all, {ends[0]} with {ends[1]}; bytes from {low} to {high}; first seen by {by}"


def _between(lines: Sequence[int], mark: str) -> str:
    return f"{mark}{lines[0]}" if len(lines) == 1 else f"{mark}{lines[0]} to {mark}{lines[-1]}"


def _waves(names: set[str]) -> str:
    listed = ", ".join(sorted(names, key=lambda name: (len(name), name)))
    return f"waves {listed}" if len(names) > 1 else f"wave {listed}" if names else ""
