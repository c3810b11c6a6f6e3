"""Pictures of a race: two accesses, the barriers between them, and the wait that is missing.

Both kinds of proof find the same thing: one wave's access is still in flight when another wave touches the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from rota.cycles.timeline import Lane
from rota.errors import Concern, Finding, several
from rota.view.draw import (
    HATCH,
    KEY_BARRIER,
    KEY_HATCHED,
    class_of,
    key_box,
    lay_out_legend,
    style_sheet,
    title,
    width_of,
)
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
        return max(self.then.passed - self.first.passed, 0)

    def __str__(self) -> str:
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
    one, other = finding.concerns[:2]
    first, then = _EPOCH.search(one.role), _EPOCH.search(other.role)
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
    return f"after {several(passed, 'barrier')}" if passed else "before the first barrier"


# Time goes to the right. A box is an access as it is issued, the hatched stretch after it the time in which it may
# be in flight, for nothing waits for it; vertical lines are barriers, and what is dashed is missing.

WIDTH = 740
_LEFT, _RIGHT, _TOP, _LANE, _BOX = 84, 20, 74, 62, 26
_MOST_BARRIERS = 4
_SMALL = 10.5
_KEY_CLASH = '<rect class="clash" x="{x}" y="{y}" width="16" height="10"/>'
_DASHED = '<svg x="{bar}" y="{y}" overflow="visible"><path class="barrier missing" stroke-width="2" d="M0,0v11"/></svg>'


def draw_race(race: Race) -> str:
    ends = (race.first, race.then)
    boxes = [max(width_of(end.does, 11), width_of(end.source, _SMALL)) + 14 for end in ends]
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
    keys = [(key_box(Lane.GLOBAL, 0), "the first access"), (key_box(Lane.MMA, 0), "the second")]
    keys += [(KEY_HATCHED, "may be in flight"), (_KEY_CLASH, "both at once")]
    if shown:
        keys += [(KEY_BARRIER, "barrier"), (_DASHED, "the wait that is missing")]
    legend, lowest = lay_out_legend(keys, _LEFT, wide - _RIGHT, bottom + 26, line=16, space=14)
    height = lowest + 20 + 15 * len(notes)
    start, end = x_first + boxes[0], x_then + boxes[1] + 16
    size = f'width="{end - start:g}" height="{_BOX - 6}"'
    in_flight = f'<rect x="{start:g}" y="{first + 3}" {size} fill="url(#rota-hatch)"/>'
    parts = [
        f'<text x="16" y="26" class="title">{escape(race.code)}</text>',
        f'<text x="{16 + width_of(race.code, 17) + 8:g}" y="26">{escape(race.message)}</text>',
        *(
            f'<rect class="panel" x="{_LEFT}" y="{y - 8}" width="{wide - _LEFT - _RIGHT:g}" height="{_BOX + 16}"/>'
            for y in (first, then)
        ),
        f'<text x="16" y="{first + 17}" class="name">{escape(race.first.wave)}</text>',
        f'<text x="16" y="{then + 17}" class="name">{escape(race.then.wave)}</text>',
        f'<text x="{_LEFT + 4}" y="{_TOP - 10}" class="small faint">{escape(stretch_name(race.first.passed))}</text>',
        f'<rect class="clash" x="{x_then:g}" y="{first - 8}" width="{boxes[1]:g}" height="{_LANE + _BOX + 16}"/>',
        f'<g class="stall">{title(("may be in flight: nothing waits for it",))}{in_flight}</g>',
    ]
    if shown:
        named = x_barrier + 34 * (shown - 1) + 6
        parts.append(
            f'<text x="{named:g}" y="{_TOP - 10}" class="small faint">{escape(stretch_name(race.then.passed))}</text>'
        )
        parts += [_barrier(x_barrier + 34 * number, bottom) for number in range(shown)]
        x = f"{x_wait + need / 2 - 6:g}"
        parts.append(
            f'<line x1="{x}" x2="{x}" y1="{first - 14}" y2="{first + _BOX + 8}" class="barrier missing" '
            f'stroke-width="2"/><text x="{x}" y="{first + _BOX + 18}" class="small mid halo">missing</text>'
        )
    else:
        parts.append(
            f'<text x="{x_then + boxes[1] + 8:g}" y="{then - 14}" class="small">no barrier between the two</text>'
        )
    parts.append(_box(race.first, x_first, first, boxes[0], Lane.GLOBAL))
    parts.append(_box(race.then, x_then, then, boxes[1], Lane.MMA))
    parts.append(legend)
    parts += [
        f'<text x="{_LEFT}" y="{lowest + 20 + 15 * number}" class="small">{escape(note)}</text>'
        for number, note in enumerate(notes)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rota race" viewBox="0 0 {wide:g} {height}" width="{wide:g}" '
        f'height="{height}" role="img" aria-label={quoteattr(f"{race.code}: {race.message}")}>'
        f'<style>{style_sheet()}</style>{HATCH}<rect class="ground" width="100%" height="100%"/>'
        f"{''.join(parts)}</svg>\n"
    )


def race_page(findings: Sequence[tuple[str, Finding]]) -> str:
    """A document with every finding, and a picture of those that are races; each with what it is about."""
    shown = [(subject, str(finding), race_of(finding)) for subject, finding in findings]
    races = sum(race is not None for _, _, race in shown)
    return render(
        "races.html",
        headline=f"{several(len(shown), 'finding')}, {several(races, 'race')}",
        findings=[(subject, text, draw_race(race) if race else "") for subject, text, race in shown],
    )


def _box(access: WaveAccess, x: float, y: float, wide: float, lane: Lane) -> str:
    label = f'<text x="{x + wide / 2:g}" y="{y + 17}" class="mid">{escape(access.does)}</text>'
    source = f'<text x="{x:g}" y="{y + _BOX + 18}" class="small faint halo">{escape(access.source)}</text>'
    told = title((access.does, access.source, stretch_name(access.passed)))
    box = f'<rect x="{x:g}" y="{y}" width="{wide:g}" height="{_BOX}"/>'
    return f'<g class="bar {class_of(lane, 0)}">{told}{box}{label}</g>{source}'


def _barrier(x: float, bottom: float) -> str:
    line = f'<line x1="{x:g}" x2="{x:g}" y1="{_TOP - 4}" y2="{bottom}" class="barrier" stroke-width="2"/>'
    return f'<g class="mark">{title(("a barrier, which both waves pass",))}{line}</g>'
