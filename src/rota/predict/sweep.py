"""Predictions shown and compared: a table with its bar, kernels ranked, and sweeps over M or M and N."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from math import log2
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from rota.cycles.predict import share_places
from rota.predict.predict_problem import (
    Correction,
    GemmProblem,
    Part,
    ProblemPrediction,
    Range,
    TiledGemm,
    predict_problem,
    work_of,
)
from rota.targets.device import problem_facts_of
from rota.view.draw import DARK, LIGHT, style_sheet, title

HUES = ("#7d8690", "#d55e00", "#f0b27a", "#0072b2", "#56b4e9", "#4b3f72", "#009e73", "#cc79a7", "#e69f00")
"""Of Okabe and Ito's set, with a grey: parts have their names beside them, so nothing depends on hue."""
_MOST_TICKS = 12
_GROUNDS = (  # of the page, where a picture is opened by itself
    f"svg{{background:{LIGHT.background}}}@media (prefers-color-scheme:dark){{svg{{background:{DARK.background}}}}}"
)

Scale = Callable[[float], float]


def logarithmic(low: float, high: float, first: float, last: float) -> Scale:
    span = log2(high / low) or 1.0
    return lambda value: first + (last - first) * log2(value / low) / span


def linear(low: float, high: float, first: float, last: float) -> Scale:
    span = (high - low) or 1.0
    return lambda value: first + (last - first) * (value - low) / span


def powers(low: float, high: float, *, base: int = 2) -> list[float]:
    """Round numbers between two, few enough to be read."""
    every = takewhile(lambda value: value <= high, (float(base) ** power for power in count()))
    found = [value for value in every if value >= low]
    return found[:: -(-len(found) // _MOST_TICKS) or 1]


def handy(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between two numbers; the powers alone where these are many."""
    tens = powers(low / 10, high, base=10)
    found = [each * part for each in tens for part in (1, 2, 5) if low <= each * part <= high]
    return found if len(found) <= _MOST_TICKS else [each for each in tens if each >= low]


def list_ticks(high: float, most: int = 5) -> list[float]:
    """Round numbers from 0 on."""
    step = 10.0 ** int(f"{high / most:e}".partition("e")[2])
    while high / step > most:
        step *= 2 if high / step / 2 <= most else 2.5
    return [number * step for number in range(int(high / step) + 1)]


class Chart:
    """A picture of a given size; later elements lie over earlier ones."""

    def __init__(self, width: int, height: int, heading: str, faint: Sequence[str] = ()) -> None:
        self.width, self.height, self.heading = width, height, heading
        self.parts = [f'<text x="16" y="26" class="title">{escape(heading)}</text>']
        for number, line in enumerate(faint):
            self.text(16, 46 + 16 * number, line, "faint")

    def text(self, x: float, y: float, text: str, style: str = "") -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{style}">{escape(text)}</text>')

    def box(self, corner: tuple[float, float], size: tuple[float, float], fill: str, told: Iterable[str] = ()) -> None:
        """A filled rectangle; what it tells shows under a pointer."""
        (x, y), (wide, high) = corner, size
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{fill}">'
            f"{title(tuple(told))}</rect>"
        )

    def line(self, points: Sequence[tuple[float, float]], style: str = "line", extra: str = "") -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" class="{style}"{extra}/>')

    def area(self, points: Sequence[tuple[float, float]]) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polygon points="{path}" class="area"/>')

    def dots(self, points: Iterable[tuple[float, float]], fill: str) -> None:
        """Many small marks of one colour, as one path: a mark each would make the file large."""
        path = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in sorted({(round(x), round(y)) for x, y in points}))
        style = f'stroke="{fill}" stroke-width="3.2" stroke-linecap="round" stroke-opacity=".5" fill="none"'
        self.parts.append(f'<path d="{path}" {style}/>')

    def svg(self) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="rota" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img" aria-label={quoteattr(self.heading)}>'
            f"<style>{style_sheet()}{_GROUNDS}</style>"
            f'<rect class="ground" width="100%" height="100%"/>{"".join(self.parts)}</svg>\n'
        )


_MARKS = "·█░▓▒▚▄│#"
_BAR_COLUMNS = 64
_BAR_WIDTH, _BAR_LEFT, _BAR, _ROW = 900, 16, 34, 22


def problem_text(found: ProblemPrediction) -> str:
    """Headline, bar, parts, and what the figures rest on."""
    head = str(found).split(" · ")
    lines = [" · ".join(head[:3]), "  " + " · ".join(head[3:]), f"  {_bar(found)}"]
    for mark, part in zip(_MARKS, found.parts, strict=False):
        lines.append(f"  {mark} {part.us:9,.1f} us {_share(found, part):>4}  {part.name}: {part.what}")
    return "\n".join([*lines, f"  {found.basis}"])


def problem_svg(found: ProblemPrediction) -> str:
    parts = [(hue, part) for hue, part in zip(HUES, found.parts, strict=False)]
    head = str(found).split(" · ")
    top = 86
    chart = Chart(_BAR_WIDTH, top + _BAR + 18 + _ROW * len(parts) + 34, " · ".join(head[:3]), (" · ".join(head[3:]),))
    inner = _BAR_WIDTH - 2 * _BAR_LEFT
    low, high = found.us_range
    most = max(high, found.us)
    x = float(_BAR_LEFT)
    for hue, part in parts:
        wide = inner * part.us / most
        chart.box((x, top), (wide, _BAR), hue, (f"{part.name}: {part.us:,.1f} us", part.what))
        x += wide
    middle = top + _BAR / 2
    ends = [_BAR_LEFT + inner * each / most for each in (low, high)]
    chart.line([(ends[0], middle), (ends[1], middle)])
    for end in ends:
        chart.line([(end, middle - 7), (end, middle + 7)])
    chart.text(_BAR_LEFT, top - 8, f"0 us to {most:,.1f} us; the line is the 80 % band", "small faint")
    y = top + _BAR + 18
    for hue, part in parts:
        chart.box((_BAR_LEFT, y), (12, 12), hue)
        chart.text(_BAR_LEFT + 120, y + 11, f"{part.us:,.1f} us", "end")
        chart.text(_BAR_LEFT + 170, y + 11, _share(found, part), "end")
        chart.text(_BAR_LEFT + 186, y + 11, part.name, "name")
        chart.text(_BAR_LEFT + 306, y + 11, part.what, "faint")
        y += _ROW
    chart.text(_BAR_LEFT, y + 14, found.basis, "small faint")
    return chart.svg()


def _share(found: ProblemPrediction, part: Part) -> str:
    return f"{100 * part.us / found.us:.0f} %"


def _bar(found: ProblemPrediction) -> str:
    """A column is the same time everywhere; a part that is too short for one is left out."""
    drawn, passed, text = 0, 0.0, ""
    for mark, part in zip(_MARKS, found.parts, strict=False):
        passed += part.us
        end = round(_BAR_COLUMNS * passed / found.us)
        text += mark * (end - drawn)
        drawn = max(drawn, end)
    return text


NOT_DISTINGUISHABLE = "not distinguishable"


class PlacedGemm(NamedTuple):
    place: int
    shared_by: int
    prediction: ProblemPrediction

    @property
    def words(self) -> str:
        return f"{self.place}." if self.shared_by == 1 else NOT_DISTINGUISHABLE


def rank_problem(
    kernels: Iterable[TiledGemm], problem: GemmProblem, correction: Correction | None = None
) -> tuple[PlacedGemm, ...]:
    """The kernels by predicted time, in groups that can be told apart."""
    every = list(kernels)
    apart = max((problem_facts_of(each.device).apart for each in every), default=0.0)
    found = sorted((predict_problem(each, problem, correction) for each in every), key=lambda each: each.us)
    places = share_places([each.us for each in found], apart)
    return tuple(PlacedGemm(place, places.count(place), each) for place, each in zip(places, found, strict=True))


def ranking_text(placed: Iterable[PlacedGemm]) -> str:
    """A line for each kernel, groups that share a place under a heading."""
    lines: list[str] = []
    last = 0
    for each in placed:
        if each.place != last and each.shared_by > 1:
            lines.append(f"{NOT_DISTINGUISHABLE}, {each.shared_by} kernels:")
        last = each.place
        low, high = each.prediction.us_range
        name = f"  {each.prediction.kernel}" if each.shared_by > 1 else f"{each.words} {each.prediction.kernel}"
        lines.append(f"{name:28} {each.prediction.us:10,.1f} us ({low:,.1f} to {high:,.1f})")
    return "\n".join(lines)


SIDES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
"""Sides of a heat map; a sweep over M has three more between each two."""
_SHADES = " ░▒▓█"
_COLUMNS = 40
_MOST_STEPS = 8
_LEFT, _RIGHT, _WIDTH, _HIGH = 70, 20, 860, 190


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Predictions row by row; one row is a sweep over M alone."""

    rows: tuple[tuple[ProblemPrediction, ...], ...]

    @property
    def most(self) -> float:
        return max(each.tflops for row in self.rows for each in row)

    @property
    def title(self) -> str:
        first, last = self.rows[0][0], self.rows[-1][-1]
        sides = f"M {first.problem.m} to {last.problem.m}"
        sides += f", N {last.problem.n}" + (f" to {first.problem.n}" if last.problem.n != first.problem.n else "")
        return f"{first.kernel} · {first.device} · {first.element} · {sides}, K {first.problem.k}"


def sweep_m(kernel: TiledGemm, problem: GemmProblem, correction: Correction | None = None) -> Sweep:
    between = {side * part // 4 for side in SIDES[:-1] for part in (4, 5, 6, 7)}
    sides = sorted({*between, SIDES[-1], *_steps(kernel, problem)})
    return Sweep(rows=(tuple(predict_problem(kernel, problem.but(m=m), correction) for m in sides),))


def _steps(kernel: TiledGemm, problem: GemmProblem) -> set[int]:
    """One row past every full round of the device, if these are few enough to be drawn."""
    tile = kernel.tile[0]
    counts = [work_of(kernel, problem.but(m=m + 1)).rounds for m in range(0, SIDES[-1], tile)]
    steps = {number * tile + 1 for number, count in enumerate(counts) if number and count > counts[number - 1]}
    return steps if len(steps) <= _MOST_STEPS else set()


def sweep_mn(kernel: TiledGemm, problem: GemmProblem, correction: Correction | None = None) -> Sweep:
    rows = ([problem.but(m=m, n=n) for m in SIDES] for n in reversed(SIDES))
    return Sweep(rows=tuple(tuple(predict_problem(kernel, each, correction) for each in row) for row in rows))


def sweep_text(sweep: Sweep) -> str:
    """A bar for each M, or a shade for each M and N."""
    basis = f"  {sweep.rows[0][0].basis}"
    return "\n".join([f"{sweep.title} · predicted, not measured", *_lines(sweep), basis])


def _lines(sweep: Sweep) -> Sequence[str]:
    if len(sweep.rows) == 1:
        lines = ["       M         us  TFLOP/s"]
        for each in sweep.rows[0]:
            bar = "█" * round(_COLUMNS * each.tflops / sweep.most)
            lines.append(f"  {each.problem.m:6,} {each.us:10,.1f} {each.tflops:8,.0f}  {bar}")
        return lines
    lines = ["  TFLOP/s      " + "".join(f"{each.problem.m:>8,}" for each in sweep.rows[0]) + "   = M"]
    for row in sweep.rows:
        shades = [min(int(len(_SHADES) * each.tflops / sweep.most), len(_SHADES) - 1) for each in row]
        cells = (f"{_SHADES[shade]}{each.tflops:>7,.0f}" for shade, each in zip(shades, row, strict=True))
        lines.append(f"  N {row[0].problem.n:>9,}  {''.join(cells)}")
    return lines


def sweep_svg(sweep: Sweep) -> str:
    """Time and rate over M with their bands, or a heat map."""
    return _curves(sweep) if len(sweep.rows) == 1 else _heat_map(sweep)


def _curves(sweep: Sweep) -> str:
    row = sweep.rows[0]
    chart = Chart(_WIDTH, 3 * 40 + 2 * _HIGH + 30, sweep.title, ("predicted, not measured · shaded: 80 % band",))
    x = logarithmic(row[0].problem.m, row[-1].problem.m, _LEFT, _WIDTH - _RIGHT)
    top = 80
    low, high = min(each.us_range.low for each in row), max(each.us_range.high for each in row)
    y = logarithmic(low, high, top + _HIGH, top)
    across = [x(each.problem.m) for each in row]

    def draw_band(middle: Iterable[float], band: Sequence[Range], y: Scale) -> None:
        upper = [(at, y(each.high)) for at, each in zip(across, band, strict=True)]
        lower = [(at, y(each.low)) for at, each in zip(across, band, strict=True)]
        chart.area([*upper, *reversed(lower)])
        chart.line([(at, y(each)) for at, each in zip(across, middle, strict=True)])

    _axes(chart, top, "us", [(y(each), f"{each:,g}") for each in handy(low, high)])
    draw_band([each.us for each in row], [each.us_range for each in row], y)
    top += _HIGH + 40
    most = max(each.tflops_range.high for each in row)
    y = linear(0, most, top + _HIGH, top)
    _axes(chart, top, "TFLOP/s", [(y(each), f"{each:,.0f}") for each in list_ticks(most)])
    draw_band([each.tflops for each in row], [each.tflops_range for each in row], y)
    for m in powers(row[0].problem.m, row[-1].problem.m):
        chart.text(x(m), top + _HIGH + 16, f"{m:,.0f}", "tiny faint mid")
    chart.text(_WIDTH - _RIGHT, top + _HIGH + 32, "M", "name end")
    return chart.svg()


def _axes(chart: Chart, top: float, name: str, ticks: Sequence[tuple[float, str]]) -> None:
    chart.text(16, top - 8, name, "name")
    for y, label in ticks:
        chart.line([(_LEFT, y), (_WIDTH - _RIGHT, y)], "grid")
        chart.text(_LEFT - 6, y + 3, label, "tiny faint end")


def _heat_map(sweep: Sweep) -> str:
    wide, high, top = 84, 38, 96
    size = _LEFT + wide * len(sweep.rows[0]) + _RIGHT, top + high * len(sweep.rows) + 40
    chart = Chart(*size, sweep.title, ("TFLOP/s, predicted, not measured; darker is faster",))
    for down, row in enumerate(sweep.rows):
        y = top + high * down
        chart.text(_LEFT - 8, y + high / 2 + 4, f"{row[0].problem.n:,}", "tiny faint end")
        for across, each in enumerate(row):
            share = each.tflops / sweep.most
            told = (f"{each.problem}: {each.us:,.1f} us", f"{each.tflops:,.0f} TFLOP/s")
            chart.box((_LEFT + wide * across, y), (wide - 1, high - 1), _heat(share), told)
            ink = "#ffffff" if share > 0.45 else "#16191d"
            chart.parts.append(
                f'<text x="{_LEFT + wide * (across + 0.5):.0f}" y="{y + high / 2 + 4:.0f}" class="mid small" '
                f'style="fill:{ink}">{each.tflops:,.0f}</text>'
            )
    for across, each in enumerate(sweep.rows[0]):
        chart.text(_LEFT + wide * (across + 0.5), top - 8, f"{each.problem.m:,}", "tiny faint mid")
    chart.text(_LEFT + wide * len(sweep.rows[0]), top - 24, "M", "name end")
    chart.text(16, top - 8, "N", "name")
    return chart.svg()


def _heat(share: float) -> str:
    light, dark = (236, 242, 250), (0, 58, 112)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(light, dark, strict=True))
