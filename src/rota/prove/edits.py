"""Synchronisation, changed: takes instructions and edits, gives the instructions that result, branches following.

An edit adds a wait or a barrier in front of an instruction, or gives a wait another count; a wait for as much as its
counter holds, and a barrier that is taken away, become s_nop, so that nothing moves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rota.isa.code.disassembly import Instruction

BARRIER = "barrier"
_COUNTERS = ("vmcnt", "lgkmcnt")
_NOTHING = Instruction(opcode="s_nop", operands=("0",), modifiers=(), text="s_nop 0", line=0)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Edit:
    """At an instruction, by number: a wait for a counter or a barrier.

    With `inserted` it is added in front of it; otherwise it is the instruction itself that gets the count `most`, or
    that goes if there is none.
    """

    number: int
    what: str
    most: int | None = None
    inserted: bool = False

    def told(self, instructions: Sequence[Instruction]) -> str:
        """The edit in words: where, and what."""
        at = instructions[self.number]
        place = f"line {at.line}" if at.address is None else f"{at.address:#x}"
        source = "" if at.source is None else f" ({at.source.file.rpartition('/')[2]}:{at.source.line})"
        new = "s_barrier" if self.what == BARRIER else f"s_waitcnt {self.what}({self.most})"
        if self.inserted:
            return f"at {place}{source} insert `{new}` before `{at.text}`"
        if self.most is None:
            return f"at {place}{source} `{at.text}`" + ("" if self.what == BARRIER else f": its {self.what}")
        return f"at {place}{source} strengthen `{at.text}` to {self.what}({self.most})"


def edited(instructions: Sequence[Instruction], edits: Iterable[Edit]) -> tuple[Instruction, ...]:
    """The instructions with the edits made; a branch to where something was added comes to that."""
    added: defaultdict[int, list[Edit]] = defaultdict(list)
    changed = list(instructions)
    for each in sorted(set(edits), key=lambda edit: (edit.number, edit.what == BARRIER, edit.what)):
        if each.inserted:
            added[each.number].append(each)
        else:
            changed[each.number] = _changed(changed[each.number], each)
    if not added:
        return tuple(changed)
    places: list[int] = []
    found: list[Instruction] = []
    for number, instruction in enumerate(changed):
        places.append(len(found))
        found += [_new(each, instruction) for each in added.get(number, ())]
        found.append(instruction)
    return tuple(each if each.target is None else replace(each, target=places[each.target]) for each in found)


def waits_of(instruction: Instruction) -> dict[str, int]:
    """The counts of an s_waitcnt, by counter, as its text says them; numbers without names are taken apart."""
    written = instruction.text.partition(" ")[2]
    counts: dict[str, int] = {}
    for counter in _COUNTERS:
        _, found, rest = written.partition(f"{counter}(")
        if found:
            counts[counter] = int(rest.partition(")")[0])
    if not counts and written.strip()[:1].isdigit():
        word = int(written, 0)
        counts = {"vmcnt": word & 0xF | word >> 10 & 0x30, "lgkmcnt": word >> 8 & 0xF}
    return counts


def _changed(instruction: Instruction, edit: Edit) -> Instruction:
    counts = {} if edit.what == BARRIER else waits_of(instruction)
    counts.pop(edit.what, None)
    if edit.most is not None:
        counts[edit.what] = edit.most
    if not counts:
        return replace(instruction, opcode="s_nop", operands=("0",), modifiers=(), text="s_nop 0")
    return _wait(instruction, counts)


def _wait(instruction: Instruction, counts: dict[str, int]) -> Instruction:
    operand = " ".join(f"{counter}({counts[counter]})" for counter in _COUNTERS if counter in counts)
    return replace(
        instruction, opcode="s_waitcnt", operands=(operand,), modifiers=(), text=f"s_waitcnt {operand}", target=None
    )


def _new(edit: Edit, before: Instruction) -> Instruction:
    """It stands where the next one does, but has no address."""
    here = replace(_NOTHING, line=before.line, symbol=before.symbol, source=before.source)
    if edit.what == BARRIER:
        return replace(here, opcode="s_barrier", operands=(), text="s_barrier")
    return _wait(here, {edit.what: edit.most or 0})
