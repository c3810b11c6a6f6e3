"""Wrong changes of loops of others, drawn: `rota.improve` has to refuse every one.

An instruction is moved over one that it depends on, by what the proof reads of both; a register is another one; a
branch goes one instruction too far; of a loop whose trips are cut in two, an instruction is missing or another one, two
that depend on each other change places, or a branch has another target or condition; a wait leaves one more in flight.
All but the last one are for the comparison of values, the last one for the proof, after which both kernels are executed
where it lets one through.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

from rota.errors import RotaError
from rota.improve.loop_block import LoopBlock, depends, make_nop, read_block, respell_wait
from rota.improve.patched_code import list_cuts, rotate
from rota.improve.same_kernel import find_difference
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import read_object
from rota.isa.disassembly import Instruction
from rota.lift.lifted_loop import find_loops
from rota.prove.kernel_proof import prove
from rota.prove.operation import SCC_BIT, OperationKind, read_operation
from rota.prove.slicing import derive_successors
from rota.targets.registry import architecture_named
from tests.campaigns.machine_code.improved_kernels import list_files

FOLDER = "kernels/compiled"
_HELD = frozenset({OperationKind.WAIT, OperationKind.BARRIER})
_OPPOSITE = {"s_cbranch_scc0": "s_cbranch_scc1", "s_cbranch_vccz": "s_cbranch_vccnz"}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}
_REGISTER_BITS = 1  # of an instruction's first word: the lowest of an operand


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """A kernel with a loop whose instructions may be moved."""

    file: Path
    code: CodeObject
    name: str
    instructions: tuple[Instruction, ...]
    block: LoopBlock


def read_subject(file: Path) -> Subject | None:
    """The first kernel of a file; None if its loop has no straight part."""
    code = read_object(file)
    facts = code.kernels[0]
    instructions, architecture = code.instructions(facts.name), architecture_named(facts.arch)
    assert architecture is not None
    operations = tuple(read_operation(each, number, architecture) for number, each in enumerate(instructions))
    try:
        loops = find_loops(facts.name, operations, derive_successors(operations))
        block = read_block(facts.name, instructions, loops[0].chain, architecture)
    except RotaError:
        return None
    return Subject(file=file, code=code, name=facts.name, instructions=instructions, block=block)


def draw_moved(subject: Subject, random: Random) -> list[Instruction] | None:
    """An instruction of the loop, in front of one before it that it depends on."""
    block = subject.block
    then = random.choice([each for each in block.items if block.operations[each].kind is not OperationKind.WAIT])
    firsts = [
        each for each in block.items
        if each < then and depends(block.operations[each], block.operations[then]) and _is_wrong(block, each, then)
    ]  # fmt: skip
    if not firsts:
        return None
    first = random.choice(firsts)
    order = [*range(block.first, first), then, *(each for each in range(first, block.last) if each != then)]
    return _arrange(subject, order)


def _is_wrong(block: LoopBlock, first: int, then: int) -> bool:
    """True for values and memory; the order of a queue alone, of waits and of priorities changes no value."""
    one, other = block.operations[first], block.operations[then]
    if one.writes & (other.reads | other.writes) or one.reads & other.writes:
        return True
    if {one.kind, other.kind} <= _HELD or "s_setprio" in {one.name, other.name}:
        return {one.kind, other.kind} == {OperationKind.BARRIER}
    reads = {"read", "load"}
    copies = bool(one.copies or one.to_lds) or bool(other.copies or other.to_lds)
    both_read = one.verb in reads and other.verb in reads and not copies
    exchanges = OperationKind.EXCHANGE in {one.kind, other.kind}
    same_kind = one.kind is other.kind
    return same_kind and not both_read and not exchanges and not copies


def _arrange(subject: Subject, order: Sequence[int]) -> list[Instruction]:
    """The kernel with the loop's instructions in an order, at the addresses that follow from it."""
    at = subject.instructions[subject.block.first].address or 0
    made = []
    for number in order:
        made.append(replace(subject.instructions[number], address=at))
        at += 4 * len(subject.instructions[number].encoding)
    return [*subject.instructions[: subject.block.first], *made, *subject.instructions[subject.block.last :]]


def draw_register(subject: Subject, random: Random) -> list[Instruction]:
    changed = list(subject.instructions)
    number = random.choice([each for each in subject.block.items if subject.block.operations[each].kind not in _HELD])
    word, *rest = changed[number].encoding
    changed[number] = replace(changed[number], encoding=(word ^ _REGISTER_BITS, *rest))
    return changed


def draw_branch(subject: Subject, random: Random) -> list[Instruction] | None:
    changed = list(subject.instructions)
    branches = [number for number, each in enumerate(changed) if each.target is not None]
    if not branches:
        return None
    number = random.choice(branches)
    each = changed[number]
    by = random.choice((-1, 1))
    word = each.encoding[0] & ~0xFFFF | (each.encoding[0] + by) & 0xFFFF
    changed[number] = replace(each, encoding=(word,), target=(each.target or 0) + by)
    return changed


@cache
def cut_loop(subject: Subject, number: int) -> tuple[Instruction, ...] | None:
    """The kernel with its loop cut, at one of a few places."""
    cuts = list_cuts(subject.instructions, subject.block)[1:]
    made = rotate(subject.code, subject.instructions, subject.block, cuts[number % len(cuts)]) if cuts else None
    return None if made is None else made.instructions(subject.name)


def draw_cut(subject: Subject, random: Random) -> list[Instruction] | None:
    """A cut loop with a mistake in what is executed instead of the loop."""
    listing = cut_loop(subject, random.randrange(8))
    if listing is None:
        return None
    old = {(each.address, each.encoding) for each in subject.instructions}
    changed = list(listing)
    number = random.choice(
        [
            at
            for at, each in enumerate(changed)
            if (each.address, each.encoding) not in old and not _only_takes_time(each)
        ]
    )
    each, then = changed[number], changed[number + 1 : number + 2]
    how = random.randrange(3)
    if each.target is not None and (how or each.opcode == "s_branch"):
        return _write_branch(changed, number, each.encoding[0], random.choice((-1, 1)))
    if each.target is not None:
        return _write_branch(changed, number, each.encoding[0] ^ 1 << 16, 0)
    if how == 0:
        changed[number] = replace(make_nop(each, 0), address=each.address)
    elif how == 1 and then and _depend(subject, each, then[0]):
        changed[number : number + 2] = [
            replace(then[0], address=each.address),
            replace(each, address=(each.address or 0) + 4 * len(then[0].encoding)),
        ]
    else:
        word, *rest = each.encoding
        changed[number] = replace(each, encoding=(word ^ _REGISTER_BITS, *rest))
    return changed


def _only_takes_time(each: Instruction) -> bool:
    return each.opcode in {"s_nop", "s_waitcnt", "s_barrier"}


def _write_branch(changed: list[Instruction], number: int, word: int, by: int) -> list[Instruction]:
    each = changed[number]
    word = word & ~0xFFFF | (word + by) & 0xFFFF
    opcode = each.opcode if not (word ^ each.encoding[0]) >> 16 else _OPPOSITE[each.opcode]
    changed[number] = replace(each, encoding=(word,), opcode=opcode, target=(each.target or 0) + by)
    return changed


def _depend(subject: Subject, first: Instruction, then: Instruction) -> bool:
    """True if one of them uses a register that the other one writes, by the tables of the proof."""
    if then.target is not None or _only_takes_time(then):
        return False
    one, other = (read_operation(each, 0, subject.block.architecture) for each in (first, then))
    needed = ~SCC_BIT  # a later instruction may write it again before it is read
    return bool((one.writes & (other.reads | other.writes) | one.reads & other.writes) & needed)


def judge_wait(subject: Subject, random: Random) -> str:
    """Whether the proof refuses a wait that leaves more in flight."""
    block, changed = subject.block, list(subject.instructions)
    number = random.choice([each for each in block.items if block.operations[each].kind is OperationKind.WAIT])
    operation = block.operations[number]
    counter, count = random.choice(operation.waits)
    weaker = respell_wait(operation, dict(operation.waits) | {counter: count + 1}, block.architecture)
    changed[number] = weaker or replace(changed[number], opcode="s_nop", operands=("0",), text="s_nop 0")
    verdict = prove(subject.code.kernel(subject.name), changed, stops=True)
    return "let through" if verdict.proved else "refused"


DRAWN = {
    "moved over a dependence": draw_moved,
    "another register": draw_register,
    "a branch off by one": draw_branch,
    "a wrong cut": draw_cut,
}


def judge(subject: Subject, kind: str, random: Random) -> str | None:
    changed = DRAWN[kind](subject, random)
    if changed is None:
        return None
    return "MISSED" if find_difference(subject.instructions, changed) is None else "refused"


def list_subjects(only: str = "") -> Iterator[Subject]:
    return (each for file in list_files(FOLDER, only) if (each := read_subject(file)) is not None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=12, help="of each kind and kernel; of waits a fourth")
    parser.add_argument("--only", default="", help="a part of the names of files")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    totals: Counter[tuple[str, str]] = Counter()
    for subject in list_subjects(given.only):
        random = Random(f"{given.seed} {subject.file.name}")
        for kind in DRAWN:
            for _ in range(given.most):
                if (result := judge(subject, kind, random)) is not None:
                    totals[kind, result] += 1
                    if result == "MISSED":
                        print(f"MISSED: {kind}, {subject.file.name}")
        proved = prove(subject.code.kernel(subject.name), subject.instructions, stops=True).proved
        has_waits = any(each.kind is OperationKind.WAIT for each in subject.block.operations.values())
        for _ in range(given.most // 4 if proved and has_waits else 0):
            totals["a wait too weak", judge_wait(subject, random)] += 1
    for (kind, result), count in sorted(totals.items()):
        print(f"{kind:24} {result:12} {count:6}")
    print(f"{sum(totals.values())} drawn, {sum(n for (_, each), n in totals.items() if each == 'MISSED')} missed")
    return int(any(result == "MISSED" for _, result in totals))


if __name__ == "__main__":
    sys.exit(main())
