from __future__ import annotations

from dataclasses import replace

import pytest

from rota.cycles.timeline import Lane
from rota.view.draw import COLUMNS, text_timeline
from rota.view.scene import Mark, Scene, StallMark, Stripe
from tests.view.scenes import BAND, SCENE, bar


def rows(scene: Scene, columns: int = COLUMNS) -> dict[str, str]:
    """The last line of each name, without the name."""
    return {line[:8].strip(): line[8:] for line in text_timeline(scene, columns).splitlines()}


def test_the_whole_picture_worked_out_by_hand() -> None:
    # 50 columns of 10 clocks: a wait of 10 columns, two MMAs of 20, an LDS read of 5, then one in two pieces of 2; the
    # loads are in flight for columns 0 to 39 and 10 to 44.
    assert text_timeline(SCENE, 58).splitlines() == [
        "small · MI355X · II 500 clk (proven least)",
        "  predicted, not measured",
        "cycle   0                   200                 400",
        "MMA     " + "░" * 10 + "█" * 9 + "c0" + "█" * 18 + "c1" + "█" * 9,
        "LDS     █a0██" + "." * 15 + "██..b0..██" + "." * 20,
        "GLOBAL  A0" + "─" * 8 + "B0" + "─" * 33,
        "waits   " + " " * 10 + "▲vm4" + " " * 16 + "│",
        "        a column is 10 clk · ░ stalled · │ barrier",
        "          ▲ a wait that held the wave up",
        "wave 0 stands still for: wait vmcnt 20 % of the time",
    ]


@pytest.mark.parametrize(("start", "end"), [(0, 500), (0, 37), (100, 100_000), (3, 4), (7, 7)])
@pytest.mark.parametrize("columns", [60, 80, 100])
def test_no_line_is_longer_than_asked_for(start: int, end: int, columns: int) -> None:
    many = tuple(bar(number * 7, number * 7 + 5, f"mma{number}_{number}") for number in range(400))
    band = replace(BAND, lanes=((Lane.MMA, many), (Lane.VALU, many), (Lane.LDS, many), (Lane.GLOBAL, many)))
    scene = replace(SCENE, start=start, end=end, bands=(band, band), facts=("x" * 70, "y" * 130), notes=("z" * 300,))
    lines = text_timeline(scene, columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert len(lines) >= 14


def test_a_column_says_how_much_of_it_a_unit_works() -> None:
    shares = {0.9: "█", 0.5: "▓", 0.2: "▒"}
    for share, fill in shares.items():
        bars = tuple(bar(10 * number, 10 * number + 10 * share, "long_name") for number in range(52))
        scene = replace(SCENE, end=520, bands=(Stripe(name="w", lanes=((Lane.MMA, bars),)),))
        assert set(rows(scene, 60)["MMA"]) == {fill}


def test_a_name_that_finds_no_room_after_its_wait_stands_before_it() -> None:
    band = replace(BAND, waits=(Mark(250, "vmcnt(4)", ()),), barriers=(Mark(270, "barrier", ()),), stalls=())
    assert rows(replace(SCENE, bands=(band,)), 58)["waits"].strip() == "vm4▲ │"
    crowded = replace(band, barriers=(Mark(270, "barrier", ()), Mark(230, "barrier", ())))
    assert rows(replace(SCENE, bands=(crowded,)), 58)["waits"].strip() == "│ ▲ │"


def test_names_never_run_into_each_other() -> None:
    bars = (bar(0, 20, "a0"), bar(20, 40, "b0"), bar(40, 60, "c0"))
    band = Stripe(name="w", lanes=((Lane.LDS, bars),))
    assert rows(replace(SCENE, bands=(band,)), 58)["LDS"].startswith("a0██c0")


def test_marks_outside_the_picture_are_left_out() -> None:
    band = replace(BAND, waits=(Mark(900, "vmcnt(4)", ()),), barriers=(Mark(-5, "barrier", ()),))
    assert rows(replace(SCENE, bands=(band,)))["waits"] == ""


def test_a_stall_shows_only_where_the_mma_unit_is_idle() -> None:
    band = Stripe(name="w", lanes=((Lane.MMA, (bar(0, 250, ""),)),), stalls=(StallMark(0, 500, "barrier", ()),))
    assert rows(replace(SCENE, bands=(band,)), 58)["MMA"] == "█" * 25 + "░" * 25


def test_bands_are_named_when_there_are_several() -> None:
    text = text_timeline(replace(SCENE, bands=(BAND, replace(BAND, name="wave 4 · group 1"))))
    assert "── wave 0 ─" in text
    assert "── wave 4 · group 1 ─" in text
    assert "──" not in text_timeline(replace(SCENE, bands=(Stripe(name="wave 0", lanes=()),)))
