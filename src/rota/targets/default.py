"""The default device: takes nothing, gives `DEFAULT`."""

from __future__ import annotations

from rota.targets.registry import default

DEFAULT = default()
