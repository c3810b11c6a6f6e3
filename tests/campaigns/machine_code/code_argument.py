"""Why an edit of a kernel that isn't launched is harmless: takes its instructions and the edit, gives a reason, or "".

Only what straight code shows: that so many memory ops are never outstanding, that a later wait covers them before any
register that a load fills is used, that the wave ends, or that another barrier stands beside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rota.isa.disassembly import Instruction
from rota.isa.wave.wave import Step
from tests.campaigns.machine_code.race_argument import Change

SLACK = "nothing more is ever outstanding there than the weaker wait lets through"
LATER = "a later wait covers it before anything uses it"
ENDS = "the wave ends before anything uses it"
BESIDE = "another barrier stands beside it"
_COUNTS = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")
_MOST = {"vmcnt": 63, "lgkmcnt": 15}
_VM = ("buffer_load", "buffer_store", "buffer_atomic", "global_", "scratch_")
_LGKM = ("ds_", "s_load", "s_buffer_load", "s_store", "s_memtime", "s_sendmsg")
_LEAVES = ("s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call", "s_endpgm", "s_barrier")


def _counts(instruction: Instruction) -> dict[str, int]:
    return {name: int(count) for name, count in _COUNTS.findall(instruction.text)}


def _counted(opcode: str) -> tuple[str, ...]:
    if opcode.startswith("flat_"):
        return ("vmcnt", "lgkmcnt")
    if opcode.startswith(_VM):
        return ("vmcnt",)
    return ("lgkmcnt",) if opcode.startswith(_LGKM) else ()


def most_outstanding(instructions: Sequence[Instruction]) -> list[dict[str, int]] | None:
    """Before each instruction, the most ops that any way to it leaves outstanding; None where jumps are by register."""
    if any(each.opcode in {"s_setpc_b64", "s_swappc_b64", "s_call_b64"} for each in instructions):
        return None
    before: list[dict[str, int] | None] = [None] * len(instructions)
    work = [(0, {"vmcnt": 0, "lgkmcnt": 0})]
    while work:
        number, coming = work.pop()
        old = before[number]
        now = coming if old is None else {name: max(old[name], coming[name]) for name in _MOST}
        if now == old:
            continue
        before[number] = now
        each = instructions[number]
        after = dict(now)
        for name in _counted(each.opcode):
            after[name] = min(after[name] + 1, _MOST[name])
        if each.opcode == "s_waitcnt":
            for name, count in _counts(each).items():
                after[name] = min(after[name], count)
        if each.target is not None:
            work.append((each.target, after))
        if not each.opcode.startswith(("s_branch", "s_endpgm")) and number + 1 < len(instructions):
            work.append((number + 1, after))
    return [each or {"vmcnt": 0, "lgkmcnt": 0} for each in before]


def code_argument(steps: Sequence[Step], place: int, change: Change) -> str:
    """A reason, or nothing."""
    instructions = [step.instruction for step in steps]
    old = instructions[place]
    if change.moved is not None:
        return ""
    if old.opcode == "s_barrier":
        return BESIDE if _beside(instructions, place) else ""
    counts = _counts(old)
    weaker = change.waits.get(place, {})
    changed = {name: count for name, count in counts.items() if weaker.get(name, _MOST[name]) != count}
    outstanding = most_outstanding(instructions)
    if outstanding is not None and all(
        outstanding[place][name] <= max(count, weaker.get(name, 0)) for name, count in changed.items()
    ):
        return SLACK
    return _covered(steps, place, changed)


def _beside(instructions: Sequence[Instruction], place: int) -> bool:
    targets = {each.target for each in instructions}
    for direction in (1, -1):
        at = place + direction
        while 0 <= at < len(instructions) and max(at, at - direction) not in targets:
            opcode = instructions[at].opcode
            if opcode == "s_barrier":
                return True
            if opcode.startswith((*_LEAVES, "s_waitcnt")) or _counted(opcode):
                break
            at += direction
    return False


def _covered(steps: Sequence[Step], place: int, changed: dict[str, int]) -> str:
    targets = {step.instruction.target for step in steps}
    filled = frozenset(row for step in steps if _counted(step.instruction.opcode) for row in step.results)
    left = dict(changed)
    for at in range(place + 1, len(steps)):
        step = steps[at]
        opcode = step.instruction.opcode
        if opcode == "s_endpgm":
            dma = any("lds" in each.instruction.modifiers or "_lds_" in each.instruction.opcode for each in steps)
            return "" if dma else ENDS
        if at in targets or opcode.startswith(_LEAVES) or _counted(opcode):
            return ""
        if opcode == "s_waitcnt":
            for name, count in _counts(step.instruction).items():
                if name in left and count <= left[name]:
                    del left[name]
            if not left:
                return LATER
        elif filled & (step.sources | step.results):
            return ""
    return ""
