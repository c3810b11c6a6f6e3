from __future__ import annotations

import colorsys
import itertools

import pytest

from rota.cycles.timeline import Lane
from rota.view.draw import DARK, HUES, LIGHT, SHADES, Theme, contrast, fill, ink, style_sheet

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def grey(colour: str) -> float:
    """Lightness as a monochrome printer takes it (Rec. 601), 0 to 255: another formula than the palette's own."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_contrast_of_known_colours() -> None:
    # W3C, Understanding SC 1.4.3: black on white is 21; #777 on white falls just short of 4.5.
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@THEMES
@pytest.mark.parametrize("lane", Lane)
@pytest.mark.parametrize("stage", range(len(SHADES)))
def test_every_bar_is_seen_on_the_page(theme: Theme, lane: Lane, stage: int) -> None:
    assert contrast(fill(lane, stage), theme.panel) >= 1.2


@pytest.mark.parametrize("lane", Lane)
@pytest.mark.parametrize("stage", range(len(SHADES)))
def test_labels_read_well_on_every_bar(lane: Lane, stage: int) -> None:
    colour = fill(lane, stage)
    assert contrast(ink(colour), colour) >= 4.5


@THEMES
def test_texts_read_well_on_the_page(theme: Theme) -> None:
    for text in (theme.text, theme.faint):
        for ground in (theme.background, theme.panel):
            assert contrast(text, ground) >= 4.5


@pytest.mark.parametrize("lane", Lane)
def test_neighbouring_shades_differ_in_grey(lane: Lane) -> None:
    greys = [grey(fill(lane, stage)) for stage in range(len(SHADES))]
    for one, other in itertools.pairwise(greys):
        assert abs(one - other) >= 8
    assert abs(greys[0] - greys[1]) >= 18


def test_units_have_hues_of_their_own() -> None:
    hues = [colorsys.rgb_to_hsv(*(int(c[at : at + 2], 16) / 255 for at in (1, 3, 5)))[0] * 360 for c in HUES.values()]
    for one, other in itertools.combinations(hues, 2):
        assert 30 <= abs(one - other) <= 330


def test_stages_beyond_the_shades_begin_again() -> None:
    assert fill(Lane.MMA, len(SHADES)) == fill(Lane.MMA, 0)


def test_the_style_sheet_has_both_themes_and_fetches_nothing() -> None:
    sheet = style_sheet()
    light, dark = sheet.split("@media (prefers-color-scheme:dark)")
    assert LIGHT.text in light
    assert DARK.text in dark
    assert all(fill(lane, 1) in light for lane in Lane)
    assert "url(" not in sheet
    assert "@import" not in sheet
