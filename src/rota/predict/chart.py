"""Charts as SVG: takes points, boxes and texts, gives markup that serves light and dark pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import log2

from rota.view.palette import DARK, LIGHT
from rota.view.style import style_sheet
from rota.view.svg import attribute, content, title

HUES = ("#7d8690", "#d55e00", "#f0b27a", "#0072b2", "#56b4e9", "#009e73", "#cc79a7", "#e69f00")
"""Of Okabe and Ito's set, with a grey: parts have their names beside them, so nothing depends on hue."""
_MOST_TICKS = 12

Scale = Callable[[float], float]


def logarithmic(low: float, high: float, first: float, last: float) -> Scale:
    """Values to pixels, by powers."""
    span = log2(high / low) or 1.0
    return lambda value: first + (last - first) * log2(value / low) / span


def linear(low: float, high: float, first: float, last: float) -> Scale:
    """Values to pixels, evenly."""
    span = (high - low) or 1.0
    return lambda value: first + (last - first) * (value - low) / span


def powers(low: float, high: float, *, base: int = 2) -> list[float]:
    """Round numbers between two, few enough to be read."""
    found: list[float] = []
    value = 1.0
    while value * base <= low:
        value *= base
    while value <= high:
        if value >= low:
            found.append(value)
        value *= base
    step = -(-len(found) // _MOST_TICKS) or 1
    return found[::step]


def handy(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between two numbers; the powers alone where these are many."""
    tens = powers(low / 10, high, base=10)
    every = [each * part for each in tens for part in (1, 2, 5)]
    found = [each for each in every if low <= each <= high]
    return found if len(found) <= _MOST_TICKS else [each for each in tens if each >= low]


def rounded(high: float, count: int = 5) -> list[float]:
    """Round numbers from 0 on."""
    step = 10.0 ** int(f"{high / count:e}".partition("e")[2])
    while high / step > count:
        step *= 2 if high / step / 2 <= count else 2.5
    return [number * step for number in range(int(high / step) + 1)]


class Chart:
    """A picture of a given size; later elements lie over earlier ones."""

    def __init__(self, width: int, height: int, heading: str, faint: Sequence[str] = ()) -> None:
        self.width, self.height, self.heading = width, height, heading
        self.parts = [f'<text x="16" y="26" class="title">{content(heading)}</text>']
        for number, line in enumerate(faint):
            self.text(16, 46 + 16 * number, line, "faint")

    def text(self, x: float, y: float, text: str, style: str = "") -> None:
        """A text that begins, ends or is centred at a point."""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{style}">{content(text)}</text>')

    def box(self, corner: tuple[float, float], size: tuple[float, float], fill: str, told: Iterable[str] = ()) -> None:
        """A filled rectangle; what it tells shows under a pointer."""
        (x, y), (wide, high) = corner, size
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{fill}">'
            f"{title(tuple(told))}</rect>"
        )

    def line(self, points: Sequence[tuple[float, float]], style: str = "line", extra: str = "") -> None:
        """A line through points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" class="{style}"{extra}/>')

    def area(self, points: Sequence[tuple[float, float]]) -> None:
        """A shaded region."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polygon points="{path}" class="area"/>')

    def dots(
        self, points: Iterable[tuple[float, float]], fill: str, radius: float = 1.6, opacity: float = 0.35
    ) -> None:
        """Many small marks of one colour, as one path: a mark each would make the file large."""
        path = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in sorted({(round(x), round(y)) for x, y in points}))
        self.parts.append(
            f'<path d="{path}" stroke="{fill}" stroke-width="{2 * radius:g}" stroke-linecap="round" '
            f'stroke-opacity=".5" fill="none"/>'
        )

    def svg(self) -> str:
        """The finished picture."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="rota" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img" aria-label={attribute(self.heading)}>'
            f"<style>{style_sheet()}{_grounds()}</style>"
            f'<rect class="ground" width="100%" height="100%"/>{"".join(self.parts)}</svg>\n'
        )


def _grounds() -> str:
    """The page behind a picture that is opened by itself."""
    return (
        f"svg{{background:{LIGHT.background}}}@media (prefers-color-scheme:dark){{svg{{background:{DARK.background}}}}}"
    )
