from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rota import CompiledSchedule, KernelGeometry, compile_schedule
from rota.cycles.predict import predict
from rota.cycles.record import record
from rota.cycles.timeline import At, Cause, Lane, Slice, Stall, Timeline, wait_for
from rota.kernels.ping_pong import DeclarativeSchedule
from rota.pipeline.geometry import TileShape
from rota.program.entry import Effect, Entry, Op, Place, Space, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.values.compiled_loop import CompiledLoop
from rota.view.scene import arrange, busy_share, short_name
from tests.view.kernels import by_values, four_wave, ping_pong

Kernel = Callable[[], tuple[CompiledSchedule, Timeline]]
KERNELS = pytest.mark.parametrize("kernel", [ping_pong, four_wave, by_values])


def piece(start: int, end: int, wave: int = 0, slot: int = 7, lane: Lane = Lane.MMA) -> Slice:
    return Slice(wave, lane, start, end, end, At(Phase.KERNEL, slot, 0), "mma[0,0]", 1)


@KERNELS
def test_every_slice_of_simd_0_is_in_a_bar(kernel: Kernel) -> None:
    compiled, timeline = kernel()
    scene = arrange(compiled, timeline)
    waves = range(0, timeline.waves, timeline.simds)
    bands = scene.bands if len(waves) == 1 else scene.bands[1:]
    for wave, band in zip(waves, bands, strict=True):
        assert band.name.startswith(f"wave {wave}")
        drawn = sorted(piece for _, bars in band.lanes for bar in bars for piece in bar.worked)
        assert drawn == sorted((each.start, each.end) for each in timeline.slices if each.wave == wave)
        assert {mark.at for mark in band.barriers} == {c.released for c in timeline.crossings if c.wave == wave}


def test_groups_are_named_only_when_there_are_several() -> None:
    assert [band.name for band in arrange(*ping_pong()).bands] == [
        "SIMD 0 · 2 waves",
        "wave 0 · group 0",
        "wave 4 · group 1",
    ]
    assert [band.name for band in arrange(*by_values()).bands] == ["SIMD 0 · 2 waves", "wave 0", "wave 4"]
    assert [band.name for band in arrange(*four_wave()).bands] == ["wave 0"]


def test_the_shared_unit_joins_neighbours_of_one_wave_only() -> None:
    compiled, timeline = ping_pong()
    start = timeline.window[0]
    slices = (piece(start, start + 5), piece(start + 5, start + 9), piece(start + 9, start + 12, wave=4))
    unit = arrange(compiled, replace(timeline, slices=slices)).bands[0]
    assert [(bar.start - start, bar.end - start, bar.label) for bar in unit.bars(Lane.MMA)] == [
        (0, 9, "wave 0"),
        (9, 12, "wave 4"),
    ]


def test_busy_share_counts_overlaps_once_and_only_this_simd_and_window() -> None:
    _, timeline = ping_pong()
    slices = (
        piece(-50, 10),
        piece(5, 20, wave=4),
        piece(30, 40),
        piece(30, 90, wave=1),
        piece(50, 60, lane=Lane.LDS),
        piece(95, 200),
    )
    assert busy_share(replace(timeline, window=(0, 100), slices=slices)) == pytest.approx(0.35)


def test_an_entry_in_pieces_is_one_bar() -> None:
    compiled, timeline = four_wave()
    scene = arrange(compiled, replace(timeline, slices=(piece(0, 4, lane=Lane.LDS), piece(8, 12, lane=Lane.LDS))))
    (bar,) = scene.bands[0].bars(Lane.LDS)
    assert (bar.start, bar.end, bar.pieces) == (0, 12, ((0, 4), (8, 12)))


def test_stalls_at_one_entry_are_one_and_named_by_their_wait() -> None:
    compiled, timeline = four_wave()
    at = At(Phase.KERNEL, 12, 1)
    stalls = (
        Stall(0, 10, 30, wait_for("vmcnt"), at, "wait_vm(16)"),
        Stall(0, 30, 35, Cause.DMA_PATH, at, "wait_vm(16)"),
        Stall(0, 40, 50, Cause.BARRIER, At(Phase.KERNEL, 14, 1), "barrier"),
        Stall(0, 60, 90, Cause.MMA_BUSY, At(Phase.KERNEL, 18, 1), "mma[1,0]"),
    )
    band = arrange(compiled, replace(timeline, stalls=stalls)).bands[0]
    assert [(stall.start, stall.end, stall.cause) for stall in band.stalls] == [
        (10, 35, "vmcnt(16)"),
        (40, 50, "barrier"),
    ]
    assert band.stalls[0].details[0] == "stalled 25 clk: wait vmcnt 20 clk, DMA path 5 clk"
    assert [(mark.at, mark.label) for mark in band.waits] == [(35, "vmcnt(16)")]


def test_notes_name_the_worst_causes_of_the_window() -> None:
    compiled, timeline = four_wave()
    at = At(Phase.KERNEL, 12, 1)
    stalls = (
        Stall(0, 0, 120, wait_for("vmcnt"), at, "wait_vm(16)"),
        Stall(0, 150, 160, Cause.BARRIER, at, "barrier"),
        Stall(0, 170, 199, Cause.MMA_BUSY, at, "mma"),
        Stall(1, 100, 200, wait_for("lgkmcnt"), at, "wait_lgkm(0)"),
    )
    scene = arrange(compiled, replace(timeline, window=(100, 200), stalls=stalls))
    assert scene.notes == ("wave 0 stands still for: wait vmcnt 20 %, barrier 10 % of the time",)
    assert arrange(compiled, replace(timeline, stalls=())).notes == ()


def test_details_tell_entry_time_source_and_reason() -> None:
    compiled, timeline = ping_pong()
    band = arrange(compiled, timeline).bands[1]
    bar = next(bar for bar in band.bars(Lane.MMA) if bar.start >= timeline.window[0])
    head, when, source, *why = bar.details
    assert head.startswith("mma[")
    assert "· kernel[" in head
    assert head.endswith("· wave 0")
    assert when.startswith("clk ")
    assert source.startswith("kernels/ping_pong.py:")
    assert why[0].startswith("uses what kernel[")
    assert set(bar.needs) <= {bar.key for _, bars in band.lanes for bar in bars}


def test_a_slice_of_an_unknown_entry_keeps_its_own_label() -> None:
    compiled, timeline = four_wave()
    band = arrange(compiled, replace(timeline, slices=(piece(0, 5, slot=999),))).bands[0]
    assert [(bar.label, bar.stage, bar.needs) for bar in band.bars(Lane.MMA)] == [("mma[0,0]", 0, ())]


def test_curves_carry_their_limits() -> None:
    compiled, timeline = ping_pong()
    for wave, band in ((0, arrange(compiled, timeline).bands[1]), (4, arrange(compiled, timeline).bands[2])):
        curves = {curve.name: curve for curve in band.curves}
        assert (curves["vmcnt"].limit, curves["lgkmcnt"].limit) == (63, 15)
        own = [level for level in timeline.levels if level.wave == wave and level.counter == "vmcnt"]
        assert max(level for _, level in curves["vmcnt"].points) == max(level.tokens for level in own)
        assert ("live registers" in curves) == (wave == 0)  # the toy machine counts those of wave 0 alone


def test_the_headline_tells_interval_certificate_share_and_speed() -> None:
    class Fast:
        cycles = 2345.2
        mma_share = 0.961
        bound_by = "MMA unit"
        ceiling = "loop's ceiling at 2.4 GHz: 1,234 TFLOP/s (1,000 to 1,500)"
        idle_causes = (("barrier", 60.2), ("issue turn", 20.0), ("LDS port", 8.0), ("a", 2.0), ("b", 1.4), ("c", 0.1))

    fast: Any = Fast()
    compiled, timeline = by_values()
    assert isinstance(compiled, CompiledLoop)
    assert compiled.modulo is not None
    start, end = timeline.window
    assert arrange(compiled, timeline).facts[2:] == (
        f"{(end - start) / 2:,.0f} clk a K-tile",
        f"MMA {100 * busy_share(timeline):.0f} % busy",
    )
    assert arrange(compiled, timeline, fast).facts == (
        "MI355X",
        f"II {4 * compiled.modulo.ii:,} clk (proven least)",
        f"2,345 clk a K-tile ({(end - start) / 2:,.0f} in the trip drawn)",
        "MMA 96 % busy",
        "bound by MMA unit",
        "loop's ceiling at 2.4 GHz: 1,234 TFLOP/s (1,000 to 1,500)",
    )
    assert arrange(compiled, timeline, fast).notes[0] == (
        "of 2,345 clk a K-tile: MMA at work 2,254 · idle: barrier 60, issue turn 20, LDS port 8, other 3"
    )


LDS_TILE, FRAGMENT = Place(Space.LDS, "A", 1, 3), Place(Space.REGISTER, "B", 2)
STAGING, SUM = Place(Space.REGISTER, "staging A"), Place(Space.ACCUMULATOR, "", 1, 0)


@pytest.mark.parametrize(
    ("op", "effect", "short"),
    [
        (wait_op("vmcnt", 4), wait_effect("vmcnt", 4), "wait_vm(4)"),
        (Op(kind=OpKind.DMA, name="load_A0", copy=0), Effect(kind=OpKind.DMA, writes=(LDS_TILE,)), "A0"),
        (Op(kind=OpKind.MMA, name="mma0_3_1", copy=1), Effect(kind=OpKind.MMA, writes=(SUM,)), "0_3_1"),
        (Op(kind=OpKind.MMA, name="mma", copy=0), Effect(kind=OpKind.MMA, writes=(SUM,)), "mma"),
        (Op(kind=OpKind.VALU, name="make_p", copy=0), Effect(kind=OpKind.VALU, writes=(FRAGMENT,)), "p"),
        (Op(kind=OpKind.MMA, name="tag 5[1,0]"), Effect(kind=OpKind.MMA, writes=(SUM,)), "[1,0]"),
        (Op(kind=OpKind.DMA, name="load_a s1 t3"), Effect(kind=OpKind.DMA, writes=(LDS_TILE,)), "A3"),
        (Op(kind=OpKind.GLOBAL_LOAD, name="load s0 t0"), Effect(kind=OpKind.GLOBAL_LOAD, writes=(STAGING,)), "A0"),
        (
            Op(kind=OpKind.LDS_READ, name="read s0 t2"),
            Effect(kind=OpKind.LDS_READ, reads=(LDS_TILE,), writes=(FRAGMENT,)),
            "b2",
        ),
        (Op(kind=OpKind.NOTHING, name="tag 7 s0 t0"), Effect(kind=OpKind.NOTHING), "tag 7 s0 t0"),
    ],
)
def test_short_names(op: Op, effect: Effect, short: str) -> None:
    assert short_name(Entry(op=op, effect=effect, time_slot=0, phase=Phase.KERNEL)) == short


def test_short_names_of_ping_pong_tell_loads_from_reads() -> None:
    names = {str(entry.op): short_name(entry) for entry in ping_pong()[0].lowered.kernel}
    assert names["load_a s1 t1 k_prev"] == "A1"
    assert names["mma_load_b s0 t0"] == "b0"


def test_a_simulated_timeline_is_one_that_can_be_arranged() -> None:
    compiled = compile_schedule(DeclarativeSchedule())
    shape = TileShape(geometry=KernelGeometry(), waves=8, instruction="v_mfma_f32_16x16x32_bf16")
    predicted = predict(compiled, shape, band=False)
    scene = arrange(compiled, record(compiled, shape), predicted)
    share = next(fact for fact in scene.facts if fact.startswith("MMA "))
    assert float(share.split()[1]) == pytest.approx(100 * predicted.mma_share, abs=0.5)
    assert scene.facts[1].startswith(f"{predicted.cycles:,.0f} clk a K-tile")
    assert len(scene.bands) == 3
