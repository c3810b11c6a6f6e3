"""The diff as a page: takes a `ScheduleDiff`, gives one HTML file with both listings side by side."""

from __future__ import annotations

from rota.view.diff import ScheduleDiff
from rota.view.palette import DARK, LIGHT
from rota.view.template import render


def diff_page(diff: ScheduleDiff) -> str:
    """A whole document."""
    return render("diff.html", diff=diff, light=LIGHT, dark=DARK)
