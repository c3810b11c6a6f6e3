"""Colours: takes a unit and a K-tile's place in the trip, gives fills that are told apart without hue.

The hues are of Okabe and Ito's set (Color Universal Design, 2008).  A unit's bars stand in a lane of their own, and a
stage's shade differs in lightness, so nothing depends on hue.
"""

from __future__ import annotations

from typing import NamedTuple

from rota.cycles.timeline import Lane

Rgb = tuple[int, int, int]

HUES: dict[Lane, str] = {
    Lane.MMA: "#d55e00",
    Lane.VALU: "#cc79a7",
    Lane.LDS: "#009e73",
    Lane.GLOBAL: "#0072b2",
}
SHADES = (1.0, 0.62, 0.42, 0.27)
"""How much of the hue a stage keeps; the rest is white, which is seen on dark too.  Later stages begin again."""

_WHITE = 255


class Theme(NamedTuple):
    """The colours of page and lines."""

    background: str
    panel: str
    text: str
    faint: str
    grid: str
    hatch: str
    barrier: str
    clash: str


LIGHT = Theme("#ffffff", "#f5f6f8", "#16191d", "#5b636d", "#e3e6ea", "#7d8690", "#16191d", "#e69f00")
DARK = Theme("#14171b", "#1d2126", "#e8eaed", "#9aa3ad", "#2c3138", "#8a939d", "#f4f5f6", "#e69f00")


def fill(lane: Lane, stage: int) -> str:
    """The colour of a bar, on any page."""
    keep = SHADES[stage % len(SHADES)]
    return _hex(tuple(round(keep * own + (1 - keep) * _WHITE) for own in _rgb(HUES[lane])))


def ink(background: str) -> str:
    """Black or white, whichever reads better on a colour."""
    return max("#000000", "#ffffff", key=lambda colour: contrast(colour, background))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours as WCAG 2.2 defines it, 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    linear = [_linear(part / 255) for part in _rgb(colour)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _linear(part: float) -> float:
    """An sRGB component as light (IEC 61966-2-1)."""
    return float(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)


def _rgb(colour: str) -> Rgb:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _hex(parts: tuple[int, ...]) -> str:
    return "#" + "".join(f"{part:02x}" for part in parts)
