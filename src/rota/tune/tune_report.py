"""The report of a tuned library, as one HTML page that needs nothing else.

Coverage of the shapes, efficiency and risk by M and N, winners, a row for each shape, and what was refused, by code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import floor, log2
from typing import NamedTuple

from rota.cycles.timeline import Lane
from rota.errors import CODES
from rota.targets.registry import device_named
from rota.tune.dispatch_table import ShapeRow, basis_of, by_kernel, coverage, list_rows, say_chance
from rota.tune.tune_library import MEASURED, DeviceTable, TunedLibrary
from rota.view.draw import DARK, HUES, LIGHT, Theme, ink, mix
from rota.view.page import render

_STEPS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""From which share of the best rate on a cell gets the next shade."""

_MOST_KERNELS = 40
_MOST_ROWS = 400
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
    decided: int
    basis: str
    best: str
    memory: str
    efficiency: HeatMap
    doubt: HeatMap
    rows: tuple[ShapeRow, ...]
    rest: int
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
        say_chance=say_chance,
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
    rows = list(list_rows(table))
    best = rows[0].best_tflops if rows else 0.0
    return Section(
        title=f"{table.device}, {table.ranking.element or 'no kernel'}",
        tuned=tuned,
        asked=asked,
        measured=sum(row.basis == MEASURED for row in rows),
        decided=sum(row.decided for row in rows),
        basis=basis_of(table),
        best=f"{best:,.0f} TFLOP/s",
        memory=f"{device_named(table.device).memory_rate.value:,} GB/s",
        efficiency=_heat(rows, lambda row: row.efficiency),
        doubt=_heat(rows, lambda row: 1 - row.chance),
        rows=tuple(rows[:_MOST_ROWS]),
        rest=max(0, len(rows) - _MOST_ROWS),
        winners=tuple(winners),
        more=max(0, len(used) - _MOST_KERNELS),
        untuned=tuple((str(shape), why) for shape, why in table.untuned[:_MOST_PRUNED]),
    )


def _heat(shapes: Sequence[ShapeRow], value: Callable[[ShapeRow], float]) -> HeatMap:
    """By powers of two; the mean over the shapes of a cell."""
    cells: dict[tuple[int, int], list[float]] = {}
    for row in shapes:
        cells.setdefault((floor(log2(row.shape.m)), floor(log2(row.shape.n))), []).append(value(row))
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
