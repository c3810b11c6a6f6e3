"""What the host program writes is read back and decided; what isn't its whole output is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rota.bench.bench_plan import BenchSubjects
from rota.bench.bench_results import (
    COLUMNS,
    BenchResults,
    Bits,
    MeasuredDecision,
    Mode,
    bound_median,
    describe_pair,
    read_results,
)
from rota.errors import MeasureError
from tests.bench.host import run_folder, small_plan, write_folder
from tests.wording.golden import mentions, worded


def results(folder: Path, rounds: int = 12, status: int = 0, **settings: object) -> BenchResults:
    plan = small_plan(rounds=rounds)
    done = run_folder(write_folder(folder, plan), **settings)
    assert done.returncode == status, done.stderr
    return read_results(folder / "results.csv", plan.subjects)


@pytest.mark.parametrize(
    ("times", "decision"),
    [("100,90", MeasuredDecision.FASTER), ("90,100", MeasuredDecision.SLOWER), ("100,100", MeasuredDecision.UNDECIDED)],
)
def test_runs_decide(tmp_path: Path, times: str, decision: MeasuredDecision) -> None:
    found = results(tmp_path, US=times, NOISE=5)
    (case,) = found.cases
    assert case.decide("after", "before") is decision
    assert case.bits == {"before": Bits.FIRST, "after": Bits.SAME}
    for each, mode in zip(case.compare("after", "before"), Mode, strict=True):
        assert (each.mode, each.rounds, each.ratio.decision) == (mode, 12, decision)
        assert each.ratio.low <= each.ratio.median <= each.ratio.high
    assert (found.on.arch, found.on.clock_mhz, found.on.empty_us) == ("gfx942", 2100, 2.0)
    text = worded("\n".join(describe_pair(found, "add", "after", "before")))
    assert mentions(text, 12, decision.value)


def test_the_ratio_is_of_the_same_round(tmp_path: Path) -> None:
    found = results(tmp_path, US="98,48", COLD=50)
    cold, warm = found.cases[0].compare("after", "before")
    assert (cold.us, cold.other_us, warm.us, warm.other_us) == pytest.approx((100, 150, 50, 100))
    assert (cold.ratio.median, warm.ratio.median) == pytest.approx((2 / 3, 1 / 2))


def test_drift_does_not_decide(tmp_path: Path) -> None:
    """Times that grow from round to round, far more than noise, are the same for both candidates."""
    found = results(tmp_path)
    (case,) = found.cases
    drifting = {key: tuple(us + 10 * turn for turn, us in enumerate(each)) for key, each in case.times.items()}
    assert replace(case, times=drifting).decide("after", "before") is MeasuredDecision.UNDECIDED


def test_modes_that_contradict_each_other_decide_nothing(tmp_path: Path) -> None:
    (case,) = results(tmp_path).cases
    times = dict(case.times)
    times["after", Mode.COLD] = tuple(us / 2 for us in times["after", Mode.COLD])
    assert replace(case, times=times).decide("after", "before") is MeasuredDecision.FASTER
    times["after", Mode.WARM] = tuple(us * 2 for us in times["after", Mode.WARM])
    assert replace(case, times=times).decide("after", "before") is MeasuredDecision.UNDECIDED


def test_few_rounds_decide_nothing(tmp_path: Path) -> None:
    found = results(tmp_path, rounds=5, US="100,10")
    assert found.cases[0].decide("after", "before") is MeasuredDecision.UNDECIDED
    worded("\n".join(describe_pair(found, "add", "after", "before")))
    assert results(tmp_path, rounds=6, US="100,10").cases[0].decide("after", "before") is MeasuredDecision.FASTER


def test_results_that_differ_are_a_finding(tmp_path: Path) -> None:
    found = results(tmp_path, status=4, WRONG=1)
    (finding,) = found.findings
    assert worded(finding).code == "M207"
    assert mentions(finding, "after", "add")
    assert found.cases[0].compare("after", "before") == ()
    assert found.cases[0].decide("after", "before") is MeasuredDecision.UNDECIDED


def odds_of_at_most(most: int, count: int) -> float:
    """That at most so many of `count` ratios are below the median."""
    return float(sum(math.comb(count, each) for each in range(most + 1)) / 2**count)


@pytest.mark.parametrize("count", [1, 5, 6, 7, 8, 20, 60, 101, 1000])
def test_the_interval_is_the_narrowest_that_holds_the_median_often_enough(count: int) -> None:
    found = bound_median([float(each) for each in reversed(range(count))])
    assert found.median == (count - 1) / 2
    if math.isinf(found.high):
        assert odds_of_at_most(0, count) > 0.025
        assert found.low == -math.inf
        return
    outside = int(found.low)  # so many ratios are below the interval
    assert found.high == count - 1 - outside
    assert odds_of_at_most(outside, count) <= 0.025 < odds_of_at_most(outside + 1, count)


def damaged(folder: Path, edit: Callable[[list[str]], list[str]]) -> str:
    """The code with which changed lines are refused."""
    plan = small_plan()
    assert run_folder(write_folder(folder, plan)).returncode == 0
    path = folder / "results.csv"
    lines = path.read_text().splitlines(keepends=True)
    read_results(path, plan.subjects)
    path.write_text("".join(edit(lines)))
    with pytest.raises(MeasureError) as caught:
        read_results(path, plan.subjects)
    (finding,) = caught.value.findings
    return worded(finding).code


def with_field(lines: list[str], line: int, name: str, value: str) -> list[str]:
    fields = lines[line].rstrip("\n").split(",")
    fields[COLUMNS.index(name)] = value
    return [*lines[:line], ",".join(fields) + "\n", *lines[line + 1 :]]


CUT: dict[str, Callable[[list[str]], list[str]]] = {
    "the last row": lambda lines: lines[:-1],
    "the last character": lambda lines: [*lines[:-1], lines[-1][:-1]],
    "half of the last row": lambda lines: [*lines[:-1], f"{lines[-1][:20]}\n"],
    "a row in between": lambda lines: [*lines[:5], *lines[6:]],
    "all rows": lambda lines: lines[:1],
    "everything": lambda lines: [],
    "the first line": lambda lines: lines[1:],
    "the order of rows": lambda lines: [*lines[:5], lines[6], lines[5], *lines[7:]],
}


@pytest.mark.parametrize("what", CUT)
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, what: str) -> None:
    assert damaged(tmp_path, CUT[what]) == "M201"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("us", each) for each in ("", "fast", "nan", "-1", "0", "inf")),
        *(("mode", "hot"), ("bits", "better"), ("bits", "differ"), ("round", "3"), ("round", "7"), ("round", "x")),
        *(("clock_mhz", "1"), ("device", "other"), ("plan", "0123"), ("arch", "gfx950"), ("rows", "17")),
        *(("candidate", "third"), ("case", "other"), ("row", "1"), ("us", "1,2"), ("us", "\0")),
    ],
)
def test_a_row_that_the_program_does_not_write_is_refused(tmp_path: Path, name: str, value: str) -> None:
    assert damaged(tmp_path, lambda lines: with_field(lines, 4, name, value)) == "M201"


def test_a_clock_that_is_no_number_is_refused(tmp_path: Path) -> None:
    def edit(lines: list[str]) -> list[str]:
        for line in range(1, len(lines)):
            lines = with_field(lines, line, "clock_mhz", "fast")
        return lines

    assert damaged(tmp_path, edit) == "M201"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="M201"):
        read_results(tmp_path / "results.csv", small_plan().subjects)


def refused(path: Path, subjects: BenchSubjects) -> str:
    with pytest.raises(MeasureError) as caught:
        read_results(path, subjects)
    return worded(caught.value.findings[0]).code


def test_results_of_other_kernels_are_refused(tmp_path: Path) -> None:
    plan = small_plan()
    results(tmp_path)
    path = tmp_path / "results.csv"
    others = [
        replace(plan, objects=(plan.objects[0], replace(plan.objects[1], code=b"another object"))),
        replace(plan, cases=(replace(plan.cases[0], candidates=plan.cases[0].candidates[::-1]),)),
        replace(plan, cases=(replace(plan.cases[0], name="subtract"),)),
    ]
    for each in others:
        assert refused(path, each.subjects) == "M206"
    assert refused(path, replace(plan, arch="gfx950").subjects) == "M203"


def test_another_launch_of_the_same_kernels_is_the_same_comparison(tmp_path: Path) -> None:
    plan = small_plan()
    results(tmp_path)
    case = plan.cases[0]
    candidates = tuple(
        replace(each, launches=tuple(replace(launch, grid=(9, 1, 1)) for launch in each.launches))
        for each in case.candidates
    )
    other = replace(plan, rounds=3, cases=(replace(case, candidates=candidates, buffers=()),))
    assert read_results(tmp_path / "results.csv", other.subjects).on.arch == "gfx942"
