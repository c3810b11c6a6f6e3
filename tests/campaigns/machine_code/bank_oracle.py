"""Bank conflicts beside a model of the banks: `python -m benchmarks.bank_oracle [PATTERN] [--least 1000]`.

Kernels of the compiled corpus are launched as its tests launch them, and those of AITER, shipped and repaired ones,
with memory full of zeros and sizes of 64.  The interpreter says which addresses the lanes of each wave give.  A
model serves them clock by clock: each bank gives one word, to whoever wants that word, and the lanes of one group come
before those of the next.  The groups are written down here once more, from what was published about them.

What `rota lint` says of the same instruction must be that: of each wave, the clocks that are lost must be among those
that it lists, and where it knows a single number, that number.  Of widths whose groups nobody has published, the banks
alone bound the clocks: all lanes are served as one group, and never in fewer clocks than it says.  The exit status is 1
if anything differs, or if fewer than `--least` instructions were compared.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from rota.errors import RotaError
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.decoded import KernelProgram
from rota.isa.disassembly import Instruction
from rota.isa.launch import run as launching
from rota.isa.launch.interleaving import EARLIEST
from rota.isa.launch.loaded_kernel import LoadedKernel, load_kernel
from rota.isa.memory import lds_ops
from rota.isa.wave.wave import Wave
from rota.lint.kernel_report import LintOptions, lint_instructions
from rota.lint.lane_addresses import Certainty, LdsSite
from rota.prove.verdict import Budget
from tests.campaigns.machine_code.value_oracle import of_corpus
from tests.campaigns.machine_code.value_record import Launch
from tests.campaigns.shared_folder import shared_folder
from tests.isa.corpus.cases import Case, cases

FOLDER = "kernels"
_ROOM = 1 << 20  # bytes that each pointer leads to, of a kernel whose launch nobody knows
_SIZE = 64  # what its numbers are
_MOST = 6_000  # instructions of a wave
_WORD = 4

# The model.

_EIGHTS = [[0, 1, 2, 3, 20, 21, 22, 23], [4, 5, 6, 7, 16, 17, 18, 19], [8, 9, 10, 11, 28, 29, 30, 31],
           [12, 13, 14, 15, 24, 25, 26, 27]]  # fmt: skip
_SIXTEENS = [[0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27],
             [4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 28, 29, 30, 31]]  # fmt: skip


def _twice(groups: list[list[int]]) -> list[list[int]]:
    return groups + [[lane + 32 for lane in group] for group in groups]


def _in_a_row(size: int) -> list[list[int]]:
    return [[*range(start, start + size)] for start in range(0, 64, size)]


GROUPS: dict[tuple[str, str], tuple[int, list[list[int]]]] = {
    ("gfx942", "ds_read_b32"): (32, _in_a_row(32)),
    ("gfx942", "ds_read_b64"): (32, _in_a_row(16)),
    ("gfx942", "ds_read_b128"): (32, _twice(_EIGHTS)),
    ("gfx950", "ds_read_b64"): (64, _in_a_row(32)),
    ("gfx950", "ds_read_b96"): (32, _twice(_EIGHTS)),
    ("gfx950", "ds_read_b128"): (64, _twice(_SIXTEENS)),
    ("gfx950", "ds_write_b64"): (32, _in_a_row(16)),
}
"""Banks, and lanes that are served together, by architecture and instruction."""
BANKS = {"gfx942": 32, "gfx950": 64}


def serve(wanted: Sequence[set[int]], banks: int) -> int:
    """Clocks until each lane has its words: in a clock, each bank gives one word to all lanes that want it."""
    left, clocks = [set(each) for each in wanted], 0
    while any(left):
        clocks += 1
        given: dict[int, int] = {}
        for lane in left:
            for word in sorted(lane):
                given.setdefault(word % banks, word)
        for lane in left:
            lane -= set(given.values())
    return clocks


def lose(wanted: Sequence[set[int]], banks: int, groups: list[list[int]]) -> int:
    """Clocks that conflicts add: a group takes one without them."""
    return sum(max(serve([wanted[lane] for lane in group], banks) - 1, 0) for group in groups)


# What the interpreter executes.


@dataclass(slots=True)
class Addresses:
    """By line of the listing and wave, the words that each lane wants, each pattern once."""

    words: dict[tuple[int, int], set[tuple[frozenset[int], ...]]] = field(default_factory=lambda: defaultdict(set))
    texts: dict[int, str] = field(default_factory=dict)
    seen: set[tuple[int, int, bytes]] = field(default_factory=set)

    def record(self, wave: Wave, instruction: Instruction, index: NDArray[np.int64], lanes: NDArray[np.bool_]) -> None:
        key = (instruction.line, wave.number, index.tobytes() + lanes.tobytes())
        if key in self.seen or not lanes.any():
            return
        self.seen.add(key)
        self.texts[instruction.line] = instruction.text
        rows = [
            frozenset(each // _WORD for each in row) if on else frozenset()
            for row, on in zip(index.tolist(), lanes.tolist(), strict=True)
        ]
        self.words[instruction.line, wave.number].add(tuple(rows))


def record_addresses(program: KernelProgram, launch: Launch) -> Addresses:
    """Runs one workgroup; what goes wrong in it doesn't matter."""
    found, original = Addresses(), lds_ops.reach

    def reach(wave: Wave, instruction: Instruction, *rest: Any, **named: Any) -> Any:
        index, lanes = original(wave, instruction, *rest, **named)
        found.record(wave, instruction, index, lanes)
        return index, lanes

    with ExitStack() as stack:
        stack.enter_context(patch.object(launching, "run_clean", lambda *_, **__: None))
        stack.enter_context(patch.object(launching, "list_workgroups", lambda _: [(0, launch.group)]))
        stack.enter_context(patch.object(lds_ops, "reach", reach))
        stack.enter_context(suppress(RotaError))  # what ran until then is recorded
        LoadedKernel(program=program).launch(
            *launch.args, grid=launch.grid, block=launch.block, dynamic_lds=launch.dynamic_lds, orders=(EARLIEST,),
            check=False, most_instructions=_MOST, processes=1,
        )  # fmt: skip
    return found


def guess_launch(facts: KernelFacts) -> Launch:
    """Zeros that each pointer leads to, a small number for all else."""
    args: list[Any] = []
    for each in facts.arguments:
        if each.hidden:
            continue
        if each.kind == "global_buffer" or each.size == 8:
            args.append(np.zeros(_ROOM, np.uint8))
        else:
            args.append(_SIZE.to_bytes(4, "little") * max(each.size // 4, 1))
    required = facts.required_workgroup or (facts.max_workgroup, 1, 1)
    return Launch(args=args, block=(required[0], required[1], required[2]))


# The comparison.


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Instructions whose clocks agree: by a rule, by banks alone; those of which nothing is said, and what differs."""

    by_rule: int
    by_banks: int
    conflicting: int
    unknown: int
    differ: tuple[str, ...]


def compare(program: KernelProgram, launch: Launch, *, seconds: float | None = None) -> Compared:
    instructions = tuple(step.instruction for step in program.steps)
    facts = program.facts
    budget = Budget() if seconds is None else Budget(seconds=seconds)
    options = LintOptions(block=launch.block, budget=budget, dynamic_lds=launch.dynamic_lds or None)
    conflicts = lint_instructions(facts, instructions, options)
    by_line = {each.instruction.line: each for each in conflicts.sites}
    seen = record_addresses(program, launch)
    counts, differ = Counter[str](), list[str]()
    for line, text in seen.texts.items():
        patterns = {wave: rows for (at, wave), rows in seen.words.items() if at == line}
        site = by_line.get(line)
        if site is None or site.certainty in {Certainty.BY_DATA, Certainty.UNREACHED, Certainty.UNALIGNED}:
            counts["unknown"] += 1
            continue
        by_rule = site.certainty.is_counted
        check = _check_rule if by_rule else _check_banks
        wrong = check(facts.arch, site, conflicts.extras[site.number], patterns)
        counts["by rule" if by_rule else "by banks"] += 1
        counts["conflicting"] += site.conflicts
        if wrong:
            differ.append(f"{facts.name}: {text}: {wrong}")
    return Compared(
        by_rule=counts["by rule"], by_banks=counts["by banks"], conflicting=counts["conflicting"],
        unknown=counts["unknown"], differ=tuple(differ),
    )  # fmt: skip


Patterns = dict[int, set[tuple[frozenset[int], ...]]]


def _check_rule(arch: str, site: LdsSite, extras: dict[int, frozenset[int]], patterns: Patterns) -> str:
    mnemonic = site.instruction.text.partition(" ")[0]
    if (arch, mnemonic) not in GROUPS:
        return "no groups are written down"
    banks, groups = GROUPS[arch, mnemonic]
    for wave, rows in patterns.items():
        lost = {lose([set(each) for each in row], banks, groups) for row in rows}
        said = extras.get(wave, frozenset())
        if site.certainty is Certainty.AT_MOST and max(lost) <= max(said, default=-1):
            continue
        if not lost <= said:
            return f"wave {wave} loses {sorted(lost)} clocks, not {sorted(said)}"
    return ""


def _check_banks(arch: str, site: LdsSite, _: dict[int, frozenset[int]], patterns: Patterns) -> str:
    taken = [serve([set(each) for each in row], BANKS[arch]) for rows in patterns.values() for row in rows]
    if max(taken) > site.bound.clocks and site.instruction.spec.obeys_exec:
        return ""  # more lanes than are sure
    return "" if max(taken) == site.bound.clocks else f"{max(taken)} clocks, not {site.bound.clocks}"


# The campaign.


def subjects(folder: Path, pattern: str) -> Iterator[tuple[str, Case | Path]]:
    for case in cases(folder / "compiled", pattern):
        if not case.refused:
            yield case.name, case
    for path in sorted((*(folder / "aiter").glob("*.co"), *(folder / "pairs").glob("*.co"))):
        if pattern in path.name and "gfx1250" not in path.name:
            yield path.name, path


def load(subject: Case | Path) -> tuple[KernelProgram, Launch]:
    if isinstance(subject, Case):
        return of_corpus(subject)
    program = load_kernel(subject).program
    return program, guess_launch(program.facts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--least", type=int, default=1000)
    parser.add_argument("--folder", type=Path, default=shared_folder(FOLDER))
    given = parser.parse_args()
    total, differ = Counter[str](), 0
    for name, subject in subjects(given.folder, given.pattern):
        start = time.perf_counter()
        try:
            found = compare(*load(subject))
        except RotaError as error:
            total["not executed"] += 1
            print(f"{name:72} not executed: {error.findings[0].code}", flush=True)
            continue
        total += Counter({
            "kernels": 1, "by rule": found.by_rule, "by banks": found.by_banks, "conflicting": found.conflicting,
            "unknown": found.unknown,
        })  # fmt: skip
        differ += len(found.differ)
        took = time.perf_counter() - start
        print(f"{name:72} {found.by_rule:5} {found.by_banks:5} {found.unknown:5} {took:6.1f} s", flush=True)
        for each in found.differ:
            print(f"  DIFFERS {each}", flush=True)
    print(
        f"{total['by rule']} instructions by a rule and {total['by banks']} by banks alone, of {total['kernels']} "
        f"kernels: {differ} differ; {total['conflicting']} conflict, {total['unknown']} unknown, "
        f"{total['not executed']} kernels not executed"
    )
    return int(differ > 0 or total["by rule"] < given.least)
