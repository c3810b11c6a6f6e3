"""Chromium draws a page, and its pixels are held against the timeline that the page shows."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from rota.cycles.timeline import Lane
from rota.view.draw import DARK, LEFT, LIGHT, RIGHT, WIDTH, Theme, fill
from rota.view.page import show
from rota.view.scene import busy_share
from tests.campaigns.pages.screens import OFFLINE, SIZES, in_both_sizes, photograph, rendered
from tests.view.kernels import four_wave
from tests.view.png import Pixel, read_png

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")


def rgb(colour: str) -> Pixel:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_picture_shows_what_the_timeline_says(theme: Theme, tmp_path: Path) -> None:
    compiled, timeline = four_wave()
    picture = tmp_path / "four_wave.svg"
    picture.write_text(show(compiled, timeline).svg(), encoding="utf-8")
    rows = read_png(photograph(picture, dark=theme is DARK, size=(WIDTH, 360)))
    tally = Counter(pixel for row in rows for pixel in row)
    assert tally.most_common(1)[0][0] == rgb(theme.background)
    assert len(tally) > 50  # letters have soft edges
    bars = {lane: {rgb(fill(lane, stage)) for stage in range(2)} for lane in Lane}
    where = {
        lane: [y for y, row in enumerate(rows) if sum(pixel in colours for pixel in row) > 20]
        for lane, colours in bars.items()
        if lane is not Lane.VALU
    }
    assert all(where.values())
    assert where[Lane.MMA][0] < where[Lane.LDS][0] < where[Lane.GLOBAL][0]
    # Along a line through the MMA lane, above its letters, as much is filled as the unit is said to be busy.
    line = rows[where[Lane.MMA][0] + 3]
    inside = line[LEFT : WIDTH - RIGHT]
    share = sum(pixel in bars[Lane.MMA] for pixel in inside) / len(inside)
    assert share == pytest.approx(busy_share(timeline), abs=0.03)
    assert not any(pixel in bars[Lane.MMA] for pixel in line[:LEFT])


@pytest.mark.thorough  # compiles, or starts commands
def test_a_page_is_photographed_in_both_sizes_and_colours(tmp_path: Path) -> None:
    page, folder = tmp_path / "page.html", tmp_path / "pictures"
    page.write_text('<meta name="color-scheme" content="light dark"><p>text', "utf-8")
    folder.mkdir()
    pictures = list(in_both_sizes(page, folder))
    assert [path.name for path in pictures] == [
        f"page_{width}_{colours}.png" for width in (600, 1600) for colours in ("light", "dark")
    ]
    for path, (width, height) in zip(pictures, (size for size in SIZES for _ in range(2)), strict=True):
        rows = read_png(path)
        assert (len(rows[0]), len(rows)) == (width, height)
        assert (max(rows[-1][-1]) < 64) is path.stem.endswith("dark")


@pytest.mark.thorough  # compiles, or starts commands
def test_rendering_a_shipped_kernel_leaves_text_picture_page_and_trace(tmp_path: Path) -> None:
    paths = list(rendered("four_wave", tmp_path))
    assert [path.suffix for path in paths] == [".txt", ".svg", ".html", ".perfetto-trace"]
    text, picture, page, trace = (path.read_bytes() for path in paths)
    assert b"predicted, not measured" in text
    assert picture.strip() in page
    assert b"predicted, not measured, 1 ns = 1 clock" in trace


@pytest.mark.thorough  # compiles, or starts commands
def test_stretching_time_shows_more_names(tmp_path: Path) -> None:
    compiled, timeline = four_wave()
    page = show(compiled, timeline).html()
    narrow = _drawn(page, tmp_path)
    wide = _drawn(page.replace('step="0.25" value="0"', 'step="0.25" value="4"'), tmp_path)
    assert _tight(page) >= _tight(narrow) > _tight(wide)
    assert _width(wide) == pytest.approx(16 * _width(narrow), rel=0.01)


def test_the_headline_wraps_on_a_narrow_screen(tmp_path: Path) -> None:
    """The picture may be scrolled; what it is must be readable without."""
    compiled, timeline = four_wave()
    shown = show(compiled, timeline)
    measure = """
        const ends = [...document.querySelectorAll('h1,.facts')].map(each => {
          const range = document.createRange();
          range.selectNodeContents(each);
          return Math.max(...[...range.getClientRects()].map(line => line.right));
        });
        document.body.dataset.ends = ends.join();
        document.body.dataset.hidden = document.querySelector('.head .title').getClientRects().length;
    """
    page = shown.html().replace("</body>", f"<script>{measure}</script></body>")
    drawn = _drawn(page, tmp_path, "--window-size=600,900")
    ends = re.search(r'data-ends="([^"]+)"', drawn)
    assert ends is not None
    assert [float(each) <= 600 for each in ends[1].split(",")] == [True, True]
    assert 'data-hidden="0"' in drawn  # the picture's own would say it a second time
    for fact in shown.scene.facts:
        assert fact in re.sub(r"<svg.*</svg>", "", shown.html(), flags=re.DOTALL)


def test_a_click_keeps_the_story_and_lights_the_operands(tmp_path: Path) -> None:
    compiled, timeline = four_wave()
    shown = show(compiled, timeline)
    bar = next(bar for bar in shown.scene.bands[0].bars(Lane.MMA) if bar.start >= shown.scene.start)
    click = f"document.querySelector('.bar[data-key=\"{bar.key}\"]').dispatchEvent(new Event('click',{{bubbles:true}}))"
    drawn = _drawn(shown.html().replace("</body>", f"<script>{click}</script></body>"), tmp_path)
    story = re.search(r'<pre class="story">([^<]*)</pre>', drawn)
    assert story is not None
    assert story[1].splitlines()[0].startswith(bar.details[0].partition(" · trip")[0])
    states = {key: style.split() for style, key in re.findall(r'<g class="(bar [^"]*)" data-key="([^"]*)"', drawn)}
    assert {key for key, style in states.items() if "lit" in style} == {bar.key, *bar.needs} & states.keys()
    assert all("dim" in style for key, style in states.items() if key not in {bar.key, *bar.needs})


def _drawn(page: str, folder: Path, *flags: str) -> str:
    """The document after its script has run."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    command = ["chromium", *OFFLINE, f"--user-data-dir={folder / 'profile'}", *flags, "--dump-dom", path.as_uri()]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def _tight(page: str) -> int:
    return len(re.findall(r'<text [^>]*class="tight"', page))


def _width(page: str) -> float:
    found = re.search(r'class="rota" width="([\d.]+)"', page)
    assert found is not None
    return float(found[1])
