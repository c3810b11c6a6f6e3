"""The device that is meant where none is named: takes nothing, gives `DEFAULT`."""

from __future__ import annotations

from rota.targets.registry import default

DEFAULT = default()
