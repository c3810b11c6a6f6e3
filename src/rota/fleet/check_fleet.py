"""Judge every kernel of many code objects: rows from the store where they are there, from a pool where not.

A file that can't be read, and a kernel whose process crashes or takes too long, are rows like any other: nothing is
left out silently.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

from rota.errors import Finding, RotaError, ToolchainError
from rota.fleet.kernel_job import FAILED, KernelJob, KernelRow, ProofOptions, key_of, row_without_kernels
from rota.fleet.known_finding import KnownFinding, identify
from rota.fleet.verdict_store import FleetRow, FleetRun, VerdictStore
from rota.isa.binary.code_object import read_kernels
from rota.isa.binary.elf import unbundle
from rota.workers.job import JobLimits, Pool

LIMITS = JobLimits(seconds=300.0, megabytes=8192)
"""Of one kernel, if nobody says otherwise."""
_TO_TRY_AGAIN = frozenset({"S301", "S304", "S305"})


class FleetFile(NamedTuple):
    """A file to be judged, by its name; `contents` gives its code object, or raises what is wrong with it."""

    file: str
    contents: Callable[[], bytes]
    kernel: str | None = None  # all of them


OptionsFor = Callable[[str, str], ProofOptions]
"""The options for a kernel, by its file and its name."""
Progress = Callable[["FleetTally"], None]


@dataclass(slots=True, kw_only=True)
class FleetTally:
    """How far a run is: kernels asked for, read from the store, computed; and their statuses."""

    asked: int = 0
    hits: int = 0
    done: int = 0
    started: float = field(default_factory=perf_counter)
    statuses: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        there = self.hits + self.done
        counts = ", ".join(f"{count:,} {status}" for status, count in self.statuses.most_common())
        line = f"{there:,} of {self.asked:,} kernels" + (f": {counts}" if counts else "")
        took = perf_counter() - self.started
        if self.done and took > 0 and there < self.asked:
            rate = self.done / took
            line += f"; {rate:.2g}/s, {(self.asked - there) / rate:.0f} s left"
        return line


def check_fleet(
    subjects: Sequence[FleetFile],
    options_for: OptionsFor,
    pool: Pool,
    store: VerdictStore | None,
    *,
    place: str = "",
    retry: bool = False,
    progress: Progress = lambda _: None,
) -> FleetRun:
    """Judge all kernels; the run is recorded in the store when it has ended."""
    with ThreadPoolExecutor(pool.workers) as threads:  # sources are compiled by processes of their own
        lists = threads.map(lambda subject: [*_find_kernels(subject, options_for)], subjects)
        asked = [each for found in lists for each in found]
    jobs = {each.key: each for _, each in asked if isinstance(each, KernelJob)}
    tally = FleetTally(asked=len(asked))
    tally.statuses.update(each.status for _, each in asked if isinstance(each, KernelRow))
    tally.hits += sum(isinstance(each, KernelRow) for _, each in asked)
    there = {} if store is None else store.rows(jobs)
    found = {key: row for key, row in there.items() if not _is_stale(row, pool.limits, retry=retry)}
    uses = Counter(each.key for _, each in asked if isinstance(each, KernelJob))
    for row in found.values():
        tally.hits += uses[row.key]
        tally.statuses[row.status] += uses[row.key]
    progress(tally)
    for rows in pool.run([job for key, job in jobs.items() if key not in found]):
        if store is not None:
            store.put(*rows)
        for row in rows:
            found[row.key] = row
            tally.done += uses[row.key]
            tally.statuses[row.status] += uses[row.key]
        progress(tally)
    listed = tuple(FleetRow(file, found[each.key] if isinstance(each, KernelJob) else each) for file, each in asked)
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    facts = {
        "workers": pool.workers, "judged": tally.done, "read from the store": tally.hits, "machine": machine,
        "wall clock seconds": round(perf_counter() - tally.started, 1), "Python": platform.python_version(),
    }  # fmt: skip
    run = FleetRun(listed, place, facts=facts)
    return run if store is None else run._replace(number=store.record(run))


def _find_kernels(subject: FleetFile, options_for: OptionsFor) -> Iterator[tuple[str, KernelJob | KernelRow]]:
    """A job for each kernel of a file, else a row that says why there is none."""
    try:
        contents = unbundle(subject.contents(), None)
        names = [each.name for each in read_kernels(contents)]
        if subject.kernel is not None:
            if subject.kernel not in names:
                raise ToolchainError.of("T103", f"the code object has no kernel named {subject.kernel!r:.200}")
            names = [subject.kernel]
    except RotaError as error:
        yield subject.file, row_without_kernels(error.findings)
        return
    for name in names:
        options = options_for(subject.file, name)
        job = KernelJob(key=key_of(contents, name, options), kernel=name, options=options, contents=contents)
        yield subject.file, job


def _is_stale(row: KernelRow, limits: JobLimits, *, retry: bool) -> bool:
    """True of a failure under narrower limits than now, and of one that says nothing about the kernel."""
    if row.status != FAILED:
        return False
    code = row.findings[0].code
    return (
        retry
        or code in _TO_TRY_AGAIN
        or (code == "S303" and row.facts["seconds"] < limits.seconds)
        or (code == "S302" and row.facts["megabytes"] < limits.megabytes)
    )


class RunChange(NamedTuple):
    """What differs between two runs about one kernel; a status is empty where the kernel isn't there."""

    subject: str
    before: str
    after: str
    came: tuple[Finding, ...]
    went: tuple[KnownFinding, ...]

    def __str__(self) -> str:
        status = self.after if self.before == self.after else f"{self.before or 'new'} -> {self.after or 'gone'}"
        lines = [f"{status}  {self.subject}"]
        lines += [f"  + {each.code} {each.message}" for each in self.came]
        lines += [f"  - {each.code} {' / '.join(each.ends)}" for each in self.went]
        return "\n".join(lines)


def compare_runs(before: FleetRun, after: FleetRun) -> list[RunChange]:
    """Kernels whose status or findings differ, by file and name; findings are compared by their identity."""
    was, now = ({each.subject: each for each in run.rows} for run in (before, after))
    changes = []
    for subject in dict.fromkeys((*was, *now)):
        old, new = was.get(subject), now.get(subject)
        known, left = Counter(_identities(old)), []
        for finding in () if new is None else new.row.findings:
            who = identify(subject, finding)
            if known[who] > 0:
                known[who] -= 1
            elif finding.severity.value != "note":
                left.append(finding)
        statuses = ("" if old is None else old.row.status, "" if new is None else new.row.status)
        if len(set(statuses)) > 1 or left or +known:
            changes.append(RunChange(subject, *statuses, tuple(left), tuple((+known).elements())))
    return changes


def _identities(found: FleetRow | None) -> Iterable[KnownFinding]:
    if found is None:
        return ()
    return (identify(found.subject, each) for each in found.row.findings if each.severity.value != "note")
