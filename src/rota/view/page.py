"""A schedule as one HTML file that needs nothing else, and the objects that show themselves in notebooks.

The picture works without scripts. With them the time axis can be stretched, a click keeps an entry's details on the
page, and an entry's operands light up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rota.cycles.timeline import Timeline
from rota.program.entry import Entry
from rota.program.kinds import Phase
from rota.program.lowered import Lowerable
from rota.registry import Registry
from rota.view.diff import ScheduleDiff
from rota.view.draw import DARK, LEFT, LIGHT, RIGHT, draw, text_timeline
from rota.view.scene import Key, Scene, arrange, reasons_of

if TYPE_CHECKING:
    from jinja2 import Environment

    from rota.cycles.predict import Prediction


def render(name: str, **values: object) -> str:
    """Fill in a template, which says `|safe` of what is markup already; names that authors give stay text."""
    return _templates().get_template(name).render(values, light=LIGHT, dark=DARK)


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("rota.view"),
        autoescape=True,
        undefined=StrictUndefined,  # a name that is misspelt in a template is an error, not an empty cell
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


class _Row(NamedTuple):
    slot: int
    op: str
    source: str
    why: str
    sync: bool


def page(scene: Scene, compiled: Lowerable) -> str:
    said = {"headline": scene.headline, "title": scene.title, "facts": scene.described}
    return render("page.html", **said, picture=draw(scene), phases=_phases(compiled), margin=LEFT + RIGHT)


def fragment(scene: Scene, compiled: Lowerable) -> str:
    """The same without scripts, for inside another page such as a notebook."""
    return render("fragment.html", picture=draw(scene), phases=_phases(compiled))


def _phases(compiled: Lowerable) -> list[tuple[str, list[_Row]]]:
    """All entries with source line and reason, a table per phase."""
    reasons, program = reasons_of(compiled), compiled.lowered
    names = [role.name for role in program.roles]
    phases: dict[str, list[_Row]] = {}
    for phase in Phase:
        rows = [_row(each, names, reasons[Key(phase, each.time_slot)].lines) for each in program.phase(phase)]
        phases[phase.value.lower()] = rows
    return list(phases.items())


def _row(entry: Entry, names: Sequence[str], why: Iterable[str]) -> _Row:
    only = "" if entry.roles is None else f" ({' and '.join(names[role] for role in entry.roles)} only)"
    return _Row(
        slot=entry.time_slot,
        op=f"{entry.op}{only}",
        source=f"{entry.op.source}".rpartition("/")[2] if entry.op.source else "",
        why="; ".join(why),
        sync=entry.op.is_framework,
    )


def diff_page(diff: ScheduleDiff) -> str:
    return render("diff.html", diff=diff)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A schedule with the scene of its predicted steady state; every rendering is made when it is asked for.

    As a notebook's last expression it is the picture with a folded table of entries; printed, the terminal's timeline.
    """

    compiled: Lowerable
    scene: Scene

    def __str__(self) -> str:
        return text_timeline(self.scene)

    def text(self, columns: int) -> str:
        return text_timeline(self.scene, columns)

    def __repr__(self) -> str:
        return f"<Shown {self.scene.headline}>"

    def _repr_html_(self) -> str:
        return fragment(self.scene, self.compiled)

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        return draw(self.scene)

    def html(self) -> str:
        return page(self.scene, self.compiled)


def show(
    compiled: Lowerable,
    timeline: Timeline,
    prediction: Prediction | None = None,
    *,
    measured: Mapping[Key, str] | None = None,
) -> Shown:
    """The steady state of a schedule, ready to be shown, with speed and bound predicted and what was `measured`."""
    return Shown(compiled=compiled, scene=arrange(compiled, timeline, prediction, measured=measured))


View: TypeAlias = "Callable[[Shown], str]"
"""A function of what is shown, a compiled schedule and the scene of its predicted steady state, that gives text."""

VIEWS: Registry[View] = Registry(
    what="view",
    group="rota.views",
    own=MappingProxyType(
        {"text": "rota.view.page:Shown.__str__", "svg": "rota.view.page:Shown.svg", "html": "rota.view.page:Shown.html"}
    ),
    expected="a function that takes what is shown and gives text",
    lacks=lambda made: None if callable(made) else "can't be called",
)
