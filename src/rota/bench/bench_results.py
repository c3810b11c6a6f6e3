"""The results of a benchmark: read, checked against what was asked, and decided pair by pair.

A ratio is the time of a candidate over the time of another one in the same round.  Nothing is assumed of how times are
distributed: the interval of the median ratio is made of order statistics.  Each ratio is above or below the true median
with even odds, so the number of those below is binomial, and that says how far from the middle of the sorted ratios
the median may lie (W. J. Conover, *Practical Nonparametric Statistics*, 3.2).
"""

from __future__ import annotations

import csv
import enum
import io
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple, NoReturn

from rota.bench.bench_plan import BenchSubjects
from rota.errors import Finding, MeasureError, several

COLUMNS = (
    "plan", "case", "candidate", "objects", "launch", "bytes", "mode", "round", "position", "us", "bits", "device",
    "arch", "clock_mhz", "memory_clock_mhz", "units", "runtime", "flush_bytes", "empty_us", "seed", "row", "rows",
)  # fmt: skip
LEVEL = 0.95
"""How often an interval holds the median ratio, if the same benchmark is run again and again."""
_COMPARED = "compared"  # the mode of the row that says how the comparison ended
_SAME_EVERYWHERE = (
    "plan", "device", "arch", "clock_mhz", "memory_clock_mhz", "units", "runtime", "flush_bytes", "empty_us", "rows",
)  # fmt: skip


class Mode(enum.Enum):
    """Whether a launch finds its data in the caches."""

    COLD = "cold"
    WARM = "warm"


class Bits(enum.Enum):
    """How a candidate's results compare with the first candidate's."""

    FIRST = "first"
    SAME = "same"
    DIFFER = "differ"
    VARY = "vary"  # those of the first one are not the same twice


class MeasuredDecision(enum.Enum):
    """What the runs say of a candidate beside another one."""

    FASTER = "faster"
    SLOWER = "slower"
    UNDECIDED = "not decided by these runs"


class MeasuredOn(NamedTuple):
    """The device of the results, as it reported itself."""

    device: str
    arch: str
    clock_mhz: int
    memory_clock_mhz: int
    units: int
    runtime: str
    flush_bytes: int
    empty_us: float

    def __str__(self) -> str:
        clocks = f"clock {self.clock_mhz} MHz, memory {self.memory_clock_mhz} MHz"
        return f"{self.device}, {self.arch}, {self.units} units, {clocks}"


class Interval(NamedTuple):
    """The median of ratios, and the bounds that hold it; infinite where there are too few."""

    median: float
    low: float
    high: float

    @property
    def decision(self) -> MeasuredDecision:
        if self.high < 1:
            return MeasuredDecision.FASTER
        return MeasuredDecision.SLOWER if self.low > 1 else MeasuredDecision.UNDECIDED


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOutcome:
    """A candidate beside another one in one mode: median times, and the interval of the ratio in a round."""

    mode: Mode
    rounds: int
    us: float
    other_us: float
    ratio: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCase:
    """The times of a case: by candidate and mode, one for each round."""

    name: str
    bytes: int
    launches: Mapping[str, str]
    bits: Mapping[str, Bits]
    times: Mapping[tuple[str, Mode], tuple[float, ...]]

    def compare(self, candidate: str, other: str) -> tuple[PairOutcome, ...]:
        """Both modes, cold first; empty if one of the two wasn't timed."""
        found = []
        for mode in Mode:
            us, other_us = self.times.get((candidate, mode), ()), self.times.get((other, mode), ())
            if us and other_us:
                ratios = [each / beside for each, beside in zip(us, other_us, strict=True)]
                outcome = PairOutcome(
                    mode=mode, rounds=len(us), us=median(us), other_us=median(other_us), ratio=bound_median(ratios)
                )  # fmt: skip
                found.append(outcome)
        return tuple(found)

    def decide(self, candidate: str, other: str) -> MeasuredDecision:
        """Faster if it is in one mode and not slower in the other one; the same for slower."""
        said = {each.ratio.decision for each in self.compare(candidate, other)} - {MeasuredDecision.UNDECIDED}
        return said.pop() if len(said) == 1 else MeasuredDecision.UNDECIDED


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResults:
    """What a host program measured, by whoever ran it."""

    file: str
    on: MeasuredOn
    cases: tuple[MeasuredCase, ...]

    def case(self, name: str) -> MeasuredCase:
        return next(each for each in self.cases if each.name == name)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """M207 for each candidate that left other results than the first one."""
        return tuple(
            _report_difference(case, candidate, self.on)
            for case in self.cases
            for candidate, bits in case.bits.items()
            if bits is Bits.DIFFER
        )


def _report_difference(case: MeasuredCase, candidate: str, on: MeasuredOn) -> Finding:
    message = f"{candidate} of {case.name} left other bits than the kernel that it is compared with"
    evidence = (("measured on", str(on)), ("launch", case.launches[candidate]))
    fixes = ("don't use it; the program says on stderr which byte is the first",)
    return Finding("M207", message, evidence=evidence, fixes=fixes)


def bound_median(ratios: Sequence[float], level: float = LEVEL) -> Interval:
    """The interval by order statistics: the narrowest symmetric one that holds the median with at least `level`."""
    ordered, count = sorted(ratios), len(ratios)
    most = (1 - level) / 2
    ways = below = 1  # in which `cut` of the ratios are below the median, and in which at most `cut` are
    cut = 0
    while below / 2**count <= most:
        ways = ways * (count - cut) // (cut + 1)
        below, cut = below + ways, cut + 1
    if not cut:
        return Interval(median(ordered), -math.inf, math.inf)
    return Interval(median(ordered), ordered[cut - 1], ordered[count - cut])


def read_results(path: Path, subjects: BenchSubjects) -> BenchResults:
    """The results in a file; raises M201 if it is malformed, M203 for another device, M206 for other kernels."""
    return _Reader(path, subjects).read()


class _Reader:
    def __init__(self, path: Path, subjects: BenchSubjects) -> None:
        self._path, self._subjects = path, subjects
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MeasureError.of("M201", f"{path.name}: it can't be read: {error}") from error
        if not text.endswith("\n"):
            self._refuse(0, "it ends inside a line, so its last number may be cut", "copy it again")
        try:
            rows = list(csv.reader(io.StringIO(text)))
        except csv.Error as error:
            self._refuse(0, str(error))
        if tuple(rows[0]) != COLUMNS:
            self._refuse(1, "its first line isn't that of a benchmark's results", "take the file that ./bench wrote")
        self._rows: list[dict[str, str]] = []
        for number, row in enumerate(rows[1:], 2):
            if len(row) != len(COLUMNS):
                self._refuse(number, f"it has {len(row)} fields, the first line {len(COLUMNS)}")
            self._rows.append(dict(zip(COLUMNS, row, strict=True)))
        if not self._rows:
            self._refuse(1, "it holds no results")

    def _refuse(self, line: int, why: str, *fixes: str) -> NoReturn:
        where = f"{self._path.name}:{line}" if line else self._path.name
        raise MeasureError.of("M201", f"{where}: {why}", evidence=(("file", self._path.name),), fixes=fixes)

    def read(self) -> BenchResults:
        first = self._rows[0]
        for number, row in enumerate(self._rows, 2):
            changed = next((name for name in _SAME_EVERYWHERE if row[name] != first[name]), None)
            if changed is not None:
                self._refuse(number, f"{changed} is {row[changed]!r:.60}, in the first row {first[changed]!r:.60}")
            if row["row"] != str(number - 1):
                self._refuse(number, f"it is row {row['row']!r:.20}, expected {number - 1}", "copy the file again")
        if first["rows"] != str(len(self._rows)):
            self._refuse(0, f"it has {len(self._rows)} rows, written were {first['rows']!r:.20}", "copy it again")
        self._check_subjects(first)
        by_case = defaultdict[str, list[tuple[int, dict[str, str]]]](list)
        for number, row in enumerate(self._rows, 2):
            by_case[row["case"]].append((number, row))
        if set(by_case) != {each.case for each in self._subjects.kernels}:
            self._refuse(0, f"it has the cases {', '.join(by_case)}", "run the benchmark again")
        cases = tuple(self._read_case(name, rows) for name, rows in by_case.items())
        return BenchResults(file=self._path.name, on=self._read_device(first), cases=cases)

    def _check_subjects(self, first: Mapping[str, str]) -> None:
        if first["arch"] != self._subjects.arch:
            wanted = self._subjects.arch
            raise MeasureError.of(
                "M203", f"{self._path.name}: it was measured on {first['arch']}, the kernels are for {wanted}",
                evidence=(("file", first["arch"]), ("kernels", wanted)), fixes=(f"run it on a device with {wanted}",),
            )  # fmt: skip
        if first["plan"] == self._subjects.digest:
            return
        asked = [f"{each.case} {each.candidate} {each.obj}" for each in self._subjects.kernels]
        given = dict.fromkeys(f"{row['case']} {row['candidate']} {row['objects']}" for row in self._rows)
        raise MeasureError.of(
            "M206", f"{self._path.name}: it is about other kernels than those that it is compared with",
            evidence=(("file", ", ".join(given)), ("asked for", ", ".join(asked))),
            fixes=("write the benchmark again and run that one", "give the kernel that it was written for"),
        )  # fmt: skip

    def _read_device(self, row: Mapping[str, str]) -> MeasuredOn:
        clock, memory, units, flush = (
            int(self._number(2, row, name)) for name in ("clock_mhz", "memory_clock_mhz", "units", "flush_bytes")
        )
        empty = self._number(2, row, "empty_us")
        return MeasuredOn(
            " ".join(row["device"].split()), row["arch"], clock, memory, units, row["runtime"], flush, empty
        )

    def _read_case(self, name: str, rows: Sequence[tuple[int, dict[str, str]]]) -> MeasuredCase:
        times = defaultdict[tuple[str, Mode], dict[int, float]](dict)
        bits: dict[str, Bits] = {}
        for number, row in rows:
            candidate = row["candidate"]
            said = Bits(self._word(number, row, "bits", Bits))
            mode = self._word(number, row, "mode", (_COMPARED, *Mode))
            if bits.setdefault(candidate, said) is not said:
                self._refuse(number, f"bits is {row['bits']}, in an earlier row {bits[candidate].value}")
            if mode != _COMPARED:
                us, turn = self._number(number, row, "us"), int(self._number(number, row, "round"))
                if us <= 0:
                    self._refuse(number, "us is 0; expected more")
                if turn in times[candidate, Mode(mode)]:
                    self._refuse(number, f"round {turn} of {candidate}, {mode}, is there twice")
                times[candidate, Mode(mode)][turn] = us
        self._check_rounds(name, bits, times)
        return MeasuredCase(
            name=name, bytes=int(self._number(*rows[0], "bytes")), bits=bits,
            launches={row["candidate"]: row["launch"] for _, row in rows},
            times={key: tuple(found[turn] for turn in sorted(found)) for key, found in times.items()},
        )  # fmt: skip

    def _check_rounds(
        self, case: str, bits: Mapping[str, Bits], times: Mapping[tuple[str, Mode], Mapping[int, float]]
    ) -> None:
        """All that were timed were so in the same rounds, and none that left other bits."""
        wanted = {each.candidate for each in self._subjects.kernels if each.case == case}
        timed = {candidate for candidate, said in bits.items() if said is not Bits.DIFFER}
        rounds = {frozenset(found) for found in times.values()}
        there = {key for key, found in times.items() if found}
        needed = {(candidate, mode) for candidate in timed for mode in Mode} if len(timed) > 1 else set()
        if wanted != set(bits) or there != needed or len(rounds) > 1:
            self._refuse(0, f"the rounds of {case} aren't the same for all candidates", "run the benchmark again")

    def _word(self, line: int, row: Mapping[str, str], name: str, known: Iterable[str | enum.Enum]) -> str:
        words = [each if isinstance(each, str) else str(each.value) for each in known]
        if row[name] not in words:
            self._refuse(line, f"{name} is {row[name]!r:.40}; expected one of {', '.join(words)}")
        return row[name]

    def _number(self, line: int, row: Mapping[str, str], name: str) -> float:
        try:
            found = float(row[name])
        except ValueError:
            found = math.nan
        if not math.isfinite(found) or found < 0:
            self._refuse(line, f"{name} is {row[name]!r:.40}; expected a number")
        return found


_MIB = 1 << 20
_SAID = {
    Bits.SAME: "the same as those of {other}",
    Bits.DIFFER: "not those of {other}, so it wasn't timed",
    Bits.VARY: "not compared: those of {other} vary from launch to launch",
    Bits.FIRST: "those that others are compared with",
}


def describe_pair(results: BenchResults, name: str, candidate: str, other: str) -> Iterator[str]:
    """What the runs say of two candidates, line by line; nothing of it is rota's own word."""
    case = results.case(name)
    decision = case.decide(candidate, other).value if case.compare(candidate, other) else "not timed"
    yield f"measured by whoever ran {results.file}: {decision}"
    yield f"  on {results.on}"
    size = f"{case.bytes / _MIB:.1f} MiB" if case.bytes >= _MIB // 10 else f"{case.bytes:,} bytes"
    nothing = f"two events with nothing between: {results.on.empty_us:.2f} us"
    yield f"  {case.launches[candidate]}, {size} in buffers; {nothing}"
    for each in case.compare(candidate, other):
        yield (
            f"  {each.mode.value}: {each.us:.2f} us, {other} {each.other_us:.2f} us; {_describe_ratio(each.ratio)} in "
            f"{several(each.rounds, 'round')}: {each.ratio.decision.value}"
        )
    yield f"  bits: {_SAID[case.bits[candidate]].format(other=other)}"


def _describe_ratio(ratio: Interval) -> str:
    if math.isinf(ratio.high):
        return f"{_percent(ratio.median)}, too few rounds for an interval"
    return f"{_percent(ratio.median)} ({_percent(ratio.low)} to {_percent(ratio.high)})"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
