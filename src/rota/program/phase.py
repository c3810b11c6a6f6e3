"""The three parts of a pipelined loop: takes nothing, gives `Phase`, and the ways through them."""

from __future__ import annotations

from rota.printing import NamedMember


class Phase(NamedMember):
    """The three parts of a pipelined loop."""

    __hash__ = object.__hash__  # members are single; an enum's own hash is Python code

    PROLOGUE = "PROLOGUE"
    KERNEL = "KERNEL"
    EPILOGUE = "EPILOGUE"

    def at(self, slot: int) -> str:
        """How the entry at `slot` of this phase is called: kernel[5].  `#5` is the op of that number in the body."""
        return f"{self.value.lower()}[{slot}]"


PATHS = (
    (Phase.PROLOGUE, Phase.KERNEL, Phase.KERNEL, Phase.EPILOGUE),
    (Phase.PROLOGUE, Phase.KERNEL, Phase.EPILOGUE),
    (Phase.PROLOGUE, Phase.EPILOGUE),
)
"""Every two parts that can follow one another, with what is before them."""
