"""The three parts of a pipelined loop: takes nothing, gives `Phase`."""

from __future__ import annotations

import enum


class Phase(enum.Enum):
    """The three parts of a pipelined loop."""

    PROLOGUE = "PROLOGUE"
    KERNEL = "KERNEL"
    EPILOGUE = "EPILOGUE"
