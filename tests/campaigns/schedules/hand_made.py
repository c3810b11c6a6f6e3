"""Hand-made schedules against rota's: takes hipBLASLt's main-loop tables, prints what is proved and predicted.

    python -m benchmarks.hand_made [--quick | --clocks] [PART_OF_TITLE ...]

Each table is read as a lowered program (`rota.lift.hipblaslt`) and proved, as it is written or else under the first
reading that suffices; what none suffices for keeps its findings.  Its waits and barriers are then left out one by one,
barriers first, as long as the proof holds: `needed` counts those that remain, and the waits among them that couldn't be
weaker by one.  Last, the table and rota's own order of the very same instructions are predicted.  With --quick only the
proof and the table's own prediction are made, with --clocks rota's order too.  The exit status is 1 if a table couldn't
be read, or is proved under no reading.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, log
from typing import NamedTuple

from rota.cycles.predict import predict
from rota.errors import RotaError, Severity
from rota.lift.hipblaslt import Reading, loop_of, lower_table
from rota.lift.schedule_table import ScheduleTable, SyncOp, read_table
from rota.targets.device import Device
from rota.targets.registry import device_named
from rota.values.compile_loop import compile_loop
from rota.verify.prove import holds, verify
from tests.lift.small_table import remove_sync
from tests.shared import shared

CAVEAT = """
Both columns of clocks are predictions of rota's own cycle model, for which rota's order was made and the tables were
not; neither was measured.  Pointer arithmetic, which tables list and rota's loops don't have, is left out of both.
"""


class NamedReading(NamedTuple):
    """A reading, in words."""

    name: str
    reading: Reading


READINGS = (
    NamedReading("as written", Reading()),
    NamedReading("if a full counter stalls", Reading(full_counter=True)),
    NamedReading(
        "if a full counter stalls, and LDS waits are full at last", Reading(full_counter=True, full_waits_last=True)
    ),
    NamedReading("if fragments are multiplied in four blocks", Reading(in_blocks=True)),
)
"""In the order in which they are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Which reading a table is proved under, if any, and what is found in it as it is written."""

    needs: str | None
    reading: Reading
    found: tuple[str, ...]
    a_first: bool
    """Does the proof hold too if A's loads come first in front of the loop?"""


def judged(table: ScheduleTable, device: Device) -> Verdict:
    """Proved for every number of tiles, or not."""
    for name, reading in READINGS:
        if _proved(table, device, reading):
            found = () if reading == Reading() else tuple(_errors(table, device, Reading()))
            a_first = _proved(table, device, replace(reading, a_first=True))
            return Verdict(needs=name, reading=reading, found=found, a_first=a_first)
    return Verdict(needs=None, reading=Reading(), found=tuple(_errors(table, device, Reading())), a_first=False)


def _errors(table: ScheduleTable, device: Device, reading: Reading) -> Iterator[str]:
    """The codes of what is found, each once."""
    found = verify(lower_table(table, device, reading)).findings
    yield from dict.fromkeys(each.code for each in found if each.severity is Severity.ERROR)


def _proved(table: ScheduleTable, device: Device, reading: Reading) -> bool:
    each = (replace(reading, before=before) for before in range(table.buffers))
    return all(holds(lower_table(table, device, one)) for one in each)


class Needed(NamedTuple):
    """How many waits and barriers a table has, how many of them the proof needs, and how many of those waits are tight.

    A tight wait leaves as many ops in flight as it can: with one more the proof fails.
    """

    waits: int
    barriers: int
    of_waits: int
    of_barriers: int
    tight: int

    def __str__(self) -> str:
        return f"{self.waits}/{self.of_waits} {self.barriers}/{self.of_barriers} {self.tight}"


def needed(table: ScheduleTable, device: Device, reading: Reading) -> Needed:
    """Leaves out what can be left out, barriers first."""
    all_barriers = sum(sync.barrier for sync in table.syncs)
    less = table
    for barrier in (True, False):
        number = 0
        while number < len(less.syncs):
            tried = remove_sync(less, number)
            if less.syncs[number].barrier is barrier and _proved(tried, device, reading):
                less = tried
            else:
                number += 1
    barriers = sum(sync.barrier for sync in less.syncs)
    tight = sum(not _proved(weaker, device, reading) for weaker in _weakened(less))
    return Needed(len(less.syncs) - barriers, barriers, len(table.syncs) - all_barriers, all_barriers, tight)


def _weakened(table: ScheduleTable) -> Iterator[ScheduleTable]:
    """The table with one of its waits weaker by one, on each counter that it is for."""
    for number, sync in enumerate(table.syncs):
        if not sync.barrier:
            weaker = SyncOp(
                lds=None if sync.lds is None else sync.lds + 1, memory=None if sync.memory is None else sync.memory + 1
            )
            yield replace(table, syncs=(*table.syncs[:number], weaker, *table.syncs[number + 1 :]))


def clocks(table: ScheduleTable, device: Device, reading: Reading) -> tuple[float, float]:
    """Predicted a tile for the table, and the least that its busiest unit needs."""
    plain = replace(reading, full_counter=False)
    prediction = predict(lower_table(table, device, plain), band=False)
    return prediction.cycles, prediction.least_cycles


def our_clocks(table: ScheduleTable, device: Device, reading: Reading) -> float | str:
    """Predicted for rota's order of the same instructions, or why there is none."""
    try:
        compiled = compile_loop(loop_of(table, in_blocks=reading.in_blocks), device)
    except RotaError as error:
        return error.findings[0].code
    return predict(compiled, band=False).cycles


def geometric_mean(ratios: Sequence[float]) -> float:
    """Of ratios."""
    return exp(fsum(map(log, ratios)) / len(ratios))


def titles(tables: Iterable[ScheduleTable]) -> tuple[str, ...]:
    """The tables' titles, each once."""
    return tuple(dict.fromkeys(table.title for table in tables))


def main(arguments: Sequence[str]) -> int:
    """Print a row for each table, then the sums."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hand_made")
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--clocks", action="store_true")
    options = parser.parse_args(arguments)
    device = device_named("mi355x")
    with gzip.open(shared("loops/hipblaslt_cms_gfx950.json.gz"), "rt") as file:
        documents = json.load(file)
    print(
        "needed: waits and barriers that the proof needs, of all, and how many of those waits are tight; clocks a tile"
    )
    print(f"{'table':28} waves paths  {'needed':12} theirs  least   ours  ratio  proved")
    rows, unread = list[Row](), 0
    for document in documents:
        try:
            table = read_table(document)
            if options.parts and not any(part in table.title for part in options.parts):
                continue
            verdict = judged(table, device)
            theirs, least = clocks(table, device, verdict.reading)
        except RotaError as error:
            unread += 1
            print(f"not read: {error.findings[0].code}: {error.findings[0].message}")
            continue
        count = (
            needed(table, device, verdict.reading) if verdict.needs and not (options.quick or options.clocks) else None
        )
        ours = None if options.quick else our_clocks(table, device, verdict.reading)
        row = Row(table=table, verdict=verdict, needed=count, theirs=theirs, least=least, ours=ours)
        rows.append(row)
        print(row, flush=True)
    _print_sums(rows)
    return int(unread > 0 or any(row.verdict.needs is None for row in rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of one table."""

    table: ScheduleTable
    verdict: Verdict
    needed: Needed | None
    theirs: float
    least: float
    ours: float | str | None

    @property
    def ratio(self) -> float | None:
        """Ours by theirs."""
        return self.ours / self.theirs if isinstance(self.ours, float) else None

    def __str__(self) -> str:
        table, verdict = self.table, self.verdict
        said = verdict.needs or "not proved"
        if verdict.found:
            said += f" (as written: {', '.join(verdict.found)})"
        if verdict.needs and not verdict.a_first:
            said += "; not with GRA's loads first"
        ours = f"{self.ours:.0f}" if isinstance(self.ours, float) else self.ours or "-"
        ratio = "-" if self.ratio is None else f"{self.ratio:.3f}"
        waves, count = "x".join(map(str, table.waves)), str(self.needed or "-")
        times = f"{self.theirs:6.0f} {self.least:6.0f} {ours:>6} {ratio:>6}"
        return f"{table.title:28} {waves:5} {table.code_paths:5}  {count:12} {times}  {said}"


def _group(table: ScheduleTable) -> str:
    """What a mean is taken over: tables whose ops are of the same kinds."""
    if table.element != "16bit":
        return table.element
    if any(stream.name.startswith("Pack") for stream in table.streams):
        return "16 bit with packs"
    waves = "2x2" if table.waves == (2, 2) else "1x4 and 4x1"
    return f"16 bit, {waves} waves, {'TN' if table.layout == 'TN' else 'transposing reads'}"


def _print_sums(rows: Sequence[Row]) -> None:
    print()
    for said, count in Counter(row.verdict.needs or "not" for row in rows).most_common():
        print(f"{count:3} proved {said}" if said != "not" else f"{count:3} not proved")
    counts = [row.needed for row in rows if row.needed]
    if counts:
        waits, barriers, of_waits, of_barriers, tight = (sum(column) for column in zip(*counts, strict=True))
        print(f"needed: {waits} of {of_waits} waits, {tight} of them tight; {barriers} of {of_barriers} barriers")
    groups: dict[str, list[float]] = {}
    for row in rows:
        for name in (_group(row.table), "all"):
            groups.setdefault(name, []).extend([] if row.ratio is None else [row.ratio])
    for name, ratios in groups.items():
        if ratios:
            mean, worst, above = geometric_mean(ratios), max(ratios), sum(ratio > 1 for ratio in ratios)
            said = f"geometric mean {mean:.3f}, worst {worst:.3f}, {above} above 1"
            print(f"ours / theirs, {name} ({len(ratios)}): {said}")
    print(CAVEAT)
