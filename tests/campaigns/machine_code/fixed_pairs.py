"""Kernels before and after public fixes: `python -m benchmarks.fixed_pairs [--only ID] [--history DIR] [--json]`.

Proves the objects of `kernels/pairs` in the shared folder, and says for each fix of waits, barriers and wait states at
which rank of the verdict the repaired place is, and whether it is gone afterwards.

- The disassemblies are aligned by line, with branch targets left out: equal lines, then lines of one hunk with equal
  opcodes, then lines that moved by at most 400 lines.
- A pair of instructions, at most 400 apart, is *at the repaired place* if it encloses a wait, barrier or nop that the
  fix changes, or a memory op that the fix moves or changes in more than its registers.
- It is *gone* if the second state has both instructions, and the same code isn't found between them.
- A fix is *singled out* by a cause whose pairs at the place are all gone, if the code has fewer pairs afterwards: in
  all, or at the place if a proof ended early, since then the others depend on where it stopped.

A fix that has several objects or commits counts with the best of them.  Steps of chains are printed and not counted.

With `--history DIR`, the git directory of ROCm/aiter (or `ROTA_HISTORY`), controls are proved too: commits that
repaired nothing, listed in `fixed_pairs_controls.json`.  Of these it says which causes at *required* or above came or
went: whose code is found neither between the aligned instructions nor between two of the same text.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rota.errors import RotaError
from rota.isa.binary.toolchain import read_object
from rota.prove.causes import EARLY, level_of
from rota.prove.kernel_proof import prove_object
from rota.prove.verdict import Budget, Verdict
from tests.campaigns.history import history_folder, read_version
from tests.campaigns.schedules.races import table
from tests.campaigns.shared_folder import shared_folder

SHOWN, REQUIRED, ONE_SOURCE, UNDECIDED = "shown", "required", "one source", "undecided"
LEVELS = (SHOWN, REQUIRED, ONE_SOURCE, UNDECIDED)
NEAR = 400
"""The most lines between two instructions of a pair at the repaired place, and that a line moves."""
FIRST_SCREEN = 3
SAME_FIX = {"2471first": "2471", "c84690d": "ccf37eb", "c1d42b1": "c840be9"}
"""Commits that belong to the fix of another: a pull's first form, another tile, and the second half of a repair."""
CONTROLS = Path(__file__).with_name("fixed_pairs_controls.json")
_HELD = "failed->after"  # the step of a chain from a fix that was reverted to the one that held
_TARGETS = frozenset({"gfx942", "gfx950"})
_SYNC = ("s_waitcnt", "s_wait_", "s_barrier", "s_nop")
_MEMORY = ("ds_", "buffer_", "global_", "flat_", "scratch_")
_REGISTER = re.compile(r"\b[vas](?:\d+|\[\d+:\d+\])")

Pair = tuple[int, int]
"""Two instructions by number, the smaller first; twice the same if a finding is about one."""


# What a verdict says.


class Ranked(NamedTuple):
    rank: int
    level: str
    code: str
    pairs: tuple[tuple[int, ...], ...]  # lines of the listing


def ranked(verdict: Verdict) -> list[Ranked]:
    """The causes that a verdict found, in its own order; notes and early ends are none."""
    found = [
        (finding.code, level.value, pairs)
        for finding, pairs in zip(verdict.findings, verdict.pairs, strict=True)
        if (level := level_of(finding)) is not None and finding.code not in EARLY
    ]
    return [Ranked(rank, level, code, pairs) for rank, (code, level, pairs) in enumerate(found, 1)]


# Alignment.


class Change(NamedTuple):
    """A changed instruction: one of the first state, or one that was inserted before that one."""

    at: int
    text: str
    inserted: bool

    def is_between(self, pair: Pair) -> bool:
        return pair[0] + self.inserted <= self.at <= pair[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """`to` gives the numbers of the instructions that both states have; `places` are changes that repair something."""

    to: Mapping[int, int]
    places: tuple[Change, ...]
    hunks: int

    def carry(self, pair: Pair) -> Pair | None:
        """The same two instructions in the second state, if it has both."""
        if pair[0] not in self.to or pair[1] not in self.to:
            return None
        low, high = sorted((self.to[pair[0]], self.to[pair[1]]))
        return low, high

    def is_repaired(self, pair: Pair) -> bool:
        """True if the pair is at the repaired place."""
        return pair[1] - pair[0] <= NEAR and any(each.is_between(pair) for each in self.places)


def align(before: Sequence[str], after: Sequence[str]) -> Alignment:
    hunks = [each for each in SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if each[0] != "equal"]
    removed = {at for _, start, end, _, _ in hunks for at in range(start, end)}
    added = {at for _, _, _, start, end in hunks for at in range(start, end)}
    to = dict(zip(_without(before, removed), _without(after, added), strict=True))
    for _, start, end, other, last in hunks:
        old, new = ([text.partition(" ")[0] for text in part] for part in (before[start:end], after[other:last]))
        for at, then, size in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
            to |= {start + at + place: other + then + place for place in range(size)}
    # A line whose registers alone have other names repairs nothing.
    renamed = {at for at in removed & to.keys() if _mask(before[at]) == _mask(after[to[at]])}
    _match_moved(before, after, to, removed, added)
    changes = [Change(at, before[at], inserted=False) for at in sorted(removed - renamed)]
    for _, start, end, other, last in hunks:
        own = set(range(other, last)) - {to[at] for at in renamed}
        changes += [Change(start + min(at - other, end - start), after[at], inserted=True) for at in sorted(own)]
    places = tuple(each for each in changes if each.text.startswith((*_SYNC, *_MEMORY)))
    return Alignment(to=to, places=places, hunks=len(hunks))


def _without(texts: Sequence[str], numbers: set[int]) -> list[int]:
    return [at for at in range(len(texts)) if at not in numbers]


def _mask(text: str) -> str:
    return _REGISTER.sub("r", text)


def _match_moved(
    before: Sequence[str], after: Sequence[str], to: dict[int, int], removed: set[int], added: set[int]
) -> None:
    """Match lines of equal text in turn, if one isn't far from the other."""
    free: dict[str, list[int]] = defaultdict(list)
    for at in sorted(added - set(to.values())):
        free[after[at]].append(at)
    for at in sorted(removed - to.keys()):
        near = [other for other in free[before[at]] if abs(other - at) <= NEAR]
        if near:
            to[at] = near[0]
            free[before[at]].remove(near[0])


# Proofs.


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    rank: int
    level: str
    code: str
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, kw_only=True)
class Proved:
    """An object's verdict; `found` has every pair that it is about, by code, whatever their cause."""

    texts: tuple[str, ...]
    causes: tuple[Cause, ...]
    found: frozenset[tuple[str, Pair]]
    seconds: float
    steps: int
    states: int
    early: str

    @cached_property
    def said(self) -> frozenset[tuple[str, str, str]]:
        return frozenset((code, *self.read(pair)) for code, pair in self.found)

    def read(self, pair: Pair) -> tuple[str, str]:
        return self.texts[pair[0]], self.texts[pair[1]]

    def count(self, code: str, alignment: Alignment | None = None) -> int:
        """How many pairs have the code; with an alignment, of those at the repaired place."""
        pairs = [pair for each, pair in self.found if each == code]
        return len(pairs) if alignment is None else sum(map(alignment.is_repaired, pairs))


class Prover:
    """Proves each object once, one at a time."""

    def __init__(self, budget: Budget, *, witness: bool = True) -> None:
        self.budget, self.witness = budget, witness
        self._kept: dict[str, Proved] = {}

    def prove(self, contents: bytes) -> Proved:
        key = hashlib.sha256(contents).hexdigest()
        if key not in self._kept:
            self._kept[key] = self._prove(contents)
        return self._kept[key]

    def _prove(self, contents: bytes) -> Proved:
        started = time.process_time()
        code = read_object(contents)
        instructions = code.instructions()
        (verdict,) = prove_object(code, budget=self.budget, witness=self.witness)
        numbers = {each.line: number for number, each in enumerate(instructions)}

        def pair_of(lines: Iterable[int]) -> Pair:
            ends = sorted(numbers[line] for line in lines)
            return ends[0], ends[-1]

        causes = tuple(
            Cause(rank=each.rank, level=each.level, code=each.code, pairs=tuple(map(pair_of, filter(None, each.pairs))))
            for each in ranked(verdict)
        )
        found = {(each.code, pair) for each in causes for pair in each.pairs}
        ended = [dict(each.evidence).get("ended by", each.code) for each in verdict.findings if each.code in EARLY]
        return Proved(
            texts=tuple(each.text if each.target is None else each.opcode for each in instructions),
            causes=causes,
            found=frozenset(found),
            seconds=round(time.process_time() - started, 2),
            steps=verdict.statistics.effort,
            states=verdict.statistics.states,
            early=str(ended[0]) if ended else "",
        )


# Fixes.


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Two states of an object.  `rank` is that of the first cause that singles the fix out, 0 if none does."""

    fix: str
    step: str
    path: str
    counts: bool
    hunks: int = 0
    causes: tuple[int, int] = (0, 0)
    first: int = 0  # rank of the first cause at the repaired place, gone or not
    at: int = 0  # causes at the repaired place
    rank: int = 0
    level: str = ""
    code: str = ""
    ends: tuple[str, ...] = ()
    pairs: tuple[int, int] = (0, 0)  # of its code, before and after
    seconds: tuple[float, float] = (0, 0)
    steps: tuple[int, int] = (0, 0)
    states: tuple[int, int] = (0, 0)
    early: tuple[str, str] = ("", "")
    error: str = ""

    @property
    def row(self) -> tuple[object, ...]:
        place = f"{self.rank} of {self.causes[0]}" if self.rank else self.error or "-"
        return (
            self.fix, self.step, Path(self.path).stem[-44:], self.first or "-", place, self.level,
            f"{self.code} {self.pairs[0]} -> {self.pairs[1]}" if self.code else "",
            "{:.1f} {:.1f}".format(*self.seconds), "{} {}".format(*self.states), " ".join(filter(None, self.early)),
        )  # fmt: skip


def compare(before: Proved, after: Proved, **about: Any) -> Judged:
    alignment = align(before.texts, after.texts)
    at = [(each, pairs) for each in before.causes if (pairs := [*filter(alignment.is_repaired, each.pairs)])]
    early = before.early or after.early
    there, back = (alignment, align(after.texts, before.texts)) if early else (None, None)
    singled: dict[str, Any] = {}
    for cause, pairs in at:
        carried = [alignment.carry(pair) for pair in pairs]
        gone = all(pair is not None and (cause.code, pair) not in after.found for pair in carried)
        if not gone:
            continue
        counts = before.count(cause.code, there), after.count(cause.code, back)
        if counts[1] < counts[0]:
            tight = min(pairs, key=lambda pair: pair[1] - pair[0])
            singled = {
                "rank": cause.rank, "level": cause.level, "code": cause.code, "pairs": counts,
                "ends": before.read(tight),
            }  # fmt: skip
            break
    return Judged(
        **about,
        **singled,
        hunks=alignment.hunks,
        causes=(len(before.causes), len(after.causes)),
        first=at[0][0].rank if at else 0,
        at=len(at),
        seconds=(before.seconds, after.seconds),
        steps=(before.steps, after.steps),
        states=(before.states, after.states),
        early=(before.early, after.early),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    fix: str
    name: str
    path: str
    files: tuple[str, str]
    counts: bool


def steps_of(entries: Iterable[Mapping[str, Any]]) -> Iterator[Step]:
    """From the first state of each object to its last, and of chains each step that was meant to hold and did not."""
    for entry in entries:
        if entry["kind"] != "sync" or entry["arch"] not in _TARGETS:
            continue
        fix, path = SAME_FIX.get(entry["id"], entry["id"]), entry["path"]
        states = {each["state"]: each["file"] for each in entry.get("states", ())}
        whole = entry["before"], entry["after"]
        yield Step(fix=fix, name=entry["id"], path=path, files=whole, counts=True)
        for one, other in pairwise(states):
            name = f"{one}->{other}"
            yield Step(fix=fix, name=name, path=path, files=(states[one], states[other]), counts=False)


def judge_fixes(folder: Path, prover: Prover, only: Sequence[str] = ()) -> Iterator[Judged]:
    for step in steps_of(json.loads((folder / "PAIRS.json").read_text())):
        if only and step.fix not in only:
            continue
        about: dict[str, Any] = {"fix": step.fix, "step": step.name, "path": step.path, "counts": step.counts}
        try:
            before, after = (prover.prove((folder / name).read_bytes()) for name in step.files)
        except RotaError as error:
            yield Judged(**about, error=error.findings[0].message)
            continue
        yield compare(before, after, **about)


def sum_up(judged: Sequence[Judged]) -> Iterator[str]:
    """One row a fix, the failed fix against the one that held, totals."""
    fixes: dict[str, list[Judged]] = defaultdict(list)
    for each in judged:
        fixes[each.fix].append(each)
    rows: list[tuple[object, ...]] = [
        ("fix", "objects", "singled out in", "rank", "level", "gone", "CPU seconds", "states", "ended early")
    ]
    best = {}
    for fix, every in fixes.items():
        counted = [each for each in every if each.counts]
        ranks = sorted((each for each in counted if each.rank), key=lambda each: each.rank)
        best[fix] = ranks[0].rank if ranks else 0
        rows.append(
            (
                fix, len(counted), len(ranks), best[fix] or "-", ranks[0].level if ranks else "",
                "yes" if ranks else "no", f"{max(max(each.seconds) for each in every):.1f}",
                max(max(each.states) for each in every), sum(any(each.early) for each in counted),
            )
        )  # fmt: skip
    yield table(rows)
    for each in judged:
        if each.step == _HELD:
            held = f"told apart by rank {each.rank}, {each.code} {each.pairs[0]} -> {each.pairs[1]}"
            yield f"the failed fix 2507 and 2587, {Path(each.path).stem}: {held if each.rank else 'not told apart'}"
    seconds = [taken for each in judged if each.counts for taken in each.seconds]
    among = sum(0 < rank <= FIRST_SCREEN for rank in best.values())
    yield (
        f"{len(best)} fixes: {among} at rank 1 to {FIRST_SCREEN} and gone, {sum(map(bool, best.values()))} at any rank;"
        f" CPU seconds an object: median {statistics.median(seconds):.1f}, most {max(seconds):.1f}"
    )


# Controls.


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """Two states of an object with nothing repaired between them; what came and went at *required* or above."""

    commit: str
    path: str
    differs: str
    hunks: int = 0
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    causes: tuple[int, int] = (0, 0)  # at required or above
    seconds: tuple[float, float] = (0, 0)
    early: tuple[str, str] = ("", "")
    error: str = ""

    @property
    def row(self) -> tuple[object, ...]:
        return (
            self.commit[:9], Path(self.path).stem[-50:], self.hunks, "{} {}".format(*self.causes), len(self.came),
            len(self.went), "{:.1f} {:.1f}".format(*self.seconds), self.error or " ".join(filter(None, self.early)),
        )  # fmt: skip


def list_changes(before: Proved, after: Proved) -> tuple[str, ...]:
    """Causes at *required* or above that went from the first state to the second."""
    alignment = align(before.texts, after.texts)
    gone = []
    for cause in before.causes:
        stays = any(
            (cause.code, alignment.carry(pair)) in after.found or (cause.code, *before.read(pair)) in after.said
            for pair in cause.pairs
        )
        if cause.level in {SHOWN, REQUIRED} and not stays:
            ends = " and ".join(dict.fromkeys(before.read(cause.pairs[0]))) if cause.pairs else ""
            gone.append(f"{cause.code} at rank {cause.rank}: {ends}")
    return tuple(gone)


def judge_controls(history: Path, prover: Prover, only: Sequence[str] = ()) -> Iterator[Control]:
    for entry in json.loads(CONTROLS.read_text()):
        commit, path = entry["commit"], entry["path"]
        if only and not commit.startswith(tuple(only)):
            continue
        about: dict[str, Any] = {"commit": commit, "path": path, "differs": entry["differs"]}
        try:
            states = [read_version(history, which, path) for which in (entry["parent"], commit)]
            given = tuple(hashlib.sha256(each).hexdigest() for each in states)
            if given != (entry["before_sha256"], entry["after_sha256"]):
                raise AssertionError(f"{path} of {commit} isn't the object that was read")
            before, after = map(prover.prove, states)
        except (RotaError, subprocess.CalledProcessError) as error:
            why = error.findings[0].message if isinstance(error, RotaError) else "not in the history"
            yield Control(**about, error=why)
            continue
        counts = [sum(each.level in {SHOWN, REQUIRED} for each in state.causes) for state in (before, after)]
        yield Control(
            **about,
            hunks=align(before.texts, after.texts).hunks,
            came=list_changes(after, before),
            went=list_changes(before, after),
            causes=(counts[0], counts[1]),
            seconds=(before.seconds, after.seconds),
            early=(before.early, after.early),
        )


def sum_up_controls(controls: Sequence[Control]) -> Iterator[str]:
    yield table(
        [
            ("commit", "object", "hunks", "required", "came", "went", "CPU seconds", "ended early"),
            *(each.row for each in controls),
        ]
    )
    ran = [each for each in controls if not each.error]
    changed = sum(bool(each.came or each.went) for each in ran)
    yield f"{len(ran)} of {len(controls)} controls proved: something came or went in {changed}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="a fix, or a control's commit")
    parser.add_argument("--steps", type=int, default=Budget().steps, help="budget of a proof")
    parser.add_argument("--seconds", type=float, help="the most CPU seconds of a proof; depends on the machine")
    parser.add_argument("--folder", type=Path, default=shared_folder("kernels/pairs"))
    parser.add_argument("--history", type=Path, default=history_folder(), help="git directory of ROCm/aiter")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON document")
    parser.add_argument("--no-witness", action="store_true", help="ask for no launch of an alarm")
    options = parser.parse_args(arguments)
    prover = Prover(Budget(steps=options.steps, seconds=options.seconds), witness=not options.no_witness)
    judged, controls = [], []
    for each in judge_fixes(options.folder, prover, options.only):
        judged.append(each)
        print(*each.row, sep="  ", file=sys.stderr, flush=True)
    if options.history is not None:
        for control in judge_controls(options.history, prover, options.only):
            controls.append(control)
            print(*control.row, sep="  ", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps({"fixes": [*map(asdict, judged)], "controls": [*map(asdict, controls)]}, indent=1))
        return 0
    if judged:
        head = ("fix", "step", "object", "first at place", "rank", "level", "pairs", "CPU seconds", "states", "early")
        print(table([head, *(each.row for each in judged)]), "", *sum_up(judged), sep="\n")
    print()
    print(
        *(sum_up_controls(controls) if controls else ["controls: not run; --history names ROCm/aiter's git directory"]),
        sep="\n",
    )
    for control in controls:
        for what, causes in (("came", control.came), ("went", control.went)):
            for cause in causes:
                print(f"{control.commit[:9]} {Path(control.path).stem}: {what}: {cause}")
    return 0
