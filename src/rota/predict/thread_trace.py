"""A measured instruction trace: clocks per entry from what rocprofv3 exports of a thread trace.

Two exports are read: `stats_*.csv` and the viewer's `code.json`. The loop is the longest run of instructions that
executed most often. Its memory, matrix and barrier instructions must be those of the schedule, in its order, or the
trace is of another program (M301).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from rota.cycles.instructions import WorkSource, program_of, work_of
from rota.cycles.predict import predict
from rota.errors import MeasureError
from rota.isa.opcodes import op_kind_of, opcode_named
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable, LoweredProgram
from rota.targets.device import device_of

_COLUMNS = ("Vaddr", "Instruction", "Hitcount", "Latency", "Idle")
_HEADER = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle"
_FIELDS = 10
_LOOSE = {kind for kind in OpKind if kind.synchronises and kind is not OpKind.BARRIER} | {OpKind.NOTHING}
"""Two waits may be one instruction, and hints may be none: they are matched by where they are."""


class TracedInstruction(NamedTuple):
    """One instruction; clocks are sums over all times that it was executed, by all waves that were traced."""

    address: int
    text: str
    hits: int
    latency: int
    idle: int

    @property
    def clocks(self) -> float:
        """From the instruction before it to its own issue, once."""
        return (self.latency + self.idle) / self.hits

    @property
    def kind(self) -> OpKind | None:
        """What it would be in a schedule; None where no op is."""
        name, *rest = self.text.split()
        return op_kind_of(opcode_named(name), tuple(rest))


class ComparedEntry(NamedTuple):
    """Clocks of one trip at an entry, measured and predicted."""

    slot: int
    label: str
    measured: float
    predicted: float

    @property
    def more(self) -> float:
        """How many clocks longer it took than predicted."""
        return self.measured - self.predicted


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceComparison:
    """A trip of the loop, entry by entry; `other` are clocks of instructions that are no entry's."""

    name: str
    entries: tuple[ComparedEntry, ...]
    measured: float
    predicted: float
    other: float

    @property
    def largest(self) -> tuple[ComparedEntry, ...]:
        return tuple(sorted(self.entries, key=lambda each: -abs(each.more)))

    def table(self, count: int = 10) -> str:
        took = f"a trip took {self.measured:,.0f} clk as traced, {self.predicted:,.0f} as predicted"
        lines = [
            f"{self.name}: {took}; {self.other:,.0f} at instructions that are no entry's",
            "  measured  predicted  difference  entry",
        ]
        lines += [
            f"  {each.measured:8,.0f}  {each.predicted:9,.0f}  {each.more:+10,.0f}  kernel[{each.slot}] {each.label}"
            for each in self.largest[:count]
        ]
        return "\n".join(lines)


def read_trace(path: Path) -> tuple[TracedInstruction, ...]:
    """The instructions of an exported trace, by address."""
    try:
        text = path.read_text()
        if path.suffix == ".json":
            rows = list(_from_json(text))
        else:
            read = csv.DictReader(text.splitlines(), strict=True)
            rows = [[row[name] for name in _COLUMNS] for row in read]
        every = [_instruction(*row) for row in rows]
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise _refuse(f"{path.name} is no instruction trace as rocprofv3 exports it: {error}") from error
    found = [each for each in every if not each.text.startswith(";")]
    if not any(each.hits for each in found):
        raise _refuse(f"{path.name} holds no instruction that was executed")
    return tuple(sorted(found))


def _from_json(text: str) -> Iterator[list[Any]]:
    data = json.loads(text)
    if data["header"] != _HEADER:
        raise ValueError(f"its header is {data['header']!r:.80}")
    if data["code"] is None:
        raise ValueError("its code is null: the trace was not decoded")
    for row in data["code"]:
        if len(row) != _FIELDS:
            raise ValueError(f"a row has {len(row)} fields, expected {_FIELDS}")
        instruction, _, _, _, _, address, hits, latency, _, idle = row
        yield [address, str(instruction), hits, latency, idle]


def _instruction(address: Any, text: str, *numbers: Any) -> TracedInstruction:  # noqa: ANN401  # as a file has them
    each = TracedInstruction(int(address), text.strip(), *map(int, numbers))
    if min(each.address, each.hits, each.latency, each.idle) < 0:
        raise ValueError(f"a negative number at {each.text!r:.60}")
    return each


def compare_trace(
    schedule: Lowerable, trace: Sequence[TracedInstruction], shape: WorkSource | None = None
) -> TraceComparison:
    """Measured clocks of each entry of the loop beside the predicted ones; of several roles, the first one's."""
    program = program_of(schedule, shape)
    loop = _loop(trace)
    slots = _match(program, loop)
    measured: dict[int, float] = {}
    other = 0.0
    for each, slot in zip(loop, slots, strict=True):
        if slot is None:
            other += each.clocks
        else:
            measured[slot] = measured.get(slot, 0.0) + each.clocks
    expected = _predict_entry(program)
    labels = {entry.time_slot: str(entry.op) for entry in program.kernel if entry.executed_by(0)}
    entries = [
        ComparedEntry(slot, labels[slot], measured.get(slot, 0.0), expected.get(slot, 0.0))
        for slot in sorted({*measured, *expected} & set(labels))
    ]
    return TraceComparison(
        name=program.name,
        entries=tuple(entries),
        measured=sum(each.clocks for each in loop),
        predicted=predict(program, band=False).cycles * program.tiles_per_trip,
        other=other,
    )


def _loop(trace: Sequence[TracedInstruction]) -> list[TracedInstruction]:
    """The longest run of neighbours that were executed most often, of those that multiply or move anything."""
    most = max(each.hits for each in trace)
    runs = [list(run) for hits, run in groupby(trace, key=lambda each: each.hits) if hits == most]
    return max(runs, key=len)


def _predict_entry(program: LoweredProgram) -> dict[int, float]:
    """Issue turns of an entry, and the clocks for which a wave stalled there, on average."""
    turn = device_of(program.machine).rates.clocks_per_slot.value
    own = [entry for entry in program.kernel if entry.executed_by(0) and entry.listed]
    clocks = {entry.time_slot: float(turn * work_of(entry).instructions) for entry in own}
    for lost in predict(program, band=False).lost:
        if lost.slot in clocks and lost.phase is own[0].phase:
            clocks[lost.slot] += lost.clocks * program.tiles_per_trip
    return {slot: each for slot, each in clocks.items() if each}


def _match(program: LoweredProgram, loop: Sequence[TracedInstruction]) -> list[int | None]:
    own = [entry for entry in program.kernel if entry.executed_by(0)]
    planned = [
        (entry.op.kind, entry.time_slot)
        for entry in own
        if entry.op.kind not in _LOOSE
        for _ in range(work_of(entry).instructions)
    ]
    kinds = {kind for kind, _ in planned}
    seen = [number for number, each in enumerate(loop) if each.kind in kinds]
    _check_same([kind for kind, _ in planned], [loop[number] for number in seen])
    slots: list[int | None] = [None] * len(loop)
    for number, (_, slot) in zip(seen, planned, strict=True):
        slots[number] = slot
    waits = _waits(own)
    before = -1
    for number, each in enumerate(loop):
        if number in seen:
            before = seen.index(number)
        elif each.kind is OpKind.WAIT:
            slots[number] = waits.get(before)
    return slots


def _waits(own: Iterable[Entry]) -> dict[int, int]:
    """The first wait after each instruction that was matched, by that instruction's number."""
    found: dict[int, int] = {}
    count = 0
    for entry in own:
        if entry.op.kind is OpKind.WAIT:
            found.setdefault(count - 1, entry.time_slot)
        elif entry.op.kind not in _LOOSE:
            count += work_of(entry).instructions
    return found


def _check_same(planned: Sequence[OpKind], seen: Sequence[TracedInstruction]) -> None:
    wrong = next((n for n, (a, b) in enumerate(zip(planned, seen, strict=False)) if a is not b.kind), None)
    if wrong is None and len(planned) == len(seen):
        return
    at = min(len(planned), len(seen)) if wrong is None else wrong
    traced = f"{seen[at].text} at {seen[at].address:#x}" if at < len(seen) else "the end of the loop"
    raise MeasureError.of(
        "M301",
        "the trace's hottest loop is not the schedule's",
        evidence=(
            ("instructions, of the schedule and traced", f"{len(planned)} and {len(seen)}"),
            ("first difference", f"number {at}"),
            ("the schedule has", planned[at].word if at < len(planned) else "the end of the loop"),
            ("the trace has", traced),
        ),
        fixes=("trace the kernel that was emitted from this schedule; `rota audit` says whether it follows it",),
    )


def _refuse(message: str) -> MeasureError:
    return MeasureError.of(
        "M301",
        message,
        fixes=("export it with `rocprofv3 --att`, and name its stats_*.csv or the code.json of its ui_output",),
    )
