"""Values as HTML, for notebooks: escaped markup that brings its own style.

Text and page keep the notebook's colours, so that light and dark both work; words repeat whatever a colour says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

_TONES = {"ok": "#009e73", "error": "#d55e00", "warning": "#e69f00", "note": "#0072b2"}
_PLAIN = "#8a939d"
_LINKS = ["#3a94d6", "#e0661a", "#009e73"]  # each stands out from white and from black
_BOX = "border:1px solid #8a939d;border-radius:4px;padding:3px 8px;margin:2px;font:12px/1.45 monospace"
_ROW, _LETTER, _REACH = 18, 7.3, 180  # pixels: of a line, of a letter, of the widest arc
_SHARES = ("#d55e00", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#8a939d")


def card(head: str, *parts: str, tone: str = "") -> str:
    """A head with markup below it, and a coloured edge."""
    edge = _TONES.get(tone, _PLAIN)
    return (
        f'<div style="border-left:4px solid {edge};padding:2px 0 2px 10px;margin:4px 0">'
        f"<div><b>{escape(head)}</b></div>{''.join(parts)}</div>"
    )


def lines(text: str) -> str:
    return f'<pre style="margin:2px 0;white-space:pre-wrap">{escape(text)}</pre>' if text else ""


def fold(summary: str, text: str) -> str:
    """A text that a click unfolds."""
    return f"<details><summary>{escape(summary)}</summary>{lines(text)}</details>" if text else ""


def shares(parts: Iterable[tuple[str, float]], unit: str) -> str:
    """One bar made of named parts, with its legend below."""
    shown = [
        (name, amount, _SHARES[number % len(_SHARES)]) for number, (name, amount) in enumerate(parts) if amount > 0
    ]
    whole = sum(amount for _, amount, _ in shown)
    if not whole:
        return ""
    bar = "".join(
        f'<div style="width:{100 * amount / whole:.2f}%;background:{colour}" title="{escape(name)}"></div>'
        for name, amount, colour in shown
    )
    legend = "".join(
        f'<span style="margin-right:14px"><span style="display:inline-block;width:10px;height:10px;'
        f'background:{colour}"></span> {escape(name)} {amount:,.0f} {escape(unit)}</span>'
        for name, amount, colour in shown
    )
    return f'<div style="display:flex;height:14px;max-width:640px;margin:4px 0">{bar}</div><div>{legend}</div>'


class Link(NamedTuple):
    """A line of a graph from one row to another, in the colour of its kind; one that `returns` is on the left."""

    start: int
    end: int
    kind: str
    title: str
    returns: bool = False


def boxes(rows: Iterable[tuple[str, Iterable[tuple[str, Iterable[tuple[str, bool]]]]]]) -> str:
    """Rows of boxes, each with a head and lines of text; links that aren't strong are faint."""
    found: list[str] = []
    for name, row in rows:
        cells = "".join(
            f'<div style="{_BOX}"><b>{escape(head)}</b>'
            + "".join(
                f'<div style="{"" if strong else "opacity:.6;padding-left:10px"}">{escape(text)}</div>'
                for text, strong in body
            )
            + "</div>"
            for head, body in row
        )
        found.append(
            f'<div style="margin:6px 0 2px">{escape(name)}</div><div style="display:flex;flex-wrap:wrap">{cells}</div>'
        )
    return "".join(found)


def arcs(names: Sequence[str], links: Iterable[Link]) -> str:
    """Names one below another, and an arc for each link: forwards on the right, returning ones on the left."""
    drawn = list(links)
    farthest = max((abs(each.end - each.start) for each in drawn), default=1) or 1
    kinds = list(dict.fromkeys(each.kind for each in drawn))
    colours = dict(zip(kinds, _LINKS * len(kinds), strict=False))
    left = _REACH if any(each.returns for each in drawn) else 0
    right = left + 16 + round(max((len(name) for name in names), default=0) * _LETTER)
    text = "".join(
        f'<text x="{left + 8}" y="{_ROW * number + 14}" fill="currentColor">{escape(name)}</text>'
        for number, name in enumerate(names)
    )
    curves = "".join(_arc(each, colours[each.kind], left if each.returns else right, farthest) for each in drawn)
    key = "".join(
        f'<span style="color:{colours[kind]};margin-right:14px">&#8594; {escape(kind)}</span>' for kind in kinds
    )
    if left:
        key += "<span>dashed, on the left: a later iteration</span>"
    return (
        f'<div style="max-height:600px;overflow:auto"><svg xmlns="http://www.w3.org/2000/svg" width="{right + _REACH}" '
        f'height="{_ROW * len(names) + 6}" style="font:12px monospace;white-space:pre">{text}{curves}</svg></div>'
        f"<div>{key}</div>"
    )


def _arc(link: Link, colour: str, side: int, farthest: int) -> str:
    """A curve that ends in a small arrow head; the more rows it spans, the farther it reaches out."""
    out = -1 if link.returns else 1
    first, last = (_ROW * row + 10 for row in (link.start, link.end))
    first, last = (first + 3, last - 3) if link.end > link.start else (first - 3, last + 3)
    reach = side + out * (16 + (_REACH - 20) * abs(link.end - link.start) / farthest) * 4 / 3  # a curve's 3/4 is drawn
    dash = ' stroke-dasharray="4 3"' if link.returns else ""
    return (
        f'<g stroke="{colour}" fill="none"><title>{escape(link.title)}</title>'
        f'<path d="M{side} {first}C{reach:.0f} {first} {reach:.0f} {last} {side} {last}"{dash}/>'
        f'<path fill="{colour}" d="M{side} {last}l{6 * out} -3v6z"/></g>'
    )
