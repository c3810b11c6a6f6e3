"""Verdicts about many kernels: kept by their content, computed by processes, compared between runs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rota.errors import TuneError
from rota.fleet.check_fleet import LIMITS, FleetFile, FleetTally, check_fleet, compare_runs
from rota.fleet.kernel_job import FAILED, NOT_READ, KernelJob, ProofOptions, job_of, judge_version, key_of, row_of
from rota.fleet.verdict_store import FleetRow, FleetRun, VerdictStore
from rota.isa.binary import toolchain
from rota.isa.binary.code_object import read_kernels
from rota.isa.binary.toolchain import find_objdump
from rota.workers.job import Job, JobLimits, RowT
from rota.workers.local_pool import LocalPool
from tests.shared import shared

RIGHT, WRONG = ("raw_sync_ok", "raw_nosync")
OPTIONS = ProofOptions(block=256)


def contents(name: str) -> bytes:
    return shared(f"kernels/compiled/races/{name}.gfx950.hsaco").read_bytes()


def subjects(*names: str) -> list[FleetFile]:
    return [FleetFile(f"{name}.co", lambda name=name: contents(name)) for name in names]  # type: ignore[misc]  # mypy on lambdas


def job(name: str, options: ProofOptions = OPTIONS) -> KernelJob:
    (kernel,) = (each.name for each in read_kernels(contents(name)))
    held = contents(name)
    return KernelJob(key=key_of(held, kernel, options), kernel=kernel, options=options, contents=held)


class Here:
    """A pool that computes in this process, and counts."""

    workers, limits = 1, LIMITS

    def __init__(self) -> None:
        self.computed = 0

    def run(self, jobs: Sequence[Job[RowT]]) -> Iterator[Sequence[RowT]]:
        for each in jobs:
            self.computed += 1
            yield (each.compute(),)


def run(store: Path, *names: str, pool: Here | LocalPool | None = None, options: ProofOptions = OPTIONS) -> FleetRun:
    with VerdictStore(store, write=True) as opened:
        return check_fleet(subjects(*names), lambda *_: options, pool or Here(), opened)


def test_a_second_run_reads(tmp_path: Path) -> None:
    first, again = Here(), Here()
    one = run(tmp_path, RIGHT, WRONG, pool=first)
    two = run(tmp_path, RIGHT, WRONG, pool=again)
    assert (first.computed, again.computed) == (2, 0)
    assert one.rows == two.rows
    assert [each.row.status for each in two.rows] == ["proved", "refuted"]
    assert [each.code for each in two.rows[1].row.findings] == ["I109"]
    assert two.rows[1].row.verdict is not None


def test_the_same_code_in_two_files_is_judged_once(tmp_path: Path) -> None:
    pool, twice = Here(), [FleetFile(f"{name}.co", lambda: contents(RIGHT)) for name in "ab"]
    tallies: list[FleetTally] = []
    with VerdictStore(tmp_path, write=True) as store:
        found = check_fleet(twice, lambda *_: OPTIONS, pool, store, progress=tallies.append)
    assert (pool.computed, len(found.rows)) == (1, 2)
    assert (tallies[-1].asked, tallies[-1].done) == (2, 2)


def test_the_key_has_all_that_a_verdict_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = job(RIGHT)
    others = [
        key_of(contents(WRONG), mine.kernel, OPTIONS),
        key_of(mine.contents, "another", OPTIONS),
        *(
            key_of(mine.contents, mine.kernel, options)
            for options in (
                ProofOptions(block=64),
                replace(OPTIONS, lds_reads="lenient"),
                replace(OPTIONS, vmcnt="any-order"),
                replace(OPTIONS, assume=("lds-in-bounds",)),
                replace(OPTIONS, steps=7),
                replace(OPTIONS, seconds=1.0),
            )
        ),
    ]  # fmt: skip
    monkeypatch.setattr("rota.fleet.kernel_job.judge_version", lambda: (*judge_version()[:-1], "another objdump"))
    others.append(key_of(mine.contents, mine.kernel, OPTIONS))
    assert len({mine.key, *others}) == 1 + len(others)


@pytest.mark.parametrize("block", [None, 256, (16, 16, 1)])
def test_jobs_and_rows_travel_as_lines(block: int | tuple[int, int, int] | None) -> None:
    sent = job(WRONG, replace(OPTIONS, block=block, assume=("lds-in-bounds",)))
    there = job_of(sent.line())
    assert (there, there.find_mismatch()) == (sent, "")
    row = there.compute()
    back = row_of(row.line())
    assert back == row
    assert back.verdict is not None
    assert any(line.startswith(">") and "ds_write_b32" in line for line in back.listings[0].splitlines())


def test_a_worker_that_would_compute_something_else_says_so() -> None:
    assert replace(job(RIGHT), contents=contents(WRONG)).find_mismatch()


def test_a_file_that_cant_be_read_is_a_row(tmp_path: Path) -> None:
    with VerdictStore(tmp_path, write=True) as store:
        found = check_fleet(
            [
                *subjects(RIGHT),
                FleetFile("x.co", lambda: b"junk"),
                FleetFile("y.co", lambda: contents(RIGHT), "no kernel"),
            ],
            lambda *_: OPTIONS,
            Here(),
            store,
        )
        assert store.last_run() is not None
    assert [each.row.status for each in found.rows] == ["proved", NOT_READ, NOT_READ]
    assert [each.row.codes for each in found.rows] == [(), ("T103",), ("T103",)]


@pytest.mark.thorough  # processes
def test_a_time_limit_is_a_row_that_a_wider_limit_replaces(tmp_path: Path) -> None:
    narrow = run(tmp_path, RIGHT, pool=LocalPool(1, JobLimits(0.01, 8192)))
    assert [(each.row.status, each.row.codes) for each in narrow.rows] == [(FAILED, ("S303",))]
    assert run(tmp_path, RIGHT, pool=LocalPool(1, JobLimits(0.01, 8192))).rows == narrow.rows
    assert [each.row.status for each in run(tmp_path, RIGHT, pool=LocalPool(1, LIMITS)).rows] == ["proved"]


@pytest.mark.thorough  # processes
def test_a_memory_limit_is_a_row(tmp_path: Path) -> None:
    found = run(tmp_path, RIGHT, pool=LocalPool(1, JobLimits(60.0, 64)))
    assert [(each.row.status, each.row.codes) for each in found.rows] == [(FAILED, ("S302",))]


@pytest.mark.thorough  # processes
def test_killed_workers_cost_their_start_and_no_row(tmp_path: Path) -> None:
    pool, killed = LocalPool(2, LIMITS), 0

    def kill(_: FleetTally) -> None:
        nonlocal killed
        said = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True, check=False).stdout
        workers = [int(each) for each in said.split()]
        if workers and killed < 2:
            killed += 1
            os.kill(workers[-1], signal.SIGKILL)

    there = ("raw_sync_ok", "raw_nosync", "war_ok", "war_nosync")
    with VerdictStore(tmp_path, write=True) as store:
        found = check_fleet(subjects(*there), lambda *_: OPTIONS, pool, store, progress=kill)
    expected = run(tmp_path / "other", *there)
    assert killed == 2
    assert [each.row.status for each in found.rows] == [each.row.status for each in expected.rows]


def test_runs_are_compared_by_kernel_and_finding(tmp_path: Path) -> None:
    before = run(tmp_path, RIGHT, WRONG)
    assert compare_runs(before, before) == []
    first, second = before.rows
    mended = before._replace(rows=(first, FleetRow(second.file, replace(second.row, status="proved", findings=()))))
    (went,) = compare_runs(before, mended)
    assert (went.subject, went.before, went.after) == (second.subject, "refuted", "proved")
    assert ([each.code for each in went.went], went.came) == (["I109"], ())
    (came,) = compare_runs(mended, before)
    assert ([each.code for each in came.came], came.went) == (["I109"], ())
    alone = before._replace(rows=(first,))
    assert [(each.before, each.after) for each in compare_runs(before, alone)] == [("refuted", "")]
    assert [(each.before, each.after) for each in compare_runs(alone, before)] == [("", "refuted")]


def test_a_store_recalls_its_last_run(tmp_path: Path) -> None:
    made = run(tmp_path, RIGHT, WRONG)
    with VerdictStore(tmp_path) as store:
        last = store.last_run()
    assert last is not None
    assert (last.rows, last.number) == (made.rows, made.number)
    assert last.facts["judged"] == 2


def test_a_folder_without_verdicts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TuneError) as caught:
        VerdictStore(tmp_path)
    assert caught.value.findings[0].code == "S401"


def test_a_failed_row_is_tried_again_where_it_says_nothing_about_the_kernel(tmp_path: Path) -> None:
    asked, pool = job(RIGHT), Here()
    with VerdictStore(tmp_path, write=True) as store:
        store.put(asked.fail("S305", "3 workers ended over it without a row"))
        (found,) = check_fleet(subjects(RIGHT), lambda *_: OPTIONS, pool, store).rows
    assert (pool.computed, found.row.status) == (1, "proved")


def kill_tools(monkeypatch: pytest.MonkeyPatch, folder: Path, times: int) -> Path:
    """Let the disassembler kill itself so many times; the file that is returned has a line for each run."""
    (objdump,) = find_objdump()
    log, tool = folder / "log", folder / "objdump"
    tool.write_text(
        f'#!/bin/sh\necho >> {log}\n[ $(wc -l < {log}) -le {times} ] && kill -9 $$\nexec {objdump} "$@"\n', "utf-8"
    )
    tool.chmod(0o755)
    monkeypatch.setattr(toolchain, "find_objdump", lambda: (str(tool),))
    return log


def test_a_killed_disassembler_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, log = job(RIGHT, replace(OPTIONS, steps=200_000)), kill_tools(monkeypatch, tmp_path, 2)
    assert (asked.compute().status, len(log.read_text("utf-8").splitlines()) > 2) == ("proved", True)


def test_a_disassembler_that_is_always_killed_says_nothing_about_a_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, log = job(RIGHT), kill_tools(monkeypatch, tmp_path, 100)
    row = asked.compute()
    assert (row.status, row.codes, len(log.read_text("utf-8").splitlines())) == (FAILED, ("S301",), 3)
    with VerdictStore(tmp_path / "store", write=True) as store:  # the next run judges it
        store.put(row)
        monkeypatch.undo()
        (found,) = check_fleet(subjects(RIGHT), lambda *_: OPTIONS, Here(), store).rows
    assert found.row.status == "proved"
