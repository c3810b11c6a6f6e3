"""Pages from templates: takes the name of a file in `templates/` and values, gives the text with all values escaped.

A template says `|safe` of what is markup already; everything else, such as the names that authors give, stays text.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def render(name: str, **values: object) -> str:
    """One template, filled in."""
    return _templates().get_template(name).render(values)


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
