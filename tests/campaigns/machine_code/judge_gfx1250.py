"""What the proof says of the kernels for gfx1250 that are right or wrong by construction: prints a table.

Run `python -m benchmarks.judge_gfx1250 [FOLDER] [--each]` from the repository's root; without a folder,
`kernels/gfx1250` of the folder `shared`, beside the checkout or where `ROTA_SHARED` says.  `INDEX.json` there says
which kernels are wrong; those of Triton itself count as right.  One is flagged if its verdict is an alarm, a broken
rule, or one source.  With `--each` the verdict of every object is printed, and which distances it breaks.  The exit
status is 1 if a right one has an alarm.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rota.prove.kernel_proof import prove_object
from rota.prove.verdict import Budget, Status
from tests.campaigns.shared_folder import shared_folder

ARCH = "gfx1250"
FOLDERS = ("hip", "gluon", "triton", "aiter")
FLAGGED = frozenset({Status.REFUTED, Status.ALARM, Status.BROKEN, Status.ONE_SOURCE})
_STEPS = 400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One object: its folder and name, whether it is known to be wrong, its verdict, and codes and rules."""

    folder: str
    name: str
    wrong: bool
    status: Status
    codes: tuple[str, ...]
    rules: tuple[str, ...]  # of distances


def judge(folder: Path) -> Iterator[Judged]:
    """The verdicts of all objects for gfx1250 in the index of a folder."""
    for entry in json.loads((folder / "INDEX.json").read_text("utf-8")):
        if entry["arch"] == ARCH:
            path = folder / entry["file"]
            lds, block = _read_launch(path)
            verdicts = prove_object(path, dynamic_lds=lds, block=block, budget=Budget(steps=_STEPS))
            status = next(each for each in Status if each in {verdict.status for verdict in verdicts})
            codes = sorted({each.code for verdict in verdicts for each in verdict.findings})
            distances = (each for verdict in verdicts for each in verdict.findings if each.code == "I104")
            rules = {str(dict(each.evidence).get("rule", "")) for each in distances}
            yield Judged(
                folder=path.parent.name, name=path.name, wrong=entry["status"] == "wrong", status=status,
                codes=tuple(codes), rules=tuple(sorted(rules)),
            )  # fmt: skip


def _read_launch(path: Path) -> tuple[int | None, tuple[int, int, int] | None]:
    """The LDS that a launch by Triton adds, and its block."""
    notes = path.with_suffix(".json")
    known = json.loads(notes.read_text("utf-8")) if notes.exists() else {}
    return known.get("shared"), (known["threads"], 1, 1) if "threads" in known else None


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
    options = parser.parse_args(arguments)
    judged = []
    for each in judge(options.folder):
        judged.append(each)
        if options.each:
            found = ", ".join((*each.codes, *each.rules)) or "nothing"
            print(f"{each.folder}/{each.name}: {each.status.value}; {found}", flush=True)
    print("\n".join(table_of(judged)))
    return int(any(each.status in {Status.REFUTED, Status.ALARM} and not each.wrong for each in judged))
