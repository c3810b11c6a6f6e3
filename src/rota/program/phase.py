"""The three parts of a pipelined loop: takes nothing, gives `Phase`, and the ways through them."""

from __future__ import annotations

import enum


class Phase(enum.Enum):
    """The three parts of a pipelined loop."""

    __hash__ = object.__hash__  # members are single; an enum's own hash is Python code

    PROLOGUE = "PROLOGUE"
    KERNEL = "KERNEL"
    EPILOGUE = "EPILOGUE"


PATHS = (
    (Phase.PROLOGUE, Phase.KERNEL, Phase.KERNEL, Phase.EPILOGUE),
    (Phase.PROLOGUE, Phase.KERNEL, Phase.EPILOGUE),
    (Phase.PROLOGUE, Phase.EPILOGUE),
)
"""Every two parts that can follow one another, with what is before them."""
