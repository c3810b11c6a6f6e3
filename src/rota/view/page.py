"""The page: takes a scene and its schedule, gives one HTML file that needs nothing else.

The picture works without scripts.  With them the time axis can be stretched, a click keeps an entry's story on the
page, and an entry's operands light up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rota.program.entry import Entry
from rota.program.lowered import Lowerable
from rota.program.phase import Phase
from rota.view.draw import LEFT, RIGHT, draw
from rota.view.palette import DARK, LIGHT
from rota.view.pictured import Key
from rota.view.reasons import reasons_of
from rota.view.scene import Scene
from rota.view.template import render


class _Row(NamedTuple):
    """An entry in the folded table."""

    slot: int
    op: str
    source: str
    why: str
    sync: bool


def page(scene: Scene, compiled: Lowerable) -> str:
    """A whole document."""
    return render(
        "page.html",
        headline=scene.headline,
        picture=draw(scene),
        phases=_phases(compiled),
        margin=LEFT + RIGHT,
        light=LIGHT,
        dark=DARK,
    )


def fragment(scene: Scene, compiled: Lowerable) -> str:
    """The same without scripts, for inside another page such as a notebook."""
    return render("fragment.html", picture=draw(scene), phases=_phases(compiled), light=LIGHT, dark=DARK)


def _phases(compiled: Lowerable) -> list[tuple[str, list[_Row]]]:
    """All entries with source line and reason, a table per phase."""
    reasons, program = reasons_of(compiled), compiled.lowered
    names = [role.name for role in program.roles]
    return [
        (
            phase.value.lower(),
            [_row(each, names, reasons[Key(phase, each.time_slot)].lines) for each in program.phase(phase)],
        )
        for phase in Phase
    ]


def _row(entry: Entry, names: Sequence[str], why: Iterable[str]) -> _Row:
    only = "" if entry.roles is None else f" ({' and '.join(names[role] for role in entry.roles)} only)"
    return _Row(
        slot=entry.time_slot,
        op=f"{entry.op}{only}",
        source=f"{entry.op.source}".rpartition("/")[2] if entry.op.source else "",
        why="; ".join(why),
        sync=entry.op.is_framework,
    )
