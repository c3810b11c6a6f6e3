"""The proof over the reference's recorded schedules: takes the corpus' double-buffer cases, prints tables per file.

Run `python -m benchmarks.races [--execute]` from the repository's root.  The first table says what the proof finds in
the entries as recorded, the second which races it finds where, the third what is left after repair.  With `--execute`
the executor replays the witness of every race, and runs every case after repair; the exit status is 1 if it disagrees
with the proof about any of them.  The tables are Markdown; progress goes to stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from rota import CompiledSchedule, Finding, Phase, verify
from rota.compiled.proved import add_repairs
from rota.execute.clock import Latest, Policy, Random
from rota.execute.executor import execute
from tests.conformance.corpus import DOUBLE_BUFFER_FILES, Case, cases
from tests.conformance.reference_loops import loses_ops, reference_loop
from tests.mutation.campaign import borne_out, replays_of

OBLIGATIONS = ("R101", "R102", "R103")
TRIP_COUNTS = range(9)
POLICIES: tuple[Policy, ...] = (Latest(), Random(seeds=50))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """One finished case: what the proof says of it as recorded, and after repair."""

    name: str
    loses_ops: bool
    recorded: CompiledSchedule
    errors: tuple[Finding, ...]
    repaired: CompiledSchedule
    left: tuple[Finding, ...]

    def has(self, family: str) -> bool:
        """Is there an error whose code starts with `family`?"""
        return any(finding.code.startswith(family) for finding in self.errors)

    @property
    def races(self) -> frozenset[tuple[str, Phase]]:
        """Broken obligations, each with the phases in which the later access stands."""
        return frozenset(
            (finding.code, Phase[finding.concerns[-1].role.split(",")[0].upper()])
            for finding in self.errors
            if finding.code in OBLIGATIONS
        )

    @property
    def codes_left(self) -> tuple[str, ...]:
        """What repair doesn't mend."""
        return tuple(sorted({finding.code for finding in self.left}))


@dataclass(slots=True, kw_only=True)
class File:
    """The cases of one corpus file, or of several."""

    name: str
    recorded: int = 0
    proved: list[Proved] = field(default_factory=list)

    def count(self, wanted: Callable[[Proved], bool]) -> int:
        """How many cases are as wanted."""
        return sum(map(wanted, self.proved))

    @property
    def still_wrong(self) -> list[Proved]:
        """The cases that repair doesn't mend."""
        return [case for case in self.proved if case.left]


def prove(case: Case) -> Proved:
    """Proof, repair where it fails, and proof of the repaired loop."""
    loop = reference_loop(case)
    errors = verify(loop).errors
    repaired = add_repairs(loop) if errors else loop
    return Proved(
        name=case["id"],
        loses_ops=loses_ops(case),
        recorded=loop,
        errors=errors,
        repaired=repaired,
        left=verify(repaired).errors if errors else (),
    )


def prove_file(name: str) -> File:
    """All cases of a file that the reference finished."""
    started = perf_counter()
    found = cases(name)
    proved = [prove(case) for case in found if case["outcome"] == "ok"]
    print(f"{name}: {len(proved)} cases in {perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    return File(name=name, recorded=len(found), proved=proved)


def as_recorded(files: Iterable[File]) -> Iterator[tuple[object, ...]]:
    """Rows of the first table."""
    yield "file", "cases", "finished", "lose ops", "clean", "racy", "wrong values", "barriers", "limits"
    for file in files:
        yield (
            file.name,
            file.recorded,
            len(file.proved),
            file.count(lambda case: case.loses_ops),
            file.count(lambda case: not case.errors),
            *(file.count(lambda case, family=family: case.has(family)) for family in "RVBL"),  # type: ignore[misc]
        )


def by_phase(files: Iterable[File]) -> Iterator[tuple[object, ...]]:
    """Rows of the second table."""
    yield "file", *(f"{code} {phase.value.lower()}" for code in OBLIGATIONS for phase in Phase)
    for file in files:
        found = Counter(race for case in file.proved for race in case.races)
        yield file.name, *(found[code, phase] for code in OBLIGATIONS for phase in Phase)


def after_repair(files: Iterable[File]) -> Iterator[tuple[object, ...]]:
    """Rows of the third table."""
    yield "file", "clean", "of them repaired", "still wrong, ops lost", "still wrong, nothing lost", "codes"
    for file in files:
        wrong = file.still_wrong
        codes = Counter(code for case in wrong for code in case.codes_left)
        yield (
            file.name,
            len(file.proved) - len(wrong),
            file.count(lambda case: bool(case.errors) and not case.left),
            sum(case.loses_ops for case in wrong),
            sum(not case.loses_ops for case in wrong),
            ", ".join(f"{code} {number}" for code, number in sorted(codes.items())) or "-",
        )


def table(rows: Iterable[tuple[object, ...]]) -> str:
    """Rows as a Markdown table, the first one its head."""
    texts = [tuple(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    aligned = [" | ".join(_aligned(row, widths)) for row in texts]
    rule = "|".join("-" * (width + 2) if not number else "-" * (width + 1) + ":" for number, width in enumerate(widths))
    return "\n".join([f"| {aligned[0]} |", f"|{rule}|", *(f"| {row} |" for row in aligned[1:])])


def _aligned(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for number, (text, width) in enumerate(zip(row, widths, strict=True)):
        yield text.rjust(width) if number else text.ljust(width)


def run(files: Iterable[File]) -> bool:
    """Replay every race, execute every case after repair; True if the executor agrees with the proof throughout."""
    started = perf_counter()
    verdicts: Counter[tuple[bool, bool]] = Counter()
    races = 0
    unshown: list[str] = []
    disputed: list[str] = []
    for file in files:
        for case in file.proved:
            replays = replays_of(case.recorded.lowered, case.errors)
            races += sum(finding.code in OBLIGATIONS for finding in case.errors)
            shown = [borne_out(case.recorded.lowered, finding, replays) for finding in case.errors]
            unshown += [f"{case.name}: {f}" for f, yes in zip(case.errors, shown, strict=True) if not yes]
            clean, wrong = not case.left, _first_wrong(case.repaired)
            verdicts[clean, wrong is None] += 1
            if clean is not (wrong is None):
                disputed.append(f"{case.name}: the proof finds {case.codes_left}, the executor {wrong}")
        print(f"{file.name}: executed, {perf_counter() - started:.1f} s so far", file=sys.stderr, flush=True)
    print(f"The executor ({_runs()}), in {perf_counter() - started:.0f} s:\n")
    print(f"- races as recorded: {races}; their witnesses replay wrong by that very race: {races - len(unshown)}")
    print(f"- cases that are clean after repair: {verdicts[True, True]} right, {verdicts[True, False]} wrong")
    print(f"- cases that are still wrong: {verdicts[False, False]} wrong, {verdicts[False, True]} right")
    print("\n".join(["", *unshown, *disputed]), end="")
    return not unshown and not disputed


def _first_wrong(loop: CompiledSchedule) -> str | None:
    for trips in TRIP_COUNTS:
        done = execute(loop, trips, policy=POLICIES, compiler_waits=loop.compiler_tracks_registers)
        if not done.right:
            return f"{trips} trips: {done.first_wrong}"
    return None


def _runs() -> str:
    runs = ", ".join(runs[0].label if len(runs) == 1 else f"{len(runs)} seeds" for runs in (p.runs() for p in POLICIES))
    return f"trip counts {TRIP_COUNTS[0]} to {TRIP_COUNTS[-1]}, {runs}"


def main(arguments: Sequence[str]) -> int:
    """Print the tables; 1 if the executor was asked and disagrees."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.races", description=__doc__)
    parser.add_argument("--execute", action="store_true", help="hold the executor against every verdict")
    options = parser.parse_args(arguments)
    files = [prove_file(name) for name in DOUBLE_BUFFER_FILES]
    total = File(name="all", recorded=sum(file.recorded for file in files))
    total.proved = [case for file in files for case in file.proved]
    for title, rows in (
        ("As recorded: cases with at least one finding of a kind", as_recorded),
        ("Races: cases by obligation and by the phase of the later access", by_phase),
        ("After repair", after_repair),
    ):
        print(f"{title}\n\n{table(rows([*files, total]))}\n")
    return 0 if not options.execute or run(files) else 1
