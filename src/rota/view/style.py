"""The look of a picture: takes the palette, gives one style sheet that serves light and dark pages.

It stands inside every picture, so that a saved file needs nothing else.
"""

from __future__ import annotations

from functools import cache

from rota.cycles.timeline import Lane
from rota.view.palette import DARK, LIGHT, SHADES, Theme, fill, ink

_SHAPE = """
.rota{font:12px/1.35 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.rota text{font-variant-numeric:tabular-nums}
.rota .title{font-size:16px;font-weight:650}
.rota .small{font-size:10.5px}
.rota .tiny{font-size:9.5px}
.rota .name{font-weight:600}
.rota .mid{text-anchor:middle}
.rota .end{text-anchor:end}
.rota .tight{display:none}
.rota .bar text,.rota .stall text{font-size:11px;text-anchor:middle;pointer-events:none}
.rota .stall text{font-size:10px;paint-order:stroke;stroke-width:3px;stroke-linejoin:round}
.rota .around{fill-opacity:.22}
.rota text.halo,.rota .halo text{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}
.rota .mark text{font-size:10px;paint-order:stroke;stroke-width:3px;stroke-linejoin:round}
.rota .line{fill:none;stroke-width:1.6;vector-effect:non-scaling-stroke}
.rota .limit{stroke-dasharray:5 3;stroke-width:1;vector-effect:non-scaling-stroke}
.rota .window{stroke-dasharray:2 3}
.rota .arrival{stroke-dasharray:3 3;stroke-width:2}
.rota .bar.dim{opacity:.35}
"""


def class_of(lane: Lane, stage: int) -> str:
    """The style class of a bar."""
    return f"{lane.name.lower()}{stage % len(SHADES)}"


@cache
def style_sheet() -> str:
    """Shapes, light colours, and dark ones for readers who prefer them."""
    return f"{_SHAPE}{_bars()}{_colours(LIGHT)}@media (prefers-color-scheme:dark){{\n{_colours(DARK)}}}\n"


def _bars() -> str:
    """A class is more particular than `.rota text`, so its ink stays."""
    rules = []
    for lane in Lane:
        for stage in range(len(SHADES)):
            name, colour = f".rota .{class_of(lane, stage)}", fill(lane, stage)
            rules.append(f"{name} rect{{fill:{colour}}}\n{name} text{{fill:{ink(colour)}}}\n")
    return "".join(rules)


def _colours(theme: Theme) -> str:
    rules = [
        (".rota", f"color:{theme.text};background:{theme.background}"),
        (".rota text", f"fill:{theme.text}"),
        (".rota .faint", f"fill:{theme.faint}"),
        (".rota .ground", f"fill:{theme.background}"),
        (".rota .panel", f"fill:{theme.panel}"),
        (".rota .grid", f"stroke:{theme.grid}"),
        (".rota .window", f"stroke:{theme.faint}"),
        (".rota .hatch", f"stroke:{theme.hatch}"),
        (".rota .stall rect", f"stroke:{theme.hatch}"),
        (".rota .stall text,.rota .mark text", f"stroke:{theme.background}"),
        (".rota .barrier", f"stroke:{theme.barrier}"),
        (".rota .wait", f"fill:{theme.text}"),
        (".rota .line", f"stroke:{theme.text}"),
        (".rota .area", f"fill:{theme.text};fill-opacity:.1"),
        (".rota .clash", f"fill:{theme.clash};fill-opacity:.28"),
        (".rota .missing", "stroke-dasharray:4 3"),
        (".rota .gauge", f"fill:{theme.text};fill-opacity:.15"),
        (".rota .limit", f"stroke:{theme.faint}"),
        (".rota .edge", f"stroke:{theme.panel};stroke-width:.7"),
        (".rota text.halo,.rota .halo text", f"stroke:{theme.background};stroke-opacity:.85"),
        (".rota .bar:hover rect,.rota .bar.lit rect", f"stroke:{theme.text};stroke-width:2"),
    ]
    rules.append((".rota .halo text", f"fill:{theme.text}"))
    return "".join(f"{selector}{{{body}}}\n" for selector, body in rules)
