"""The file is read back with perfetto's own protobuf classes, and held against the timeline it was made from."""

from __future__ import annotations

import re
from collections import Counter as Tally, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from rota import CompiledSchedule
from rota.cycles.timeline import Timeline
from rota.view.perfetto_trace import UNITS, WAITS, perfetto_trace, stable_name
from tests.view.kernels import by_values, four_wave, ping_pong

proto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

Kernel = Callable[[], tuple[CompiledSchedule, Timeline]]
KERNELS = pytest.mark.parametrize("kernel", [ping_pong, four_wave, by_values])


class Read:
    """A trace, read back."""

    def __init__(self, written: bytes) -> None:
        trace = proto.Trace()
        trace.ParseFromString(written)
        self.tracks: dict[int, Any] = {}
        self.events: list[tuple[int, Any]] = []
        for packet in trace.packet:
            if packet.HasField("track_descriptor"):
                assert packet.track_descriptor.uuid not in self.tracks
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            else:
                self.events.append((packet.timestamp, packet.track_event))

    def path(self, number: int) -> list[str]:
        track = self.tracks[number]
        if not track.HasField("parent_uuid"):
            return [track.process.process_name]
        return [*self.path(track.parent_uuid), track.name]

    def begins(self) -> list[tuple[int, Any]]:
        return [(time, event) for time, event in self.events if event.type == event.TYPE_SLICE_BEGIN]


@KERNELS
def test_as_many_slices_as_the_timeline_has_slices_and_stalls(kernel: Kernel) -> None:
    compiled, timeline = kernel()
    read = Read(perfetto_trace(compiled, timeline))
    found = Tally(tuple(read.path(event.track_uuid)[2:]) for _, event in read.begins())
    wanted = Tally((_wave(timeline, each.wave), str(each.lane)) for each in timeline.slices)
    wanted += Tally((_wave(timeline, stall.wave), WAITS) for stall in timeline.stalls)
    assert found == wanted
    assert sum(found.values()) == len(timeline.slices) + len(timeline.stalls)


@KERNELS
def test_slices_begin_and_end_where_the_timeline_says_and_never_overlap_on_a_track(kernel: Kernel) -> None:
    compiled, timeline = kernel()
    read = Read(perfetto_trace(compiled, timeline))
    open_since: dict[int, int] = {}
    found: Tally[tuple[str, str, int, int]] = Tally()
    before = 0
    for time, event in read.events:
        assert time >= before
        before = time
        track = event.track_uuid
        if event.type == event.TYPE_SLICE_BEGIN:
            assert track not in open_since
            open_since[track] = time
        elif event.type == event.TYPE_SLICE_END:
            _, _, wave, lane = read.path(track)
            found[wave, lane, open_since.pop(track), time] += 1
    assert not open_since
    wanted = Tally((_wave(timeline, s.wave), str(s.lane), s.start, s.end) for s in timeline.slices)
    wanted += Tally((_wave(timeline, s.wave), WAITS, s.start, s.end) for s in timeline.stalls)
    assert found == wanted


@KERNELS
def test_kernel_workgroup_waves_lanes_in_a_fixed_order(kernel: Kernel) -> None:
    compiled, timeline = kernel()
    read = Read(perfetto_trace(compiled, timeline))
    paths = [read.path(number) for number in read.tracks]
    assert max(map(len, paths)) == 4
    assert {path[0] for path in paths} == {
        f"{timeline.name} on {timeline.machine}: predicted, not measured, 1 ns = 1 clock"
    }
    assert {path[1] for path in paths if len(path) > 1} == {"workgroup"}
    lanes = (*UNITS, WAITS, "vmcnt", "lgkmcnt", "live registers")
    for number, track in read.tracks.items():
        path = read.path(number)
        assert track.child_ordering == track.EXPLICIT
        if len(path) == 4:
            assert track.sibling_order_rank == lanes.index(path[3])


@KERNELS
def test_flows_lead_from_who_made_an_operand_to_who_used_it(kernel: Kernel) -> None:
    compiled, timeline = kernel()
    assert timeline.flows
    read = Read(perfetto_trace(compiled, timeline))
    sources: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    targets: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for time, event in read.begins():
        for flow in event.flow_ids:
            sources[flow].append((time, _noted(event)["op"]))
        for flow in event.terminating_flow_ids:
            targets[flow].append((time, _noted(event)["op"]))
    assert sources.keys() == targets.keys()
    drawn = Tally((*sources[flow], *targets[flow]) for flow in sources)
    slices = timeline.slices
    wanted = Tally(
        (
            (slices[flow.producer].start, slices[flow.producer].label),
            (slices[flow.consumer].start, slices[flow.consumer].label),
        )
        for flow in timeline.flows
    )
    assert drawn == wanted


def test_counters_have_every_level() -> None:
    compiled, timeline = ping_pong()
    read = Read(perfetto_trace(compiled, timeline))
    found = Tally(
        (*read.path(event.track_uuid)[2:], time, event.counter_value)
        for time, event in read.events
        if event.type == event.TYPE_COUNTER
    )
    wanted = Tally((_wave(timeline, e.wave), e.counter, e.clock, e.tokens) for e in timeline.levels)
    wanted += Tally((_wave(timeline, e.wave), "live registers", e.clock, e.live) for e in timeline.registers)
    assert found == wanted
    units = {track.name: track.counter.unit_name for track in read.tracks.values() if track.HasField("counter")}
    assert units == {"vmcnt": "tokens", "lgkmcnt": "tokens", "live registers": "registers"}


@KERNELS
def test_names_hold_no_numbers_and_annotations_do(kernel: Kernel) -> None:
    compiled, timeline = kernel()
    read = Read(perfetto_trace(compiled, timeline))
    for _, event in read.begins():
        assert event.name
        assert not re.search(r"\d", event.name)
        notes = _noted(event)
        assert {"op", "entry", "trip", "stage"} <= notes.keys()
        if event.name == "wait vmcnt":
            assert notes["op"] == f"wait_vm({notes['count']})"


def test_an_mma_tells_its_block_source_and_binding_edge() -> None:
    compiled, timeline = ping_pong()
    read = Read(perfetto_trace(compiled, timeline))
    notes = [_noted(event) for _, event in read.begins() if event.name == "mma"]
    kernel = [note for note in notes if note["entry"].startswith("kernel")]
    assert {note["block"] for note in kernel} == set(range(8))
    for note in kernel:
        assert note["declared at"].startswith("kernels/ping_pong.py:")
        assert re.fullmatch(r"mma_load_[ab] s\d t\d \(kernel\[\d+\]\) -> mma\[\d,\d\]", note["binding edge"])


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("mma[1,0]", "mma"),
        ("load_a s1 t1 k_prev", "load_a"),
        ("wait_vm(12)", "wait_vm"),
        ("load_A0 s0", "load_A"),
        ("read_a4_1 s0", "read_a"),
        ("mma0_3_2 s1", "mma"),
        ("barrier", "barrier"),
    ],
)
def test_stable_names(label: str, name: str) -> None:
    assert stable_name(label) == name


def _wave(timeline: Timeline, wave: int) -> str:
    return f"wave {wave}, {timeline.roles[wave]}" if len(set(timeline.roles)) > 1 else f"wave {wave}"


def _noted(event: Any) -> dict[str, Any]:
    return {note.name: note.string_value or note.int_value for note in event.debug_annotations}
