"""The three parts of a pipelined loop: takes nothing, gives `Phase`."""

from __future__ import annotations

import enum


class Phase(enum.Enum):
    """The three parts of a pipelined loop."""

    __hash__ = object.__hash__  # members are single; an enum's own hash is Python code

    PROLOGUE = "PROLOGUE"
    KERNEL = "KERNEL"
    EPILOGUE = "EPILOGUE"
