"""The timeline as text, at most 100 columns wide.

Each column covers an equal number of clocks and shows how much of it a unit works: a full block for nearly all of it,
lighter ones for less. Names appear where they fit; a light block in the MMA row is a stall.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rota.cycles.timeline import Lane
from rota.view.scene import Bar, Scene, StallMark, Stripe, clip, ticks

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
