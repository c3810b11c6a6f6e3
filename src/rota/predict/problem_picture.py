"""A predicted problem shown: takes a `ProblemPrediction`, gives a table with a stacked bar as text, or as SVG."""

from __future__ import annotations

from rota.predict.chart import HUES, Chart
from rota.predict.predict_problem import Part, ProblemPrediction

_MARKS = "·█░▓▒▄│#"
_COLUMNS = 64
_WIDTH, _LEFT, _BAR, _ROW = 900, 16, 34, 22


def problem_text(found: ProblemPrediction) -> str:
    """Headline, bar, parts, and what the figures rest on."""
    head = str(found).split(" · ")
    lines = [" · ".join(head[:3]), "  " + " · ".join(head[3:]), f"  {_bar(found)}"]
    for mark, part in zip(_MARKS, found.parts, strict=False):
        lines.append(f"  {mark} {part.us:9,.1f} us {_share(found, part):>4}  {part.name}: {part.what}")
    return "\n".join([*lines, f"  {found.basis}"])


def problem_svg(found: ProblemPrediction) -> str:
    """The same as a picture."""
    parts = [(hue, part) for hue, part in zip(HUES, found.parts, strict=False)]
    head = str(found).split(" · ")
    top = 86
    chart = Chart(_WIDTH, top + _BAR + 18 + _ROW * len(parts) + 34, " · ".join(head[:3]), (" · ".join(head[3:]),))
    inner = _WIDTH - 2 * _LEFT
    low, high = found.us_range
    most = max(high, found.us)
    x = float(_LEFT)
    for hue, part in parts:
        wide = inner * part.us / most
        chart.box((x, top), (wide, _BAR), hue, (f"{part.name}: {part.us:,.1f} us", part.what))
        x += wide
    middle = top + _BAR / 2
    ends = [_LEFT + inner * each / most for each in (low, high)]
    chart.line([(ends[0], middle), (ends[1], middle)])
    for end in ends:
        chart.line([(end, middle - 7), (end, middle + 7)])
    chart.text(_LEFT, top - 8, f"0 us to {most:,.1f} us; the line is the 80 % band", "small faint")
    y = top + _BAR + 18
    for hue, part in parts:
        chart.box((_LEFT, y), (12, 12), hue)
        chart.text(_LEFT + 120, y + 11, f"{part.us:,.1f} us", "end")
        chart.text(_LEFT + 170, y + 11, _share(found, part), "end")
        chart.text(_LEFT + 186, y + 11, part.name, "name")
        chart.text(_LEFT + 306, y + 11, part.what, "faint")
        y += _ROW
    chart.text(_LEFT, y + 14, found.basis, "small faint")
    return chart.svg()


def _share(found: ProblemPrediction, part: Part) -> str:
    return f"{100 * part.us / found.us:.0f} %"


def _bar(found: ProblemPrediction) -> str:
    """A column is the same time everywhere; a part that is too short for one is left out."""
    drawn, passed, text = 0, 0.0, ""
    for mark, part in zip(_MARKS, found.parts, strict=False):
        passed += part.us
        end = round(_COLUMNS * passed / found.us)
        text += mark * (end - drawn)
        drawn = max(drawn, end)
    return text
