"""Single edits of machine code: takes a kernel's decoded steps, gives mutants with other waits, barriers and places."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from rota.isa.decoded import KernelProgram, decode, load_program
from rota.isa.disassembly import Instruction
from rota.isa.registers import SCC_ROWS
from rota.isa.wave.wave import Step
from tests.campaigns.machine_code.race_argument import Change, Facts, rotated

KINDS = ("wait +1", "wait gone", "barrier gone", "barrier moved", "LDS offset", "DMA destination", "s_nop")
MOST_OF_A_KIND = {"wait +1": 6, "wait gone": 4, "barrier gone": 4, "barrier moved": 5, "LDS offset": 2,
                  "DMA destination": 2, "s_nop": 2}  # fmt: skip
_COUNTS = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")
_MEMORY = ("ds_", "buffer_", "global_", "flat_", "scratch_")
_SHIFT = 64  # bytes that a DMA's destination moves by


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One edit: what was done, and the kernel that it made; `change` is None if no synchronisation is touched."""

    kind: str
    place: int  # the number of the instruction
    what: str
    program: KernelProgram
    change: Change | None = None


def facts_of(program: KernelProgram) -> Facts:
    """What an argument has to know of the instructions."""
    instructions = [step.instruction for step in program.steps]
    return Facts(
        waits={number: _counts(each) for number, each in enumerate(instructions) if each.opcode == "s_waitcnt"},
        barriers=frozenset(number for number, each in enumerate(instructions) if each.opcode == "s_barrier"),
        steps=program.steps,
        keeps=frozenset(number for number, each in enumerate(instructions) if "d16" in each.opcode),
    )


def some_mutants(program: KernelProgram, executed: frozenset[int], seed: int, most: int | None = None) -> list[Mutant]:
    """Of each kind a drawn few, of instructions that the launch executes."""
    random = Random(f"{seed} {program.facts.name}")  # reproducible, not secret
    chosen: list[Mutant] = []
    for kind in KINDS:
        places = sorted(executed)
        random.shuffle(places)
        found: list[Mutant] = []
        for number in places:
            if len(found) < min(MOST_OF_A_KIND[kind], most or 99):
                found.extend([*EDITS[kind](program, number)][:1])
        chosen += found
    return chosen


def _counts(instruction: Instruction) -> dict[str, int]:
    counts = {name: int(count) for name, count in _COUNTS.findall(instruction.text)}
    assert counts, instruction.text
    return counts


def _replaced(program: KernelProgram, number: int, instruction: Instruction) -> KernelProgram:
    places = {step.instruction.address: at for at, step in enumerate(program.steps) if step.instruction.address}
    step = replace(decode(instruction, program.architecture, places), instruction=instruction)
    return replace(program, steps=(*program.steps[:number], step, *program.steps[number + 1 :]))


def _written(old: Instruction, opcode: str, *operands: str) -> Instruction:
    return replace(old, opcode=opcode, operands=operands, modifiers=(), text=f"{opcode} {', '.join(operands)}".strip())


def _waits(program: KernelProgram, number: int, *, gone: bool) -> Iterator[Mutant]:
    old = program.steps[number].instruction
    if old.opcode != "s_waitcnt":
        return
    counts = _counts(old)
    if gone:
        nothing = _replaced(program, number, _written(old, "s_nop", "0"))
        yield Mutant(
            kind="wait gone", place=number, what=f"{old.text} is gone", program=nothing,
            change=Change(gone=frozenset({number})),
        )  # fmt: skip
        return
    for name in sorted(counts, key=lambda each: (number + len(each)) % 2):
        weaker = {**counts, name: counts[name] + 1}
        text = " ".join(f"{each}({count})" for each, count in weaker.items())
        yield Mutant(
            kind="wait +1", place=number, what=f"{old.text} becomes {text}", change=Change(waits={number: weaker}),
            program=_replaced(program, number, _written(old, "s_waitcnt", text)),
        )  # fmt: skip


def _barrier_gone(program: KernelProgram, number: int) -> Iterator[Mutant]:
    old = program.steps[number].instruction
    if old.opcode == "s_barrier":
        yield Mutant(
            kind="barrier gone", place=number, what="s_barrier is gone", change=Change(gone=frozenset({number})),
            program=_replaced(program, number, _written(old, "s_nop", "0")),
        )  # fmt: skip


def _barrier_moved(program: KernelProgram, number: int) -> Iterator[Mutant]:
    """Up or down, across the next instruction that uses memory or waits; within straight code."""
    steps = program.steps
    if steps[number].instruction.opcode != "s_barrier":
        return
    targets = {step.instruction.target for step in steps}
    for direction in ((-1, 1), (1, -1))[number % 2]:
        at = number
        while 0 < at + direction < len(steps):
            low = min(at, at + direction)
            each = steps[at + direction].instruction
            if each.opcode.startswith(("s_branch", "s_cbranch", "s_endpgm", "s_barrier", "s_setpc")) or (
                low + 1 in targets
            ):
                break
            at += direction
            if each.opcode.startswith((*_MEMORY, "s_waitcnt")):
                first, last = min(number, at), max(number, at)
                part = rotated([*steps[first : last + 1]], down=direction > 0)
                yield Mutant(
                    kind="barrier moved", place=number, change=Change(moved=(number, at)),
                    what=f"s_barrier moves {'down' if direction > 0 else 'up'} across {each.text}",
                    program=replace(program, steps=(*steps[:first], *part, *steps[last + 1 :])),
                )  # fmt: skip
                break


def _offset(program: KernelProgram, number: int) -> Iterator[Mutant]:
    """LDS is read or written one dword further, or one element."""
    old = program.steps[number].instruction
    if not old.opcode.startswith(("ds_read", "ds_write")):
        return
    two = re.match(r"ds_(read|write)2", old.opcode) is not None
    name, step = ("offset0", 1) if two else ("offset", 8 if "_tr_" in old.opcode else 4)
    found = dict(modifier.partition(":")[::2] for modifier in old.modifiers)
    shifted = {**found, name: str(int(found.get(name, "0"), 0) + step)}
    modifiers = tuple(f"{each}:{value}" for each, value in shifted.items())
    if int(shifted[name]) > (255 if two else 65535):
        return
    text = f"{old.opcode} {', '.join(old.operands)} {' '.join(modifiers)}"
    yield Mutant(
        kind="LDS offset", place=number, what=f"{old.text} becomes {text}",
        program=_replaced(program, number, replace(old, modifiers=modifiers, text=text)),
    )  # fmt: skip


def _destination(program: KernelProgram, number: int) -> Iterator[Mutant]:
    """M0 before a load to LDS is set 64 bytes too high, where SCC is free to be written."""
    old = program.steps[number].instruction
    if not any(" lds" in step.instruction.text or "_lds_" in step.instruction.text for step in program.steps):
        return
    if not old.operands or old.operands[0] != "m0":
        return
    if old.opcode in {"s_add_i32", "s_add_u32"} and re.fullmatch(r"0x[0-9a-f]+|\d+", old.operands[2]):
        new = _written(old, old.opcode, *old.operands[:2], hex(int(old.operands[2], 0) + _SHIFT))
    elif old.opcode == "s_mov_b32" and _scc_is_free(program.steps, number):
        source = old.operands[1]
        if re.fullmatch(r"0x[0-9a-f]+|\d+", source):
            new = _written(old, "s_mov_b32", "m0", hex(int(source, 0) + _SHIFT))
        else:
            new = _written(old, "s_add_u32", "m0", source, hex(_SHIFT))
    else:
        return
    yield Mutant(
        kind="DMA destination", place=number, what=f"{old.text} becomes {new.text}",
        program=_replaced(program, number, new),
    )  # fmt: skip


def _scc_is_free(steps: Sequence[Step], number: int) -> bool:
    scc = SCC_ROWS
    for step in steps[number + 1 :]:
        if scc & step.sources or step.instruction.target is not None:
            return False
        if scc & step.results:
            return True
    return True


def _nop(program: KernelProgram, number: int) -> Iterator[Mutant]:
    """One wait state less."""
    old = program.steps[number].instruction
    if old.opcode != "s_nop":
        return
    states = int(old.operands[0], 0)
    if states:
        weaker = _replaced(program, number, _written(old, "s_nop", str(states - 1)))
    else:
        rest = [step.instruction for step in program.steps]
        del rest[number]
        rest = [
            each if each.target is None else replace(each, target=each.target - (each.target > number)) for each in rest
        ]
        weaker = load_program(program.facts, tuple(rest), image=program.image)
    yield Mutant(kind="s_nop", place=number, what=f"{old.text} passes a state less", program=weaker)


EDITS: dict[str, Callable[[KernelProgram, int], Iterator[Mutant]]] = {
    "wait +1": lambda program, number: _waits(program, number, gone=False),
    "wait gone": lambda program, number: _waits(program, number, gone=True),
    "barrier gone": _barrier_gone,
    "barrier moved": _barrier_moved,
    "LDS offset": _offset,
    "DMA destination": _destination,
    "s_nop": _nop,
}
"""The edits of each kind that there are at one instruction."""
