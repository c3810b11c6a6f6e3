"""Devices by the architecture that they are the first of: takes nothing, gives the names that authors import."""

from __future__ import annotations

from rota.targets.mi300x import MI300X
from rota.targets.mi355x import MI355X

GFX942 = MI300X
"""CDNA3."""

GFX950 = MI355X
"""CDNA4."""
