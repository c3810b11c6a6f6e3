"""Many shapes: takes a kernel and a problem, gives its prediction over M, or over M and N, as values, text and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rota.predict.chart import Chart, handy, linear, logarithmic, powers, rounded
from rota.predict.gemm_problem import GemmProblem
from rota.predict.predict_problem import Correction, ProblemPrediction, predict_problem, work_of
from rota.predict.tiled_gemm import TiledGemm

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
        """The highest rate in it."""
        return max(each.tflops for row in self.rows for each in row)

    @property
    def title(self) -> str:
        """Whose sweep it is."""
        first, last = self.rows[0][0], self.rows[-1][-1]
        sides = f"M {first.problem.m} to {last.problem.m}"
        sides += f", N {last.problem.n}" + (f" to {first.problem.n}" if last.problem.n != first.problem.n else "")
        return f"{first.kernel} · {first.device} · {first.element} · {sides}, K {first.problem.k}"


def sweep_m(kernel: TiledGemm, problem: GemmProblem, correction: Correction | None = None) -> Sweep:
    """One row: M from 64 to 16,384."""
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
    """A row for each N, M along it."""
    return Sweep(
        rows=tuple(
            tuple(predict_problem(kernel, problem.but(m=m, n=n), correction) for m in SIDES) for n in reversed(SIDES)
        )
    )


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
        cells = "".join(f"{_shade(each, sweep.most)}{each.tflops:>7,.0f}" for each in row)
        lines.append(f"  N {row[0].problem.n:>9,}  {cells}")
    return lines


def _shade(each: ProblemPrediction, most: float) -> str:
    return _SHADES[min(int(len(_SHADES) * each.tflops / most), len(_SHADES) - 1)]


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
    _axes(chart, top, "us", [(y(each), f"{each:,g}") for each in handy(low, high)])
    chart.area(
        [(x(each.problem.m), y(each.us_range.high)) for each in row]
        + [(x(each.problem.m), y(each.us_range.low)) for each in reversed(row)]
    )
    chart.line([(x(each.problem.m), y(each.us)) for each in row])
    top += _HIGH + 40
    most = max(each.tflops_range.high for each in row)
    y = linear(0, most, top + _HIGH, top)
    _axes(chart, top, "TFLOP/s", [(y(each), f"{each:,.0f}") for each in rounded(most)])
    chart.area(
        [(x(each.problem.m), y(each.tflops_range.high)) for each in row]
        + [(x(each.problem.m), y(each.tflops_range.low)) for each in reversed(row)]
    )
    chart.line([(x(each.problem.m), y(each.tflops)) for each in row])
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
    chart = Chart(
        _LEFT + wide * len(sweep.rows[0]) + _RIGHT,
        top + high * len(sweep.rows) + 40,
        sweep.title,
        ("TFLOP/s, predicted, not measured; darker is faster",),
    )
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
    """From near white to a dark blue, the same on every page."""
    light, dark = (236, 242, 250), (0, 58, 112)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(light, dark, strict=True))
