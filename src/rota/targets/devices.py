"""The devices that authors import by name, and the default one."""

from __future__ import annotations

from rota.targets.cdna3 import MI300X
from rota.targets.cdna4 import MI355X
from rota.targets.registry import default

DEFAULT = default()


GFX942 = MI300X
"""CDNA3."""

GFX950 = MI355X
"""CDNA4."""
