"""The site as a browser shows it: a page that is blank, too wide, or has errors in its console is noticed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.campaigns.pages.screens import OFFLINE
from tests.docs.blocks import ROOT
from tests.view.png import Pixel, read_png

pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium"),
    pytest.mark.no_cover,  # what pages run counts as covered where it is tested by itself
]

PAGES = ("index", "tutorial", "findings/R102")
# The reference and the other findings take most of the time that the site takes, and are not photographed.
LEFT_OUT = "reference.md,findings/[A-QS-Z]*"
WIDE, PHONE = (1400, 500), (390, 600)
SAYS_ITS_WIDTH = """<script>addEventListener("load", () => {
  console.log(`wider by ${document.documentElement.scrollWidth - innerWidth}`);
  for (const image of document.images) if (!image.naturalWidth) console.error(`no image ${image.src}`);
});</script></body>"""
_SAID = re.compile(r":CONSOLE[^\]]*\] \"(.*?)\", source:")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-D", f"exclude_patterns={LEFT_OUT}"]
    subprocess.run([*command, ROOT / "docs", folder], check=True, capture_output=True)
    for page in PAGES:
        file = folder / f"{page}.html"
        file.write_text(file.read_text("utf-8").replace("</body>", SAYS_ITS_WIDTH), "utf-8")
    return folder


def shown(page: Path, *, dark: bool, size: tuple[int, int]) -> tuple[list[str], Counter[Pixel]]:
    """What the page says on its console, and how often each colour is in its picture.

    It is shown in a frame: a window of Chromium's is never narrower than 500 pixels.
    """
    width, height = size
    window, picture = page.with_suffix(".window.html"), page.with_suffix(".png")
    frame = f'<iframe src="{page.name}" style="border: 0; width: {width}px; height: {height}px"></iframe>'
    window.write_text(f'<body style="margin: 0">{frame}', "utf-8")
    command = [
        "chromium",
        *OFFLINE,
        "--enable-logging=stderr",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        f"--user-data-dir={page.parent / 'profile'}",
        f"--screenshot={picture}",
        f"--window-size={max(width, 500)},{height}",
        window.as_uri(),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return _SAID.findall(done.stderr), Counter(pixel for row in read_png(picture) for pixel in row[:width])


@pytest.mark.parametrize(("dark", "size"), [(False, WIDE), (True, PHONE)], ids=["light and wide", "dark and narrow"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_shown_whole(site: Path, page: str, *, dark: bool, size: tuple[int, int]) -> None:
    said, colours = shown(site / f"{page}.html", dark=dark, size=size)
    assert said == ["wider by 0"]
    (background, most), *others = colours.most_common()
    assert (max(background) < 64) is dark
    assert (min(background) > 192) is not dark
    assert most < 0.97 * size[0] * size[1]  # a blank page has one colour
    assert len(others) > 100  # letters have soft edges


def test_what_is_wrong_with_a_page_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        f'<body style="margin: 0"><img src="no.png"><div style="width: 400px">wide{SAYS_ITS_WIDTH}', "utf-8"
    )
    said, colours = shown(page, dark=False, size=PHONE)
    assert said == ["wider by 10", f"no image {(tmp_path / 'no.png').as_uri()}"]
    assert colours.most_common(1)[0][1] > 0.97 * PHONE[0] * PHONE[1]
