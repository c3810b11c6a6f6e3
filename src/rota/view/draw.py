"""A scene as one self-contained SVG, and as text.

MMA on top, then VALU, LDS and global memory; shade = K-tile of the trip, hatched = stalled, bar = barrier.

The text is at most 100 columns wide.  Each column covers an equal number of clocks and shows how much of it a unit
works: a full block for nearly all of it, lighter ones for less. Names appear where they fit; a light block in the MMA
row is a stall.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar
from xml.sax.saxutils import escape, quoteattr

from rota.cycles.timeline import Lane
from rota.view.scene import Bar, Buffer, Curve, Mark, Scene, StallMark, Stripe, clip, ticks

# The hues are of Okabe and Ito's set (Color Universal Design, 2008). A unit's bars are in a lane of their own, and a
# stage's shade differs in lightness, so nothing depends on hue.

HUES: dict[Lane, str] = {Lane.MMA: "#d55e00", Lane.VALU: "#cc79a7", Lane.LDS: "#009e73", Lane.GLOBAL: "#0072b2"}
SHADES = (1.0, 0.62, 0.42, 0.27)
"""How much of the hue a stage keeps; the rest is white, which is seen on dark too.  Later stages begin again."""


class Theme(NamedTuple):
    background: str
    panel: str
    text: str
    faint: str
    grid: str
    hatch: str
    barrier: str
    clash: str


LIGHT = Theme("#ffffff", "#f5f6f8", "#16191d", "#5b636d", "#e3e6ea", "#7d8690", "#16191d", "#e69f00")
DARK = Theme("#14171b", "#1d2126", "#e8eaed", "#9aa3ad", "#2c3138", "#8a939d", "#f4f5f6", "#e69f00")


def fill(lane: Lane, stage: int) -> str:
    return mix(HUES[lane], "#ffffff", SHADES[stage % len(SHADES)])


def mix(colour: str, other: str, keep: float) -> str:
    pairs = zip(_rgb(colour), _rgb(other), strict=True)
    return "#" + "".join(f"{round(keep * own + (1 - keep) * back):02x}" for own, back in pairs)


def ink(background: str) -> str:
    """Black or white, whichever reads better on a colour."""
    return max("#000000", "#ffffff", key=lambda colour: contrast(colour, background))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours as WCAG 2.2 defines it, 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [part / 255 for part in _rgb(colour)]
    # An sRGB component as light (IEC 61966-2-1).
    linear = [float(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4) for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _rgb(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


# The style sheet is part of every picture, so that a saved file needs nothing else.

_SHAPE = """
.rota{font:12px/1.35 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.rota text{font-variant-numeric:tabular-nums}
.rota .title{font-size:16px;font-weight:650}
.rota .small{font-size:10.5px}
.rota .tiny{font-size:9.5px}
.rota .name{font-weight:600}
.rota .mid{text-anchor:middle}
.rota .end{text-anchor:end}
.rota .tight{display:none}
.rota .bar text,.rota .stall text{font-size:11px;text-anchor:middle;pointer-events:none}
.rota .stall text{font-size:10px;paint-order:stroke;stroke-width:3px;stroke-linejoin:round}
.rota .around{fill-opacity:.22}
.rota text.halo,.rota .halo text{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}
.rota .mark text{font-size:10px;paint-order:stroke;stroke-width:3px;stroke-linejoin:round}
.rota .line{fill:none;stroke-width:1.6;vector-effect:non-scaling-stroke}
.rota .limit{stroke-dasharray:5 3;stroke-width:1;vector-effect:non-scaling-stroke}
.rota .window{stroke-dasharray:2 3}
.rota .arrival{stroke-dasharray:3 3;stroke-width:2}
.rota .bar.dim{opacity:.35}
"""


def class_of(lane: Lane, stage: int) -> str:
    return f"{lane.name.lower()}{stage % len(SHADES)}"


@cache
def style_sheet() -> str:
    """Shapes, light colours, and dark ones for readers who prefer them."""
    bars = ""
    for lane in Lane:
        for stage in range(len(SHADES)):
            # A class is more particular than `.rota text`, so its ink stays.
            name, colour = f".rota .{class_of(lane, stage)}", fill(lane, stage)
            bars += f"{name} rect{{fill:{colour}}}\n{name} text{{fill:{ink(colour)}}}\n"
    return f"{_SHAPE}{bars}{_colours(LIGHT)}@media (prefers-color-scheme:dark){{\n{_colours(DARK)}}}\n"


def _colours(theme: Theme) -> str:
    rules = [
        (".rota", f"color:{theme.text};background:{theme.background}"),
        (".rota text", f"fill:{theme.text}"),
        (".rota .faint", f"fill:{theme.faint}"),
        (".rota .ground", f"fill:{theme.background}"),
        (".rota .panel", f"fill:{theme.panel}"),
        (".rota .grid", f"stroke:{theme.grid}"),
        (".rota .window", f"stroke:{theme.faint}"),
        (".rota .hatch", f"stroke:{theme.hatch}"),
        (".rota .stall rect", f"stroke:{theme.hatch}"),
        (".rota .stall text,.rota .mark text", f"stroke:{theme.background}"),
        (".rota .barrier", f"stroke:{theme.barrier}"),
        (".rota .wait", f"fill:{theme.text}"),
        (".rota .line", f"stroke:{theme.text}"),
        (".rota .area", f"fill:{theme.text};fill-opacity:.1"),
        (".rota .clash", f"fill:{theme.clash};fill-opacity:.28"),
        (".rota .missing", "stroke-dasharray:4 3"),
        (".rota .gauge", f"fill:{theme.text};fill-opacity:.15"),
        (".rota .limit", f"stroke:{theme.faint}"),
        (".rota .edge", f"stroke:{theme.panel};stroke-width:.7"),
        (".rota text.halo,.rota .halo text", f"stroke:{theme.background};stroke-opacity:.85"),
        (".rota .bar:hover rect,.rota .bar.lit rect", f"stroke:{theme.text};stroke-width:2"),
        (".rota .halo text", f"fill:{theme.text}"),
    ]
    return "".join(f"{selector}{{{body}}}\n" for selector, body in rules)


# Times become per cents of the plot's width. Who widens the plot stretches the time axis and no letter; a label says in
# `data-need` how many pixels it takes and in `data-share` how much of the axis it has, so a page can show it when it
# fits.

_LETTER = 0.6  # mean width of a letter in ems, on the generous side for the fonts of the style sheet


def title(details: Sequence[str]) -> str:
    """What a pointer shows, without any script."""
    return f"<title>{escape(chr(10).join(details))}</title>" if details else ""


def width_of(text: str, size: float = 11) -> float:
    """About how many pixels a text takes."""
    return len(text) * size * _LETTER


class Plot:
    """A stretch of time drawn `width` pixels wide; elements are collected in `parts`, later ones over earlier ones."""

    def __init__(self, start: float, end: float, width: float) -> None:
        self.start, self.span, self.width = start, max(end - start, 1), width
        self.parts: list[str] = []
        self._labels: list[str] = []

    def share(self, time: float) -> float:
        """How far along the axis a time lies, 0 to 1."""
        return (time - self.start) / self.span

    def x(self, time: float) -> str:
        return _percent(self.share(time))

    def add(self, markup: str) -> None:
        self.parts.append(markup)

    def add_label(self, style: str, markup: str) -> None:
        """Keep a label until `flush`, to lie over what is added meanwhile."""
        self._labels.append(f'<g class="{style}">{markup}</g>')

    def flush(self) -> None:
        self.parts += self._labels
        self._labels = []

    def rect(self, stretch: tuple[float, float], y: float, height: float, extra: str = "") -> str:
        start, end = stretch
        wide = _percent((end - start) / self.span)
        return f'<rect x="{self.x(start)}" y="{y:g}" width="{wide}" height="{height:g}"{extra}/>'

    def vertical(self, time: float, top: float, bottom: float, style: str) -> str:
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


class Extent(Protocol):
    @property
    def start(self) -> float: ...

    @property
    def end(self) -> float: ...


T = TypeVar("T", bound=Extent)


def pack(stretches: Iterable[T]) -> list[tuple[T, int]]:
    """By their beginnings, each with the lowest track that is free."""
    ends: list[float] = []
    placed = []
    for stretch in sorted(stretches, key=lambda stretch: (stretch.start, stretch.end)):
        track = next((track for track, end in enumerate(ends) if end <= stretch.start), len(ends))
        ends[track : track + 1] = [stretch.end]
        placed.append((stretch, track))
    return placed


WIDTH = 1280
LEFT, RIGHT = 140, 18
_TOP = 92
_LANE, _STALL, _CURVE, _BUFFER, _ROW, _GAP = 24, 15, 34, 11, 13, 5
_TRACK_HEIGHTS = ((1, 24.0), (4, 14.0), (10, 7.0), (1_000_000, 4.0))
_MARK_ROWS = 3
_GAUGE = 22


def draw(scene: Scene, width: int = WIDTH) -> str:
    """The scene as SVG, `width` pixels wide and as high as its bands need."""
    return _Drawing(scene, width).svg()


class _Drawing:
    """Walks down the picture: `y` is where the next element goes."""

    def __init__(self, scene: Scene, width: int) -> None:
        self.scene, self.width = scene, width
        self.plot = Plot(scene.start, scene.end, width - LEFT - RIGHT)
        self.names: list[str] = []
        self.y: float = _TOP

    def svg(self) -> str:
        for band in self.scene.bands:
            self._band(band, named=len(self.scene.bands) > 1)
        if self.scene.buffers:
            self._buffers(self.scene.buffers)
        axis = self._axis(self.y)
        foot = self._foot()
        height = self.y + 6
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="rota" width="{self.width}" height="{height:g}" role="img"'
            f" aria-label={quoteattr(self.scene.headline)}>"
            f"<style>{style_sheet()}</style>{HATCH}"
            f'<rect class="ground" width="100%" height="100%"/>'
            f'<svg class="plot" x="{LEFT}" width="{self.plot.width:g}" height="{height:g}" overflow="visible">'
            f"{axis}{''.join(self.plot.parts)}</svg>"
            f'<g class="names"><rect class="ground" width="{LEFT - 6}" height="{height:g}"/>{"".join(self.names)}</g>'
            f'<g class="head"><text x="16" y="26" class="title">{escape(self.scene.title)}</text>'
            f'<text x="16" y="46" class="faint">{escape(self.scene.described)}</text>'
            f"{foot}</g></svg>\n"
        )

    def _axis(self, bottom: float) -> str:
        """Round times, and a bracket over each iteration."""
        scene, plot = self.scene, self.plot
        marks = []
        for after in ticks(scene.end - scene.start, 12):
            time = scene.start + after
            marks.append(plot.vertical(time, _TOP - 6, bottom, "grid"))
            marks.append(f'<text x="{plot.x(time)}" y="{_TOP - 10}" class="tiny faint mid halo">{after:,}</text>')
        # A page that is stretched draws the marks anew, as close as they then fit.
        where = f'data-span="{plot.span:g}" data-top="{_TOP}" data-bottom="{bottom:g}"'
        parts = [f'<g class="axis" {where}>{"".join(marks)}</g>']
        for start, end in pairwise(scene.windows):
            inside = clip(start, end, scene)
            if inside is not None:
                parts.append(plot.rect(inside, _TOP - 35, 15, ' class="panel"'))
                parts.append(plot.vertical(inside[0], _TOP - 35, bottom, "window"))
                parts.append(plot.vertical(inside[1], _TOP - 35, bottom, "window"))
                label = f"iteration, {end - start:,.0f} clk"
                parts.append(f'<g class="mark">{plot.label(label, inside, _TOP - 24, 10)}</g>')
        self.names.append(f'<text x="16" y="{_TOP - 10}" class="tiny faint">clk</text>')
        return "".join(parts)

    def _band(self, band: Stripe, *, named: bool) -> None:
        top = self.y
        if named:
            self.names.append(f'<text x="16" y="{self.y + 12:g}" class="small name">{escape(band.name)}</text>')
            self.y += 18
        first = self.y
        for lane, bars in band.lanes:
            self._lane(lane, bars, band)
        if band.stalls or band.waits:
            self._name("stalled", self.y + 11)
            self._stalls(band, self.y, _STALL, labelled=True)
            self.y += _STALL + 2
        for style, marks in (("barrier", band.barriers), ("barrier arrival", band.arrivals)):
            for mark in marks:
                if self.scene.start <= mark.at <= self.scene.end:
                    line = self.plot.vertical(mark.at, first - 3, self.y, style)
                    self.plot.add(f'<g class="mark" stroke-width="2">{title(mark.details)}{line}</g>')
        self.plot.flush()
        self._marks(band.waits)
        for curve in band.curves:
            self._curve(curve)
        self.y += 8
        if named:
            self.names.append(f'<rect class="panel" x="6" y="{top + 2:g}" width="3" height="{self.y - top - 10:g}"/>')

    def _lane(self, lane: Lane, bars: Sequence[Bar], band: Stripe) -> None:
        """One row of bars, or as many thinner ones as bars overlap: loads are in flight together."""
        tracks = pack([bar for bar in bars if clip(bar.start, bar.end, self.scene)])
        rows = 1 + max((track for _, track in tracks), default=0)
        each = next(height for most, height in _TRACK_HEIGHTS if rows <= most)
        self._name(lane.value, self.y + 16)
        height = max(rows * each, _LANE)
        self.plot.add(f'<rect class="panel" y="{self.y:g}" width="100%" height="{height:g}"/>')
        if lane is Lane.MMA:  # shows through wherever the unit has nothing to do
            self._stalls(band, self.y, height, labelled=False)
        for bar, track in tracks:
            inside = clip(bar.start, bar.end, self.scene) or (bar.start, bar.end)
            links = f" data-key={quoteattr(bar.key)} data-needs={quoteattr(' '.join(bar.needs))}" if bar.key else ""
            y = self.y + track * each
            thin = each - 2 if each > 4 else each - 1
            shade = class_of(lane, bar.stage)
            shape = self._shape(bar, inside, y + 1, thin)
            self.plot.add(f'<g class="bar {shade}"{links}>{title(bar.details)}{shape}</g>')
            if thin >= 11:
                halo = " halo" if bar.pieces else ""
                room = self._clear(bar.label, inside, band)
                self.plot.add_label(f"bar {shade}{halo}", self.plot.label(bar.label, room, y + thin / 2 + 5))
        self.y += height + _GAP

    def _clear(self, text: str, inside: tuple[float, float], band: Stripe) -> tuple[float, float]:
        """The part of a stretch in whose middle a text is crossed by no barrier; the whole, if no part has room."""
        need = (width_of(text) + 6) / self.plot.width * self.plot.span
        cuts = [mark.at for mark in (*band.barriers, *band.arrivals) if inside[0] < mark.at < inside[1]]
        middle = sum(inside) / 2
        if all(abs(cut - middle) > need / 2 for cut in cuts):
            return inside
        parts = [part for part in pairwise((inside[0], *sorted(cuts), inside[1])) if part[1] - part[0] >= need]
        return max(parts, key=lambda part: part[1] - part[0], default=inside)

    def _shape(self, bar: Bar, inside: tuple[float, float], y: float, height: float) -> str:
        """One box with an edge where that doesn't eat it up, or a pale one around the pieces."""
        wide = (inside[1] - inside[0]) / self.plot.span * self.plot.width
        if not bar.pieces:
            return self.plot.rect(inside, y, height, ' class="edge"' if wide >= 6 else "")
        pieces = [clip(start, end, self.scene) for start, end in bar.pieces]
        boxes = "".join(self.plot.rect(piece, y, height) for piece in pieces if piece)
        return self.plot.rect(inside, y, height, ' class="around"') + boxes

    def _name(self, text: str, y: float) -> None:
        self.names.append(f'<text x="16" y="{y:g}">{escape(text)}</text>')

    def _stalls(self, band: Stripe, y: float, height: float, *, labelled: bool) -> None:
        for stall in band.stalls:
            inside = clip(stall.start, stall.end, self.scene)
            if inside is not None:
                label = self.plot.label(stall.cause, inside, y + 11, 10) if labelled else ""
                box = self.plot.rect(inside, y + 0.5, height - 1, ' fill="url(#rota-hatch)"')
                self.plot.add(f'<g class="{"stall" if labelled else "idle"}">{title(stall.details)}{box}{label}</g>')

    def _marks(self, marks: Sequence[Mark]) -> None:
        """Triangles in one row, with the wait's name in the first of three rows that has room, if any."""
        inside = sorted((mark for mark in marks if self.scene.start <= mark.at <= self.scene.end), key=lambda m: m.at)
        ends = [float("-inf")] * _MARK_ROWS
        used = 0
        for number, mark in enumerate(inside):
            at = self.plot.share(mark.at) * self.plot.width
            need = width_of(mark.label, 10) + 12
            after = inside[number + 1].at if number + 1 < len(inside) else self.scene.end
            share = self.plot.share(after) - self.plot.share(mark.at)
            beside = number + 1 == len(inside) or share * self.plot.width >= need
            row = next((row for row, end in enumerate(ends) if at >= end and (row or beside)), None)
            if row is not None:
                ends[row] = at + need
                used = max(used, row + 1)
            tight = ' class="tight"' if row is None else ""
            place = f'data-share="{share:.5f}" data-need="{need:.0f}"' if row is None else ""
            y = self.y + 9 + _ROW * (row or 0)
            self.plot.add(
                f'<g class="mark">{title(mark.details)}'
                f'<svg x="{self.plot.x(mark.at)}" y="{self.y:g}" overflow="visible">{_TRIANGLE}</svg>'
                f'<text x="{self.plot.x(mark.at)}" dx="5" y="{y:g}" {place}{tight}>{escape(mark.label)}</text></g>'
            )
        self.y += _ROW * max(used, 1) + 3 if inside else 0

    def _curve(self, curve: Curve) -> None:
        before = [point for point in curve.points if point[0] <= self.scene.start][-1:]
        points = [(max(time, self.scene.start), level) for time, level in before]
        points += [point for point in curve.points if self.scene.start < point[0] < self.scene.end]
        if not points:
            return
        peak = max(level for _, level in points)
        near = curve.limit is not None and peak * 2.5 >= curve.limit
        top = 1.08 * max(peak, 1, curve.limit if near and curve.limit else 0)
        line = self.plot.step_line([(time, level / top) for time, level in points], self.scene.end)
        limit = ""
        if near and curve.limit is not None:
            height = 100 * (1 - curve.limit / top)
            limit = f'<line class="limit" x1="0" x2="1000" y1="{height:.1f}" y2="{height:.1f}"/>'
        first = 1000 * self.plot.share(points[0][0])
        bound = f" of {curve.limit:,}" if curve.limit is not None else ""
        self.plot.add(
            f'<svg y="{self.y:g}" width="100%" height="{_CURVE}" viewBox="0 0 1000 100" preserveAspectRatio="none">'
            f"{title((f'{curve.name}: at most {peak:,}{bound} {curve.unit} here',))}"
            f'<path class="area" d="{line}V100H{first:.2f}z"/><path class="line" d="{line}"/>{limit}</svg>'
        )
        self._name(curve.name, self.y + 14)
        self.names.append(f'<text x="16" y="{self.y + 27:g}" class="tiny faint">peak {peak:,}{bound}</text>')
        if curve.limit:  # the curve is as high as its peak; how full that is the gauge says
            full = min(peak / curve.limit, 1) * _GAUGE
            where = f'x="{LEFT - 12 - _GAUGE}" y="{self.y + 21:g}" height="5"'
            self.names.append(
                f'<rect class="gauge" {where} width="{_GAUGE}"/><rect class="wait" {where} width="{full:.1f}"/>'
            )
        self.y += _CURVE + _GAP

    def _buffers(self, buffers: Iterable[Buffer]) -> None:
        self.names.append(f'<text x="16" y="{self.y + 11:g}" class="small name">LDS buffers in use</text>')
        self.y += 18
        for buffer in buffers:
            self.names.append(f'<text x="16" y="{self.y + 9:g}" class="small">{escape(buffer.name)}</text>')
            self.plot.add(f'<rect class="panel" y="{self.y:g}" width="100%" height="{_BUFFER}"/>')
            for span in buffer.spans:
                inside = clip(span.start, span.end, self.scene)
                if inside is not None:
                    first, last = span.start - self.scene.start, span.end - self.scene.start
                    text = f"{buffer.name}: in use from {first:,.0f} to {last:,.0f}"
                    box = self.plot.rect(inside, self.y + 1.5, _BUFFER - 3)
                    self.plot.add(f'<g class="bar {class_of(Lane.GLOBAL, 1)}">{title((text,))}{box}</g>')
            self.y += _BUFFER + 2
        self.y += 8

    def _shades(self) -> Iterable[tuple[str, str]]:
        """A key per shade, in the colour of every unit that is drawn."""
        drawn = [(lane, bar) for band in self.scene.bands for lane, bars in band.lanes for bar in bars]
        lanes = [lane for lane in Lane if any(own is lane for own, _ in drawn)]
        shared = len(self.scene.bands) > 1 and not self.scene.bands[0].stalls and len(self.scene.bands[0].lanes) == 1
        for stage in range(min(1 + max((bar.stage for _, bar in drawn), default=0), 4)):
            boxes = (
                f'<svg x="{{x}}" y="{{y}}" overflow="visible"><g class="bar {class_of(lane, stage)}">'
                f'<rect x="{16 * place / len(lanes):g}" width="{16 / len(lanes):g}" height="10"/></g></svg>'
                for place, lane in enumerate(lanes)
            )
            note = " (in the first row: a wave)" if shared and not stage else ""
            yield "".join(boxes), f"{self.scene.tile} {stage}{note}"

    def _foot(self) -> str:
        arrival = '<svg x="{bar}" y="{y}" overflow="visible"><path class="barrier arrival" d="M0,0v11"/></svg>'
        passed = '<svg x="{bar}" y="{y}" overflow="visible"><path class="wait" d="M0,2l3,6h-6z"/></svg>'
        keys = [*self._shades(), (KEY_HATCHED, "stalled"), (KEY_BARRIER, "barrier")]
        if any(band.arrivals for band in self.scene.bands):
            keys.append((arrival, "arrival, without waiting"))
        keys.append((passed, "a wait is passed"))
        if self.scene.buffers:
            keys.append((key_box(Lane.GLOBAL, 1), "an LDS buffer in use"))
        if any(band.curves for band in self.scene.bands):
            gauge = '<rect class="gauge" x="{x}" y="{y}" width="16" height="10"/>'
            keys.append((gauge, "in flight or live; small bar: of how many"))
        keys.append(("", "point at anything: entry, source line, why it is there"))
        legend, self.y = lay_out_legend(keys, LEFT, self.width - RIGHT, self.y + 16, line=15, space=18)
        parts = [legend]
        for note in self.scene.notes:
            self.y += 15
            parts.append(f'<text x="{LEFT}" y="{self.y:g}" class="small faint">{escape(note)}</text>')
        self.y += 6
        return "".join(parts)


KEY_HATCHED = '<g class="stall"><rect x="{x}" y="{y}" width="16" height="10" fill="url(#rota-hatch)"/></g>'
KEY_BARRIER = '<rect class="wait" x="{bar}" y="{y}" width="2" height="11"/>'


def key_box(lane: Lane, stage: int) -> str:
    return f'<g class="bar {class_of(lane, stage)}"><rect x="{{x}}" y="{{y}}" width="16" height="10"/></g>'


def lay_out_legend(
    keys: Iterable[tuple[str, str]], left: int, right: float, y: float, *, line: int, space: int
) -> tuple[str, float]:
    """Shapes, which have {x}, {y} or {bar}, each with its text, in as many lines as it takes; and where the last is."""
    x, parts = float(left), []
    for shape, text in keys:
        wide = 22 + width_of(text, 10.5)
        if x + wide > right and x > left:
            x, y = float(left), y + line
        parts.append(shape.format(x=f"{x:g}", y=f"{y - 9:g}", bar=f"{x + 8:g}"))
        parts.append(f'<text x="{x + (22 if shape else 0):g}" y="{y:g}" class="small faint">{escape(text)}</text>')
        x += wide + space
    return "".join(parts), y


_TRIANGLE = '<path class="wait" d="M0,0l3,6h-6z"/>'
HATCH = (
    '<defs><pattern id="rota-hatch" width="5" height="5" patternTransform="rotate(45)" patternUnits="userSpaceOnUse">'
    '<line class="hatch" x1="0" y1="0" x2="0" y2="5" stroke-width="2"/></pattern></defs>'
)


COLUMNS = 100
_NAME = 8
_IDLE = {Lane.MMA: " ", Lane.VALU: ".", Lane.LDS: ".", Lane.GLOBAL: " "}
_FILLS = ((0.75, "█"), (0.4, "▓"), (0.0, "▒"))
_STALLED = "░"
_FREE = " .▒▓█"
"""What a name may be written over."""

_COUNTER = re.compile(r"(cnt)?\(|\)$")
"""What a wait's name can do without: vmcnt(4) is vm4."""


def text_timeline(scene: Scene, columns: int = COLUMNS) -> str:
    """Headline, axis and, for every band, its units and its waits."""
    grid = _Grid(scene, columns - _NAME)
    lines = [*_wrap(scene.headline, columns), grid.row("cycle", grid.axis())]
    for band in scene.bands:
        if len(scene.bands) > 1:
            lines.append(f"── {band.name} ".ljust(columns, "─")[:columns])
        if band.stalls and not any(lane is Lane.MMA for lane, _ in band.lanes):
            lines.append(grid.row("stalled", grid.lane(Lane.MMA, (), band.stalls)))
        for lane, bars in band.lanes:
            lines.append(grid.row(lane.name, grid.lane(lane, bars, band.stalls)))
        if band.waits or band.barriers or band.arrivals:
            lines.append(grid.row("waits", grid.marks(band)))
    arrivals = " · ┆ arrival" if any(band.arrivals for band in scene.bands) else ""
    legend = f"a column is {grid.step:,.0f} clk · ░ stalled · │ barrier{arrivals} · ▲ a wait that held the wave up"
    lines += [f"{'':{_NAME}}{part}" for part in _wrap(legend, columns - _NAME)]
    lines += [part for note in scene.notes for part in _wrap(note, columns)]
    return "\n".join(line.rstrip() for line in lines)


class _Grid:
    def __init__(self, scene: Scene, width: int) -> None:
        self.scene, self.width = scene, width
        self.step = max(scene.end - scene.start, 1) / width

    def column(self, time: float) -> int:
        return min(max(int((time - self.scene.start) / self.step), 0), self.width - 1)

    @staticmethod
    def row(name: str, cells: Sequence[str]) -> str:
        return f"{name:{_NAME}}{''.join(cells)}"

    def axis(self) -> list[str]:
        cells = [" "] * self.width
        for time in ticks(self.scene.end - self.scene.start, self.width // 9):
            _write(cells, self.column(self.scene.start + time), f"{time}", blank=" ")
        return cells

    def lane(self, lane: Lane, bars: Sequence[Bar], stalls: Sequence[StallMark]) -> list[str]:
        """How much of each column a unit works, then the names that fit."""
        cells = [_IDLE[lane]] * self.width
        if lane is Lane.MMA:
            for column, share in enumerate(self._shares([(stall.start, stall.end) for stall in stalls])):
                cells[column] = _STALLED if share > 0 else cells[column]
        if lane is Lane.GLOBAL:
            self._flights(cells, bars)
            return cells
        for column, share in enumerate(self._shares([piece for bar in bars for piece in bar.worked])):
            if share > 0:
                cells[column] = next(fill for least, fill in _FILLS if share >= least)
        for bar in bars:
            inside = clip(bar.start, bar.end, self.scene)
            if inside is not None:
                first, last = self.column(inside[0]), self.column(inside[1] - self.step / 2)
                room = last - first + 1
                if room > len(bar.label):
                    _write(cells, first + (room - len(bar.label)) // 2, bar.label, blank=_FREE)
                elif lane is Lane.LDS:
                    _write(cells, first, bar.label, blank=_FREE)
        return cells

    def marks(self, band: Stripe) -> list[str]:
        """A bar per barrier, a triangle per wait that held the wave up; names where they fit."""
        cells = [" "] * self.width
        for sign, marks in (("┆", band.arrivals), ("│", band.barriers), ("▲", band.waits)):
            for mark in marks:
                if self.scene.start <= mark.at < self.scene.end:
                    at = self.column(mark.at)
                    cells[at] = sign
                    name = _COUNTER.sub("", mark.label) if sign == "▲" else ""
                    if name and not _write(cells, at + 1, name, blank=" "):
                        _write(cells, at - len(name), name, blank=" ")
        return cells

    def _flights(self, cells: list[str], bars: Sequence[Bar]) -> None:
        """Loads in flight: a line each from its issue on, the name at the issue."""
        inside = [bar for bar in bars if clip(bar.start, bar.end, self.scene)]
        for bar in inside:
            for column in range(self.column(bar.start), self.column(bar.end - self.step / 2) + 1):
                cells[column] = "─"
        for bar in inside:
            if bar.start >= self.scene.start:
                _write(cells, self.column(bar.start), bar.label, blank=" ─")

    def _shares(self, stretches: Sequence[tuple[float, float]]) -> list[float]:
        shares = [0.0] * self.width
        for start, end in stretches:
            inside = clip(start, end, self.scene)
            if inside is not None:
                for column in range(self.column(inside[0]), self.column(inside[1]) + 1):
                    left = self.scene.start + column * self.step
                    overlap = min(inside[1], left + self.step) - max(inside[0], left)
                    shares[column] += max(overlap, 0) / self.step
        return shares


def _write(cells: list[str], at: int, text: str, blank: str) -> bool:
    """Write a text if it fits, over nothing but blanks and not right after another name; says whether it did."""
    room = cells[max(at, 0) : at + len(text)]
    fits = len(room) == len(text) and all(cell in blank for cell in room) and (at <= 0 or not cells[at - 1].isalnum())
    if fits:
        cells[at : at + len(text)] = text
    return fits


def _wrap(text: str, columns: int) -> list[str]:
    """Whole parts on lines of at most `columns`; a part longer than that is cut."""
    lines = [""]
    for part in text.split(" · "):
        joined = f"{lines[-1]} · {part}" if lines[-1] else part
        if len(joined) > columns and lines[-1]:
            lines.append("  " + part)
        else:
            lines[-1] = joined
    return [line[:columns] for line in lines]
