"""Single edits of proved kernels for gfx1250: `python -m benchmarks.mutants_gfx1250 [--kernels REGEX] [--count N]`.

A wait is gone or weaker by one; a barrier, an arrival at a word of LDS or the loop that polls one is gone; a barrier
counts other arrivals; a copy changes places with what stands around it; a field of a tensor copy's description is
another one.  Up to `--count` of each kind are drawn for each kernel.  Every mutant goes to the proof; it is

- flagged: an alarm, a broken rule, or one source, or
- undecided: the proof lacks a fact, or doesn't come to its end, or
- redundant: proved, and several orders of execution find nothing and give the right results, or
- outside: proved, and what execution finds is none of what the proof judges: another value, waves that wait forever,
  order of global memory, or
- MISSED: proved, and execution finds what the proof judges.

Waits for vector units (s_wait_alu) aren't among them, since execution doesn't notice them.  The exit status is 1 if
any is missed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from rota.errors import Finding, IsaError, Severity
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.binary.toolchain import read_object
from rota.isa.decoded import load_program
from rota.isa.disassembly import Instruction
from rota.isa.launch.loaded_kernel import LoadedKernel
from rota.isa.opcodes import ARRIVALS, IsaFlow, MemVerb
from rota.prove.kernel_proof import prove
from rota.prove.verdict import Budget, Status
from tests.campaigns.shared_folder import shared_folder
from tests.isa.corpus.gfx1250_cases import FOLDERS, UNKNOWN, problem_of

ARCH = "gfx1250"
FLAGGED = frozenset({Status.REFUTED, Status.ALARM, Status.BROKEN, Status.ONE_SOURCE})
JUDGED = frozenset({"I103", "I104", "I105", "I106", "I109"})
KINDS = ("wait gone", "wait +1", "barrier gone", "arrival gone", "poll gone", "count", "copy moved", "description")
FATES = ("flagged", "undecided", "redundant", "outside", "MISSED")
_NO_LIMIT = frozenset({"s_wait_xcnt", "s_wait_idle"})  # what no verdict depends on, and what has no count
_ORDERS, _STEPS = 6, 60_000
_LOW = (1 << 29) - 1
_FAR = 12  # instructions that a copy is moved across at most

Code = tuple[Instruction, ...]
Mutant = tuple[str, str, Code]  # its kind, what was done, and what there is then


def edits_of(instructions: Sequence[Instruction]) -> Iterator[Mutant]:
    """Every edit of every kind."""
    code = tuple(instructions)
    for place, each in enumerate(code):
        yield from _wait_edits(code, place)
        yield from _barrier_edits(code, place)
        access = each.spec.access
        if access is not None and access.atomic in ARRIVALS:
            yield "arrival gone", each.text, without(code, place)
        if access is not None and (access.asynchronous or access.tensor):
            yield from _moves(code, place)
        if access is not None and access.tensor:
            yield from _descriptions(code, place)


def _wait_edits(code: Code, place: int) -> Iterator[Mutant]:
    each = code[place]
    if each.spec.flow is not IsaFlow.WAIT or each.mnemonic in _NO_LIMIT:
        return
    yield "wait gone", each.text, without(code, place)
    if len(each.spec.counters) == 1:
        weaker = f"{int(each.operands[0], 0) + 1:#x}"
        yield "wait +1", each.text, _with(code, place, f"{each.mnemonic} {weaker}", (weaker,))


def _barrier_edits(code: Code, place: int) -> Iterator[Mutant]:
    each = code[place]
    if each.spec.flow is IsaFlow.SIGNAL:
        end = next((at for at in range(place, len(code)) if code[at].spec.flow is IsaFlow.JOIN), None)
        if end is not None:
            yield "barrier gone", each.text, without(code, place, end)
    if each.spec.flow is IsaFlow.BRANCH and each.target is not None and each.target <= place and _polls(code, place):
        yield "poll gone", each.text, without(code, place)
    if each.operands and each.operands[-1].startswith("0x"):
        for changed in _counts(each, int(each.operands[-1], 16)):
            yield "count", f"{each.text}: {changed:#x}", _with_number(code, place, len(each.operands) - 1, changed)


def _polls(code: Code, place: int) -> bool:
    """True if a short loop ends here that reads LDS and writes nothing."""
    body = [each.spec.access for each in code[code[place].target or 0 : place]]
    reads = [each for each in body if each is not None]
    return len(body) <= _FAR and len(reads) == 1 and reads[0].verb is MemVerb.LOAD


def _counts(instruction: Instruction, number: int) -> Iterator[int]:
    """Other numbers of arrivals, if this is what a barrier counts: of a named one, or of a word of LDS."""
    names_barrier = number & 0xFFFF and 1 < number >> 16 <= 0x7F
    if instruction.mnemonic == "s_mov_b32" and instruction.operands[0] == "m0" and names_barrier:
        yield from (number - (1 << 16), number + (1 << 16))
    if instruction.mnemonic.endswith("mov_b64") and 0 < number >> 32 == number & _LOW:
        low = number & _LOW
        yield from (each | each << 32 for each in sorted({low // 2, low - 1, low + 1}))


def _moves(code: Code, place: int) -> Iterator[Mutant]:
    """A copy after or before what stands around it, as far as registers allow, across waits and barriers."""
    copy, targets = code[place], {each.target for each in code}
    for step in (-1, 1):
        for away in range(1, _FAR + 1):
            to = place + step * away
            if not 0 <= to < len(code) or not _commutes(copy, code[to]) or (to if step < 0 else to + 1) in targets:
                break
            if code[to].spec.flow is not IsaFlow.NEXT or code[to].spec.access is not None:
                order = [*range(len(code))]
                order.insert(to, order.pop(place))
                yield "copy moved", f"{copy.text} by {step * away}", _reordered(code, order)


def _commutes(copy: Instruction, other: Instruction) -> bool:
    if other.target is not None or other.spec.flow in {IsaFlow.END, IsaFlow.BRANCH, IsaFlow.JUMP}:
        return False
    return copy.registers.reads.isdisjoint(other.registers.writes)


def _reordered(code: Code, order: list[int]) -> Code:
    places = {old: new for new, old in enumerate(order)}
    moved = [code[old] for old in order]
    return tuple(each if each.target is None else replace(each, target=places[each.target]) for each in moved)


def _descriptions(code: Code, place: int) -> Iterator[Mutant]:
    """Numbers in the code from which the registers that describe a copy are made, changed in one bit."""
    needed = code[place].registers.reads
    for at in range(place - 1, max(place - 40, -1), -1):
        each = code[at]
        if each.registers.writes.isdisjoint(needed):
            continue
        numbers = [number for number, text in enumerate(each.operands) if re.fullmatch(r"0x[0-9a-f]+|\d+", text)]
        for number in numbers[:1]:
            for bit in (0, 5, 16, 20):
                changed = int(each.operands[number], 0) ^ 1 << bit
                yield "description", f"{each.text}: {changed:#x}", _with_number(code, at, number, changed)


def without(code: Sequence[Instruction], *places: int) -> Code:
    """The code with instructions that do nothing in these places."""
    return tuple(
        replace(each, opcode="s_nop", text="s_nop 0", operands=("0",), modifiers=(), target=None)
        if at in places
        else each
        for at, each in enumerate(code)
    )


def _with(code: Code, place: int, text: str, operands: tuple[str, ...]) -> Code:
    return (*code[:place], replace(code[place], text=text, operands=operands), *code[place + 1 :])


def _with_number(code: Code, place: int, operand: int, number: int) -> Code:
    each = code[place]
    operands = (*each.operands[:operand], f"{number:#x}", *each.operands[operand + 1 :])
    return _with(code, place, f"{each.opcode} {', '.join(operands)}", operands)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of one mutant."""

    kernel: str
    kind: str
    what: str
    fate: str
    why: str


def execute(path: Path, facts: KernelFacts, code: Code) -> tuple[frozenset[str], bool]:
    """What several orders of execution find, and whether the results are right."""
    problem = problem_of(path)
    try:
        result = LoadedKernel(program=load_program(facts, code)).launch(
            *problem.args, grid=problem.grid, block=problem.block, dynamic_lds=problem.dynamic_lds, orders=_ORDERS,
            check=False, most_instructions=40_000, processes=1,
        )  # fmt: skip
    except IsaError as error:
        return frozenset(finding.code for finding in error.findings), False
    errors = (_what(finding) for finding in result.findings if finding.severity is Severity.ERROR)
    return frozenset(errors), problem.off() <= 1


def _what(finding: Finding) -> str:
    """Its code; an address outside of memory isn't one outside of LDS."""
    memory = finding.code == "I105" and "LDS bytes" not in dict(finding.evidence)
    return "outside of memory" if memory else finding.code


def judge(path: Path, count: int, seed: int) -> Iterator[Fate]:
    """Mutants of one kernel; none if it isn't proved itself."""
    code, problem = read_object(path), problem_of(path)
    facts, name = code.kernel(), path.name.partition(".")[0]
    instructions = code.instructions()

    def proves(made: Code) -> Status:
        verdict = prove(
            facts, made, budget=Budget(steps=_STEPS), witness=False, dynamic_lds=problem.dynamic_lds,
            block=(problem.block, 1, 1),
        )  # fmt: skip
        return verdict.status

    if proves(instructions) is not Status.PROVED:
        return
    drawn = Random(f"{seed} {name}")  # reproducible, not secret
    found: dict[str, list[Mutant]] = {kind: [] for kind in KINDS}
    for mutant in edits_of(instructions):
        found[mutant[0]].append(mutant)
    for kind, mutants in found.items():
        for _, what, made in drawn.sample(mutants, min(count, len(mutants))):
            try:
                status = proves(made)
            except IsaError as error:  # what can't be read isn't proved
                yield Fate(kernel=name, kind=kind, what=what, fate="undecided", why=error.findings[0].code)
                continue
            if status is not Status.PROVED:
                fate = "flagged" if status in FLAGGED else "undecided"
                yield Fate(kernel=name, kind=kind, what=what, fate=fate, why=status.value)
                continue
            codes, right = execute(path, facts, made)
            fate = "MISSED" if codes & JUDGED else "redundant" if right and not codes else "outside"
            why = " ".join(sorted(codes)) or ("" if right else "values")
            yield Fate(kernel=name, kind=kind, what=what, fate=fate, why=why)


def kernels(pattern: str = "") -> list[Path]:
    """The right kernels of the corpus that can be executed and whose names have the pattern in them."""
    found = []
    for folder in FOLDERS:
        for path in sorted((shared_folder("kernels") / ARCH / folder).glob(f"*.{ARCH}.hsaco")):
            stem = path.name.partition(".")[0]
            if "_bad" not in stem and stem not in UNKNOWN and re.search(pattern, stem):
                found.append(path)
    return found


def table(fates: Sequence[Fate]) -> Iterator[str]:
    """By kind what became of how many."""
    yield f"| kind | mutants | {' | '.join(FATES)} |"
    yield "| --- " + "| ---: " * (1 + len(FATES)) + "|"
    for kind in (*KINDS, "all"):
        counts = Counter(each.fate for each in fates if kind in {each.kind, "all"})
        yield f"| {kind} | {counts.total()} | {' | '.join(str(counts[fate]) for fate in FATES)} |"


def _judge_all(job: tuple[Path, int, int]) -> tuple[list[Fate], float]:
    began = time.perf_counter()
    return [*judge(*job)], time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", default="", help="a regular expression that the kernel's name has in it")
    parser.add_argument("--count", type=int, default=8, help="of each kind, for each kernel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    jobs = [(path, options.count, options.seed) for path in kernels(options.kernels)]
    fates: list[Fate] = []
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for (path, _, _), (made, seconds) in zip(jobs, pool.imap(_judge_all, jobs), strict=True):
            fates += made
            print(f"{path.name}: {len(made)} mutants, {seconds:.0f} s", file=sys.stderr, flush=True)
    for each in fates:
        if each.fate == "MISSED":
            print(f"MISSED {each.kernel}, {each.kind}: {each.what} ({each.why})")
    print("\n".join(table(fates)))
    return int(any(each.fate == "MISSED" for each in fates))
