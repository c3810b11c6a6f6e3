from __future__ import annotations

import itertools
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from rota.cycles.timeline import Lane
from rota.view.draw import LEFT, RIGHT, WIDTH, draw
from rota.view.scene import Bar, Buffer, Curve, Mark, Scene, Span, StallMark, Stripe
from tests.view.scenes import BAND, HOSTILE, SCENE, bar

SVG = "{http://www.w3.org/2000/svg}"


def parsed(scene: Scene) -> ET.Element:
    return ET.fromstring(draw(scene))  # raises unless well-formed


def groups(root: ET.Element, style: str) -> list[ET.Element]:
    return [group for group in root.iter(f"{SVG}g") if style in (group.get("class") or "").split()]


def told(group: ET.Element) -> str:
    return group.findtext(f"{SVG}title") or ""


def percent(element: ET.Element, name: str) -> float:
    return float((element.get(name) or "").removesuffix("%"))


def texts(root: ET.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def test_a_bar_stands_where_and_as_long_as_it_works() -> None:
    boxes = [group.find(f"{SVG}rect") for group in groups(parsed(SCENE), "mma0") if told(group)]
    assert len(boxes) == 1
    box = boxes[0]
    assert box is not None
    assert (percent(box, "x"), percent(box, "width")) == (20, 40)  # 100..300 of 500


def test_a_bar_in_pieces_has_a_box_per_piece_and_one_around() -> None:
    group = next(group for group in groups(parsed(SCENE), "lds1") if told(group))
    around, *pieces = group.findall(f"{SVG}rect")
    assert (around.get("class"), percent(around, "x"), percent(around, "width")) == ("around", 40, 20)
    assert [(percent(box, "x"), percent(box, "width")) for box in pieces] == [(40, 4), (56, 4)]


def test_lanes_come_in_the_order_of_what_must_stay_busy() -> None:
    names = texts(parsed(SCENE))
    order = [names.index(name) for name in ("MMA", "LDS", "global memory", "stalled", "vmcnt", "A[0]")]
    assert order == sorted(order)


def test_overlapping_loads_get_rows_of_their_own() -> None:
    rows = [
        float(box.get("y") or 0)
        for group in groups(parsed(SCENE), "global0")
        if (box := group.find(f"{SVG}rect")) is not None
    ]
    loads = rows[:2]
    assert loads[0] != loads[1]


@pytest.mark.parametrize("count", [3, 7, 15])
def test_many_overlapping_bars_stay_within_their_lane(count: int) -> None:
    bars = tuple(bar(number, 400 + number, f"A{number}") for number in range(count))
    root = parsed(replace(SCENE, bands=(Stripe(name="w", lanes=((Lane.GLOBAL, bars),)),), buffers=()))
    boxes = [box for group in groups(root, "global0") if told(group) and (box := group.find(f"{SVG}rect")) is not None]
    spans = sorted((float(box.get("y") or 0), float(box.get("height") or 0)) for box in boxes)
    assert len(spans) == count
    assert all(y + height <= after for (y, height), (after, _) in itertools.pairwise(spans))
    panel = next(
        box for box in root.iter(f"{SVG}rect") if box.get("class") == "panel" and float(box.get("height") or 0) > 20
    )
    bottom = float(panel.get("y") or 0) + float(panel.get("height") or 0)
    assert spans[-1][0] + spans[-1][1] <= bottom + 1


def test_stalls_are_hatched_in_the_mma_lane_and_named_below() -> None:
    root = parsed(SCENE)
    hatched = [box for box in root.iter(f"{SVG}rect") if box.get("fill") == "url(#rota-hatch)" and box.get("x") == "0%"]
    assert [percent(box, "width") for box in hatched] == [20, 20]
    assert "vmcnt(4)" in texts(groups(root, "stall")[0])
    assert root.find(f".//{SVG}pattern[@id='rota-hatch']") is not None


def test_barriers_are_bars_through_all_lanes_and_only_those_in_the_picture() -> None:
    root = parsed(SCENE)
    lines = [line for line in root.iter(f"{SVG}line") if line.get("class") == "barrier"]
    assert [line.get("x1") for line in lines] == ["60%"]
    height = float(lines[0].get("y2") or 0) - float(lines[0].get("y1") or 0)
    assert height > 3 * 24


def test_curves_show_steps_and_limits() -> None:
    root = parsed(SCENE)
    path = next(path for path in root.iter(f"{SVG}path") if path.get("class") == "line")
    assert len(re.findall("V", path.get("d") or "")) == 2  # from 2 to 6 to 1
    assert list(re.findall(r"H([\d.]+)", path.get("d") or "")) == ["400.00", "800.00", "1000.00"]
    limits = [line for line in root.iter(f"{SVG}line") if line.get("class") == "limit"]
    assert len(limits) == 1  # 6 of 8 is near the limit, 2 of 15 isn't
    assert "peak 6 of 8" in texts(root)
    assert "peak 2 of 15" in texts(root)


def test_a_curve_starts_from_its_last_step_before_the_picture() -> None:
    curve = Curve("live registers", "per lane", ((0, 7), (100, 3), (900, 5)))
    scene = replace(SCENE, start=200, end=700, windows=(), buffers=(), bands=(replace(BAND, curves=(curve,)),))
    root = parsed(scene)
    assert "peak 3" in texts(root)
    late = replace(SCENE, bands=(replace(BAND, curves=(curve._replace(points=((900, 5),)),)),))
    assert "live registers" not in texts(parsed(late))


def test_a_level_over_its_limit_stays_in_the_picture() -> None:
    over = Curve("lgkmcnt", "tokens", ((0, 24),), 15)
    path = next(
        path
        for path in parsed(replace(SCENE, bands=(replace(BAND, curves=(over,)),))).iter(f"{SVG}path")
        if path.get("class") == "line"
    )
    assert 0 <= float((path.get("d") or "").split(",")[1].partition("H")[0]) <= 100


def test_headline_iterations_buffers_and_notes_are_there() -> None:
    root = parsed(SCENE)
    said = texts(root)
    assert "small" in said
    assert "MI355X · II 500 clk (proven least) · predicted, not measured" in said
    assert said.count("iteration, 250 clk") == 2
    assert SCENE.notes[0] in said
    spans = [told(group) for group in groups(root, "global1") if told(group)]
    assert spans == ["A[0]: in use from 0 to 200", "A[0]: in use from 450 to 900"]
    assert root.get("aria-label") == SCENE.headline


def test_a_label_that_does_not_fit_is_hidden_and_says_what_it_needs() -> None:
    narrow = bar(0, 5, "a_long_name")
    root = parsed(replace(SCENE, bands=(Stripe(name="w", lanes=((Lane.MMA, (narrow,)),)),)))
    label = next(text for text in root.iter(f"{SVG}text") if text.text == "a_long_name")
    assert label.get("class") == "tight"
    inner = WIDTH - LEFT - RIGHT
    assert float(label.get("data-share") or 1) * inner < float(label.get("data-need") or 0)
    fits = next(text for text in parsed(SCENE).iter(f"{SVG}text") if text.text == "c0")
    assert fits.get("class") is None


def test_crowded_waits_keep_their_triangles() -> None:
    waits = tuple(Mark(number, f"lgkmcnt({number})", (f"wait {number}",)) for number in range(10))
    root = parsed(replace(SCENE, bands=(replace(BAND, waits=waits),)))
    assert len([path for path in root.iter(f"{SVG}path") if path.get("class") == "wait"]) == 10 + 1  # and the legend's
    shown = [
        text for text in root.iter(f"{SVG}text") if (text.text or "").startswith("lgkmcnt(") and not text.get("class")
    ]
    assert len(shown) == 3


def test_several_bands_are_named_and_a_single_one_is_not() -> None:
    assert "wave 0" not in texts(parsed(SCENE))
    both = texts(
        parsed(replace(SCENE, bands=(BAND, replace(BAND, name="wave 4 · group 1", curves=(), waits=(), stalls=()))))
    )
    assert "wave 0" in both
    assert "wave 4 · group 1" in both


def test_hostile_names_stay_text() -> None:
    evil = Bar(0, 500, HOSTILE, 0, (HOSTILE,), HOSTILE, (HOSTILE,))
    band = Stripe(
        name=HOSTILE,
        lanes=((Lane.MMA, (evil,)),),
        stalls=(StallMark(0, 100, HOSTILE, (HOSTILE,)),),
        waits=(Mark(1, HOSTILE, (HOSTILE,)),),
        barriers=(Mark(1, HOSTILE, (HOSTILE,)),),
        curves=(Curve(HOSTILE, HOSTILE, ((0, 1),), 2),),
    )
    scene = Scene(
        title=HOSTILE,
        facts=(HOSTILE,),
        start=0,
        end=500,
        bands=(band, band),
        buffers=(Buffer(HOSTILE, (Span(0, 9),)),),
        notes=(HOSTILE,),
    )
    root = parsed(scene)
    assert not list(root.iter(f"{SVG}script"))
    assert texts(root).count(HOSTILE) >= 6


def test_the_picture_fetches_nothing() -> None:
    addresses = re.findall(r"(?:https?:)?//[^\s\"'<>)]+", draw(SCENE))
    assert set(addresses) == {"http://www.w3.org/2000/svg"}
    assert set(re.findall(r"url\(([^)]*)\)", draw(SCENE))) == {"#rota-hatch"}


def test_a_gauge_says_how_full_a_counter_is() -> None:
    curves = (Curve("vmcnt", "tokens", ((0, 4),), 64), Curve("lgkmcnt", "tokens", ((0, 24),), 15))
    root = parsed(replace(SCENE, bands=(replace(BAND, curves=curves),)))
    names = next(group for group in groups(root, "names"))
    gauges = [box for box in names.findall(f"{SVG}rect") if box.get("class") in ("gauge", "wait")]
    whole, filled, *over = [float(box.get("width") or 0) for box in gauges]
    assert filled == pytest.approx(whole / 16, abs=0.1)
    assert over == [whole, whole]


def test_every_colour_has_a_key() -> None:
    root = parsed(SCENE)
    head = next(group for group in groups(root, "head"))
    keys = {shade for group in head.iter(f"{SVG}g") for shade in (group.get("class") or "").split()}
    drawn = {
        shade for group in groups(root, "bar") for shade in (group.get("class") or "").split() if shade[-1] in "01"
    }
    assert drawn <= keys
    assert {"an LDS buffer in use", "stalled", "barrier", "a wait is passed"} <= set(texts(root))


def test_the_name_of_a_load_stands_beside_a_barrier_not_under_it() -> None:
    band = Stripe(name="w", lanes=((Lane.GLOBAL, (bar(0, 500, "A0"),)),), barriers=(Mark(250, "barrier", ()),))
    root = parsed(replace(SCENE, bands=(band,), buffers=()))
    label = next(text for text in root.iter(f"{SVG}text") if text.text == "A0")
    assert percent(label, "x") in (25, 75)


def test_the_name_of_a_wait_does_not_run_into_the_next_triangle() -> None:
    marks = (Mark(100, "lgkmcnt(8)", ()), Mark(105, "lgkmcnt(0)", ()))
    root = parsed(replace(SCENE, bands=(replace(BAND, waits=marks, stalls=()),)))
    first, second = (
        float(text.get("y") or 0)
        for name in ("lgkmcnt(8)", "lgkmcnt(0)")
        for text in root.iter(f"{SVG}text")
        if text.text == name
    )
    assert first > second
