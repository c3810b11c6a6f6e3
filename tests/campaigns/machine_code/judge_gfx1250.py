"""What the proof says of the kernels for gfx1250 that are right or wrong by construction: prints a table.

Run `python -m benchmarks.judge_gfx1250 [FOLDER] [--each] [--mutants]` from the repository's root; without a folder,
`kernels/gfx1250` of the folder `shared`, beside the checkout or where `ROTA_SHARED` says.  `INDEX.json` there says
which kernels are wrong; those of Triton itself count as right.  One is flagged if its verdict is an alarm, a broken
rule, or one source.  With `--each` the verdict of every object is printed.  With `--mutants` each wait of the kernels
that are proved is taken away, and weakened by one, and each barrier of the workgroup is taken away, one at a time.
Nothing executes this code yet, so that of what is proved all the same it isn't known whether it is right.  The exit
status is 1 if a right one has an alarm.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rota.isa.binary.toolchain import read_object
from rota.isa.disassembly import Instruction
from rota.isa.opcodes import IsaFlow
from rota.prove.kernel_proof import prove, prove_object
from rota.prove.verdict import Budget, Status
from tests.campaigns.shared_folder import shared_folder

ARCH = "gfx1250"
FOLDERS = ("hip", "gluon", "triton", "aiter")
FLAGGED = frozenset({Status.REFUTED, Status.ALARM, Status.BROKEN, Status.ONE_SOURCE})
_STEPS, _STEPS_OF_MUTANT = 400_000, 60_000
_NO_LIMIT = frozenset({"s_wait_xcnt", "s_wait_idle"})  # what no verdict depends on, and what has no count


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One object: its folder and name, whether it is known to be wrong, its verdict and the codes of its findings."""

    folder: str
    name: str
    wrong: bool
    status: Status
    codes: tuple[str, ...]


def judge(folder: Path) -> Iterator[Judged]:
    """The verdicts of all objects for gfx1250 in the index of a folder."""
    for entry in json.loads((folder / "INDEX.json").read_text("utf-8")):
        if entry["arch"] == ARCH:
            path = folder / entry["file"]
            lds, block = _read_launch(path)
            verdicts = prove_object(path, dynamic_lds=lds, block=block, budget=Budget(steps=_STEPS))
            status = next(each for each in Status if each in {verdict.status for verdict in verdicts})
            codes = sorted({each.code for verdict in verdicts for each in verdict.findings})
            yield Judged(
                folder=path.parent.name, name=path.name, wrong=entry["status"] == "wrong", status=status,
                codes=tuple(codes),
            )  # fmt: skip


def _read_launch(path: Path) -> tuple[int | None, tuple[int, int, int] | None]:
    """The LDS that a launch by Triton adds, and its block."""
    notes = path.with_suffix(".json")
    known = json.loads(notes.read_text("utf-8")) if notes.exists() else {}
    return known.get("shared"), (known["threads"], 1, 1) if "threads" in known else None


def change(instructions: Sequence[Instruction]) -> Iterator[tuple[Instruction, ...]]:
    """The instructions with one wait or one barrier less, or one wait weaker by one."""
    for place, each in enumerate(instructions):
        name = each.mnemonic
        waits = name == "s_wait_alu" or (each.spec.flow is IsaFlow.WAIT and name not in _NO_LIMIT)
        if waits:
            yield _without(instructions, place)
        if waits and len(each.spec.counters) == 1:
            weaker = f"{int(each.operands[0], 0) + 1:#x}"
            made = replace(each, text=f"{name} {weaker}", operands=(weaker,))
            yield (*instructions[:place], made, *instructions[place + 1 :])
        if each.spec.flow is IsaFlow.SIGNAL and each.operands == ("-1",):
            rest = range(place, len(instructions))
            end = next((at for at in rest if instructions[at].spec.flow is IsaFlow.JOIN), None)
            if end is not None:
                yield _without(instructions, place, end)


def _without(instructions: Sequence[Instruction], *places: int) -> tuple[Instruction, ...]:
    return tuple(
        replace(each, opcode="s_nop", text="s_nop 0", operands=("0",), modifiers=()) if at in places else each
        for at, each in enumerate(instructions)
    )


def judge_mutants(folder: Path, proved: Sequence[Judged]) -> str:
    """What is said of the mutants of these kernels."""
    found: Counter[Status] = Counter()
    for each in proved:
        path = folder / each.folder / each.name
        code, (lds, _) = read_object(path), _read_launch(path)
        for kernel in code.kernels:
            for mutant in change(code.instructions(kernel.name)):
                found[prove(kernel, mutant, dynamic_lds=lds, budget=Budget(steps=_STEPS_OF_MUTANT)).status] += 1
    flagged = sum(found[status] for status in FLAGGED)
    return (
        f"{found.total():,} mutants of {len(proved)} kernels: {flagged:,} flagged, {found[Status.PROVED]:,} proved, "
        f"{found[Status.UNDECIDED] + found[Status.INCONCLUSIVE]:,} neither"
    )


def table_of(judged: Sequence[Judged]) -> Iterator[str]:
    titles = ("right", "proved", "undecided", "inconclusive", "flagged", "wrong", "flagged", "proved", "inconclusive")
    yield f"| kernels | {' | '.join(titles)} | undecided |"
    yield "| --- " + "| ---: " * 10 + "|"
    for folder in FOLDERS:
        right = Counter(each.status for each in judged if each.folder == folder and not each.wrong)
        wrong = Counter(each.status for each in judged if each.folder == folder and each.wrong)
        alarms, noticed = (sum(counts[status] for status in FLAGGED) for counts in (right, wrong))
        cells = (
            folder, right.total(), right[Status.PROVED], right[Status.UNDECIDED], right[Status.INCONCLUSIVE], alarms,
            wrong.total(), noticed, wrong[Status.PROVED], wrong[Status.INCONCLUSIVE], wrong[Status.UNDECIDED],
        )  # fmt: skip
        yield f"| {' | '.join(map(str, cells))} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=shared_folder("kernels") / ARCH)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--mutants", action="store_true")
    options = parser.parse_args(arguments)
    judged = []
    for each in judge(options.folder):
        judged.append(each)
        if options.each:
            print(f"{each.folder}/{each.name}: {each.status.value}; {', '.join(each.codes) or 'nothing'}", flush=True)
    print("\n".join(table_of(judged)))
    if options.mutants:
        print(
            judge_mutants(options.folder, [each for each in judged if each.status is Status.PROVED and not each.wrong])
        )
    return int(any(each.status in {Status.REFUTED, Status.ALARM} and not each.wrong for each in judged))
