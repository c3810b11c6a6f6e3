"""Pictures of a producer and a consumer: each wave shows its own entries, arrivals stand apart from waits."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree as ET

import pytest

from rota.cycles.predict import predict
from rota.cycles.record import record
from rota.cycles.timeline import Lane, Timeline
from rota.program.kinds import Phase
from rota.program.lowered import LoweredProgram
from rota.view.draw import draw, text_timeline
from rota.view.page import show
from rota.view.perfetto_trace import perfetto_trace
from rota.view.scene import Key, Stripe, arrange, reasons_of
from tests.cycles.two_roles import producer_consumer
from tests.wording.golden import mentions, worded

SVG = "{http://www.w3.org/2000/svg}"


@cache
def handed_over(waves: tuple[int, int] = (4, 4)) -> tuple[LoweredProgram, Timeline]:
    program = producer_consumer(waves)
    return program, record(program)


def bands(waves: tuple[int, int]) -> dict[str, Stripe]:
    return {band.name: band for band in arrange(*handed_over(waves)).bands}


@pytest.mark.parametrize(
    ("waves", "names"),
    [
        ((4, 4), ["SIMD 0 · 2 waves", "wave 0 · producer", "wave 4 · consumer"]),
        ((1, 4), ["wave 1 · consumer", "wave 0 · producer"]),
        ((1, 1), ["wave 1 · consumer", "wave 0 · producer"]),
    ],
)
def test_a_wave_of_every_role_is_drawn(waves: tuple[int, int], names: list[str]) -> None:
    assert list(bands(waves)) == names


def test_every_wave_shows_its_own_entries_and_counters() -> None:
    found = bands((4, 4))
    producer, consumer = found["wave 0 · producer"], found["wave 4 · consumer"]
    # What a DMA brings takes the LDS port; the producer never multiplies, so its band has no row for that.
    assert [lane for lane, _ in producer.lanes] == [Lane.LDS, Lane.GLOBAL]
    assert [lane for lane, _ in consumer.lanes] == [Lane.MMA, Lane.LDS]
    assert {bar.label for _, bars in producer.lanes for bar in bars} == {"A"}
    assert {bar.label for _, bars in consumer.lanes for bar in bars} == {"a", "c"}
    assert [curve.name for curve in producer.curves] == ["vmcnt"]
    assert [curve.name for curve in consumer.curves] == ["lgkmcnt", "live registers"]


def test_arrivals_and_waits_are_marks_of_their_own() -> None:
    _, timeline = handed_over()
    for name, band in bands((4, 4)).items():
        if not name.startswith("wave"):
            continue
        wave = int(name.split()[1])
        own = [each for each in timeline.crossings if each.wave == wave]
        assert [mark.at for mark in band.arrivals] == [each.arrived for each in own if each.arrives]
        assert [mark.at for mark in band.barriers] == [each.released for each in own if each.awaits]
        arrives, awaits = ("full", "empty") if wave == 0 else ("empty", "full")
        assert {mark.label for mark in band.arrivals} == {f"barrier {arrives}"}
        assert {mark.label for mark in band.barriers} == {f"barrier {awaits}"}
        assert all(mark.details[0].startswith(f"arrive at barrier {arrives} · ") for mark in band.arrivals)
    consumer = bands((4, 4))["wave 4 · consumer"]
    assert "barrier full" in {stall.cause for stall in consumer.stalls}


def test_the_picture_and_the_text_show_both_and_say_so() -> None:
    program, timeline = handed_over()
    shown = show(program, timeline, predict(program, band=False))
    root = ET.fromstring(shown.svg())
    styles = [line.get("class") for line in root.iter(f"{SVG}line")]
    assert styles.count("barrier") >= 2
    assert styles.count("barrier arrival") >= 2
    assert any("arrival" in str(text.text) for text in root.iter(f"{SVG}text"))
    text = str(shown)
    assert "┆ arrival" in text
    assert re.search(r"^stalled +░+", text, re.MULTILINE)
    assert max(map(len, text.splitlines())) <= 100


def test_without_arrivals_nothing_is_said_about_them() -> None:
    apart = arrange(*handed_over())
    assert "┆" in text_timeline(apart)
    without = replace(apart, bands=tuple(replace(band, arrivals=()) for band in apart.bands))
    assert "┆" not in text_timeline(without)
    assert "arrival" not in draw(without).partition("</style>")[2]


def test_reasons_follow_each_role() -> None:
    program, _ = handed_over()
    reasons = {str(reason.entry.op): reason for key, reason in reasons_of(program).items() if key.phase is Phase.KERNEL}
    assert [mentions(worded(line), "full", "producer") for line in reasons["await_full"].lines] == [True]
    assert [mentions(worded(line), "empty") for line in reasons["arrive_empty"].lines] == [True]
    read = reasons["read_a s1"]
    worded(str(read.lines[0]))
    assert "kernel[" in read.lines[0]
    assert read.lines[0].endswith("load_A s1 brings")
    # The consumer has no load in flight: the producer's tokens are not on its counter.
    worded(str(reasons["wait_vm(0)"].lines[0]))
    worded(str(reasons["load_A s1"].lines[0]))
    assert "kernel[" in reasons["load_A s1"].lines[0]
    needs = {reasons_of(program)[key].entry.op.name for key in reasons["mma_c s1"].needs}
    assert needs == {"read_a"}
    assert Key(Phase.KERNEL, 0) in reasons_of(program)


def test_the_page_says_who_executes_an_entry() -> None:
    page = show(*handed_over()).html()
    assert "load_A s0 (producer only)" in page
    assert "mma_c s0 (consumer only)" in page


def test_the_trace_names_roles() -> None:
    pytest.importorskip("perfetto")
    trace = perfetto_trace(*handed_over())
    assert b"wave 0, producer" in trace
    assert b"wave 4, consumer" in trace
