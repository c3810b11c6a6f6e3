"""Kernels that others compiled, proved: `python -m benchmarks.check_kernels [--seconds 30] [--rows FILE] [PATTERN...]`.

Prints for each kernel the verdict, CPU seconds, the most memory so far, how many LDS sites have known addresses, and
what was found; in the end by family how many proofs came to their end, how many of these have nothing but wait states
(I104), or nothing but these and notes, the codes that were found, and which rules of wait states were broken.
Files whose paths have the first pattern in them come first.  With `--rows FILE` each kernel's findings go to the end of
that file, a line of JSON each: an object that has rows there isn't proved again, so that a batch can go on where it
ended, and the summary is of all rows that match.  With `--witness` alarms are executed.

`--history DIR` takes the objects below `hsa/gfx950` out of the newest commit of a git directory, of ROCm/aiter for one,
instead of a folder; `--every 20` proves every twentieth of them.  The last table has for each family how many objects
have nothing at *required* or above, how many have, how many are undecided by budget, and CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from rota.cli.output import plain
from rota.errors import RotaError, Severity
from rota.prove.kernel_proof import prove_object
from rota.prove.verdict import Budget, Status, Verdict
from tests.campaigns.history import list_objects, read_version
from tests.campaigns.machine_code.fixed_pairs import REQUIRED, SHOWN, ranked
from tests.campaigns.schedules.races import table
from tests.campaigns.shared_folder import shared_folder

Row = dict[str, Any]
"""A kernel's verdict as JSON has it."""
PROVED, WAITS, NOTES, OTHERS, EARLY, UNREAD = (
    "proved", "clean but for wait states", "clean but for wait states and notes", "with other alarms", "ended early",
    "not read",
)  # fmt: skip
KINDS = (PROVED, WAITS, NOTES, OTHERS, EARLY, UNREAD)
_NOTHING, _BUDGET, _NOT_MODELLED, _FOUND = "nothing at required", "undecided by budget", "not modelled", "required"
_LEVELS = (_NOTHING, _BUDGET, _NOT_MODELLED, _FOUND, UNREAD)
_WAIT_RULE = re.compile(r"^\S+ (.*?)(?: (?:[vas]\d+|\w+_lo|\w+_hi|m0))? \d+ wait states? too early$")


def family(file: Path) -> str:
    """What a shipped object is of: by its name, or by the folder below its device's; the others by their folder."""
    parts = file.stem.split("__")
    if len(parts) > 1:
        return parts[1]
    *above, folder = file.parent.parts
    below = [inner for outer, inner in pairwise((*above, folder)) if outer.startswith("gfx")]
    return below[0] if below else folder


def row_of(verdict: Verdict) -> Row:
    """What is kept of a verdict."""
    took = verdict.statistics
    return {
        "kernel": verdict.kernel, "status": verdict.status.value, "complete": not verdict.ended_early,
        "seconds": took.seconds, "sites": took.sites, "concrete_sites": took.concrete_sites,
        "levels": Counter(each.level for each in ranked(verdict)),
        "findings": plain(verdict.findings),
    }  # fmt: skip


def kind_of(row: Row) -> str:
    """Which column of the summary a row counts in: one of `KINDS`."""
    if row["status"] == UNREAD:
        return UNREAD
    if not row["complete"]:
        return EARLY
    if row["status"] == Status.PROVED.value:
        return PROVED
    rest = [finding for finding in row["findings"] if finding["code"] != "I104"]
    if not rest:
        return WAITS
    return NOTES if all(finding["severity"] == Severity.NOTE.value for finding in rest) else OTHERS


def summary(rows: Iterable[Row]) -> Iterator[str]:
    """By family and of all: how many are of which kind, and in how many a code was found; rules of wait states."""
    families: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        families[row["family"]].append(row)
    for name, members in sorted(families.items()):
        yield _line(name, members)
    every = [row for members in families.values() for row in members]
    yield _line("all", every)
    rules = Counter(rule for row in every for rule in _wait_rules(row))
    for rule, count in rules.most_common():
        yield f"wait states: {rule}: in {count}"


def _line(name: str, rows: Sequence[Row]) -> str:
    kinds = Counter(map(kind_of, rows))
    found = Counter(code for row in rows for code in {finding["code"] for finding in row["findings"]})
    complete = sum(row["complete"] for row in rows)
    told = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind])
    codes = ", ".join(f"{code} in {count}" for code, count in sorted(found.items()))
    return f"{name:24} {complete:4} of {len(rows):4} complete; {told}; {codes or 'no codes'}"


def level_table(rows: Iterable[Row]) -> str:
    """By family and of all: what is found at *required* or above; of several kernels the worst counts."""
    objects: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        objects[row["file"]].append(row)
    families: dict[str, list[list[Row]]] = defaultdict(list)
    for each in objects.values():
        for name in (each[0]["family"], "all"):
            families[name].append(each)
    head = ("family", "objects", *_LEVELS, "budget used up", "median CPU s", "most CPU s")
    told: list[tuple[object, ...]] = [head]
    for name, members in sorted(families.items(), key=lambda item: (item[0] == "all", item[0])):
        counts = Counter(max(map(_level_of, each), key=_LEVELS.index) for each in members)
        spent = sum(any(map(_spent, each)) for each in members)
        seconds = [sum(row.get("seconds", 0.0) for row in each) for each in members]
        most = f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}"
        told.append((name, len(members), *(counts[level] for level in _LEVELS), spent, *most))
    return table(told)


def _spent(row: Row) -> bool:
    return any(finding["code"] == "I402" for finding in row["findings"])


def _level_of(row: Row) -> str:
    if row["status"] == UNREAD:
        return UNREAD
    if any(row.get("levels", {}).get(level) for level in (SHOWN, REQUIRED)):
        return _FOUND
    if row["complete"]:
        return _NOTHING
    return _BUDGET if _spent(row) else _NOT_MODELLED


def _wait_rules(row: Row) -> set[str]:
    waits = (_WAIT_RULE.match(each["message"]) for each in row["findings"] if each["code"] == "I104")
    return {found[1] for found in waits if found}


def _told(row: Row) -> str:
    codes = Counter(finding["code"] for finding in row["findings"])
    found = " ".join(f"{code}x{count}" for code, count in sorted(codes.items()))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sites = f"{row['concrete_sites']}/{row['sites']}"
    return (
        f"{Path(row['file']).stem:84.84} {row['status']:12} {row['seconds']:6.1f} s {memory:5} MB {sites:>11}"
        f" {found}; {kind_of(row)}"
    )


def _proved(file: Path, name: str, options: argparse.Namespace) -> list[Row]:
    about: Row = {"file": name, "family": family(file)}
    source = file if options.history is None else read_version(options.history, "HEAD", name)
    budget = Budget(steps=options.steps, seconds=options.seconds)
    try:
        verdicts = prove_object(source, budget=budget, witness=options.witness)
    except RotaError as error:
        print(f"{file.stem:84.84} not read: {error.findings[0].message}", flush=True)
        return [about | {"kernel": "", "status": UNREAD, "complete": False, "findings": plain(error.findings)}]
    rows = [about | row_of(verdict) for verdict in verdicts]
    for row, verdict in zip(rows, verdicts, strict=True):
        print(_told(row), flush=True)
        if options.findings:
            print(*verdict.findings, sep="\n")
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Proves those whose names match a pattern."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*", default=[""], metavar="PATTERN")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--steps", type=int, default=Budget().steps)
    parser.add_argument("--folder", type=Path, default=shared_folder("kernels"))
    parser.add_argument("--history", type=Path, help="a git directory, whose newest commit has the objects")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="prove every Nth of those that match")
    parser.add_argument("--rows", type=Path, help="keep what is found here, and go on behind what is there already")
    parser.add_argument("--witness", action="store_true", help="drop what no launch can come to, execute the rest")
    parser.add_argument("--findings", action="store_true", help="print each finding in full")
    options = parser.parse_args(arguments)
    if options.history is None:
        files = sorted(each for each in options.folder.rglob("*") if each.suffix in {".co", ".hsaco"})
        named = {str(file.relative_to(options.folder)): file for file in files}
    else:
        named = {name: Path(name) for name in list_objects(options.history, "hsa/gfx950")}
    matching = dict.fromkeys(name for part in options.patterns for name, file in named.items() if part in str(file))
    wanted = [*matching][:: options.every]
    kept = options.rows.read_text().splitlines() if options.rows and options.rows.exists() else []
    rows: list[Row] = [row for row in map(json.loads, kept) if row["file"] in wanted]
    done = {row["file"] for row in rows}
    for name in wanted:
        if name in done:
            continue
        found = _proved(named[name], name, options)
        rows += found
        if options.rows:
            with options.rows.open("a") as kept_rows:
                kept_rows.write("".join(json.dumps(row) + "\n" for row in found))
    print("", *summary(rows), *(("", level_table(rows)) if rows else ()), sep="\n")
    sys.exit(0)
