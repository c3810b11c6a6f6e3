"""Values as HTML, for notebooks: takes texts and shares, gives escaped markup that brings its own style.

Colours of text and page are the notebook's own, so that light and dark both work; what a colour says a word says too.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_TONES = {"ok": "#009e73", "error": "#d55e00", "warning": "#e69f00", "note": "#0072b2"}
_PLAIN = "#8a939d"
_SHARES = ("#d55e00", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#8a939d")


def card(head: str, *parts: str, tone: str = "") -> str:
    """A head with markup below it, and a coloured edge."""
    edge = _TONES.get(tone, _PLAIN)
    return (
        f'<div style="border-left:4px solid {edge};padding:2px 0 2px 10px;margin:4px 0">'
        f"<div><b>{escape(head)}</b></div>{''.join(parts)}</div>"
    )


def lines(text: str) -> str:
    """A text as it stands, line by line."""
    return f'<pre style="margin:2px 0;white-space:pre-wrap">{escape(text)}</pre>' if text else ""


def folded(summary: str, text: str) -> str:
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
