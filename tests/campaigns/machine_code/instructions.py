"""Every opcode against an oracle of its own: takes how often to try each, prints a table opcode by opcode.

Run `python -m benchmarks.instructions` from the repository's root.  Single instructions run on the interpreter and on a
second definition in plain Python (`tests/isa/plain` and the oracles beside it), over drawn registers and memory with
edges among them; drawn C functions run on the interpreter and, compiled for this machine, natively.  A NaN counts as
any other NaN; where a precision is stated instead of bits, the table says which.

Every opcode that LLVM's disassembler knows of both machines is gone through (`tests/isa/every_opcode.py`): one that the
interpreter executes must have a row, or a test of its own that `tests/isa/shown_elsewhere.py` names.  The exit status
is 1 if one has neither, or if anything is wrong.  `--arch gfx1250` asks about that machine, whose oracles are in
`tests/isa/plain_gfx12`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from time import perf_counter

from rota.isa.valu.floating import APPROXIMATE
from tests.campaigns.schedules.races import table
from tests.isa.every_opcode import every_instruction, executes
from tests.isa.plain.c_campaign import judged_functions
from tests.isa.plain.families import ARCHITECTURES, FAMILIES, Family
from tests.isa.plain_gfx12.families import FAMILIES as NEWER
from tests.isa.plain_gfx12.judge import ARCH
from tests.isa.shown_elsewhere import ELSEWHERE, ELSEWHERE_GFX1250


@dataclass(slots=True)
class Row:
    """What is known of one opcode."""

    oracle: str = "drawn C, run natively"
    devices: set[str] = field(default_factory=set)
    cases: int = 0
    kernels: int = 0
    refused: int = 0
    wrong: int = 0


@dataclass(slots=True)
class Tally:
    """All opcodes, all kernels, and what was wrong."""

    rows: defaultdict[str, Row] = field(default_factory=lambda: defaultdict(Row))
    kernels: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def families_of(arch: str) -> Sequence[Family]:
    return NEWER if arch == ARCH else FAMILIES


def elsewhere_of(arch: str) -> Mapping[str, str]:
    """Opcodes that have a test of their own, and its file."""
    return ELSEWHERE_GFX1250 if arch == ARCH else ELSEWHERE


def try_opcodes(tally: Tally, seed: int, count: int, architectures: Sequence[str] = ARCHITECTURES) -> None:
    """Single instructions of every family, on every architecture that has them."""
    names = dict.fromkeys(family.name for arch in architectures for family in families_of(arch))
    for name, arch in product(names, architectures):
        for family in families_of(arch):
            if family.name == name:
                started = perf_counter()
                _try_family(tally, family, arch, Random(f"{seed} {name} {arch}"), count)
                print(f"{name}, {arch}: {perf_counter() - started:.0f} s", file=sys.stderr, flush=True)


def _try_family(tally: Tally, family: Family, arch: str, random: Random, count: int) -> None:
    for opcode, verdict in family.judge(random, arch, family.opcodes, count):
        row = tally.rows[opcode]
        row.oracle = family.oracle
        if verdict.outcome == "refused":
            row.refused += 1
            continue
        row.devices.add(arch)
        row.cases += 1
        if verdict.outcome != "right":
            row.wrong += 1
            tally.wrong.append(f"{arch}: {verdict.text}: {verdict.outcome}")


def try_kernels(tally: Tally, seed: int, count: int, architectures: Sequence[str] = ARCHITECTURES) -> None:
    """C functions, shared among the architectures."""
    started = perf_counter()
    for number, arch in enumerate(architectures):
        for verdict in judged_functions(seed * 1000 + number, count // len(architectures), arch):
            outcome = verdict.outcome.split(":")[0]
            tally.kernels[outcome if outcome in {"right", "refused"} else "wrong"] += 1
            if outcome == "right":
                for opcode in verdict.opcodes:
                    tally.rows[opcode].kernels += 1
                    tally.rows[opcode].devices.add(arch)
            else:
                tally.wrong.append(f"{arch}: {verdict.function.name} of seed {seed}: {verdict.outcome}")
    print(f"kernels: {perf_counter() - started:.0f} s", file=sys.stderr, flush=True)


def executed_opcodes(arch: str) -> frozenset[str]:
    """Of all opcodes of a machine, those that the interpreter executes."""
    return frozenset(opcode for opcode, each in every_instruction(arch).items() if executes(each, arch))


def without_oracle(executed: Collection[str], arch: str = ARCHITECTURES[0]) -> list[str]:
    """Those of these opcodes that neither a family judges nor a test of their own."""
    judged = {opcode for family in families_of(arch) for opcode in family.opcodes}
    return sorted(opcode for opcode in executed if opcode not in judged and opcode not in elsewhere_of(arch))


def _was_tried(tally: Tally, opcode: str) -> bool:
    """Did any case or kernel of this run have it?"""
    row = tally.rows.get(opcode)
    return row is not None and bool(row.cases or row.kernels)


def lines(tally: Tally, architectures: Sequence[str] = ARCHITECTURES) -> Iterator[tuple[object, ...]]:
    """One row per opcode."""
    elsewhere = elsewhere_of(architectures[0])
    lanes = 32 if architectures[0] == ARCH else 64
    yield "opcode", "devices", "oracle", f"cases of {lanes} lanes", "in kernels", "forms refused", "wrong"
    for opcode, row in sorted(tally.rows.items()):
        if opcode in elsewhere:
            continue
        oracle = row.oracle + (f"; a machine within {APPROXIMATE[opcode]}" if opcode in APPROXIMATE else "")
        devices = " ".join(sorted(row.devices)) or "none"
        yield opcode, devices, oracle, row.cases, row.kernels, row.refused, row.wrong
    for opcode, file in sorted(elsewhere.items()):
        row = tally.rows.get(opcode) or Row()
        yield opcode, " ".join(architectures), f"a test of its own, {file}", 0, row.kernels, 0, 0


def main(arguments: Sequence[str]) -> int:
    """Draw, run both ways, print; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--count", type=int, default=12, help="cases of each opcode on each architecture")
    parser.add_argument("--kernels", type=int, default=2000, help="how many C functions to draw")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases")
    parser.add_argument("--arch", choices=(*ARCHITECTURES, ARCH), help="one machine, instead of the first two")
    options = parser.parse_args(arguments)
    tally, architectures = Tally(), (options.arch,) if options.arch else ARCHITECTURES
    try_opcodes(tally, options.seed, options.count, architectures)
    try_kernels(tally, options.seed, options.kernels, architectures)
    print(f"{table(lines(tally, architectures))}\n")
    tried = [row for row in tally.rows.values() if row.cases or row.kernels]
    alone = sum(1 for row in tried if row.cases)
    cases, refused = sum(row.cases for row in tried), sum(row.refused for row in tried)
    kernels = sum(tally.kernels.values())
    print(f"Opcodes executed: {len(tried)}, of which {alone} alone: {cases} cases, {refused} forms refused")
    print(f"C kernels: {kernels}, of which {tally.kernels['refused']} refused")
    unjudged = []
    for arch in architectures:
        executed = executed_opcodes(arch)
        untried = [opcode for opcode in executed if opcode not in elsewhere_of(arch) and not _was_tried(tally, opcode)]
        missing = sorted({*without_oracle(executed, arch), *untried})
        unjudged += missing
        print(f"{arch}: {len(every_instruction(arch))} opcodes, {len(executed)} executed, {len(missing)} unjudged")
    print(f"Wrong: {len(tally.wrong)}")
    print("\n".join([*(f"{opcode} has no oracle" for opcode in unjudged), *tally.wrong[:50]]))
    return 1 if tally.wrong or unjudged else 0
