"""Predicted against measured as a picture: takes the measured table, writes an SVG.

    python -m benchmarks.draw_predictions docs/_static/predicted_measured.svg

Every dot is a measured GEMM of MI355X; its prediction comes from a fit that saw no run of the same N and K.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rota.predict.sweep import Chart, logarithmic, powers
from tests.campaigns.measured.measured_rows import read_rows
from tests.campaigns.measured.problem_fit import held_out
from tests.campaigns.measured.problem_judging import errors

HUES = {"bf16": "#0072b2", "fp8": "#d55e00", "fp4": "#009e73", "int8": "#cc79a7"}
SIZE, LEFT, TOP, BOTTOM = 560, 74, 96, 50


def picture() -> str:
    """The finished SVG."""
    rows = read_rows("MI355X")
    predicted = held_out(rows).plain
    found = errors(rows.us, predicted)
    low, high = float(min(rows.us.min(), predicted.min())) * 0.9, float(max(rows.us.max(), predicted.max())) * 1.1
    chart = Chart(
        LEFT + SIZE + 30,
        TOP + SIZE + BOTTOM,
        "Predicted against measured, MI355X",
        (
            f"{found.rows:,} GEMMs that AITER's tuners measured; no run of the same N and K was in the fit",
            f"half are off by less than {100 * found.median:.1f} %, nine of ten by less than {100 * found.p90:.0f} %",
        ),
    )
    x, y = logarithmic(low, high, LEFT, LEFT + SIZE), logarithmic(low, high, TOP + SIZE, TOP)
    for each in powers(low, high, base=10):
        chart.line([(x(each), TOP), (x(each), TOP + SIZE)], "grid")
        chart.line([(LEFT, y(each)), (LEFT + SIZE, y(each))], "grid")
        chart.text(x(each), TOP + SIZE + 16, f"{each:,.0f}", "tiny faint mid")
        chart.text(LEFT - 6, y(each) + 3, f"{each:,.0f}", "tiny faint end")
    for number, (element, hue) in enumerate(HUES.items()):
        own = rows.element == element
        chart.dots(((x(a), y(b)) for a, b in zip(rows.us[own].tolist(), predicted[own].tolist(), strict=True)), hue)
        chart.box((LEFT + 14, TOP + 14 + 20 * number), (12, 12), hue)
        chart.text(LEFT + 32, TOP + 24 + 20 * number, f"{element}, {int(own.sum()):,}")
    chart.line([(x(low), y(low)), (x(high), y(high))])
    for factor in (1 / 1.2, 1.2):
        first, last = max(low, low / factor), min(high, high / factor)
        chart.line([(x(first), y(first * factor)), (x(last), y(last * factor))], "line limit")
    chart.text(LEFT + SIZE, TOP + SIZE + 36, "measured, us", "name end")
    chart.text(16, TOP - 8, "predicted, us", "name")
    return chart.svg()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture())
