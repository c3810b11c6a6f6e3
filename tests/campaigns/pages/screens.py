"""Pictures of the shipped kernels: takes a folder, leaves SVG, HTML, traces and screenshots (light and dark) in it.

    python -m tests.campaigns.pages.screens FOLDER [--only ping_pong] [--page site/index.html] [--chromium chromium]

With --page it photographs those pages instead, 600 and 1,600 pixels wide.  Nothing in them is measured on a GPU.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from rota import CompiledSchedule, DeclarativeSchedule, KernelGeometry, Pipeline4Wave, compile_schedule
from rota.cycles.predict import predict
from rota.cycles.record import record
from rota.kernels.attention import ATTENTION
from rota.kernels.gemm import BF16, GEMM_SHAPES
from rota.pipeline.geometry import TileShape
from rota.values.compile_loop import compile_loop
from rota.view.page import Shown, show
from rota.view.perfetto_trace import perfetto_trace

Kernel = tuple[Callable[[], CompiledSchedule], TileShape | None]

KERNELS: dict[str, Kernel] = {
    "ping_pong": (
        lambda: compile_schedule(DeclarativeSchedule()),
        TileShape(geometry=KernelGeometry(), waves=8, instruction=BF16),
    ),
    "four_wave": (
        lambda: compile_schedule(Pipeline4Wave(KernelGeometry())),
        TileShape(geometry=KernelGeometry(), waves=4, instruction=BF16),
    ),
    "attention": (lambda: compile_loop(ATTENTION.loop(instructions=False)), None),
    "gemm_by_instruction": (lambda: compile_loop(GEMM_SHAPES[0].loop(instructions=True)), None),
}
# Nothing that Chromium does by itself may reach for the network.
OFFLINE = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
SIZES = ((600, 1800), (1600, 1200))
_SIZE = re.compile(r'width="(\d+)" height="(\d+)')


def main() -> None:
    """Render, photograph, and say what was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=KERNELS, action="append")
    parser.add_argument("--page", type=Path, action="append", help="photograph this page instead of the kernels")
    parser.add_argument("--chromium", default="chromium")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for page in arguments.page or ():
        for path in in_both_sizes(page, arguments.folder, arguments.chromium):
            print(path)
    if arguments.page:
        return
    for name in arguments.only or KERNELS:
        for path in rendered(name, arguments.folder):
            print(path)
            if path.suffix in (".svg", ".html"):
                for dark in (False, True):
                    print(photograph(path, dark=dark, chromium=arguments.chromium))


def rendered(name: str, folder: Path) -> Iterator[Path]:
    """One kernel's text, SVG, HTML and trace."""
    shown, trace = _shown(name)
    for suffix, text in ((".txt", f"{shown}\n"), (".svg", shown.svg()), (".html", shown.html())):
        path = folder / f"{name}{suffix}"
        path.write_text(text, encoding="utf-8")
        yield path
    path = folder / f"{name}.perfetto-trace"
    path.write_bytes(trace)
    yield path


def _shown(name: str) -> tuple[Shown, bytes]:
    build, shape = KERNELS[name]
    compiled = build()
    timeline = record(compiled, shape)
    return show(compiled, timeline, predict(compiled, shape)), perfetto_trace(compiled, timeline)


def in_both_sizes(page: Path, folder: Path, chromium: str = "chromium") -> Iterator[Path]:
    """A page as a phone and as a large screen show it, light and dark."""
    for size in SIZES:
        for dark in (False, True):
            picture = photograph(page, dark=dark, chromium=chromium, size=size)
            yield picture.replace(folder / f"{page.stem}_{size[0]}_{'dark' if dark else 'light'}.png")


def photograph(page: Path, *, dark: bool, chromium: str = "chromium", size: tuple[int, int] | None = None) -> Path:
    """A screenshot beside the page; by default as large as the first picture in it, and some room for the rest."""
    if size is None:
        found = _SIZE.search(page.read_text(encoding="utf-8"))
        size = (int(found[1]) + 40, int(found[2]) + 180) if found else (1320, 900)
    picture = page.with_name(f"{page.stem}_{page.suffix[1:]}_{'dark' if dark else 'light'}.png")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            chromium,
            *OFFLINE,
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--user-data-dir={profile}",
            f"--screenshot={picture}",
            f"--window-size={size[0]},{size[1]}",
            page.resolve().as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return picture


if __name__ == "__main__":
    main()
