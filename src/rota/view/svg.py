"""SVG elements: takes times and texts, gives escaped markup on a plot whose x axis can be stretched.

Times become per cents of the plot's width.  Who widens the plot stretches the time axis and no letter; a label says
in `data-need` how many pixels it takes and in `data-share` how much of the axis it has, so a page can show it when it
fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

_LETTER = 0.6  # mean width of a letter in ems, on the generous side for the fonts of the style sheet


def attribute(text: str) -> str:
    """A text as a quoted attribute value."""
    return quoteattr(text)


def content(text: str) -> str:
    """A text between tags."""
    return escape(text)


def title(details: Sequence[str]) -> str:
    """What a pointer shows, without any script."""
    return f"<title>{escape(chr(10).join(details))}</title>" if details else ""


def width_of(text: str, size: float = 11) -> float:
    """About how many pixels a text takes."""
    return len(text) * size * _LETTER


class Plot:
    """A stretch of time drawn `width` pixels wide; elements are collected in `parts`, later ones over earlier ones."""

    def __init__(self, start: float, end: float, width: float) -> None:
        self.start = start
        self.span = max(end - start, 1)
        self.width = width
        self.parts: list[str] = []
        self._labels: list[str] = []

    def share(self, time: float) -> float:
        """How far along the axis a time lies, 0 to 1."""
        return (time - self.start) / self.span

    def x(self, time: float) -> str:
        """The same as a coordinate."""
        return _percent(self.share(time))

    def add(self, markup: str) -> None:
        """Append finished markup."""
        self.parts.append(markup)

    def add_label(self, style: str, markup: str) -> None:
        """Keep a label until `flush`, to lie over what is added meanwhile."""
        self._labels.append(f'<g class="{style}">{markup}</g>')

    def flush(self) -> None:
        """Append the labels kept so far."""
        self.parts += self._labels
        self._labels = []

    def rect(self, stretch: tuple[float, float], y: float, height: float, extra: str = "") -> str:
        """A rectangle over a stretch of time."""
        start, end = stretch
        wide = _percent((end - start) / self.span)
        return f'<rect x="{self.x(start)}" y="{y:g}" width="{wide}" height="{height:g}"{extra}/>'

    def vertical(self, time: float, top: float, bottom: float, style: str) -> str:
        """A line at one time."""
        return f'<line x1="{self.x(time)}" x2="{self.x(time)}" y1="{top:g}" y2="{bottom:g}" class="{style}"/>'

    def label(self, text: str, stretch: tuple[float, float], y: float, size: float = 11) -> str:
        """A text in the middle of a stretch, hidden while it doesn't fit."""
        start, end = stretch
        share = (end - start) / self.span
        need = width_of(text, size) + 6
        tight = ' class="tight"' if share * self.width < need else ""
        where = f'x="{self.x((start + end) / 2)}" y="{y:g}"'
        return f'<text {where} data-share="{share:.5f}" data-need="{need:.0f}"{tight}>{escape(text)}</text>'

    def step_line(self, points: Sequence[tuple[float, float]], end: float) -> str:
        """A path in thousandths of the width and hundredths of the height; each point is (time, 0 to 1)."""
        first, *rest = [(1000 * self.share(time), 100 * (1 - level)) for time, level in points]
        moves = "".join(f"H{x:.2f}V{y:.1f}" for x, y in rest)
        return f"M{first[0]:.2f},{first[1]:.1f}{moves}H{1000 * self.share(end):.2f}"


def _percent(share: float) -> str:
    return f"{100 * share:.4f}".rstrip("0").rstrip(".") + "%"
