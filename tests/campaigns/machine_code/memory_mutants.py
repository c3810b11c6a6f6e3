"""Mutants of kernels that are proved to stay inside, and apart: `python -m benchmarks.memory_mutants [--most 100]`.

The kernels are the right twins of `tests/prove/footprint`.  One instruction is changed: a number by one or doubled, a
relation, an offset, a register, a sum to a difference, or it is taken away.  A mutant is *flagged* if its proof doesn't
go through, or ends early.  One that is proved all the same is executed with drawn arguments: if an access then lies
outside, or two workgroups meet, it is *missed*; if nothing shows, it is *equivalent* as far as that tells.  The exit
status is 1 if one is missed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import numpy as np

from rota.errors import RotaError
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.disassembly import read_listing
from rota.isa.launch.run import run_kernel
from rota.prove.footprint.accesses import read_accesses
from rota.prove.footprint.apart import find_overlaps
from rota.prove.footprint.bounds import Reach, judge_bounds, parse_contract
from rota.prove.footprint.known_sums import Contract
from rota.prove.footprint.polynomial import Bounds, Polynomial
from rota.prove.operation import UnknownOperationError
from rota.targets.registry import architecture_named
from tests.prove.footprint.test_apart import RANGES, TWINS as APART
from tests.prove.footprint.test_inside import TWINS as INSIDE, source

_LAUNCHES = 4
_MOST_ITEMS = 4096  # of an array in a launch
_NUMBER = re.compile(r"(?<![\w\[:.])-?(?:0x[0-9a-f]+|\d+)(?![\w\]:.])")
_RELATIONS = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "lg", "lg": "eq", "ne": "eq"}
_REGISTER = re.compile(r"\b[sv]\d+\b(?!\])")
_REPLACED = 6
_KEPT = ("s_endpgm", "s_waitcnt", "s_nop", "s_branch", "s_cbranch", "s_load")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A kernel that is proved, with what its caller promises."""

    name: str
    takes: str
    body: str
    extents: tuple[str, ...]
    ranges: tuple[str, ...]
    apart: bool
    where: tuple[str, ...] = ()


def list_subjects() -> list[Subject]:
    inside = [
        Subject(name=f"inside: {name}", takes=each.takes, body=each.right, extents=each.extents, ranges=each.ranges,
                apart=False, where=each.where)
        for name, each in INSIDE.items()
    ]  # fmt: skip
    apart = [
        Subject(name=f"apart: {name}", takes=each.takes, body=each.right, extents=(), ranges=RANGES, apart=True)
        for name, each in APART.items()
    ]
    return inside + apart


def mutate(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """What is changed, and the lines of the mutant; addresses and encodings are gone."""
    used = sorted({found[0] for line in lines for found in _REGISTER.finditer(line)})
    for at, line in enumerate(lines):
        opcode, _, operands = line.strip().partition(" ")
        if not opcode or opcode.endswith(":") or opcode.startswith(_KEPT):
            continue
        for kind, text in (*_numbers(opcode, operands), *_names(opcode, operands), *_registers(opcode, operands, used)):
            yield kind, [*lines[:at], f"\t{text}", *lines[at + 1 :]]
        yield "taken away", [*lines[:at], *lines[at + 1 :]]


def _numbers(opcode: str, operands: str) -> Iterator[tuple[str, str]]:
    for found in _NUMBER.finditer(operands):
        value = int(found[0], 0)
        for kind, changed in (("one more", value + 1), ("one less", value - 1), ("doubled", 2 * value)):
            if changed != value and -16 <= changed < 1 << 31:
                yield kind, f"{opcode} {operands[: found.start()]}{changed}{operands[found.end() :]}"


def _names(opcode: str, operands: str) -> Iterator[tuple[str, str]]:
    parts = opcode.split("_")
    if "cmp" in parts and parts[2] in _RELATIONS:
        yield "relation", f"{'_'.join([*parts[:2], _RELATIONS[parts[2]], *parts[3:]])} {operands}"
    if opcode.startswith("v_add_u32"):
        yield "difference", f"{opcode.replace('v_add', 'v_sub')} {operands}"
    if "offset:" in operands:
        yield "offset", re.sub(r"offset:(-?\d+)", lambda found: f"offset:{int(found[1]) + 4}", f"{opcode} {operands}")
    elif opcode.startswith("global_"):
        yield "offset", f"{opcode} {operands} offset:4"


def _registers(opcode: str, operands: str, used: list[str]) -> Iterator[tuple[str, str]]:
    """A register instead of the next ones of its kind that the kernel uses."""
    for found in _REGISTER.finditer(operands):
        others = [each for each in used if each[0] == found[0][0] and each != found[0]]
        for each in others[:_REPLACED]:
            yield "register", f"{opcode} {operands[: found.start()]}{each}{operands[found.end() :]}"


def is_proved(facts: KernelFacts, text: str, subject: Subject) -> bool:
    architecture = architecture_named("gfx950")
    assert architecture is not None
    kernel = read_accesses(facts, read_listing(text, facts.name), architecture)
    if kernel.refused:
        return False
    contract = parse_contract(kernel, subject.extents, subject.ranges, subject.where)
    if subject.apart:
        return not find_overlaps(kernel, contract)
    return all(each.reach is Reach.INSIDE for each in judge_bounds(kernel, contract))


def shows(facts: KernelFacts, text: str, subject: Subject, random: Random) -> set[str]:
    """What executions with drawn arguments report."""
    program = load_program(facts, text)
    found: set[str] = set()
    for _ in range(_LAUNCHES):
        args, grid = draw_launch(facts, text, subject, random)
        ended = run_kernel(program, args=args, grid=grid, block=(64, 1, 1))
        codes = {each.code for each in ended.findings}
        if "I103" in codes:  # a register that isn't waited for: the other proof's part
            continue
        outside = any(each.code == "I105" and "where" in dict(each.evidence) for each in ended.findings)
        if not subject.apart:
            found |= {"I105"} if outside else set()  # and not a place that isn't aligned
        elif not outside:  # what lies outside isn't executed
            found |= codes & {"I303", "I304"}
    return found


def draw_launch(
    facts: KernelFacts, text: str, subject: Subject, random: Random
) -> tuple[list[Any], tuple[int, int, int]]:
    """Arguments in their ranges that keep what is promised of several, with arrays of the promised sizes."""
    architecture = architecture_named("gfx950")
    assert architecture is not None
    kernel = read_accesses(facts, read_listing(text, facts.name), architecture)
    contract = parse_contract(kernel, subject.extents, subject.ranges, subject.where)
    rows = random.choice((1, 2)) if facts.workgroup_ids[1] else 1  # in an axis that isn't read, there is one
    values = [each.name for each in facts.arguments if each.kind == "by_value"]
    while True:
        numbers = {name: _draw(contract, name, random) for name in values}
        groups = random.choice((1, 2, 4))
        if all(_is_kept(relation, {**numbers, "group_x": groups - 1}) for relation in contract.relations):
            break
    args: list[Any] = []
    for each in facts.arguments:
        if each.kind == "by_value":
            args.append(np.uint32(numbers[each.name]))
        elif each.kind == "global_buffer":
            args.append(np.ones(_size(contract, each.name, numbers) // 4, np.float32))
    return args, (groups, rows, 1)


def _is_kept(relation: Polynomial, numbers: dict[str, int]) -> bool:
    return sum(factor * prod(numbers[each.text] for each in factors) for factors, factor in relation.terms) >= 0


def _draw(contract: Contract, name: str, random: Random) -> int:
    low, high = contract.ranges.get(name, Bounds(0, 256))
    return random.choice((low, low + 1, low + random.randrange(40), min(high, low + random.randrange(300))))


def _size(contract: Contract, name: str, numbers: dict[str, int]) -> int:
    if name not in contract.extents:
        return 4 * _MOST_ITEMS
    terms = contract.extents[name].terms
    return sum(factor * prod(numbers[atom.text] for atom in factors) for factors, factor in terms)


def judge(facts: KernelFacts, lines: list[str], subject: Subject, random: Random) -> str:
    text = "\n".join(lines) + "\n"
    try:
        if not is_proved(facts, text, subject):
            return "flagged"
    except (RotaError, UnknownOperationError):
        return "flagged"
    try:
        return "MISSED" if shows(facts, text, subject, random) else "equivalent"
    except RotaError:
        return "not executed"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=10_000, help="mutants of a kernel")
    parser.add_argument("--only", default="", help="a part of the names of kernels")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    totals: dict[str, Counter[str]] = {}
    start = time.perf_counter()
    for subject in (each for each in list_subjects() if given.only in each.name):
        random = Random(f"{given.seed} {subject.name}")
        facts, lines = assemble(subject)
        assert is_proved(facts, "\n".join(lines) + "\n", subject), subject.name
        mutants = list(mutate(lines))
        random.shuffle(mutants)
        for kind, changed in mutants[: given.most]:
            result = judge(facts, changed, subject, random)
            totals.setdefault(kind, Counter())[result] += 1
            if result == "MISSED":
                (new,) = set(changed) - set(lines) or {"(taken away)"}
                print(f"MISSED: {subject.name}: {kind}: {new.strip()}", flush=True)
    return print_totals(totals, ("flagged", "equivalent", "not executed", "MISSED"), time.perf_counter() - start)


def print_totals(totals: dict[str, Counter[str]], results: tuple[str, ...], seconds: float) -> int:
    """Print a line for each kind of change; 1 if a mutant is missed, else 0."""
    print(f"{'change':12}" + "".join(f"{each:>14}" for each in results))
    every = sum(totals.values(), Counter[str]())
    for kind, counts in (*sorted(totals.items()), ("all", every)):
        print(f"{kind:12}" + "".join(f"{counts[each]:14}" for each in results))
    print(f"{seconds:.0f} s")
    return 1 if every["MISSED"] else 0


def assemble(subject: Subject) -> tuple[KernelFacts, list[str]]:
    """The kernel's facts, and its listing as assembly, with labels for the targets of branches."""
    code = find_toolchain().compile(source(subject.takes, subject.body), "gfx950")
    facts = code.kernel()
    instructions = code.instructions(facts.name)
    targets = {each.target for each in instructions if each.target is not None}
    lines = [f"{facts.name}:"]
    for number, each in enumerate(instructions):
        if number in targets:
            lines.append(f"L{number}:")
        text = each.text if each.target is None else f"{each.opcode} L{each.target}"
        lines.append(f"\t{text}")
    return facts, lines


if __name__ == "__main__":
    sys.exit(main())
