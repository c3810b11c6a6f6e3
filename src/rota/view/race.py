"""Pictures of a race: two accesses, the barriers between them, and the wait that is missing.

Both kinds of proof find the same thing: one wave's access is still in flight when another wave touches the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

from rota.cycles.timeline import Lane
from rota.errors import Concern, Finding, several
from rota.view.draw import DARK, HATCH, LIGHT, attribute, class_of, content, style_sheet, title, width_of
from rota.view.page import render

_EPOCH = re.compile(r"epoch (\d+)[^:]*: (.+)")
_BETWEEN = "no barrier between"


class WaveAccess(NamedTuple):
    """What one wave does to the bytes: when, counted in barriers that it has passed, and where it was written."""

    wave: str
    does: str
    passed: int
    source: str


class Race(NamedTuple):
    """Two accesses of the same bytes; `missing` is what would keep them apart, or why nothing does."""

    code: str
    message: str
    first: WaveAccess
    then: WaveAccess
    place: str
    missing: str

    @property
    def barriers(self) -> int:
        """How many barriers lie between the two."""
        return max(self.then.passed - self.first.passed, 0)

    def __str__(self) -> str:
        """The two lanes as text."""
        first, then = f"[{self.first.does}]", f"[{self.then.does}]"
        lane = max(len(self.first.wave), len(self.then.wave)) + 2
        bars = "│" * self.barriers
        under = "▒" * (len(then) + 3)
        gap = " " * (len(first) + 2)
        told = "" if bars else f"   ({_BETWEEN})"
        return "\n".join(
            (
                f"{self.first.wave:{lane}}{first}▒▒{bars.replace('│', '┼')}{under}  in flight{told}",
                f"{'':{lane}}{gap}{bars}",
                f"{self.then.wave:{lane}}{gap}{bars}  {then}",
                f"{'':{lane}}same bytes: {self.place}; missing: {self.missing}",
            )
        )


def race_of(finding: Finding) -> Race | None:
    """What a picture of the finding shows; None if it isn't about two waves."""
    evidence = {name: str(value) for name, value in finding.evidence}
    if finding.code == "I109" and "waves" in evidence and len(finding.concerns) > 1:
        return _in_machine_code(finding, evidence)
    if finding.code in ("R102", "R103") and len(finding.concerns) > 1:
        return _in_schedule(finding, evidence)
    return None


def _in_machine_code(finding: Finding, evidence: dict[str, str]) -> Race | None:
    """The finding names the later access first; the numbers of waves and barriers come in the order of time."""
    waves = re.findall(r"\d+", evidence["waves"])
    passed = [int(number) for number in re.findall(r"\d+", evidence.get("barriers", ""))]
    if len(waves) < 2 or not passed:
        return None
    then, first = finding.concerns[:2]
    return Race(
        code=finding.code,
        message=finding.message,
        first=_access(f"wave {waves[0]}", first, passed[0]),
        then=_access(f"wave {waves[1]}", then, passed[-1]),
        place=evidence.get("bytes of LDS", "LDS"),
        missing=evidence.get("missing wait", "a wait and a barrier between them"),
    )


def _in_schedule(finding: Finding, evidence: dict[str, str]) -> Race | None:
    """Both ends say in which stretch between barriers, an epoch, they are and what they do to which place."""
    ends = [(concern, _EPOCH.search(concern.role)) for concern in finding.concerns[:2]]
    (one, first), (other, then) = ends
    if first is None or then is None:
        return None
    return Race(
        code=finding.code,
        message=finding.message,
        first=_access("one wave", one, int(first[1])),
        then=_access("another", other, max(int(first[1]), int(then[1]))),
        place=then[2].partition(" ")[2],
        missing=evidence.get("found", "a wait and a barrier between them"),
    )


def _access(wave: str, concern: Concern, passed: int) -> WaveAccess:
    source = f"{concern.source}".rpartition("/")[2] if concern.source else ""
    number = f"{concern.number} " if concern.number else ""
    return WaveAccess(wave, f"{number}{concern.label}", passed, source)


def stretch_name(passed: int) -> str:
    """A stretch between barriers, in words."""
    return f"after {several(passed, 'barrier')}" if passed else "before the first barrier"


# Pictures of races.
#
# Time goes to the right. A box is an access as it is issued, the hatched stretch after it the time in which it may
# be in flight, for nothing waits for it; vertical lines are barriers, and what is dashed is missing.

WIDTH = 740
_LEFT, _RIGHT, _TOP, _LANE, _BOX = 84, 20, 74, 62, 26
_MOST_BARRIERS = 4
_SMALL = 10.5
_DASHED = '<svg x="{bar}" y="{y}" overflow="visible"><path class="barrier missing" stroke-width="2" d="M0,0v11"/></svg>'


def draw_race(race: Race) -> str:
    """The race as one self-contained SVG."""
    boxes = [_box_width(each) for each in (race.first, race.then)]
    shown = min(race.barriers, _MOST_BARRIERS)
    x_first = _LEFT + 16.0
    x_wait = x_first + boxes[0] + 16
    need = width_of("missing", _SMALL) + 20
    x_barrier = x_wait + need
    x_then = x_barrier + 34 * max(shown - 1, 0) + 30 if shown else x_first + boxes[0] / 2
    wide = max(WIDTH, x_then + boxes[1] + 40 + _RIGHT)
    first, then = _TOP + 18, _TOP + 18 + _LANE
    bottom = then + _BOX + 22
    notes = [*wrap(f"missing: {race.missing}", 100), f"same bytes: {race.place}"]
    legend, lowest = _legend(bottom + 26, wide - _RIGHT, barrier=bool(shown))
    height = lowest + 20 + 15 * len(notes)
    parts = [
        f'<text x="16" y="26" class="title">{content(race.code)}</text>',
        f'<text x="{16 + width_of(race.code, 17) + 8:g}" y="26">{content(race.message)}</text>',
        *(
            f'<rect class="panel" x="{_LEFT}" y="{y - 8}" width="{wide - _LEFT - _RIGHT:g}" height="{_BOX + 16}"/>'
            for y in (first, then)
        ),
        f'<text x="16" y="{first + 17}" class="name">{content(race.first.wave)}</text>',
        f'<text x="16" y="{then + 17}" class="name">{content(race.then.wave)}</text>',
        f'<text x="{_LEFT + 4}" y="{_TOP - 10}" class="small faint">{content(stretch_name(race.first.passed))}</text>',
        _clash(x_then, boxes[1], first, then),
        _under_way(x_first + boxes[0], x_then + boxes[1] + 16, first),
    ]
    if shown:
        named = x_barrier + 34 * (shown - 1) + 6
        parts.append(
            f'<text x="{named:g}" y="{_TOP - 10}" class="small faint">{content(stretch_name(race.then.passed))}</text>'
        )
        parts += [_barrier(x_barrier + 34 * number, bottom) for number in range(shown)]
        parts.append(_missing_wait(x_wait + need / 2 - 6, first))
    else:
        parts.append(
            f'<text x="{x_then + boxes[1] + 8:g}" y="{then - 14}" class="small">no barrier between the two</text>'
        )
    parts += [
        _box(race.first, x_first, first, boxes[0], Lane.GLOBAL),
        _box(race.then, x_then, then, boxes[1], Lane.MMA),
    ]
    parts.append(legend)
    parts += [
        f'<text x="{_LEFT}" y="{lowest + 20 + 15 * number}" class="small">{content(note)}</text>'
        for number, note in enumerate(notes)
    ]
    told = f"{race.code}: {race.message}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rota race" viewBox="0 0 {wide:g} {height}" width="{wide:g}" '
        f'height="{height}" role="img" aria-label={attribute(told)}><style>{style_sheet()}</style>{HATCH}'
        f'<rect class="ground" width="100%" height="100%"/>{"".join(parts)}</svg>\n'
    )


def race_page(findings: Sequence[tuple[str, Finding]]) -> str:
    """A document with every finding, and a picture of those that are races; each with what it is about."""
    shown = [(subject, str(finding), race_of(finding)) for subject, finding in findings]
    races = sum(race is not None for _, _, race in shown)
    return render(
        "races.html",
        headline=f"{several(len(shown), 'finding')}, {several(races, 'race')}",
        findings=[(subject, text, draw_race(race) if race else "") for subject, text, race in shown],
        light=LIGHT,
        dark=DARK,
    )


def _box_width(access: WaveAccess) -> float:
    return max(width_of(access.does, 11), width_of(access.source, _SMALL)) + 14


def _box(access: WaveAccess, x: float, y: float, wide: float, lane: Lane) -> str:
    label = f'<text x="{x + wide / 2:g}" y="{y + 17}" class="mid">{content(access.does)}</text>'
    source = f'<text x="{x:g}" y="{y + _BOX + 18}" class="small faint halo">{content(access.source)}</text>'
    told = title((access.does, access.source, stretch_name(access.passed)))
    box = f'<rect x="{x:g}" y="{y}" width="{wide:g}" height="{_BOX}"/>'
    return f'<g class="bar {class_of(lane, 0)}">{told}{box}{label}</g>{source}'


def _under_way(start: float, end: float, y: float) -> str:
    box = f'<rect x="{start:g}" y="{y + 3}" width="{end - start:g}" height="{_BOX - 6}" fill="url(#rota-hatch)"/>'
    return f'<g class="stall">{title(("may be in flight: nothing waits for it",))}{box}</g>'


def _clash(x: float, wide: float, first: float, then: float) -> str:
    return f'<rect class="clash" x="{x:g}" y="{first - 8}" width="{wide:g}" height="{then - first + _BOX + 16}"/>'


def _barrier(x: float, bottom: float) -> str:
    line = f'<line x1="{x:g}" x2="{x:g}" y1="{_TOP - 4}" y2="{bottom}" class="barrier" stroke-width="2"/>'
    return f'<g class="mark">{title(("a barrier, which both waves pass",))}{line}</g>'


def _missing_wait(x: float, y: float) -> str:
    line = f'<line x1="{x:g}" x2="{x:g}" y1="{y - 14}" y2="{y + _BOX + 8}" class="barrier missing" stroke-width="2"/>'
    return f'{line}<text x="{x:g}" y="{y + _BOX + 18}" class="small mid halo">missing</text>'


def _legend(y: int, right: float, *, barrier: bool) -> tuple[str, int]:
    """In as many lines as it takes; and where the last one is."""
    keys = [
        (
            f'<g class="bar {class_of(Lane.GLOBAL, 0)}"><rect x="{{x}}" y="{{y}}" width="16" height="10"/></g>',
            "the first access",
        ),
        (
            f'<g class="bar {class_of(Lane.MMA, 0)}"><rect x="{{x}}" y="{{y}}" width="16" height="10"/></g>',
            "the second",
        ),
        (
            '<g class="stall"><rect x="{x}" y="{y}" width="16" height="10" fill="url(#rota-hatch)"/></g>',
            "may be in flight",
        ),
        ('<rect class="clash" x="{x}" y="{y}" width="16" height="10"/>', "both at once"),
    ]
    if barrier:
        keys += [
            ('<rect class="wait" x="{bar}" y="{y}" width="2" height="11"/>', "barrier"),
            (_DASHED, "the wait that is missing"),
        ]
    x, parts = float(_LEFT), []
    for shape, text in keys:
        wide = 22 + width_of(text, _SMALL)
        if x + wide > right:
            x, y = float(_LEFT), y + 16
        parts.append(shape.format(x=f"{x:g}", y=f"{y - 9:g}", bar=f"{x + 8:g}"))
        parts.append(f'<text x="{x + 22:g}" y="{y:g}" class="small faint">{text}</text>')
        x += wide + 14
    return "".join(parts), y
