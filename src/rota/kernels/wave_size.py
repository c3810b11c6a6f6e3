"""What the shipped loops are written for: takes nothing, gives the lanes of a wave and the bytes of its registers."""

from __future__ import annotations

from rota.targets import cdna

LANES = cdna.LANES.value
REGISTER_BYTES = cdna.REGISTER_BYTES.value
