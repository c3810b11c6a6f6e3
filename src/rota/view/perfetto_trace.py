"""A trace of a predicted run for ui.perfetto.dev.

Kernel > workgroup > wave > lanes in a fixed order; waits are slices of their own; one nanosecond means one clock, as
the process name says. Names hold no numbers, so that equal work adds up; the numbers are in the annotations. Only this
module imports the `perfetto` package, which `rota[trace]` installs.
"""

from __future__ import annotations

import enum
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rota.cycles.timeline import Lane, Slice, Stall, Timeline
from rota.errors import ToolchainError
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import Lowerable
from rota.view.draw import pack
from rota.view.scene import PREDICTED, Key, Reason, reasons_of

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto  # type: ignore[import-untyped]

UNITS = tuple(lane.value for lane in Lane)
WAITS = "waits"
REGISTERS = "live registers"
_SEQUENCE = 1
_PROCESS, _WORKGROUP, _FIRST_FREE = 1, 2, 3
_NUMBERS = re.compile(r"_?\d+|\(\d*\)")
_COUNT = re.compile(r"\((\d+)\)$")


class _Track(NamedTuple):
    """Where a wave's events of one lane go; overlapping slices get tracks of one name, which the viewer joins."""

    wave: int
    lane: str
    number: int = 0


class _Kind(enum.IntEnum):
    """What an event is; at one time, slices end before others begin."""

    END = 0
    LEVEL = 1
    BEGIN = 2


class _Event(NamedTuple):
    time: int
    kind: _Kind
    track: _Track
    name: str = ""
    notes: tuple[tuple[str, str | int], ...] = ()
    feeds: tuple[int, ...] = ()
    fed: tuple[int, ...] = ()
    value: int = 0


def perfetto_trace(compiled: Lowerable, timeline: Timeline) -> bytes:
    """The whole run, every wave of it."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError as missing:
        raise ToolchainError.of(
            "T301",
            "a Perfetto trace needs the package perfetto",
            evidence=(("missing", (missing.name or "perfetto").partition(".")[0]),),
            fixes=("pip install 'rota[trace]'",),
        ) from missing
    reasons = reasons_of(compiled)
    events = [*_slices(timeline, reasons), *_stalls(timeline, reasons), *_levels(timeline)]
    events.sort(key=lambda event: (event.time, event.kind))
    trace = perfetto_trace_pb2.Trace()
    numbers = _describe(trace, timeline, {event.track for event in events})
    for event in events:
        _write(trace, event, numbers[event.track])
    return bytes(trace.SerializeToString(deterministic=True))


def stable_name(text: str) -> str:
    """A name without the numbers that tell one op of a kind from another, so that equal work adds up."""
    return _NUMBERS.sub("", text.partition(" ")[0].partition("[")[0])


def _slices(timeline: Timeline, reasons: Mapping[Key, Reason]) -> Iterator[_Event]:
    """What the units did, with arrows from who made an operand to who used it."""
    feeds: defaultdict[int, list[int]] = defaultdict(list)
    fed: defaultdict[int, list[int]] = defaultdict(list)
    for number, flow in enumerate(timeline.flows, 1):
        feeds[flow.producer].append(number)
        fed[flow.consumer].append(number)
    blocks = _blocks(reasons)
    lanes: defaultdict[tuple[int, str], list[Slice]] = defaultdict(list)
    numbers = {id(piece): number for number, piece in enumerate(timeline.slices)}
    for piece in timeline.slices:
        lanes[piece.wave, str(piece.lane)].append(piece)
    for (wave, lane), pieces in lanes.items():
        for piece, track in pack(pieces):
            place = _Track(wave, lane, track)
            number = numbers[id(piece)]
            notes = (*_notes(piece, reasons), ("instructions", piece.instructions), ("result at", piece.done))
            key = Key(piece.at.phase, piece.at.slot)
            block = (("block", blocks[key]),) if key in blocks else ()
            name, flows = stable_name(piece.label), (tuple(feeds[number]), tuple(fed[number]))
            yield _Event(piece.start, _Kind.BEGIN, place, name, (*notes, *block), *flows)
            yield _Event(piece.end, _Kind.END, place)


def _stalls(timeline: Timeline, reasons: Mapping[Key, Reason]) -> Iterator[_Event]:
    for stall in timeline.stalls:
        track = _Track(stall.wave, WAITS)
        count = _COUNT.search(stall.label)
        notes = (*_notes(stall, reasons), *((("count", int(count[1])),) if count else ()))
        yield _Event(stall.start, _Kind.BEGIN, track, str(stall.cause), notes)
        yield _Event(stall.end, _Kind.END, track)


def _levels(timeline: Timeline) -> Iterator[_Event]:
    for level in timeline.levels:
        yield _Event(level.clock, _Kind.LEVEL, _Track(level.wave, level.counter), value=level.tokens)
    for now in timeline.registers:
        yield _Event(now.clock, _Kind.LEVEL, _Track(now.wave, REGISTERS), value=now.live)


def _notes(stretch: Slice | Stall, reasons: Mapping[Key, Reason]) -> tuple[tuple[str, str | int], ...]:
    """The entry, where it was declared, and what it waits for longest."""
    key = Key(stretch.at.phase, stretch.at.slot)
    notes: list[tuple[str, str | int]] = [("op", stretch.label), ("entry", str(key)), ("trip", stretch.at.trip)]
    reason = reasons.get(key)
    if reason is not None:
        notes += [("stage", reason.stage)]
        notes += [("declared at", reason.source)] * bool(reason.source)
        notes += [("why", "; ".join(reason.lines))] * bool(reason.lines)
        for need in reason.needs[:1]:
            notes.append(("binding edge", f"{reasons[need].entry.op} ({need}) -> {reason.entry.op}"))
    return tuple(notes)


def _blocks(reasons: Mapping[Key, Reason]) -> dict[Key, int]:
    """The MMA block of each entry: how many computes of its phase are before it."""
    blocks = {}
    passed: defaultdict[Phase, int] = defaultdict(int)
    for key in sorted(reasons, key=lambda key: key.slot):
        blocks[key] = passed[key.phase]
        passed[key.phase] += reasons[key].entry.op.kind is OpKind.MMA
    return blocks


def _describe(trace: proto.Trace, timeline: Timeline, tracks: Iterable[_Track]) -> Mapping[_Track, int]:
    """Kernel, workgroup, waves and lanes, each with its place among its siblings; gives the lanes' numbers."""
    process = _track(trace, _PROCESS, None, "", 0)
    process.process.pid = _PROCESS
    process.process.process_name = f"{timeline.name} on {timeline.machine}: {PREDICTED}, 1 ns = 1 clock"
    _track(trace, _WORKGROUP, _PROCESS, "workgroup", 0)
    for wave in range(timeline.waves):
        role = f", {timeline.roles[wave]}" if len(set(timeline.roles)) > 1 else ""
        _track(trace, _FIRST_FREE + wave, _WORKGROUP, f"wave {wave}{role}", wave)
    numbers = {}
    order = (*UNITS, WAITS, *(counter for counter, _ in timeline.counter_limits), REGISTERS)
    ordered = sorted(tracks, key=lambda track: (track.wave, order.index(track.lane), track.number))
    for number, track in enumerate(ordered, _FIRST_FREE + timeline.waves):
        descriptor = _track(trace, number, _FIRST_FREE + track.wave, track.lane, order.index(track.lane))
        if track.lane not in (*UNITS, WAITS):
            descriptor.counter.unit_name = "registers" if track.lane == REGISTERS else "tokens"
        numbers[track] = number
    return numbers


def _track(trace: proto.Trace, number: int, parent: int | None, name: str, rank: int) -> proto.TrackDescriptor:
    descriptor = trace.packet.add(trusted_packet_sequence_id=_SEQUENCE).track_descriptor
    descriptor.uuid = number
    descriptor.child_ordering = descriptor.EXPLICIT
    descriptor.sibling_order_rank = rank
    if parent is not None:
        descriptor.parent_uuid = parent
        descriptor.name = name
    return descriptor


def _write(trace: proto.Trace, event: _Event, number: int) -> None:
    written = trace.packet.add(trusted_packet_sequence_id=_SEQUENCE, timestamp=event.time).track_event
    written.track_uuid = number
    if event.kind is _Kind.LEVEL:
        written.type = written.TYPE_COUNTER
        written.counter_value = event.value
    elif event.kind is _Kind.END:
        written.type = written.TYPE_SLICE_END
    else:
        written.type = written.TYPE_SLICE_BEGIN
        written.name = event.name
        written.flow_ids.extend(event.feeds)
        written.terminating_flow_ids.extend(event.fed)
    for name, value in event.notes:
        note = written.debug_annotations.add(name=name)
        if isinstance(value, int):
            note.int_value = value
        else:
            note.string_value = value
