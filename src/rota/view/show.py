"""For notebooks: takes a compiled schedule and its predicted timeline, gives an object that shows itself.

As a notebook's last expression it is the picture with a folded table of entries; printed, the terminal's timeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rota.cycles.timeline import Timeline
from rota.program.lowered import Lowerable
from rota.view.arrange import PredictedSpeed, arrange
from rota.view.draw import draw
from rota.view.page import fragment, page
from rota.view.pictured import Key
from rota.view.scene import Scene
from rota.view.terminal import text_timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A schedule with the scene of its predicted steady state; every rendering is made when it is asked for."""

    compiled: Lowerable
    scene: Scene

    def __str__(self) -> str:
        return text_timeline(self.scene)

    def text(self, columns: int) -> str:
        """The timeline as text, that wide."""
        return text_timeline(self.scene, columns)

    def __repr__(self) -> str:
        return f"<Shown {self.scene.headline}>"

    def _repr_html_(self) -> str:
        return fragment(self.scene, self.compiled)

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """The picture alone."""
        return draw(self.scene)

    def html(self) -> str:
        """The picture on a page of its own, with entries and controls."""
        return page(self.scene, self.compiled)


def show(
    compiled: Lowerable,
    timeline: Timeline,
    prediction: PredictedSpeed | None = None,
    *,
    measured: Mapping[Key, str] | None = None,
) -> Shown:
    """The steady state of a schedule, ready to be shown; a prediction adds speed and bound to the headline.

    What was `measured` of an entry is told with it.
    """
    return Shown(compiled=compiled, scene=arrange(compiled, timeline, prediction, measured=measured))
