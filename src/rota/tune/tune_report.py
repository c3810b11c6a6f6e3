"""The report of a tuned library, as one HTML page that needs nothing else.

Coverage of the shapes, efficiency by M and N, winners, ties that the model can't decide, and what was refused, by code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import floor, log2
from typing import NamedTuple

from rota.cycles.timeline import Lane
from rota.errors import CODES
from rota.predict.predict_problem import type_facts_of
from rota.targets.registry import device_named
from rota.tune.dispatch_table import by_kernel, coverage
from rota.tune.tune_library import DeviceTable, TunedLibrary
from rota.tune.winners import MEASURED
from rota.view.draw import DARK, HUES, LIGHT, Theme, ink, mix
from rota.view.page import render

_STEPS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""From which share of the best rate on a cell gets the next shade."""

_MOST_KERNELS = 40
_MOST_PRUNED = 12


class Cell(NamedTuple):
    text: str
    shade: int
    title: str


class HeatMap(NamedTuple):
    """Cells by powers of two of M (rows) and N (columns)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


class Winner(NamedTuple):
    kernel: str
    shapes: int
    share: str
    clocks: str
    busy: str
    lds: str
    registers: int
    proof: str


class Section(NamedTuple):
    title: str
    tuned: int
    asked: int
    measured: int
    near: int
    best: str
    efficiency: HeatMap
    doubt: HeatMap
    winners: tuple[Winner, ...]
    more: int
    untuned: tuple[tuple[str, str], ...]


def report_page(library: TunedLibrary) -> str:
    tally = library.tally
    refusals = Counter(row.code for row in library.rows if row.code)
    pruned = Counter(each.code for each in library.pruned)
    return render(
        "library.html",
        title=f"A tuned library: {tally.asked} loops, {sum(len(each.choices) for each in library.tables):,} choices",
        tally=tally,
        sections=[_section(table) for table in library.tables],
        refusals=[(code, count, CODES[code]) for code, count in sorted(refusals.items())],
        pruned=[(code, count, CODES[code]) for code, count in sorted(pruned.items())],
        refused=[(row.point.name, row.code, row.message) for row in library.rows if row.code][:_MOST_PRUNED],
        shades={t: {"efficiency": _shades(Lane.LDS, t), "doubt": _shades(Lane.GLOBAL, t)} for t in (LIGHT, DARK)},
    )


def _shades(lane: Lane, theme: Theme) -> list[tuple[str, str]]:
    """Seven, from nearly the page's own colour to the hue, with the ink that reads on each."""
    keeps = [(number + 0.4) / (len(_STEPS) + 0.4) for number in range(len(_STEPS) + 1)]
    colours = [mix(HUES[lane], theme.background, keep) for keep in keeps]
    return [(colour, ink(colour)) for colour in colours]


def _section(table: DeviceTable) -> Section:
    tuned, asked = coverage(table)
    known = {each.kernel: each for each in by_kernel(table).values()}
    used = Counter(choice["kernel"] for choice in table.choices.values())
    winners = []
    for kernel, count in used.most_common(_MOST_KERNELS):
        facts = known[kernel].row.facts
        winners.append(
            Winner(
                kernel,
                count,
                f"{count / max(tuned, 1):.1%}",
                f"{facts['loop_clocks']:,.0f}",
                f"{facts['matrix_clocks'] / facts['loop_clocks']:.0%}",
                f"{facts['lds_bytes'] // 1024}",
                int(facts["registers"]),
                "II proven least" if facts["least"] else "II not proven least",
            )
        )
    best = _best(table)
    return Section(
        title=f"{table.device}, {table.ranking.element or 'no kernel'}",
        tuned=tuned,
        asked=asked,
        measured=sum(choice["basis"] == MEASURED for choice in table.choices.values()),
        near=sum(choice["near"] > 1 for choice in table.choices.values()),
        best=f"{best:,.0f} TFLOP/s" if best else "nothing measured",
        efficiency=_heat(table, "efficiency", best or 1.0),
        doubt=_heat(table, "doubt", 1.0),
        winners=tuple(winners),
        more=max(0, len(used) - _MOST_KERNELS),
        untuned=tuple((str(shape), why) for shape, why in table.untuned[:_MOST_PRUNED]),
    )


def _best(table: DeviceTable) -> float | None:
    """The best rate that anybody measured of the type, else what matrix units could do."""
    if not table.ranking.candidates:
        return None
    gemm = table.ranking.candidates[0].gemm
    own = type_facts_of(gemm).best
    if own is not None:
        return own.value
    m, n, k = gemm.tile
    timing = device_named(table.device).timing
    return 2 * m * n * k / gemm.matrix_clocks * timing.compute_units.value * timing.clock.value / 1e6


def _heat(table: DeviceTable, about: str, best: float) -> HeatMap:
    """By powers of two; the mean over the shapes of a cell."""
    cells: dict[tuple[int, int], list[float]] = {}
    for shape, choice in table.choices.items():
        if about == "efficiency":
            value = 2 * shape.m * shape.n * shape.k / choice["us"] / 1e6 / best
        else:
            value = float(choice["near"] > 1)
        cells.setdefault((floor(log2(shape.m)), floor(log2(shape.n))), []).append(value)
    rows, columns = (sorted({key[side] for key in cells}) for side in (0, 1))

    def cell(values: Sequence[float]) -> Cell:
        if not values:
            return Cell("", 0, "no shapes")
        mean = sum(values) / len(values)
        shade = sum(mean >= step for step in _STEPS)
        return Cell(f"{100 * mean:.0f}", shade, f"{len(values)} shapes, {mean:.1%} in the mean")

    return HeatMap(
        tuple(_from(power) for power in columns),
        tuple((_from(m), tuple(cell(cells.get((m, n), [])) for n in columns)) for m in rows),
    )


def _from(power: int) -> str:
    return f"{2**power:,}" if power < 10 else f"{2 ** (power - 10):,} Ki"
