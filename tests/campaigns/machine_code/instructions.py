"""Every opcode against an oracle of its own: takes how often to try each, prints a table opcode by opcode.

Run `python -m benchmarks.instructions` from the repository's root.  Single instructions run on the interpreter and on a
second definition in plain Python (`tests/isa/plain` and the oracles beside it), over drawn registers and memory with
edges among them; drawn C functions run on the interpreter and, compiled for this machine, natively.  A NaN counts as
any other NaN; where a precision is stated instead of bits, the table says which.

Every opcode that LLVM's disassembler knows of both machines is gone through (`tests/isa/every_opcode.py`): one that the
interpreter executes must have a row, or a test of its own that `tests/isa/shown_elsewhere.py` names.  The exit status
is 1 if one has neither, or if anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from time import perf_counter

from rota.isa.valu.floating import APPROXIMATE
from tests.campaigns.schedules.races import table
from tests.isa.every_opcode import every_instruction, executes
from tests.isa.plain.c_campaign import judged_functions
from tests.isa.plain.families import ARCHITECTURES, FAMILIES
from tests.isa.shown_elsewhere import ELSEWHERE


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


def try_opcodes(tally: Tally, seed: int, count: int) -> None:
    """Single instructions of every family, on every architecture that has them."""
    for family in FAMILIES:
        started = perf_counter()
        for arch in ARCHITECTURES:
            random = Random(f"{seed} {family.name} {arch}")
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
        print(f"{family.name}: {perf_counter() - started:.0f} s", file=sys.stderr, flush=True)


def try_kernels(tally: Tally, seed: int, count: int) -> None:
    """C functions, shared among the architectures."""
    started = perf_counter()
    for number, arch in enumerate(ARCHITECTURES):
        for verdict in judged_functions(seed * 1000 + number, count // len(ARCHITECTURES), arch):
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


def without_oracle(executed: Collection[str]) -> list[str]:
    """Those of these opcodes that neither a family judges nor a test of their own."""
    judged = {opcode for family in FAMILIES for opcode in family.opcodes}
    return sorted(opcode for opcode in executed if opcode not in judged and opcode not in ELSEWHERE)


def _was_tried(tally: Tally, opcode: str) -> bool:
    """Did any case or kernel of this run have it?"""
    row = tally.rows.get(opcode)
    return row is not None and bool(row.cases or row.kernels)


def lines(tally: Tally) -> Iterator[tuple[object, ...]]:
    """One row per opcode."""
    yield "opcode", "devices", "oracle", "cases of 64 lanes", "in kernels", "forms refused", "wrong"
    for opcode, row in sorted(tally.rows.items()):
        if opcode in ELSEWHERE:
            continue
        oracle = row.oracle + (f"; a machine within {APPROXIMATE[opcode]}" if opcode in APPROXIMATE else "")
        devices = " ".join(sorted(row.devices)) or "none"
        yield opcode, devices, oracle, row.cases, row.kernels, row.refused, row.wrong
    for opcode, file in sorted(ELSEWHERE.items()):
        row = tally.rows.get(opcode) or Row()
        yield opcode, "gfx942 gfx950", f"a test of its own, {file}", 0, row.kernels, 0, 0


def main(arguments: Sequence[str]) -> int:
    """Draw, run both ways, print; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--count", type=int, default=12, help="cases of each opcode on each architecture")
    parser.add_argument("--kernels", type=int, default=2000, help="how many C functions to draw")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases")
    options = parser.parse_args(arguments)
    tally = Tally()
    try_opcodes(tally, options.seed, options.count)
    try_kernels(tally, options.seed, options.kernels)
    print(f"{table(lines(tally))}\n")
    tried = [row for row in tally.rows.values() if row.cases or row.kernels]
    alone = sum(1 for row in tried if row.cases)
    cases, refused = sum(row.cases for row in tried), sum(row.refused for row in tried)
    kernels = sum(tally.kernels.values())
    print(f"Opcodes executed: {len(tried)}, of which {alone} alone: {cases} cases, {refused} forms refused")
    print(f"C kernels: {kernels}, of which {tally.kernels['refused']} refused")
    unjudged = []
    for arch in ARCHITECTURES:
        executed = executed_opcodes(arch)
        untried = [opcode for opcode in executed if opcode not in ELSEWHERE and not _was_tried(tally, opcode)]
        missing = sorted({*without_oracle(executed), *untried})
        unjudged += missing
        print(f"{arch}: {len(every_instruction(arch))} opcodes, {len(executed)} executed, {len(missing)} unjudged")
    print(f"Wrong: {len(tally.wrong)}")
    print("\n".join([*(f"{opcode} has no oracle" for opcode in unjudged), *tally.wrong[:50]]))
    return 1 if tally.wrong or unjudged else 0
